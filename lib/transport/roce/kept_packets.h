// SPDX-License-Identifier: Apache-2.0
// kept_packets.h - packets of a queue pair that wait for memory which answers later: a list in the pool of all queue
// pairs, the oldest first.
#pragma once

#include <cstddef>
#include <span>

#include "lib/transport/roce/state.h"

namespace ub::roce {

/// Behind the others. False: there is no room for it.
[[nodiscard]] bool keep_packet(const CoreState& s, State& r, Qp& qp, std::span<const std::byte> raw);
/// 0: none is kept.
inline uint32_t oldest_kept(const State& r, const Qp& qp) {
  return qp.kept_list.empty() ? 0 : qp.kept_list.front<&KeptPacket::in_line>(r.kept);
}
/// There is one. What was kept was parsed when it came: kNone, or one of is_invalid_request().
[[nodiscard]] Drop parse_oldest_kept(const CoreState& s, const State& r, const Qp& qp, Packet* out);
void drop_oldest_kept(State& r, Qp& qp);
void drop_kept(State& r, Qp& qp);

}  // namespace ub::roce
