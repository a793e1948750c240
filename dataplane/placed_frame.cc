// SPDX-License-Identifier: Apache-2.0
#include "dataplane/placed_frame.h"

#include "lib/transport/roce/wire/packet.h"
#include "lib/transport/setup/channel_life.h"
#include "lib/transport/wire/cna_packet.h"
#include "lib/transport/wire/compact_packet.h"
#include "lib/transport/wire/network_header.h"
#include "lib/transport/wire/rtp_header.h"
#include "lib/transport/wire/transaction_packet.h"
#include "lib/transport/wire/utp_header.h"

namespace ub {
namespace {

using wire::Drop;

// A data packet of RTP, or a datagram. `tph`: its transport header.
std::optional<TrafficClass> class_of_transport(const CoreState& s, const std::byte* tph, const std::byte* end) {
  wire::RtpHeader rtp;
  wire::TaPacket ta;
  if (wire::RtpHeader::read(tph, static_cast<size_t>(end - tph), rtp) != Drop::kNone) return std::nullopt;
  if (rtp.opcode == wire::TpOpcode::kUnreliable) return TrafficClass::kDatagrams;
  const uint32_t channel = rtp.is_data() ? setup::channel_of_tpn(s, rtp.dst_tpn) : 0;
  if (channel == 0 || rtp.fake) return std::nullopt;
  const tp::Channel& ch = s.channels[channel];
  const std::byte* body = tph + wire::RtpHeader::kSize;
  if (wire::parse_transaction(body, end, rtp.padding, ch.read_meta, ta) != Drop::kNone) return std::nullopt;
  return ta.payload_len == 0 ? std::nullopt : std::optional(class_of(ch));
}

std::optional<TrafficClass> class_of_roce(const wire::NetHeader& net) {
  roce::Packet packet;
  const bool read = roce::parse_packet(net.tph, net.end, packet) == roce::Drop::kNone;
  return read && packet.payload_bytes != 0 ? std::optional(TrafficClass::kRoce) : std::nullopt;
}

std::optional<TrafficClass> class_of_link_frame(const CoreState& s, std::span<const std::byte> eth_frame) {
  wire::CnaPacket cna;
  if (wire::parse_cna(eth_frame, cna) == Drop::kNone) return class_of_transport(s, cna.tph, cna.end);
  wire::CompactPacket packet;
  wire::TaPacket ta;
  if (wire::parse_compact(eth_frame, packet) != Drop::kNone) return std::nullopt;
  const Drop drop = wire::parse_compact_transaction(packet.rest, packet.end, packet.ctp.padding, ta);
  return drop == Drop::kNone && ta.payload_len != 0 ? std::optional(TrafficClass::kCompact) : std::nullopt;
}

}  // namespace

TrafficClass class_of(const tp::Channel& channel) {
  if (channel.compact) return TrafficClass::kCompact;
  return is_bulk(channel.lane) ? TrafficClass::kBulk : TrafficClass::kSmall;
}

std::optional<TrafficClass> class_of_tpn(const CoreState& s, uint32_t tpn) {
  const uint32_t channel = setup::channel_of_tpn(s, tpn);
  return channel == 0 ? std::nullopt : std::optional(class_of(s.channels[channel]));
}

std::optional<TrafficClass> class_of_placed(const CoreState& s, std::span<const std::byte> eth_frame) {
  if (wire::has_link_header(eth_frame)) return class_of_link_frame(s, eth_frame);
  wire::NetHeader net;
  if (wire::parse_network(eth_frame, net) != Drop::kNone) return std::nullopt;
  return net.dst.port == roce::kUdpPort ? class_of_roce(net) : class_of_transport(s, net.tph, net.end);
}

}  // namespace ub
