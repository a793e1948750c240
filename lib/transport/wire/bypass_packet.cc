// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/wire/bypass_packet.h"

#include <bit>
#include <cstring>

#include "lib/base/bytes.h"

namespace ub::wire {
namespace {

constexpr size_t kMacSize = MacAddress{}.size();

bool has_byte_enables(TaOpcode op) { return (ta_shape(op) & kShapeBe) != 0; }

/// LPH and NTH16; the caller has checked that they are there.
Drop parse_prefix(const std::byte* frame, BypassRoute& route) {
  LinkHeader link;
  Nth16 nth;
  (void)LinkHeader::read(frame + kEthSize, LinkHeader::kSize, link);  // nothing but its length could be wrong
  if (link.cfg != kCfgLoadStore) return Drop::kBadLinkType;
  const Drop d = Nth16::read(frame + kEthSize + LinkHeader::kSize, Nth16::kSize, nth);
  if (d != Drop::kNone) return d;
  if (nth.nlp != 0) return Drop::kBadNlp;
  if (nth.mgmt) return Drop::kManagement;
  std::memcpy(route.to.data(), frame, kMacSize);
  std::memcpy(route.from.data(), frame + kMacSize, kMacSize);
  route.dcna = nth.dcna;
  route.scna = nth.scna;
  route.sl = nth.sl;
  return Drop::kNone;
}

/// What follows the headers of a packet without payload has to be what Ethernet filled the frame up with.
Drop take_nothing(const std::byte* p, std::span<const std::byte> frame, BypassPacket& out) {
  out.payload = p;
  out.payload_len = 0;
  return p != frame.data() + frame.size() && frame.size() > kMinEthFrame ? Drop::kUnexpectedPayload : Drop::kNone;
}

Drop take_payload(const std::byte* p, const std::byte* end, size_t length, BypassPacket& out) {
  out.payload = p;
  out.payload_len = static_cast<uint32_t>(length);
  return static_cast<size_t>(end - p) == length ? Drop::kNone : Drop::kBadLength;
}

Drop parse_request(const Btah& req, const std::byte* p, std::span<const std::byte> frame, BypassPacket& out) {
  const std::byte* const end = frame.data() + frame.size();
  if (req.tv_en && (ta_shape(req.opcode) & kShapeTv) == 0) return Drop::kBadHeaderFlags;
  const size_t fixed = (req.ud_flag ? Udetah::kSize : 0) + MaetahCompact::kSize + (req.tv_en ? Tvetah::kSize : 0);
  if (static_cast<size_t>(end - p) < fixed) return Drop::kTruncatedHeader;
  out.has_ud = req.ud_flag;
  out.tv = req.tv_en;
  out.has_be = has_byte_enables(req.opcode);
  if (req.ud_flag) {
    out.ud = Udetah::read(p).ud;
    p += Udetah::kSize;
  }
  out.ma = MaetahCompact::read(p);
  p += MaetahCompact::kSize;
  if (req.tv_en) {
    out.token_value = Tvetah::read(p).token_value;
    p += Tvetah::kSize;
  }
  if (out.has_be) {
    out.be = {p, BeetahView::enables_of(out.ma.length())};
    if (static_cast<size_t>(end - p) < out.be.size()) return Drop::kTruncatedHeader;
    p += out.be.size();
  }
  if (!ta_has_payload(req.opcode)) return take_nothing(p, frame, out);
  return take_payload(p, end, out.ma.length(), out);
}

Drop parse_response(const AtahCompact& rsp, const std::byte* p, std::span<const std::byte> frame, BypassPacket& out) {
  out.status = rsp.status;
  out.has_ud = out.tv = out.has_be = false;
  if (rsp.status != AtahCompact::kOk || !ta_has_payload(rsp.opcode)) return take_nothing(p, frame, out);
  const auto length = static_cast<size_t>(frame.data() + frame.size() - p);
  const bool possible = std::has_single_bit(length) && length >= kMinBypassPayload && length <= kMaxBypassPayload;
  out.payload = p;
  out.payload_len = static_cast<uint32_t>(length);
  return possible ? Drop::kNone : Drop::kBadLength;
}

}  // namespace

Drop parse_bypass(std::span<const std::byte> frame, BypassPacket& out) {
  if (frame.size() < kBypassPrefixSize + Btah::kCompactSize) return Drop::kTooShort;
  if (const Drop d = parse_prefix(frame.data(), out.route); d != Drop::kNone) return d;
  const std::byte* p = frame.data() + kBypassPrefixSize;
  std::byte base[Btah::kCompactSize];  // its first byte tells which of two layouts it has
  std::memcpy(base, p, sizeof base);
  p += sizeof base;
  Btah req;
  const Drop version = Btah::read_compact(base, sizeof base, req);
  out.opcode = req.opcode;
  out.tassn = req.tassn;
  out.poison = req.poison;
  out.is_response = ta_is_response_code(static_cast<uint8_t>(req.opcode));
  if (version != Drop::kNone) return version;
  if (ta_shape(req.opcode) == 0) return Drop::kUnknownOpcode;
  if ((ta_shape(req.opcode) & kShapeBypass) == 0) return Drop::kNotLoadStore;
  if (!out.is_response) return parse_request(req, p, frame, out);
  AtahCompact rsp;
  (void)AtahCompact::read(base, sizeof base, rsp);  // the version was checked
  return parse_response(rsp, p, frame, out);
}

size_t bypass_header_size(const BypassPacket& packet) {
  static_assert(Btah::kCompactSize == AtahCompact::kSize);
  const size_t base = kBypassPrefixSize + Btah::kCompactSize;
  if (packet.is_response) return base;
  return base + MaetahCompact::kSize + (packet.has_ud ? Udetah::kSize : 0) + (packet.tv ? Tvetah::kSize : 0) +
         (packet.has_be ? packet.be.size() : 0);
}

size_t bypass_payload_size(const BypassPacket& packet) {
  if (packet.is_response) return packet.payload_len;
  return ta_has_payload(packet.opcode) ? packet.ma.length() : 0;
}

size_t write_bypass_headers(const BypassPacket& packet, std::byte* frame) {
  const BypassRoute& route = packet.route;
  std::byte* p = frame;
  std::memcpy(p, route.to.data(), kMacSize);
  std::memcpy(p + kMacSize, route.from.data(), kMacSize);
  store_be16(p + 2 * kMacSize, kEtherTypeUb);
  p += kEthSize;
  const auto put = [&p](bool present, const auto& header) {
    if (!present) return;
    header.write(p);
    p += header.kSize;
  };
  put(true, LinkHeader{.vl = route.sl, .cfg = kCfgLoadStore});
  put(true, Nth16{.scna = route.scna, .dcna = route.dcna, .sl = route.sl});
  if (packet.is_response) {
    put(true, AtahCompact{packet.opcode, packet.status, packet.poison, packet.tassn});
    return static_cast<size_t>(p - frame);
  }
  Btah{.opcode = packet.opcode,
       .ud_flag = packet.has_ud,
       .poison = packet.poison,
       .tv_en = packet.tv,
       .tassn = packet.tassn}
      .write_compact(p);
  p += Btah::kCompactSize;
  put(packet.has_ud, Udetah{packet.ud});
  put(true, packet.ma);
  put(packet.tv, Tvetah{packet.token_value});
  if (packet.has_be) {
    std::memcpy(p, packet.be.bits, packet.be.size());
    p += packet.be.size();
  }
  return static_cast<size_t>(p - frame);
}

}  // namespace ub::wire
