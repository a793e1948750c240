// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/setup/send_record.h"

#include <algorithm>

#include "lib/transport/setup/channel_setup.h"

namespace ub::setup {

using wire::ControlRecord;

void send_record(CoreState& s, const OutRecord& out) {
  if (s.outbox_tail - s.outbox_head == kOutboxRing) {
    s.count(Counter::kRecordsLost);
    return;
  }
  s.outbox[s.outbox_tail++ % kOutboxRing] = out;
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

bool meant_for_us(const CoreState& s, const ControlRecord& r) {
  if (r.upi == 0 || r.upi != s.config.upi || r.sender_uasid == 0) return false;
  if (r.wanted_uasid != 0 && r.wanted_uasid != s.config.self.uasid) return false;
  return std::find(s.eids, s.eids + s.eid_count, r.wanted_eid) != s.eids + s.eid_count;
}

Duration setup_pause(const CoreState& s, uint32_t tries) {
  const Duration pause = s.config.setup_retry_min * (int64_t{1} << std::min<uint32_t>(tries, 20));
  return std::min(pause, s.config.setup_retry_max);
}

}  // namespace ub::setup
