// SPDX-License-Identifier: Apache-2.0
//
// What the decoders of lib/transport/wire say of each frame of a pcap file: the name of the drop, or "none", one line a
// frame. A Core with an open channel would say the same, if READs have their meta headers where they may have them. The
// test of Wireshark's dissector compares its own answers.
#include <cstdio>
#include <span>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/transport/wire/bypass_packet.h"
#include "lib/transport/wire/cna_packet.h"
#include "lib/transport/wire/compact_packet.h"
#include "lib/transport/wire/congestion_header.h"
#include "lib/transport/wire/control_record.h"
#include "lib/transport/wire/icrc.h"
#include "lib/transport/wire/rtp_header.h"
#include "lib/transport/wire/sack.h"
#include "lib/transport/wire/transaction_packet.h"
#include "lib/transport/wire/utp_header.h"

namespace ub::wire {
namespace {

using Frame = std::span<const std::byte>;

size_t left(const std::byte* p, const std::byte* end) { return static_cast<size_t>(end - p); }

/// An ICRC of zeros may have been left out.
bool may_be_off(const std::byte* icrc) { return icrc_load(icrc) == 0; }

/// READs have no payload, so their length tells whether they have the meta headers.
Drop judge_transaction(const std::byte* p, const std::byte* end, uint8_t padding) {
  TaPacket ta;
  const Drop drop = parse_transaction(p, end, padding, true, ta);
  const bool read = p != end && load_u8(p) == static_cast<uint8_t>(TaOpcode::kRead);
  if (!read || drop == Drop::kNone) return drop;
  return parse_transaction(p, end, padding, false, ta) == Drop::kNone ? Drop::kNone : drop;
}

Drop judge_acknowledgement(const RtpHeader& rtp, const std::byte* p, const std::byte* end) {
  if (rtp.opcode == TpOpcode::kCnp) {
    CetphCnp cnp;
    return CetphCnp::read(p, left(p, end), cnp);
  }
  if (rtp.has_cetph()) {
    CetphCaqm feedback;
    if (const Drop drop = CetphCaqm::read(p, left(p, end), feedback); drop != Drop::kNone) return drop;
    p += CetphCaqm::kSize;
  }
  SackView sack;
  return rtp.has_saetph() ? SackView::read(p, left(p, end), sack) : Drop::kNone;
}

Drop judge_channel_packet(const RtpHeader& rtp, const std::byte* p, const std::byte* end) {
  if (!rtp.is_data()) return judge_acknowledgement(rtp, p, end);
  if (rtp.fake) return Drop::kNone;
  if (rtp.nlp != kNlpTransaction) return Drop::kBadNlp;
  return judge_transaction(p, end, rtp.padding);
}

/// Empty: it is a datagram, which the transaction layer judges.
const char* judge_unreliable(const NetHeader& net) {
  if (!icrc_matches(net)) return drop_name(Drop::kBadIcrc);
  UtpHeader utp;
  TaPacket ta;
  Drop drop = UtpHeader::read(net.tph, net.tp_size(), utp);
  if (drop == Drop::kNone && utp.nlp != kNlpTransaction) drop = Drop::kBadNlp;
  if (drop == Drop::kNone) drop = parse_transaction(net.tph + UtpHeader::kSize, net.end, utp.padding, false, ta);
  if (drop != Drop::kNone) return drop_name(drop);
  if (ta.is_response || ta.req.opcode != TaOpcode::kSend || ta.mt.tc_id != 0) return "";
  ControlRecord record;
  return drop_name(read_control_record({ta.payload, ta.payload_len}, record));
}

const char* judge_ip(Frame frame) {
  NetHeader net;
  Drop drop = parse_network(frame, net);
  if (drop != Drop::kNone) return drop_name(drop);
  RtpHeader rtp;
  drop = RtpHeader::read(net.tph, net.tp_size(), rtp);
  if (drop != Drop::kNone) return drop_name(drop);
  if (rtp.opcode == TpOpcode::kUnreliable) return judge_unreliable(net);
  if (!icrc_matches(net) && !may_be_off(net.end)) return drop_name(Drop::kBadIcrc);
  return drop_name(judge_channel_packet(rtp, net.tph + RtpHeader::kSize, net.end));
}

Drop judge_cna(Frame frame) {
  CnaPacket packet;
  RtpHeader rtp;
  Drop drop = parse_cna(frame, packet);
  if (drop == Drop::kNone) drop = RtpHeader::read(packet.tph, left(packet.tph, packet.end), rtp);
  if (drop != Drop::kNone) return drop;
  if (rtp.opcode == TpOpcode::kUnreliable) return Drop::kBadTpOpcode;
  if (!icrc_matches(packet) && !may_be_off(packet.end)) return Drop::kBadIcrc;
  return judge_channel_packet(rtp, packet.tph + RtpHeader::kSize, packet.end);
}

Drop judge_link(Frame frame) {
  if (is_bypass(frame)) {
    BypassPacket packet;
    return parse_bypass(frame, packet);
  }
  CompactPacket packet;
  const Drop drop = parse_compact(frame, packet);
  if (drop == Drop::kBadNlp) return judge_cna(frame);  // none of CTP
  if (drop != Drop::kNone) return drop;
  if (!icrc_matches(packet) && !may_be_off(packet.end)) return Drop::kBadIcrc;
  if (packet.ctp.opcode != CtpOpcode::kData) return Drop::kBadTpOpcode;
  if (packet.ctp.nlp != kNlpTransaction) return Drop::kBadNlp;
  TaPacket ta;
  return parse_compact_transaction(packet.rest, packet.end, packet.ctp.padding, ta);
}

const char* judge(Frame frame) { return has_link_header(frame) ? drop_name(judge_link(frame)) : judge_ip(frame); }

}  // namespace
}  // namespace ub::wire

int main(int argc, char** argv) {
  constexpr size_t kFileHeader = 24, kFrameHeader = 16, kLengthAt = 8;
  std::FILE* file = argc == 2 ? std::fopen(argv[1], "rb") : nullptr;
  std::byte header[kFileHeader];
  if (file == nullptr || std::fread(header, 1, kFileHeader, file) != kFileHeader) {
    std::fprintf(stderr, "usage: %s FILE.pcap\n", argv[0]);
    return 2;
  }
  while (std::fread(header, 1, kFrameHeader, file) == kFrameHeader) {
    std::vector<std::byte> frame(ub::load_le32(header + kLengthAt));
    if (std::fread(frame.data(), 1, frame.size(), file) != frame.size()) break;
    std::puts(ub::wire::judge(frame));
  }
  std::fclose(file);
  return 0;
}
