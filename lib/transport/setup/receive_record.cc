// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/setup/receive_record.h"

#include <algorithm>

#include "lib/transport/setup/channel_life.h"
#include "lib/transport/setup/finding.h"
#include "lib/transport/setup/handshake.h"
#include "lib/transport/setup/send_record.h"

namespace ub::setup {

using wire::ControlRecord;
using wire::RecordReason;
using wire::RecordType;

bool meant_for_us(const CoreState& s, const ControlRecord& r) {
  if (r.upi == 0 || r.upi != s.config.upi || r.sender_uasid == 0) return false;
  if (r.wanted_uasid != 0 && r.wanted_uasid != s.config.self.uasid) return false;
  return std::find(s.eids, s.eids + s.eid_count, r.wanted_eid) != s.eids + s.eid_count;
}

uint32_t channel_of(const CoreState& s, const ControlRecord& r) {
  uint32_t channel = channel_of_tpn(s, r.receiver_tpn);
  return channel != 0 && s.channels[channel].attempt == r.attempt ? channel : 0;
}

void on_record(CoreState& s, const Arrival& from, const ControlRecord& r) {
  s.note(Stage::kRecordArrived, from.link, static_cast<uint32_t>(r.type), static_cast<uint32_t>(r.reason));
  switch (r.type) {
    case RecordType::kReq:
      return on_request(s, from, r);
    case RecordType::kRep:
      return on_reply(s, from, r);
    case RecordType::kConf:
      return on_confirm(s, from, r);
    case RecordType::kRej:
      return on_reject(s, r);
    case RecordType::kClose:
      return on_close(s, from, r);
    case RecordType::kClosed:
      return on_closed(s, r);
    case RecordType::kPing:
      return on_ping(s, from, r);
    case RecordType::kPong:
      return on_pong(s, from, r);
    case RecordType::kReset:
      return on_reset(s, r);
    case RecordType::kFind:
      return on_find(s, from, r);
    case RecordType::kFound:
      return on_found(s, from, r);
    case RecordType::kScFree:
      return on_context_free(s, r);
  }
}

void refuse_version(CoreState& s, const Arrival& from, const ControlRecord& prefix) {
  if (prefix.type == RecordType::kRej) return on_reject(s, prefix);
  s.count(Counter::kTpChannelRejected);
  if (prefix.type == RecordType::kReq) send_reply(s, from, prefix, RecordType::kRej, RecordReason::kParameter);
}

}  // namespace ub::setup
