// SPDX-License-Identifier: Apache-2.0
// kept_packets.h - packets of a queue pair that wait until memory has answered. They lie in a pool that all queue pairs
// share, and each queue pair has a list of its own, the oldest packet first.
#pragma once

#include <cstddef>
#include <span>

#include "lib/transport/roce/state.h"

namespace ub::roce {

/// Keeps a packet behind the others. False: there is no room for it.
[[nodiscard]] bool keep_packet(const CoreState& s, State& r, Qp& qp, std::span<const std::byte> raw);
/// The oldest packet that is kept; 0: none is.
inline uint32_t oldest_kept(const State& r, const Qp& qp) {
  return qp.kept_list.empty() ? 0 : qp.kept_list.front<&KeptPacket::in_line>(r.kept);
}
/// Parses the oldest packet that is kept; there must be one. It was parsed when it arrived, so the result is kNone or
/// one for which is_invalid_request() is true.
[[nodiscard]] Drop parse_oldest_kept(const CoreState& s, const State& r, const Qp& qp, Packet* out);
void drop_oldest_kept(State& r, Qp& qp);
void drop_kept(State& r, Qp& qp);

}  // namespace ub::roce
