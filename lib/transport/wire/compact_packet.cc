// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/wire/compact_packet.h"

#include <algorithm>

namespace ub::wire {

Drop parse_compact(std::span<const std::byte> frame, CompactPacket& out) {
  if (frame.size() < CompactTemplate::kSize + kIcrcSize) return Drop::kTooShort;
  const std::byte* at = frame.data() + kEthSize;
  LinkHeader link;
  Nth24 nth;
  (void)LinkHeader::read(at, LinkHeader::kSize, link);  // nothing but its length could be wrong
  if (link.cfg != kCfgCna24) return Drop::kBadLinkType;
  at += LinkHeader::kSize;
  const Drop drop = Nth24::read(at, Nth24::kSize, nth);
  if (drop != Drop::kNone) return drop;
  if (nth.nlp != Nth24::kNlpCtp) return Drop::kBadNlp;
  out.nth = at;
  out.scna = nth.scna;
  out.dcna = nth.dcna;
  at += Nth24::kSize;
  out.rest = at + CtpHeader::kSize;
  out.end = frame.data() + frame.size() - kIcrcSize;
  return CtpHeader::read(at, CtpHeader::kSize, out.ctp);
}

bool icrc_matches(const CompactPacket& packet) {
  const auto covered = static_cast<size_t>(packet.end - packet.nth);
  return icrc_load(packet.end) == icrc_compute_nth24(packet.nth, covered);
}

MacAddress stand_in_mac(const Endpoint& endpoint) {
  constexpr uint8_t kLocal = 2;  // and not a group
  MacAddress mac{kLocal};
  std::copy_n(endpoint.ip.bytes.data() + 12, 4, mac.data() + 1);
  mac[5] = static_cast<uint8_t>(endpoint.port);
  return mac;
}

CompactTemplate::CompactTemplate(const Endpoint& src, const Endpoint& dst, uint32_t src_tpn, uint32_t dst_tpn) {
  std::byte* at = bytes_.data();
  const MacAddress to = stand_in_mac(dst), from = stand_in_mac(src);
  std::memcpy(at, to.data(), to.size());
  std::memcpy(at + to.size(), from.data(), from.size());
  store_be16(at + 12, kEtherTypeUb);
  at += kEthSize;
  LinkHeader{.cfg = kCfgCna24}.write(at);
  at += LinkHeader::kSize;
  Nth24{.scna = src_tpn, .dcna = dst_tpn, .nlp = Nth24::kNlpCtp}.write(at);
}

}  // namespace ub::wire
