// SPDX-License-Identifier: Apache-2.0
#include "lib/record/frame_shape.h"

#include <algorithm>

#include "lib/base/bytes.h"
#include "lib/base/crc32.h"
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

// A Read response may have meta headers or not, which only its channel knows. To take the first bytes of payload for
// headers does no harm.
wire::Drop parse(const std::byte* p, const std::byte* end, uint8_t padding, wire::TaPacket& ta) {
  const wire::Drop with_meta = wire::parse_transaction(p, end, padding, true, ta);
  return with_meta == wire::Drop::kNone ? with_meta : wire::parse_transaction(p, end, padding, false, ta);
}

// RTP and UTP: from the transport header to the last byte before the CRC.
void find_in_transport(FrameShape& shape, Frame frame, const std::byte* p, const std::byte* end) {
  wire::RtpHeader rtp;
  if (wire::RtpHeader::read(p, static_cast<size_t>(end - p), rtp) != wire::Drop::kNone) return;
  const bool unreliable = rtp.opcode == wire::TpOpcode::kUnreliable;
  if (!unreliable && (!rtp.is_data() || rtp.fake)) return;
  p += wire::RtpHeader::kSize;
  if (rtp.nlp == wire::kNlpEntity) p += wire::EntityHeader::kSize;
  wire::TaPacket ta;
  if (p > end || parse(p, end, rtp.padding, ta) != wire::Drop::kNone) return;
  const bool is_record = unreliable && !ta.is_response && ta.has_mt && ta.mt.tc_id == 0;
  if (!is_record) set_payload(shape, frame, ta.payload, ta.payload_len);
}

void find_in_link_frame(FrameShape& shape, Frame frame) {
  if (wire::is_bypass(frame)) {
    wire::BypassPacket packet;
    if (wire::parse_bypass(frame, packet) == wire::Drop::kNone)
      set_payload(shape, frame, packet.payload, packet.payload_len);
    return;
  }
  wire::CompactPacket compact;
  wire::TaPacket ta;
  if (wire::parse_compact(frame, compact) == wire::Drop::kNone) {
    shape.sum = FrameShape::Sum::kUbCna24;
    shape.icrc_at = static_cast<uint32_t>(compact.end - frame.data());
    if (wire::parse_compact_transaction(compact.rest, compact.end, compact.ctp.padding, ta) == wire::Drop::kNone)
      set_payload(shape, frame, ta.payload, ta.payload_len);
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

uint32_t sum_of(Frame bytes) { return crc32_final(crc32_update(crc32_init(), bytes.data(), bytes.size())); }

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
