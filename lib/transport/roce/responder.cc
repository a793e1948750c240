// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/roce/responder.h"

#include "lib/base/assert.h"

namespace ub::roce {
namespace {

Arrival judge_duplicate(const Packet& packet) {
  if (packet.has(kShapeAtomicEth)) return Arrival::kAtomicAgain;
  if (packet.bth.opcode == Opcode::kRcReadRequest) return Arrival::kReadAgain;
  return Arrival::kAckAgain;
}

OpenMessage kind_of(const Packet& packet) {
  if (packet.has(kShapeSend)) return OpenMessage::kSend;
  return packet.has(kShapeWrite) ? OpenMessage::kWrite : OpenMessage::kNone;
}

/// Does the packet follow the one before it? A message is not interrupted, and none goes on without a beginning.
bool follows(const ResponderState& s, const Packet& packet) {
  return s.open == (packet.has(kShapeFirst) ? OpenMessage::kNone : kind_of(packet));
}

/// Is the packet as long as it must be? All packets of a message except the last are full, and a WRITE brings as many
/// bytes as its first packet said.
bool has_right_length(const ResponderState& s, const Packet& packet) {
  const bool last = packet.has(kShapeLast);
  if (last ? packet.payload_bytes > s.mtu : packet.payload_bytes != s.mtu) return false;
  if (!packet.has(kShapeWrite) || packet.has(kShapeFirst)) return true;
  return last ? packet.payload_bytes == s.write_left : packet.payload_bytes < s.write_left;
}

}  // namespace

Arrival judge(const ResponderState& s, Drop parsed, const Packet& packet) {
  const int32_t ahead = packet.bth.psn.signed_distance(s.expected);
  if (ahead > 0) return s.refused ? Arrival::kSilent : Arrival::kGap;
  if (ahead < 0) return parsed == Drop::kNone ? judge_duplicate(packet) : Arrival::kSilent;
  if (parsed != Drop::kNone) return Arrival::kInvalid;
  UB_DCHECK(packet.has(kShapeRequest));
  return follows(s, packet) && has_right_length(s, packet) ? Arrival::kExecute : Arrival::kInvalid;
}

UnreliableArrival judge_unreliable(const ResponderState& s, const Packet& packet) {
  const int32_t ahead = packet.bth.psn.signed_distance(s.expected);
  if (ahead < 0 && ahead >= -kLatePackets) return UnreliableArrival::kLate;
  if (!packet.has(kShapeFirst) && (ahead != 0 || !follows(s, packet))) return UnreliableArrival::kLost;
  if (!has_right_length(s, packet)) return UnreliableArrival::kLost;
  return packet.has(kShapeFirst) ? UnreliableArrival::kBegins : UnreliableArrival::kGoesOn;
}

void accept(ResponderState& s, const Packet& packet) {
  if (packet.has(kShapeWrite)) {
    const bool first = packet.has(kShapeFirst);
    if (first) s.write_rkey = packet.reth.rkey;
    s.write_address = (first ? packet.reth.address : s.write_address) + packet.payload_bytes;
    s.write_left = (first ? packet.reth.length : s.write_left) - packet.payload_bytes;
  }
  s.expected += psns_of(packet, s.mtu);
  s.refused = false;
  const bool last = packet.has(kShapeLast);
  s.open = last ? OpenMessage::kNone : kind_of(packet);
  if (last) ++s.msn;
}

WritePlace write_place(const ResponderState& s, const Packet& packet) {
  if (packet.has(kShapeFirst)) return {packet.reth.address, packet.reth.rkey};
  return {s.write_address, s.write_rkey};
}

uint32_t psns_of(const Packet& packet, uint32_t mtu) {
  if (packet.bth.opcode != Opcode::kRcReadRequest || packet.reth.length == 0) return 1;
  return (packet.reth.length - 1) / mtu + 1;
}

Reply acknowledge(const ResponderState& s) { return {s.expected - 1, {Syndrome::ack(s.credits), s.msn}}; }

Reply refuse(ResponderState& s, NakCode why) {
  s.refused = true;
  return {s.expected, {Syndrome::nak(why), s.msn}};
}

Reply not_ready(ResponderState& s, uint8_t rnr_timer) {
  s.refused = true;
  return {s.expected, {Syndrome::rnr(rnr_timer), s.msn}};
}

}  // namespace ub::roce
