// SPDX-License-Identifier: Apache-2.0
#include "lib/record/frame_shape.h"

#include <algorithm>

#include "lib/base/bytes.h"
#include "lib/transport/roce/types.h"
#include "lib/transport/roce/wire/icrc.h"
#include "lib/transport/roce/wire/mad.h"
#include "lib/transport/roce/wire/packet.h"
#include "lib/transport/wire/bypass_packet.h"
#include "lib/transport/wire/cna_packet.h"
#include "lib/transport/wire/compact_packet.h"
#include "lib/transport/wire/entity_header.h"
#include "lib/transport/wire/icrc.h"
#include "lib/transport/wire/network_header.h"
#include "lib/transport/wire/rtp_header.h"
#include "lib/transport/wire/transaction_packet.h"

namespace ub::record {

namespace {

constexpr uint32_t kOriginalBytes = 8;  // of AtomicAckETH

using Frame = std::span<const std::byte>;

void set_payload(FrameShape& shape, Frame frame, const std::byte* payload, uint32_t bytes) {
  if (bytes == 0) return;
  shape.payload_at = static_cast<uint32_t>(payload - frame.data());
  shape.payload_bytes = bytes;
}

// The bytes of transaction headers of each opcode, but UDETAH and TVETAH; 0: it is unknown, or they depend on more.
struct HeaderSizes {
  size_t of[256] = {}, with_meta[256] = {};

  HeaderSizes() {
    for (uint32_t code = 0; code < 256; ++code) {
      const auto op = static_cast<wire::TaOpcode>(code);
      const uint16_t shape = wire::ta_shape(op);
      if ((shape & wire::kShapePayload) == 0 || (shape & wire::kShapeBe) != 0) continue;
      const bool is_response = wire::ta_is_response_code(static_cast<uint8_t>(code));
      of[code] = is_response ? wire::response_header_size(op, false) : wire::request_header_size(op, {});
      with_meta[code] = is_response ? wire::response_header_size(op, true) : of[code];
    }
  }
};
const HeaderSizes kHeaderSizes;

// What stands between the transaction headers at p and the padding before `end`. A recorder looks at each frame, so
// only what decides where the payload begins is read. A Read response may have meta headers or not, which only its
// channel knows: where they fit, the bytes in their place are kept (docs/recording.md).
void find_payload(FrameShape& shape, Frame frame, const std::byte* p, const std::byte* end, uint8_t padding,
                  bool compact) {
  if (end - p < static_cast<ptrdiff_t>(wire::Btah::kSize)) return;
  wire::Btah request;
  (void)wire::Btah::read(p, wire::Btah::kSize, request);
  const auto code = static_cast<uint8_t>(request.opcode);
  const auto avail = static_cast<size_t>(end - p);
  size_t headers = (compact ? kHeaderSizes.of : kHeaderSizes.with_meta)[code];
  if (headers == 0) {
    wire::TaPacket ta;
    const wire::Drop drop = compact ? wire::parse_compact_transaction(p, end, padding, ta)
                                    : wire::parse_transaction(p, end, padding, false, ta);
    if (drop == wire::Drop::kNone) set_payload(shape, frame, ta.payload, ta.payload_len);
    return;
  }
  if (wire::ta_is_response_code(code)) {
    if (headers + padding > avail) headers = kHeaderSizes.of[code];
  } else {
    headers += (request.ud_flag ? wire::Udetah::kSize : 0) + (request.tv_en ? wire::Tvetah::kSize : 0);
  }
  if (headers + padding < avail)
    set_payload(shape, frame, p + headers, static_cast<uint32_t>(avail - padding - headers));
}

// A message to jetty 0 is one of set-up, which the Core reads.
bool is_record(const std::byte* p, const std::byte* end, uint8_t padding) {
  wire::TaPacket ta;
  return wire::parse_transaction(p, end, padding, false, ta) == wire::Drop::kNone && !ta.is_response && ta.has_mt &&
         ta.mt.tc_id == 0;
}

// RTP and UTP: from the transport header to the last byte before the CRC.
void find_in_transport(FrameShape& shape, Frame frame, const std::byte* p, const std::byte* end) {
  wire::RtpHeader rtp;
  if (wire::RtpHeader::read(p, static_cast<size_t>(end - p), rtp) != wire::Drop::kNone) return;
  const bool unreliable = rtp.opcode == wire::TpOpcode::kUnreliable;
  if (!unreliable && (!rtp.is_data() || rtp.fake)) return;
  p += wire::RtpHeader::kSize;
  if (rtp.nlp == wire::kNlpEntity) p += wire::EntityHeader::kSize;
  if (p > end || (unreliable && is_record(p, end, rtp.padding))) return;
  find_payload(shape, frame, p, end, rtp.padding, false);
}

void find_in_link_frame(FrameShape& shape, Frame frame) {
  if (wire::is_bypass(frame)) {
    wire::BypassPacket packet;
    if (wire::parse_bypass(frame, packet) == wire::Drop::kNone)
      set_payload(shape, frame, packet.payload, packet.payload_len);
    return;
  }
  wire::CompactPacket compact;
  if (wire::parse_compact(frame, compact) == wire::Drop::kNone) {
    shape.sum = FrameShape::Sum::kUbCna24;
    shape.icrc_at = static_cast<uint32_t>(compact.end - frame.data());
    find_payload(shape, frame, compact.rest, compact.end, compact.ctp.padding, true);
    return;
  }
  wire::CnaPacket cna;
  if (wire::parse_cna(frame, cna) != wire::Drop::kNone) return;
  shape.sum = FrameShape::Sum::kUbCna24;
  shape.icrc_at = static_cast<uint32_t>(cna.end - frame.data());
  find_in_transport(shape, frame, cna.tph, cna.end);
}

void find_in_roce(FrameShape& shape, Frame frame, const wire::NetHeader& net) {
  roce::Packet packet;
  const roce::Drop drop = roce::parse_packet(net.tph, net.end, packet);
  if (drop == roce::Drop::kTooShort) return;
  shape.sum = FrameShape::Sum::kRoce;
  shape.icrc_at = static_cast<uint32_t>(net.end - frame.data());
  if (drop != roce::Drop::kNone || packet.bth.dest_qp == roce::kGsiQp) return;
  if (packet.has(roce::kShapeAtomicAckEth)) {  // what the memory had before comes last
    set_payload(shape, frame, packet.payload - kOriginalBytes, kOriginalBytes);
  } else {
    set_payload(shape, frame, packet.payload, packet.payload_bytes);
  }
}

}  // namespace

FrameShape shape_of(Frame frame) {
  FrameShape shape;
  if (wire::has_link_header(frame)) {
    find_in_link_frame(shape, frame);
    return shape;
  }
  wire::NetHeader net;
  if (wire::parse_network(frame, net) != wire::Drop::kNone) return shape;
  if (net.dst.port == roce::kUdpPort) {
    find_in_roce(shape, frame, net);
    return shape;
  }
  shape.sum = FrameShape::Sum::kUbIp;
  shape.icrc_at = static_cast<uint32_t>(net.end - frame.data());
  find_in_transport(shape, frame, net.tph, net.end);
  return shape;
}

std::span<const std::byte> header_of(Frame frame, const FrameShape& shape) {
  const size_t end = shape.sum != FrameShape::Sum::kNone ? shape.icrc_at : frame.size();
  return frame.first(std::min(shape.payload_bytes != 0 ? shape.payload_at : end, kMostKept));
}

bool has_icrc(Frame frame, const FrameShape& shape) {
  return shape.sum != FrameShape::Sum::kNone && load_le32(frame.data() + shape.icrc_at) != 0;
}

uint32_t right_icrc(Frame frame, const FrameShape& shape) {
  const std::byte* l3 = frame.data() + wire::kEthSize;
  const std::byte* end = frame.data() + shape.icrc_at;
  if (shape.sum == FrameShape::Sum::kUbCna24) {
    const std::byte* nth = l3 + wire::LinkHeader::kSize;
    return wire::icrc_compute_nth24(nth, static_cast<size_t>(end - nth));
  }
  wire::NetHeader net;
  if (wire::parse_network(frame, net) != wire::Drop::kNone) return 0;
  const auto covered = static_cast<size_t>(end - net.l3);
  return shape.sum == FrameShape::Sum::kRoce ? roce::icrc_compute(net.l3, covered, net.v6)
                                             : wire::icrc_compute(net.l3, covered, net.v6);
}

}  // namespace ub::record
