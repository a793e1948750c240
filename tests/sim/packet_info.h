// SPDX-License-Identifier: Apache-2.0
//
// A frame as tamper rules and traces see it: decoded as far as it goes.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "lib/base/bytes.h"
#include "lib/transport/roce/wire/packet.h"
#include "lib/transport/wire/control_record.h"
#include "lib/transport/wire/icrc.h"
#include "lib/transport/wire/network_header.h"
#include "lib/transport/wire/rtp_header.h"
#include "lib/transport/wire/sack.h"
#include "lib/transport/wire/transaction_packet.h"
#include "tests/sim/read_network.h"

namespace ub::sim {

struct PacketInfo {
  uint32_t from = 0, to = 0;  // nodes
  std::span<const std::byte> frame;
  bool valid = false;  // network and transport headers were read
  wire::NetHeader net{};  // without addresses where `cna`
  bool cna() const { return valid && wire::has_link_header(frame); }
  bool utp = false;
  wire::RtpHeader rtp{};  // not for utp
  bool has_ta = false;
  wire::TaPacket ta{};
  bool has_record = false;
  bool roce = false;
  roce::Packet roce_packet{};
  wire::ControlRecord record{};

  bool data() const { return valid && !utp && rtp.is_data(); }
  bool fake() const { return data() && rtp.fake; }
  bool ack() const { return valid && !utp && !rtp.is_data(); }  // TPACK, TPNAK, TPSACK
  bool sack() const { return valid && !utp && rtp.has_saetph(); }
  bool is_record(wire::RecordType t) const { return has_record && record.type == t; }
  bool ta_is(wire::TaOpcode op) const { return has_ta && ta.opcode() == op; }
  bool taack() const { return data() && ta_is(wire::TaOpcode::kTaack); }
  bool request() const { return data() && has_ta && !ta.is_response; }
};

// Makes the ICRC fit the bytes again.
inline void reseal(std::span<std::byte> frame) {
  wire::NetHeader net;
  if (read_network(frame, net)) wire::icrc_store(frame.data() + (net.end - frame.data()), icrc_of(frame, net));
}

inline PacketInfo inspect(uint32_t from, uint32_t to, std::span<const std::byte> frame) {
  PacketInfo p;
  p.from = from;
  p.to = to;
  p.frame = frame;
  if (!read_network(frame, p.net) || p.net.tp_size() < wire::RtpHeader::kSize) return p;
  if (p.net.dst.port == roce::kUdpPort) {
    p.roce = roce::parse_packet(p.net.tph, p.net.end, p.roce_packet) == roce::Drop::kNone;
    return p;
  }
  p.utp = (static_cast<uint8_t>(*p.net.tph) & 0x7f) == 0;
  const std::byte* body = p.net.tph + wire::RtpHeader::kSize;
  if (wire::RtpHeader::read(p.net.tph, p.net.tp_size(), p.rtp) != wire::Drop::kNone) return p;
  p.valid = true;
  if (p.rtp.nlp == wire::kNlpEntity) body += wire::EntityHeader::kSize;
  if ((p.utp || (p.rtp.is_data() && !p.rtp.fake)) && body < p.net.end)
    p.has_ta = wire::parse_transaction(body, p.net.end, p.rtp.padding, !p.utp, p.ta) == wire::Drop::kNone;
  if (p.utp && p.has_ta && p.ta.payload_len >= wire::kControlRecordSize)
    p.has_record = wire::read_control_record({p.ta.payload, p.ta.payload_len}, p.record) == wire::Drop::kNone;
  return p;
}

}  // namespace ub::sim
