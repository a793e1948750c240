// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/ta/datagram_admission.h"

#include <optional>

#include "lib/transport/resource/receives.h"
#include "lib/transport/ta/completion.h"
#include "lib/transport/ta/message_admission.h"

namespace ub::ta {

namespace {

// The counter under which a datagram is dropped; empty: it is not dropped.
using Refusal = std::optional<Counter>;

// Is the packet a whole SEND that names its sender's uasid and fits the MTU?
Refusal judge_packet(const CoreState& s, uint32_t link, const wire::TaPacket& packet) {
  const wire::Btah& req = packet.req;
  const bool send = req.opcode == wire::TaOpcode::kSend || req.opcode == wire::TaOpcode::kSendImmediate;
  if (packet.is_response || !send) return Counter::kRxDropUmOperation;
  const bool malformed = !packet.has_ud || packet.ud == 0 || packet.ofst.offset_kib != 0 || req.poison || req.alloc ||
                         req.rc_type == wire::kRcTypeSequenceContext;
  if (malformed) return Counter::kRxDropUmMalformed;
  if (packet.payload_len > s.links[link].config.mtu) return Counter::kRxDropUmTooLong;
  return {};
}

// Finds the jetty and the JFR that the packet is addressed to. `*jetty` is 0 if it is addressed to the JFR. Groups have
// no members of mode UM.
Refusal find_receiver(const CoreState& s, const wire::Mtetah& mt, uint32_t* jetty, uint32_t* jfr) {
  const IdSlot& id = s.ids[mt.tc_id];
  if ((mt.tc_type == wire::kTcTypeGroup) != (id.kind == ObjectKind::kGroup)) return Counter::kRxDropNoSuchQueue;
  *jetty = 0;
  switch (id.kind) {
    case ObjectKind::kJetty:
      *jetty = id.record;
      *jfr = s.jettys[*jetty].jfr;
      if (s.jettys[*jetty].mode != Mode::kUm) return Counter::kRxDropUmMode;
      return {};
    case ObjectKind::kJfr:
      *jfr = id.record;
      if (s.jfrs[*jfr].mode != Mode::kUm) return Counter::kRxDropUmMode;
      return {};
    case ObjectKind::kGroup:
      return Counter::kRxDropUmMode;
    default:
      return Counter::kRxDropNoSuchQueue;
  }
}

bool ready(const CoreState& s, uint32_t jetty, const Jfr& jfr) {
  if (jfr.state != QueueState::kReady) return false;
  if (jetty == 0) return true;
  const QueueState state = s.queues[s.jettys[jetty].queue].state;
  return state != QueueState::kReset && state != QueueState::kError;
}

bool too_many_arriving(const CoreState& s, Owner owner) {
  const uint32_t held = s.arriving_of[owner];
  return held >= kArrivingOfOwner || !has_share(s.arriving, held);
}

}  // namespace

uint32_t admit_datagram(CoreState& s, uint32_t link, const wire::Endpoint& source, const wire::TaPacket& packet) {
  uint32_t jetty = 0, jfr_record = 0, receive = 0;
  Refusal why = judge_packet(s, link, packet);
  if (!why) why = find_receiver(s, packet.mt, &jetty, &jfr_record);
  const Jfr& jfr = s.jfrs[jfr_record];
  if (!why && !token_fits(jfr.token, packet)) why = Counter::kRxDropUmToken;
  if (!why && !ready(s, jetty, jfr)) why = Counter::kRxTargetNotReady;
  if (!why && too_many_arriving(s, jfr.owner)) why = Counter::kRxDropUmBusy;
  if (!why) {
    receive = take_receive(s, jfr_record, jetty == 0 ? jfr.jfc : s.jettys[jetty].recv_jfc);
    if (receive == 0) why = Counter::kRxDropUmNoReceive;
  }
  if (why) {
    s.drop(*why);
    return 0;
  }
  s.receives[receive].jetty = jetty;
  const uint32_t record = s.arriving.alloc();
  ++s.arriving_of[jfr.owner];
  ArrivingDatagram& d = s.arriving[record];
  d = {.completion = receive_completion(s, receive, packet),
       .receive = receive,
       .bytes = packet.payload_len,
       .pending = 0,
       .generation = d.generation + 1,
       .owner = jfr.owner,
       .failed = false,
       .in_use = true};
  std::memcpy(d.completion.remote_eid, source.ip.bytes.data(), sizeof d.completion.remote_eid);
  d.completion.remote_uasid = packet.ud;
  return record;
}

void complete_datagram(CoreState& s, uint32_t record, CrStatus status) {
  ArrivingDatagram& d = s.arriving[record];
  d.in_use = false;
  s.arriving.free(record);
  --s.arriving_of[d.owner];
  if (d.receive == 0) return;
  if (s.receives[d.receive].returns) return return_receive(s, d.receive);
  s.count(status == CrStatus::kSuccess  ? Counter::kUmRx
          : status == CrStatus::kLocLen ? Counter::kRxDropUmNoFit
                                        : Counter::kRxDropUmNoMemory);
  const uint32_t jfc = s.receives[d.receive].jfc;
  Cqe cqe = d.completion;
  cqe.status = status;
  cqe.length = status == CrStatus::kSuccess ? d.bytes : 0;
  s.note(Stage::kReceiveCompleted, jfc, d.receive, static_cast<uint32_t>(status));
  release_receive(s, d.receive);  // gives back its reserved place in the JFC, which the completion takes
  push_completion(s, jfc, cqe);
}

}  // namespace ub::ta
