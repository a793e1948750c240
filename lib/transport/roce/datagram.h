// SPDX-License-Identifier: Apache-2.0
// datagram.h - UD: address handles, which queue pair gets a datagram, the 40 bytes in front of it, and its completion.
// InfiniBand Architecture Specification volume 1, 9.8.3 and 11.4; annex A17 (an IP header in place of the GRH).
#pragma once

#include "lib/transport/core_state.h"
#include "lib/transport/resource/receives.h"
#include "lib/transport/roce/completion.h"
#include "lib/transport/roce/copy_tag.h"
#include "lib/transport/roce/state.h"
#include "lib/transport/ta/payload.h"

namespace ub::roce {

Status create_ah(const CoreState& s, State& r, const AddressHandleConfig& config, uint32_t* ah);
Status destroy_ah(State& r, uint32_t ah);

/// Takes a receive for a datagram (Qp::receive). False: the datagram is dropped and counted.
[[nodiscard]] bool admit_datagram(CoreState& s, Qp& qp, const Packet& packet);
/// The completion that the datagram will have.
Cqe datagram_completion(const Packet& packet, const wire::NetHeader& net);
/// Writes the IP header of a packet as the last bytes of a GRH area.
void write_grh(const wire::NetHeader& net, std::byte (&grh)[kGrhBytes]);
/// The copies of the datagram that the queue pair holds are done: completes its receive.
void complete_datagram(CoreState& s, State& r, uint32_t qp);

/// Delivers a datagram of a UD queue pair.
template <class Host>
void deliver_datagram(CoreState& s, State& r, Host& host, uint32_t index, const Packet& packet,
                      const wire::NetHeader& net) {
  Qp& qp = r.qps[index];
  if (!admit_datagram(s, qp, packet)) return;
  std::byte grh[kGrhBytes];
  write_grh(net, grh);
  RxReceive& receive = s.receives[qp.receive];
  const ta::Copies copies{copy_tag(r.copy_prefix, {CopyFor::kPlace, index, 0}), qp.copies_pending};
  bool placed = ta::scatter(s, host, copies, receive, grh, kGrhBytes, false);
  receive.filled = kGrhBytes;
  placed = placed && ta::scatter(s, host, copies, receive, packet.payload, packet.payload_bytes, true);
  r.arriving[qp.arriving] = datagram_completion(packet, net);
  qp.copy_failed |= !placed;
  if (qp.copies_pending == 0) complete_datagram(s, r, index);
}

}  // namespace ub::roce
