// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/ta/datagram_admission.h"

#include <optional>

#include "lib/transport/resource/receives.h"
#include "lib/transport/ta/completion.h"
#include "lib/transport/ta/receive_matching.h"

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

struct Receiver {
  uint32_t jetty;  // 0: the packet is addressed to the JFR
  uint32_t jfr;
};

// Finds the jetty and the JFR that the packet is addressed to. Groups have no members of mode UM.
Refusal find_receiver(const CoreState& s, const wire::Mtetah& mt, Receiver* to) {
  const IdSlot& id = s.ids[mt.tc_id];
  if ((mt.tc_type == wire::kTcTypeGroup) != (id.kind == ObjectKind::kGroup)) return Counter::kRxDropNoSuchQueue;
  switch (id.kind) {
    case ObjectKind::kJetty:
      to->jetty = id.record;
      to->jfr = s.jettys[to->jetty].jfr;
      if (s.jettys[to->jetty].mode != Mode::kUm) return Counter::kRxDropUmMode;
      return {};
    case ObjectKind::kJfr:
      to->jfr = id.record;
      if (s.jfrs[to->jfr].mode != Mode::kUm) return Counter::kRxDropUmMode;
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

// Takes a receive for the packet.
Refusal take_receive_for(CoreState& s, uint32_t link, const wire::TaPacket& packet, uint32_t* receive) {
  if (const Refusal why = judge_packet(s, link, packet)) return why;
  Receiver to{};
  if (const Refusal why = find_receiver(s, packet.mt, &to)) return why;
  const Jfr& jfr = s.jfrs[to.jfr];
  if (!token_fits(jfr.token, packet)) return Counter::kRxDropUmToken;
  if (!ready(s, to.jetty, jfr)) return Counter::kRxTargetNotReady;
  if (too_many_arriving(s, jfr.owner)) return Counter::kRxDropUmBusy;
  if (finds_none_on_purpose(s, jfr)) return Counter::kRxDropUmNoReceive;
  *receive = take_receive(s, to.jfr, to.jetty == 0 ? jfr.jfc : s.jettys[to.jetty].recv_jfc);
  if (*receive == 0) return Counter::kRxDropUmNoReceive;
  s.receives[*receive].jetty = to.jetty;
  return {};
}

}  // namespace

uint32_t admit_datagram(CoreState& s, uint32_t link, const wire::Endpoint& source, const wire::TaPacket& packet) {
  uint32_t receive{};
  if (const Refusal why = take_receive_for(s, link, packet, &receive)) {
    s.drop(*why);
    return 0;
  }
  const Jfr& jfr = s.jfrs[s.receives[receive].jfr];
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
