// SPDX-License-Identifier: Apache-2.0
//
// A RoCE queue pair of a node, as core_objects.h has other objects, and how two of them are connected.
#pragma once

#include <type_traits>
#include <utility>

#include "emu_hw/node/core_objects.h"
#include "lib/transport/core.h"

namespace ub::emu {

template <class Node>
struct QueuePair : SendRing {
  using Engine = std::remove_pointer_t<decltype(std::declval<Node&>().core.roce())>;

  QueuePair(Node& n, CompletionQueue& jfc, const ReceiveQueue& jfr, uint32_t ring_depth)
      : SendRing(ring_depth, Engine::work_bytes(ring_depth)), node(n) {
    roce::QpConfig c;
    c.sq = config(jfc);
    c.jfr = jfr.id;
    c.srq = true;
    UB_ASSERT(node.core.roce()->create_qp(c, &id) == Status::kOk);
  }

  // `reads`: READs and atomics in flight, and served. `mtu_code`: 3 is 1024 bytes, 5 is 4096.
  void connect(Instant now, uint32_t link, const Node& peer, uint32_t peer_qpn, uint32_t reads, uint8_t mtu_code) {
    roce::QpAttributes to;
    to.path_mtu = mtu_code;
    to.dest_qp_num = peer_qpn;
    to.qp_access_flags = kAccessRead | kAccessWrite | kAccessAtomic;
    to.ah_attr = {link, endpoint_of(node.number).ip, endpoint_of(peer.number).ip, 0};
    to.max_rd_atomic = to.max_dest_rd_atomic = static_cast<uint8_t>(reads);
    to.timeout = timeout;
    to.retry_cnt = to.rnr_retry = 7;
    step(now, to, roce::QpState::kInit, roce::kQpPkey | roce::kQpPort | roce::kQpAccess);
    step(now, to, roce::QpState::kRtr,
         roce::kQpPath | roce::kQpMtu | roce::kQpDestination | roce::kQpReceivePsn | roce::kQpReadsServed |
             roce::kQpRnrTimer);
    step(now, to, roce::QpState::kRts,
         roce::kQpSendPsn | roce::kQpTimeout | roce::kQpRetries | roce::kQpRnrRetries | roce::kQpReadsInFlight);
  }

  Node& node;
  uint8_t timeout = 14;  // until it sends again, a power of two times 4.096 us; set it before connect()

 private:
  void step(Instant now, roce::QpAttributes& to, roce::QpState state, uint32_t mask) {
    to.qp_state = state;
    UB_ASSERT(node.core.roce()->modify_qp(now, id, to, mask) == Status::kOk);
  }
};

}  // namespace ub::emu
