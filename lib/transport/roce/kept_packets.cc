// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/roce/kept_packets.h"

#include <cstring>

namespace ub::roce {

bool keep_packet(CoreState& s, Qp& qp, std::span<const std::byte> raw) {
  const bool has_room = raw.size() <= s.config.max_frame_bytes && has_share(s.kept, qp.kept);
  const uint32_t kept = has_room ? s.kept.alloc() : 0;
  if (kept == 0) return false;
  std::memcpy(s.kept_data(kept), raw.data(), raw.size());
  s.kept[kept].bytes = static_cast<uint32_t>(raw.size());
  s.kept[kept].next = 0;
  (qp.kept_head == 0 ? qp.kept_head : s.kept[qp.kept_tail].next) = kept;
  qp.kept_tail = kept;
  ++qp.kept;
  return true;
}

Drop parse_oldest_kept(CoreState& s, const Qp& qp, Packet* out) {
  const std::byte* raw = s.kept_data(qp.kept_head);
  return parse_packet(raw, raw + s.kept[qp.kept_head].bytes, *out);
}

void drop_oldest_kept(CoreState& s, Qp& qp) {
  const uint32_t kept = qp.kept_head;
  qp.kept_head = s.kept[kept].next;
  --qp.kept;
  s.kept.free(kept);
}

void drop_kept(CoreState& s, Qp& qp) {
  while (qp.kept_head != 0) drop_oldest_kept(s, qp);
}

}  // namespace ub::roce
