// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/setup/send_record.h"

#include <algorithm>

#include "lib/transport/setup/channel_life.h"
#include "lib/transport/setup/receive_record.h"
#include "lib/transport/setup/terms.h"
#include "lib/transport/tp/paths.h"

namespace ub::setup {

using tp::Channel;
using wire::ControlRecord;
using wire::RecordType;

void send_record(CoreState& s, const OutRecord& out) {
  if (s.outbox_tail - s.outbox_head == kOutboxRing) {
    s.count(Counter::kRecordsLost);
    return;
  }
  s.note(Stage::kRecordPut, out.link, static_cast<uint32_t>(out.record.type), static_cast<uint32_t>(out.record.reason));
  s.outbox[s.outbox_tail++ % kOutboxRing] = out;
}

namespace {

// A record about a channel, with our terms in it.
OutRecord record_about(CoreState& s, const Channel& ch, RecordType type) {
  UB_DCHECK(ch.tpn != 0 && alive(ch));
  OutRecord out{};
  out.link = ch.link;
  out.local = ch.local_endpoint;
  out.remote = ch.remote_endpoint;
  if (ch.several_paths) {
    const tp::Path& path = tp::path_at(s, ch, tp::any_live_path(s, ch));
    out.local = path.local;
    out.remote = path.remote;
  }
  ControlRecord& r = out.record;
  r.type = type;
  r.sender_incarnation = s.config.incarnation;
  r.receiver_incarnation = ch.peer_incarnation;
  r.attempt = ch.attempt;
  r.flags = ch.record_flags;
  r.place = static_cast<uint8_t>(ch.place());
  r.sender_tpn = ch.tpn;
  r.receiver_tpn = ch.peer_tpn;
  state_terms(s, ch, r);
  if (type == RecordType::kPing) r.several_paths = false;  // send_path_record() asks about a path
  r.upi = s.config.upi;
  r.sender_eid = s.peers[ch.peer].local_eid;
  r.wanted_eid = ch.remote.eid;
  r.sender_uasid = s.config.self.uasid;
  r.wanted_uasid = ch.remote.uasid;
  if (type == RecordType::kReq) r.application = s.peers[ch.peer].owner;
  if (type == RecordType::kReq || type == RecordType::kRep) out.pad_to_mtu = ch.offered_mtu;
  return out;
}

}  // namespace

void send_about(CoreState& s, const Channel& ch, RecordType type) { send_record(s, record_about(s, ch, type)); }

void send_path_record(CoreState& s, const Channel& ch, const tp::Path& path, RecordType type) {
  OutRecord out = record_about(s, ch, type);
  out.local = path.local;
  out.remote = path.remote;
  out.record.several_paths = true;
  out.record.initial_psn = path.question;
  out.bulk = is_bulk(ch.lane);
  out.pad_to_mtu = ch.offered_mtu;
  send_record(s, out);
}

void send_path_answer(CoreState& s, const Arrival& from, const ControlRecord& ping, wire::RecordReason reason) {
  OutRecord out{from.link, 0, from.local, from.remote, reply_to(s, ping, RecordType::kPong, reason)};
  out.record.several_paths = true;
  out.record.initial_psn = ping.initial_psn;
  out.bulk = (ping.flags & wire::kRecordBulk) != 0;
  const bool long_one = reason == wire::RecordReason::kNone && ping.mtu >= kMinMtu;
  if (long_one && ping.mtu <= s.links[from.link].config.mtu) out.pad_to_mtu = ping.mtu;
  send_record(s, out);
}

void send_context_free(CoreState& s, uint32_t peer, uint32_t scid) {
  for (const Lane& lane : s.peers[peer].lanes) {
    for (const uint32_t channel : lane.channels) {
      if (channel == 0 || !s.channels[channel].is_up()) continue;
      OutRecord out = record_about(s, s.channels[channel], RecordType::kScFree);
      out.record.scid = scid;
      return send_record(s, out);
    }
  }
}

ControlRecord reply_to(const CoreState& s, const ControlRecord& to, wire::RecordType type, wire::RecordReason reason) {
  ControlRecord r;
  r.type = type;
  r.reason = reason;
  r.sender_incarnation = s.config.incarnation;
  r.receiver_incarnation = to.sender_incarnation;
  r.attempt = to.attempt;
  r.sender_tpn = to.receiver_tpn;
  r.receiver_tpn = to.sender_tpn;
  r.upi = s.config.upi;
  r.sender_eid = to.wanted_eid;
  r.wanted_eid = to.sender_eid;
  r.sender_uasid = s.config.self.uasid;
  r.wanted_uasid = to.sender_uasid;
  return r;
}

void send_reply(CoreState& s, const Arrival& from, const ControlRecord& to, wire::RecordType type,
                wire::RecordReason reason) {
  send_record(s, {from.link, 0, from.local, from.remote, reply_to(s, to, type, reason)});
}

Duration setup_pause(const CoreState& s, uint32_t tries) {
  const Duration pause = s.config.setup_retry_min * (int64_t{1} << std::min<uint32_t>(tries, 20));
  return std::min(pause, s.config.setup_retry_max);
}

void arm_setup(CoreState& s, uint32_t channel) {
  Channel& ch = s.channels[channel];
  ch.setup_at = s.now + setup_pause(s, ch.setup_tries);
  s.timers.arm(s.timer_of_channel(channel), ch.setup_at);
}

}  // namespace ub::setup
