// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/roce/kept_packets.h"

#include <cstring>

namespace ub::roce {
namespace {

std::byte* bytes_of(const CoreState& s, const State& r, uint32_t kept) {
  return r.kept_bytes + size_t{kept} * s.config.max_frame_bytes;
}

}  // namespace

bool keep_packet(const CoreState& s, State& r, Qp& qp, std::span<const std::byte> raw) {
  const bool has_room = raw.size() <= s.config.max_frame_bytes && has_share(r.kept, qp.kept);
  const uint32_t kept = has_room ? r.kept.alloc() : 0;
  if (kept == 0) return false;
  std::memcpy(bytes_of(s, r, kept), raw.data(), raw.size());
  r.kept[kept] = {static_cast<uint32_t>(raw.size()), {}};
  qp.kept_list.push_back<&KeptPacket::in_line>(r.kept, kept);
  ++qp.kept;
  return true;
}

Drop parse_oldest_kept(const CoreState& s, const State& r, const Qp& qp, Packet* out) {
  const uint32_t kept = oldest_kept(r, qp);
  const std::byte* raw = bytes_of(s, r, kept);
  return parse_packet(raw, raw + r.kept[kept].bytes, *out);
}

void drop_oldest_kept(State& r, Qp& qp) {
  UB_DCHECK(qp.kept != 0);
  r.kept.free(qp.kept_list.pop_front<&KeptPacket::in_line>(r.kept));
  --qp.kept;
}

void drop_kept(State& r, Qp& qp) {
  while (!qp.kept_list.empty()) drop_oldest_kept(r, qp);
  UB_DCHECK(qp.kept == 0);
}

}  // namespace ub::roce
