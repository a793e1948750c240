// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/ta/receive_matching.h"

#include "lib/transport/resource/groups.h"
#include "lib/transport/resource/receives.h"
#include "lib/transport/resource/segments.h"
#include "lib/transport/ta/completion.h"
#include "lib/transport/ta/queue_answer.h"
#include "lib/transport/wire/response_status.h"

namespace ub::ta {

namespace {

constexpr Verdict kAbort{wire::kRspError, wire::kErrRemoteAbort};
constexpr Verdict kUnsupported{wire::kRspError, wire::kErrUnsupportedRequest};

// Is the jetty bound to another jetty than the sender?
bool foreign(const CoreState& s, const Jetty& jetty, const tp::Channel& ch, uint32_t rc_id) {
  if (jetty.mode != Mode::kRc || jetty.bound_target == 0) return false;
  const Target& bound = s.targets[jetty.bound_target];
  if (bound.id != rc_id || bound.instance.eid != ch.remote.eid) return true;
  return bound.instance.uasid != 0 && bound.instance.uasid != ch.remote.uasid;
}

// Finds the jetty and the JFR that the packet is addressed to, and checks the token. `*jetty` is 0 if it is addressed
// to the JFR itself.
bool find_receiver(CoreState& s, const wire::TaPacket& packet, uint32_t* jetty, uint32_t* jfr) {
  const IdSlot& id = s.ids[packet.mt.tc_id];
  if ((packet.mt.tc_type == wire::kTcTypeGroup) != (id.kind == ObjectKind::kGroup)) return false;
  *jetty = 0;
  switch (id.kind) {
    case ObjectKind::kGroup:
      if (!token_fits(s.groups[id.record].token, packet)) return false;
      *jetty = choose_member(s, id.record, packet.mt.hint);
      *jfr = s.jettys[*jetty].jfr;
      return *jetty != 0;
    case ObjectKind::kJetty:
      *jetty = id.record;
      *jfr = s.jettys[*jetty].jfr;
      break;
    case ObjectKind::kJfr:
      *jfr = id.record;
      if (s.jfrs[*jfr].mode == Mode::kRoce) return false;
      break;
    default:
      return false;
  }
  return token_fits(s.jfrs[*jfr].token, packet);
}

CrOpcode completion_opcode(wire::TaOpcode op) {
  switch (op) {
    case wire::TaOpcode::kSendImmediate:
      return CrOpcode::kSendImm;
    case wire::TaOpcode::kSendInvalidate:
      return CrOpcode::kSendInvalidate;
    case wire::TaOpcode::kWriteImmediate:
      return CrOpcode::kWriteImm;
    default:
      return CrOpcode::kSend;
  }
}

}  // namespace

bool token_fits(const AcceptedToken& token, const wire::TaPacket& packet) {
  if (!token.required) return true;
  if (packet.req.opcode == wire::TaOpcode::kWriteImmediate) return token.fits(packet.imm.token_value);
  return packet.tv && token.fits(packet.token_value);
}

bool finds_none_on_purpose(CoreState& s, const Jfr& jfr) {
  if (!s.rnr_faults.any()) [[likely]]
    return false;
  if (!s.rnr_faults.refuses(jfr.owner, jfr.id)) return false;
  s.count(Counter::kInjectedRnr);
  return true;
}

Verdict admit_message(CoreState& s, uint32_t channel, tp::OpenMessage& message, const wire::TaPacket& packet) {
  const tp::Channel& ch = s.channels[channel];
  uint32_t jetty_record, jfr_record;
  if (!find_receiver(s, packet, &jetty_record, &jfr_record)) return kAbort;
  Jfr& jfr = s.jfrs[jfr_record];
  if (jfr.state != QueueState::kReady) return {kSilent, 0};
  Jetty* jetty = jetty_record == 0 ? nullptr : &s.jettys[jetty_record];
  if (jetty != nullptr) {
    if (s.queues[jetty->queue].state == QueueState::kReset || s.queues[jetty->queue].state == QueueState::kError) {
      return {kSilent, 0};
    }
    const uint32_t rcid = packet.req.rc_id & kAnswerRcid;
    if (foreign(s, *jetty, ch, rcid)) return kUnsupported;
    bool refused = jetty->refused_rcid == rcid && jetty->refused_channel == ch.tpn;
    if (refused && !packet.req.retry) return {wire::kRspRnr, jfr.rnr_code};
    if (refused) jetty->refused_rcid = 0;
  }
  uint32_t jfc = jetty == nullptr ? jfr.jfc : jetty->recv_jfc;
  const uint32_t receive = finds_none_on_purpose(s, jfr) ? 0 : take_receive(s, jfr_record, jfc);
  if (receive == 0) {
    if (jetty != nullptr && jetty->mode == Mode::kRc) {
      jetty->refused_rcid = packet.req.rc_id & kAnswerRcid;
      jetty->refused_channel = ch.tpn;
    }
    return {wire::kRspRnr, jfr.rnr_code};
  }
  s.receives[receive].jetty = jetty_record;
  message.receive = receive;
  return kAccepted;
}

Cqe receive_completion(const CoreState& s, uint32_t index, const wire::TaPacket& packet) {
  const RxReceive& receive = s.receives[index];
  const Jfr& jfr = s.jfrs[receive.jfr];
  Cqe cqe{};
  cqe.user_ctx = receive.user_ctx;
  cqe.opcode = completion_opcode(packet.req.opcode);
  cqe.flags = kCqeReceive | (packet.req.fce ? kCqeSolicited : 0);
  cqe.local_id = jfr.id;
  cqe.user_data = jfr.user_data;
  if (receive.jetty != 0) {
    const Jetty& jetty = s.jettys[receive.jetty];
    cqe.flags |= kCqeJetty;
    cqe.local_id = jetty.id;
    cqe.user_data = jetty.user_data;
  }
  cqe.remote_id = packet.req.rc_id & kAnswerRcid;
  if (packet.has_imm) cqe.immediate = packet.imm.immediate;
  return cqe;
}

void complete_receive(CoreState& s, uint32_t channel, tp::OpenMessage& message, const wire::TaPacket& packet,
                      CrStatus status, uint64_t bytes) {
  const tp::Channel& ch = s.channels[channel];
  uint32_t index = message.receive;
  if (index == 0) return;
  message.receive = 0;
  const RxReceive& receive = s.receives[index];
  if (receive.returns) return return_receive(s, index);
  Cqe cqe = receive_completion(s, index, packet);
  cqe.status = status;
  cqe.length = static_cast<uint32_t>(bytes);
  std::memcpy(cqe.remote_eid, ch.remote.eid.bytes.data(), sizeof cqe.remote_eid);
  cqe.remote_uasid = ch.remote.uasid;
  cqe.tpn = ch.tpn;
  if (packet.req.opcode == wire::TaOpcode::kSendInvalidate && status == CrStatus::kSuccess) {
    auto token_id = static_cast<uint32_t>(packet.imm.immediate >> 32);
    auto token_value = static_cast<uint32_t>(packet.imm.immediate);
    invalidate_token_id(s, s.jfrs[receive.jfr].owner, token_id, token_value);
    cqe.immediate = uint64_t{token_value} << 32 | token_id;
  }
  uint32_t jfc = receive.jfc;
  s.note(Stage::kReceiveCompleted, jfc, index, static_cast<uint32_t>(status));
  release_receive(s, index);  // gives back its reserved place in the JFC, which the completion takes
  push_completion(s, jfc, cqe);
}

void abandon_message(CoreState& s, tp::OpenMessage& message) {
  if (message.receive != 0) return_receive(s, message.receive);
  message.receive = 0;
}

}  // namespace ub::ta
