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
  qp.kept_list.push_back<&tp::KeptPacket::in_line>(s.kept, kept);
  ++qp.kept;
  return true;
}

Drop parse_oldest_kept(CoreState& s, const Qp& qp, Packet* out) {
  const uint32_t kept = oldest_kept(s, qp);
  const std::byte* raw = s.kept_data(kept);
  return parse_packet(raw, raw + s.kept[kept].bytes, *out);
}

void drop_oldest_kept(CoreState& s, Qp& qp) {
  s.kept.free(qp.kept_list.pop_front<&tp::KeptPacket::in_line>(s.kept));
  --qp.kept;
}

void drop_kept(CoreState& s, Qp& qp) {
  while (!qp.kept_list.empty()) drop_oldest_kept(s, qp);
}

}  // namespace ub::roce
