// SPDX-License-Identifier: Apache-2.0
// kept_packets.h - packets of a queue pair that wait for memory which answers later: a list in the pool that the Core
// has for all, the oldest first.
#pragma once

#include <cstddef>
#include <span>

#include "lib/transport/roce/qp.h"

namespace ub::roce {

/// Behind the others. False: there is no room for it.
[[nodiscard]] bool keep_packet(CoreState& s, Qp& qp, std::span<const std::byte> raw);
/// 0: none is kept.
inline uint32_t oldest_kept(const CoreState& s, const Qp& qp) {
  return qp.kept_list.empty() ? 0 : qp.kept_list.front<&tp::KeptPacket::in_line>(s.kept);
}
/// There is one. What was kept was parsed when it came: kNone, or one of is_invalid_request().
[[nodiscard]] Drop parse_oldest_kept(CoreState& s, const Qp& qp, Packet* out);
void drop_oldest_kept(CoreState& s, Qp& qp);
void drop_kept(CoreState& s, Qp& qp);

}  // namespace ub::roce
