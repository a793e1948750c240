// SPDX-License-Identifier: Apache-2.0
//
// The last step of every packet of any engine: the ICRC over all bytes behind the Ethernet header becomes its last four
// bytes, the host gets the frame, and the packet is counted.
#pragma once

#include "lib/transport/core_common.h"
#include "lib/transport/wire/icrc.h"
#include "lib/transport/wire/network_header.h"

namespace ub {

// Computes UB's ICRC (UB Base Specification Rev 2.0, 5.3.7).
struct UbIcrc {
  wire::NetForm form;
  uint32_t operator()(const std::byte* l3, size_t bytes) const { return wire::icrc_of_packet(l3, bytes, form); }
};

// `frame` was begun with tx_begin(); `bytes` is its length with the ICRC. icrc(l3, n) returns the sum over the n bytes
// from `l3` on.
template <class Host, class Icrc>
void seal_and_commit(CoreCommon& s, Host& host, uint32_t link, std::byte* frame, size_t bytes, Icrc icrc) {
  std::byte* end = frame + bytes - wire::kIcrcSize;
  const std::byte* l3 = frame + wire::kEthSize;
  wire::icrc_store(end, icrc(l3, static_cast<size_t>(end - l3)));
  host.tx_commit(link, frame, bytes);
  s.count(Counter::kTxPackets);
  s.count(Counter::kTxBytes, bytes);
}

}  // namespace ub
