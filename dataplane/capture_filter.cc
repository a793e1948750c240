// SPDX-License-Identifier: Apache-2.0
#include "dataplane/capture_filter.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "dataplane/eid.h"
#include "lib/transport/roce/wire/bth.h"
#include "lib/transport/wire/bypass_packet.h"
#include "lib/transport/wire/cna_packet.h"
#include "lib/transport/wire/compact_packet.h"
#include "lib/transport/wire/control_record.h"
#include "lib/transport/wire/rtp_header.h"
#include "lib/transport/wire/transaction_packet.h"
#include "lib/transport/wire/utp_header.h"

namespace ub {
namespace {

enum class Kind : uint8_t { kRecord, kDatagram, kRtp, kCtp, kBypass, kRoce, kOther };
constexpr std::string_view kKindNames[] = {"record", "datagram", "rtp", "ctp", "bypass", "roce"};

constexpr std::string_view kTerms =
    "link=NUMBERS, direction=in or out, tpn=NUMBERS, kind=record, datagram, rtp, ctp, bypass or roce, peer=ADDRESS, or "
    "dropped=COUNTER, such as dropped=rx.drop.*";

// What a frame says that a filter may ask.
struct Facts {
  Kind kind = Kind::kOther;
  std::optional<uint32_t> src_tpn{}, dst_tpn{};
  std::optional<IpAddress> src_ip{}, dst_ip{};
  std::optional<uint32_t> src_cna{}, dst_cna{};  // with NTH24: the low bits of the addresses
};

// False: it is none of RTP.
bool add_rtp(const std::byte* tph, const std::byte* end, Facts* facts) {
  wire::RtpHeader rtp;
  if (wire::RtpHeader::read(tph, static_cast<size_t>(end - tph), rtp) != wire::Drop::kNone) return false;
  if (rtp.opcode == wire::TpOpcode::kUnreliable) return false;
  facts->kind = Kind::kRtp;
  facts->src_tpn = rtp.src_tpn;
  facts->dst_tpn = rtp.dst_tpn;
  return true;
}

// A packet of UTP: a record is a SEND of the content that records have.
Kind kind_of_utp(const wire::NetHeader& net) {
  wire::UtpHeader utp;
  wire::TaPacket ta;
  wire::ControlRecord record;
  if (wire::UtpHeader::read(net.tph, net.tp_size(), utp) != wire::Drop::kNone) return Kind::kOther;
  const std::byte* rest = net.tph + wire::UtpHeader::kSize;
  if (wire::parse_transaction(rest, net.end, utp.padding, false, ta) != wire::Drop::kNone) return Kind::kOther;
  return wire::read_control_record({ta.payload, ta.payload_len}, record) == wire::Drop::kNone ? Kind::kRecord
                                                                                            : Kind::kDatagram;
}

Facts facts_of_link_frame(std::span<const std::byte> frame) {
  Facts facts;
  wire::CompactPacket ctp;
  wire::CnaPacket cna;
  wire::BypassPacket bypass;
  if (wire::is_bypass(frame)) {
    if (wire::parse_bypass(frame, bypass) == wire::Drop::kNone) facts.kind = Kind::kBypass;
  } else if (wire::parse_compact(frame, ctp) == wire::Drop::kNone) {
    facts.kind = Kind::kCtp;
    facts.src_tpn = ctp.scna;
    facts.dst_tpn = ctp.dcna;
  } else if (wire::parse_cna(frame, cna) == wire::Drop::kNone) {
    facts.src_cna = cna.scna;
    facts.dst_cna = cna.dcna;
    add_rtp(cna.tph, cna.end, &facts);
  }
  return facts;
}

Facts facts_of(std::span<const std::byte> frame) {
  if (wire::has_link_header(frame)) return facts_of_link_frame(frame);
  Facts facts;
  wire::NetHeader net;
  if (wire::parse_network(frame, net) != wire::Drop::kNone) return facts;
  facts.src_ip = net.src.ip;
  facts.dst_ip = net.dst.ip;
  if (net.dst.port == roce::kUdpPort) {
    facts.kind = Kind::kRoce;
  } else if (!add_rtp(net.tph, net.end, &facts)) {
    facts.kind = kind_of_utp(net);
  }
  return facts;
}

template <class T>
bool is(const std::optional<T>& fact, const T& wanted) {
  return fact && *fact == wanted;
}

}  // namespace

bool CaptureFilter::parse(std::string_view text, std::string* why) {
  *this = {};
  return each_part(text, ' ', [&](std::string_view term) {
    std::string_view value = term;
    const std::string_view noun = take_part(&value, '=');
    if (parse_term(noun, value)) return true;
    *why = "filter \"" + std::string(term) + "\": a term is " + std::string(kTerms);
    return false;
  });
}

bool CaptureFilter::parse_term(std::string_view noun, std::string_view value) {
  if (noun == "link") return read_ranges(value, &links_);
  if (noun == "tpn") return read_ranges(value, &tpns_);
  if (noun == "direction") return parse_direction(value);
  if (noun == "kind") return parse_kinds(value);
  if (noun == "peer") return parse_peers(value);
  return noun == "dropped" && parse_reasons(value);
}

bool CaptureFilter::parse_direction(std::string_view value) {
  direction_ = value == "in" ? pcapng::Direction::kIn : pcapng::Direction::kOut;
  return value == "in" || value == "out";
}

bool CaptureFilter::parse_kinds(std::string_view value) {
  return each_part(value, ',', [&](std::string_view name) {
    const auto* found = std::find(std::begin(kKindNames), std::end(kKindNames), name);
    kinds_ |= 1u << (found - std::begin(kKindNames));
    return found != std::end(kKindNames);
  }) && kinds_ != 0;
}

bool CaptureFilter::parse_peers(std::string_view value) {
  return each_part(value, ',', [&](std::string_view text) {
    const std::optional<IpAddress> ip = parse_ip(text);
    if (ip) peers_.push_back(*ip);
    return ip.has_value();
  }) && !peers_.empty();
}

// As the notes do not say whose counter it is, any will do.
bool CaptureFilter::parse_reasons(std::string_view value) {
  reasons_.resize(kCounterCount);
  bool any = false;
  const bool known = each_part(value, ',', [&](std::string_view glob) {
    bool found = false;
    for (size_t i = 0; i < kCounterCount; ++i) {
      if (!matches(glob, kCounterNames[i])) continue;
      reasons_[i] = found = true;
    }
    any |= found;
    return found;
  });
  return known && any;
}

bool CaptureFilter::takes_packet(pcapng::Direction direction, std::span<const std::byte> frame) const {
  const Facts facts = facts_of(frame);
  if (kinds_ != 0 && (kinds_ >> static_cast<uint32_t>(facts.kind) & 1) == 0) return false;
  const auto names = [&](const std::optional<uint32_t>& tpn) { return tpn && is_in(tpns_, *tpn); };
  if (!tpns_.empty() && !names(facts.src_tpn) && !names(facts.dst_tpn)) return false;
  const bool in = direction == pcapng::Direction::kIn;
  const auto& ip = in ? facts.src_ip : facts.dst_ip;
  const auto& cna = in ? facts.src_cna : facts.dst_cna;
  return peers_.empty() || std::any_of(peers_.begin(), peers_.end(), [&](const IpAddress& peer) {
           return is(ip, peer) || is(cna, wire::cna_of(peer));
         });
}

}  // namespace ub
