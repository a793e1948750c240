// SPDX-License-Identifier: Apache-2.0
#include "lib/impair/packet_kind.h"

#include "lib/transport/roce/wire/bth.h"
#include "lib/transport/wire/cna_packet.h"
#include "lib/transport/wire/compact_packet.h"
#include "lib/transport/wire/control_record.h"
#include "lib/transport/wire/entity_header.h"
#include "lib/transport/wire/network_header.h"
#include "lib/transport/wire/rtp_header.h"
#include "lib/transport/wire/transaction_packet.h"
#include "lib/transport/wire/utp_header.h"

namespace ub::impair {
namespace {

Kind kind_of_rtp(const wire::RtpHeader& rtp) { return rtp.is_data() ? Kind::kData : Kind::kAck; }

// A frame with a link header, if it carries RTP; else it is taken for CTP.
Kind kind_of_link_frame(std::span<const std::byte> eth_frame) {
  wire::CnaPacket packet;
  wire::RtpHeader rtp;
  if (wire::parse_cna(eth_frame, packet) != wire::Drop::kNone) return Kind::kCtp;
  const auto bytes = static_cast<size_t>(packet.end - packet.tph);
  return wire::RtpHeader::read(packet.tph, bytes, rtp) == wire::Drop::kNone ? kind_of_rtp(rtp) : Kind::kOther;
}

bool is_control_record(const wire::NetHeader& net, const wire::RtpHeader& utp) {
  const std::byte* body = net.tph + wire::UtpHeader::kSize;
  if (utp.nlp == wire::kNlpEntity) body += wire::EntityHeader::kSize;
  if (body >= net.end) return false;
  wire::TaPacket ta;
  if (wire::parse_transaction(body, net.end, utp.padding, false, ta) != wire::Drop::kNone) return false;
  wire::ControlRecord record;
  return wire::read_control_record({ta.payload, ta.payload_len}, record) == wire::Drop::kNone;
}

}  // namespace

Kind kind_of(std::span<const std::byte> eth_frame) {
  if (wire::has_link_header(eth_frame)) return kind_of_link_frame(eth_frame);
  wire::NetHeader net;
  if (wire::parse_network(eth_frame, net) != wire::Drop::kNone) return Kind::kOther;
  if (net.dst.port == roce::kUdpPort) return Kind::kRoce;
  wire::RtpHeader rtp;
  if (wire::RtpHeader::read(net.tph, net.tp_size(), rtp) != wire::Drop::kNone) return Kind::kOther;
  if (rtp.opcode == wire::TpOpcode::kUnreliable) return is_control_record(net, rtp) ? Kind::kSetup : Kind::kData;
  return kind_of_rtp(rtp);
}

}  // namespace ub::impair
