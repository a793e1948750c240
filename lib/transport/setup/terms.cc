// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/setup/terms.h"

#include <algorithm>
#include <bit>

#include "lib/transport/setup/ways.h"
#include "lib/transport/tp/congestion.h"
#include "lib/transport/wire/sack.h"

namespace ub::setup {

using tp::Channel;
using wire::ControlRecord;

namespace {

constexpr uint8_t kOffered = wire::kRecordFast | wire::kRecordMarkPsn | wire::kRecordReadMeta;

uint8_t sack_size_code(const CoreState& s) {
  uint32_t bits = std::min<uint32_t>(s.config.window_packets, wire::kSackMaxBits);
  return static_cast<uint8_t>(std::countr_zero(bits / 64));
}

// Both ends must want the same algorithm (docs/wire.md), so there is no choice to negotiate.
wire::CcAlgorithm wanted_algorithm(const CoreState& s) {
  switch (s.config.congestion_control) {
    case cc::Control::kCaqm:
      return wire::CcAlgorithm::kCaqm;
    case cc::Control::kLdcp:
      return wire::CcAlgorithm::kLdcp;
    case cc::Control::kDcqcn:
      return wire::CcAlgorithm::kDcqcn;
    case cc::Control::kNone:
    case cc::Control::kSwift:  // the sender's own business
      break;
  }
  return wire::CcAlgorithm::kNone;
}

// Over IP, C-AQM has two bits of each packet (6.6), and the record says so.
bool has_two_bits(const ControlRecord& r) { return (r.flags & wire::kRecordCaqmEcn) != 0; }

}  // namespace

bool carries_compact(const CoreState& s, const LinkConfig& link) {
  if (!s.config.compact || !link.compact || s.config.slow_memory || s.config.lanes == 1) return false;
  return link.lossless || s.config.compact_repeats != 0;
}

bool keeps_order_compactly(const CoreState& s, const LinkConfig& link) {
  return s.config.rol && link.lossless && carries_compact(s, link);
}

bool needs_repeats(const LinkConfig& link, uint32_t lane) { return is_compact(lane) && !link.lossless; }

bool offers_cna(const CoreState& s, const LinkConfig& link, uint32_t lane) {
  return s.config.rtp_over_cna && link.link_frames && !is_compact(lane);
}

uint32_t lane_of(const ControlRecord& r) {
  const bool ordered = (r.flags & wire::kRecordRol) != 0;
  if (r.compact) return ordered ? kOrderedCompactLane : kCompactLane;
  return lane_kind(ordered, (r.flags & wire::kRecordBulk) != 0);
}

bool same_service(const Channel& ch, const ControlRecord& r) {
  return r.compact == is_compact(ch.lane) && is_ordered(lane_of(r)) == is_ordered(ch.lane);
}

uint8_t offered_flags(const CoreState& s, const LinkConfig& link, uint32_t lane) {
  uint8_t flags = kOffered;
  if (is_ordered(lane)) flags |= wire::kRecordRol;
  if (is_bulk(lane)) flags |= wire::kRecordBulk;
  if (link.icrc_optional) flags |= wire::kRecordIcrcOff;
  if (link.bypass) flags |= wire::kRecordBypass;
  if (!s.config.fast_retransmit) flags &= ~wire::kRecordFast;
  if (s.config.congestion_control == cc::Control::kCaqm) flags |= wire::kRecordCaqmEcn;
  return flags;
}

uint32_t requests_of_round(const CoreState& s, const Channel& ch) {
  return 2 * (static_cast<uint32_t>(std::countr_zero(s.links[ch.link].config.mtu / kMinMtu)) + 1);
}

uint16_t mtu_offer(const CoreState& s, const Channel& ch) {
  const LinkConfig& link = s.links[ch.link].config;
  const uint32_t wanted = link.mtu;
  UB_DCHECK(std::has_single_bit(wanted) && wanted >= kMinMtu);
  // A lossless wire takes what it says, and has no path behind it. At others the peer's buffers may be smaller.
  if (ch.compact && link.lossless) return static_cast<uint16_t>(wanted);
  return static_cast<uint16_t>(wanted >> (ch.setup_tries % requests_of_round(s, ch) / 2));
}

void state_terms(const CoreState& s, const Channel& ch, ControlRecord& r) {
  r.cc = wanted_algorithm(s);
  r.compact = is_compact(ch.lane);
  r.selective = !s.config.go_back_n && !ch.go_back_n;
  r.repeats = ch.repeats != 0;
  r.several_paths = offers_paths(s, s.links[ch.link].config, ch.lane);
  r.cna = offers_cna(s, s.links[ch.link].config, ch.lane);
  r.sack_size_code = sack_size_code(s);
  r.initial_psn = ch.initial_psn;
  r.mtu = ch.offered_mtu;
  r.rcv_window = static_cast<uint16_t>(s.config.window_packets);
  r.rto_base_us = static_cast<uint32_t>(s.config.rto_min.us());
  r.rto_growth_n = 1;
  r.retry_limit = 7;
  r.so_credit = kEarlyOfContext;
  r.keepalive_10ms = static_cast<uint16_t>(std::min<int64_t>(s.config.keepalive_idle.ms() / 10, 65535));
}

bool valid_parameters(const CoreState& s, const LinkConfig& link, const ControlRecord& r) {
  if (r.compact && (!carries_compact(s, link) || r.place != 0)) return false;
  if (r.compact && is_ordered(lane_of(r)) && !keeps_order_compactly(s, link)) return false;
  if (r.repeats != needs_repeats(link, lane_of(r))) return false;
  return r.mtu >= kMinMtu && r.mtu <= kMaxMtu && std::has_single_bit(r.mtu) && r.sender_tpn != 0 &&
         has_two_bits(r) == (r.cc == wire::CcAlgorithm::kCaqm) && (s.config.rol || !is_ordered(lane_of(r))) &&
         r.cc == wanted_algorithm(s) && r.rcv_window >= 64;
}

void agree(CoreState& s, Channel& ch, const ControlRecord& r) {
  ch.peer_tpn = r.sender_tpn;
  ch.peer_incarnation = r.sender_incarnation;
  ch.peer_initial_psn = r.initial_psn;
  ch.remote.uasid = r.sender_uasid;
  uint8_t agreed = ch.record_flags & r.flags & ~wire::kRecordBulk;
  ch.record_flags = agreed | (r.flags & wire::kRecordBulk);
  ch.icrc = (agreed & wire::kRecordIcrcOff) == 0;
  ch.fast = (agreed & wire::kRecordFast) != 0;
  ch.read_meta = (agreed & wire::kRecordReadMeta) != 0 && !r.compact;
  ch.rol = (agreed & wire::kRecordRol) != 0 && !r.compact;  // nothing is acknowledged there
  ch.go_back_n = (s.config.go_back_n || !r.selective) && !r.compact;
  ch.feedback = r.cc;
  ch.feeds_back = cc::feedback_size(r.cc) != 0;
  if (ch.feeds_back) ch.heard = {};
  ch.so_credit = r.so_credit;
  ch.agreed_window = std::min<uint32_t>(r.rcv_window, s.config.window_packets);
  ch.next_psn = ch.oldest_unacked = ch.initial_psn;
  ch.expected = ch.delivered = ch.message_start = ch.peer_initial_psn;
  ch.highest_seen = ch.peer_initial_psn - 1;
  UB_DCHECK(ch.next_tpmsn == Tpmsn(0) && ch.message == Tpmsn(0));  // nothing was sent on it
  const LinkConfig& link = s.links[ch.link].config;
  ch.asks_soon = ch.fast && !link.lossless;
  ch.tolerance.begin(s.config.reorder_packets);
  if (ch.compact) {
    ch.compact_headers = {ch.local_endpoint, ch.remote_endpoint, ch.tpn, ch.peer_tpn};
    return;
  }
  ch.cna = r.cna && offers_cna(s, link, ch.lane);
  const uint8_t dscp = s.config.dscp_of(is_bulk(ch.lane));
  if (ch.cna) {
    ch.headers = wire::cna_template(ch.local_endpoint, ch.remote_endpoint, dscp);
  } else {
    ch.headers.init({}, {}, ch.local_endpoint, ch.remote_endpoint, dscp);
  }
  ch.takes_paths = r.several_paths && offers_paths(s, link, ch.lane) && !ch.cna;
  tp::begin_flow(s, ch, tp::algorithm_for(s, r.cc, link.lossless));
}

}  // namespace ub::setup
