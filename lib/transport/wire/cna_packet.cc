// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/wire/cna_packet.h"

#include <cstring>

#include "lib/base/bytes.h"
#include "lib/transport/wire/compact_packet.h"
#include "lib/transport/wire/icrc.h"

namespace ub::wire {
namespace {

constexpr size_t kNthAt = kEthSize + LinkHeader::kSize;
constexpr size_t kCciAt = kNthAt + 6;

}  // namespace

Drop parse_cna(std::span<const std::byte> frame, CnaPacket& out) {
  if (frame.size() < kCnaHeadersSize + kIcrcSize) return Drop::kTooShort;
  LinkHeader link;
  Nth24 nth;
  (void)LinkHeader::read(frame.data() + kEthSize, LinkHeader::kSize, link);  // nothing but its length could be wrong
  if (link.cfg != kCfgCna24) return Drop::kBadLinkType;
  out.nth = frame.data() + kNthAt;
  const Drop drop = Nth24::read(out.nth, Nth24::kSize, nth);
  if (drop != Drop::kNone) return drop;
  if (nth.nlp != Nth24::kNlpRtp) return Drop::kBadNlp;
  out.tph = frame.data() + kCnaHeadersSize;
  out.end = frame.data() + frame.size() - kIcrcSize;
  out.scna = nth.scna;
  out.dcna = nth.dcna;
  out.cci = nth.cci;
  out.sl = nth.sl;
  return Drop::kNone;
}

bool icrc_matches(const CnaPacket& packet) {
  const auto covered = static_cast<size_t>(packet.end - packet.nth);
  return icrc_load(packet.end) == icrc_compute_nth24(packet.nth, covered);
}

NetTemplate cna_template(const Endpoint& src, const Endpoint& dst, uint8_t dscp) {
  NetTemplate t;
  t.size = kCnaHeadersSize;
  t.form = NetForm::kCna24;
  std::byte* at = t.bytes.data();
  const MacAddress to = stand_in_mac(dst), from = stand_in_mac(src);
  std::memcpy(at, to.data(), to.size());
  std::memcpy(at + to.size(), from.data(), from.size());
  store_be16(at + 12, kEtherTypeUb);
  const uint8_t sl = service_level(dscp);
  LinkHeader{.vl = sl, .cfg = kCfgCna24}.write(at + kEthSize);
  Nth24{.scna = cna_of(src.ip), .dcna = cna_of(dst.ip), .sl = sl, .nlp = Nth24::kNlpRtp}.write(at + kNthAt);
  return t;
}

void write_cci(std::byte* eth_frame, const Cci& cci) { store_be16(eth_frame + kCciAt, cci.pack()); }

bool read_cci(std::span<const std::byte> frame, Cci& out) {
  LinkHeader link;
  if (!has_link_header(frame) || frame.size() < kCnaHeadersSize) return false;
  (void)LinkHeader::read(frame.data() + kEthSize, LinkHeader::kSize, link);  // as above
  return link.cfg == kCfgCna24 && Cci::unpack(load_be16(frame.data() + kCciAt), out);
}

}  // namespace ub::wire
