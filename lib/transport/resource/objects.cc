// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/resource/objects.h"

#include <algorithm>
#include <bit>

#include "lib/transport/resource/groups.h"
#include "lib/transport/resource/id_space.h"
#include "lib/transport/setup/handshake.h"
#include "lib/transport/setup/peers.h"
#include "lib/transport/ta/completion.h"
#include "lib/transport/ta/initiator.h"
#include "lib/transport/ta/waiting_list.h"
#include "lib/transport/wire/response_status.h"

namespace ub {

namespace {

Jfr* jfr_of(CoreState& s, uint32_t id, uint32_t* record) {
  if (id >= kIdSpace || s.ids[id].kind != ObjectKind::kJfr) return nullptr;
  *record = s.ids[id].record;
  return &s.jfrs[*record];
}

Jetty* jetty_of(CoreState& s, uint32_t id, uint32_t* record) {
  if (id >= kIdSpace) return nullptr;
  const IdSlot& slot = s.ids[id];
  if (slot.kind != ObjectKind::kJetty && slot.kind != ObjectKind::kJfs) return nullptr;
  *record = slot.record;
  return &s.jettys[*record];
}

// API codes of min_rnr_timer, in units of 10 us (URMA API 0.9, timers).
constexpr uint32_t kRnrTimer10us[32] = {65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,   32,
                                        48,    64,   96,   128,  192,  256,   384,   512,   768,   1024, 1536,
                                        2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};

Duration request_timeout(uint8_t err_timeout) {
  Duration unit = nanoseconds(int64_t{4096} << (err_timeout > 31 ? 31 : err_timeout));
  return (unit < milliseconds(10) ? milliseconds(10) : unit) * 8;
}

}  // namespace

bool valid_ring(uint32_t slot_count) { return std::has_single_bit(slot_count); }
bool valid_jfc(const CoreState& s, uint32_t jfc) {
  return jfc != 0 && jfc <= s.jfcs.high_water() && s.jfcs[jfc].in_use;
}

Status create_jfc(CoreState& s, const JfcConfig& config, uint32_t* jfc) {
  if (config.slots == nullptr || config.indices == nullptr || !valid_ring(config.slot_count) || config.depth == 0 ||
      config.depth > config.slot_count) {
    return Status::kInvalid;
  }
  uint32_t index = s.jfcs.alloc();
  if (index == 0) return Status::kNoMemory;
  Jfc& j = s.jfcs[index];
  Jfc former = j;
  j = Jfc{};
  // The list of JFCs that were waited for drops it when its turn comes, not before.
  j.on_blocked_list = former.on_blocked_list;
  j.next_blocked = former.next_blocked;
  j.slots = config.slots;
  j.indices = config.indices;
  j.cookie = config.cookie;
  j.owner = config.owner;
  j.mask = config.slot_count - 1;
  j.depth = config.depth;
  j.in_use = true;
  *jfc = index;
  return Status::kOk;
}

Status destroy_jfc(CoreState& s, uint32_t jfc) {
  if (!valid_jfc(s, jfc)) return Status::kInvalid;
  Jfc& j = s.jfcs[jfc];
  if (j.users != 0 || j.reserved != 0) return Status::kBusy;
  if (j.event_queued) {
    uint32_t* link = &s.event_jfcs;
    while (*link != jfc) link = &s.jfcs[*link].next_event;
    *link = j.next_event;
  }
  j.in_use = false;
  s.jfcs.free(jfc);
  return Status::kOk;
}

Status create_jfr(CoreState& s, const JfrConfig& config, uint32_t* id) {
  if (config.slots == nullptr || config.indices == nullptr || !valid_ring(config.slot_count) ||
      !valid_jfc(s, config.jfc) || config.min_rnr_timer > 31) {
    return Status::kInvalid;
  }
  uint32_t index = s.jfrs.alloc();
  if (index == 0) return Status::kNoMemory;
  uint32_t new_id = allocate_id(s, config.wanted_id);
  if (new_id == 0) {
    s.jfrs.free(index);
    return Status::kNoId;
  }
  Jfr& r = s.jfrs[index];
  r = Jfr{};
  r.slots = config.slots;
  r.indices = config.indices;
  r.user_data = config.user_data;
  r.receive_slots = std::max<uint8_t>(config.receive_slots, 1);
  r.owner = config.owner;
  r.token = config.token;
  r.id = new_id;
  r.mask = config.slot_count - 1;
  r.jfc = config.jfc;
  r.state = QueueState::kReady;
  r.mode = config.mode;
  r.rnr_code = wire::rnr_code_at_least(microseconds(int64_t{kRnrTimer10us[config.min_rnr_timer]} * 10));
  ++s.jfcs[config.jfc].users;
  s.ids[new_id] = IdSlot{index, 0, ObjectKind::kJfr};
  *id = new_id;
  return Status::kOk;
}

namespace {

constexpr uint32_t kFlushesPerVisit = 64;  // about 5 us

// Its jetty is gone while bytes may still be copied into it: it goes back when its message ends.
void return_at_end(CoreState& s, uint32_t receive) {
  RxReceive& r = s.receives[receive];
  if (r.counted) --s.jfcs[r.jfc].reserved;
  r.counted = false;
  r.returns = true;
  r.jetty = 0;
  r.jfc = s.jfrs[r.jfr].jfc;
}

// detach_open_receives() for datagrams.
void detach_arriving(CoreState& s, uint32_t jfr, uint32_t jetty) {
  for (uint32_t i = 1; i <= s.arriving.high_water(); ++i) {
    ArrivingDatagram& d = s.arriving[i];
    if (!d.in_use || d.receive == 0) continue;
    RxReceive& r = s.receives[d.receive];
    if (jetty != 0 ? r.jetty != jetty : r.jfr != jfr) continue;
    if (jetty == 0) {
      release_receive(s, d.receive);
      d.receive = 0;
      continue;
    }
    return_at_end(s, d.receive);
  }
}

// Messages that are arriving into receives of this JFR, or for this jetty, lose them.
void detach_open_receives(CoreState& s, uint32_t jfr, uint32_t jetty) {
  detach_arriving(s, jfr, jetty);
  for (uint32_t i = s.haunted_receives; i != 0 && jetty == 0; i = s.receives[i].next) {
    RxReceive& r = s.receives[i];
    if (r.jfr != jfr) continue;
    r.jfr = 0;  // freed when the copies are done
    if (r.counted) --s.jfcs[r.jfc].reserved;
    r.counted = false;
  }
  for (uint32_t i = 1; i <= s.channels.high_water(); ++i) {
    tp::Channel& ch = s.channels[i];
    if (ch.receive == 0) continue;
    const RxReceive& r = s.receives[ch.receive];
    if (jetty != 0 ? r.jetty != jetty : r.jfr != jfr) continue;
    ch.message_rspst = wire::kRspError;
    ch.message_rspinfo = wire::kErrRemoteAbort;
    if (jetty != 0 && ch.copies_pending != 0) {  // they may still write into it
      return_at_end(s, ch.receive);
      continue;
    }
    if (jetty != 0) {
      return_receive(s, ch.receive);
    } else {
      release_receive(s, ch.receive);
    }
    ch.receive = 0;
  }
}

}  // namespace

// No further than the ring is long: the application may post and make room without end. And no further than its share
// of a visit, for the others wait meanwhile: those that complete into a JFC are visited together.
void flush_receives(CoreState& s, uint32_t jfr) {
  Jfr& r = s.jfrs[jfr];
  if (r.state != QueueState::kError || r.waits) return;
  const uint32_t share = std::max(1u, std::min(r.mask + 1, kFlushesPerVisit / s.jfcs[r.jfc].users));
  for (uint32_t flushed = 0; flushed != share; ++flushed) {
    if (!ta::jfc_has_room(s, r.jfc)) return ta::wait_for_room(s, r.jfc, jfr | kWaitingJfr);
    uint32_t receive = take_receive(s, jfr, r.jfc);
    if (receive == 0) return;
    Cqe cqe{};
    cqe.user_ctx = s.receives[receive].user_ctx;
    cqe.status = CrStatus::kWrFlush;
    cqe.opcode = CrOpcode::kNone;
    cqe.flags = kCqeReceive;
    cqe.local_id = r.id;
    cqe.user_data = r.user_data;
    release_receive(s, receive);
    ta::push_completion(s, r.jfc, cqe);
  }
  ta::wait_for_room(s, r.jfc, jfr | kWaitingJfr);
  // Nobody needs to do anything for the rest to go on, so the driver must not sleep. No queue has the number 0, its
  // timer only wakes; it is due behind this moment, or a round of timers that is under way would use it up.
  s.timers.arm(s.timer_of_queue(0), s.now + nanoseconds(1));
}

namespace {

// A receive element out of the ring. The application may write there at any time: what is checked is the copy.
struct PostedReceive {
  Rqe slot[rqe_slots(kMaxSges)];
};

// The oldest one posted; false: there is none, or it is none.
bool fetch_receive(const Jfr& r, uint32_t produced, PostedReceive* out) {
  if (produced == r.consumed) return false;
  uint32_t at = r.consumed & r.mask;
  out->slot[0] = r.slots[at];
  std::atomic_signal_fence(std::memory_order_seq_cst);
  const Rqe& head = out->slot[0];
  if (head.slots == 0 || head.slots > produced - r.consumed || head.slots > r.mask + 1 - at) return false;
  if (head.skip != 0) return true;
  if (head.sge_count > kMaxSges || head.slots < rqe_slots(head.sge_count)) return false;
  for (uint32_t i = 1; i < rqe_slots(head.sge_count); ++i) out->slot[i] = r.slots[at + i];
  return true;
}

void free_returned(CoreState& s, Jfr& r) {
  while (r.returned != 0) {
    const uint32_t receive = r.returned;
    r.returned = s.receives[receive].next;
    s.receives.free(receive);
  }
}

}  // namespace

void discard_receives(CoreState& s, uint32_t jfr) {
  Jfr& r = s.jfrs[jfr];
  free_returned(s, r);
  ta::stop_waiting(s, r.jfc, jfr | kWaitingJfr);
  const uint32_t produced = r.indices->produced.load(std::memory_order_acquire);
  uint32_t dropped = 0;
  for (PostedReceive rqe; fetch_receive(r, produced, &rqe); r.consumed += rqe.slot[0].slots) {
    dropped += rqe.slot[0].skip == 0;
  }
  r.indices->retired.store(r.indices->retired.load(std::memory_order_relaxed) + dropped, std::memory_order_relaxed);
  r.indices->consumed.store(r.consumed, std::memory_order_release);
}

Status destroy_jfr(CoreState& s, uint32_t id) {
  uint32_t record;
  Jfr* r = jfr_of(s, id, &record);
  if (r == nullptr) return Status::kInvalid;
  if (r->users != 0) return Status::kBusy;
  detach_open_receives(s, record, 0);
  free_returned(s, *r);
  ta::stop_waiting(s, r->jfc, record | kWaitingJfr);
  --s.jfcs[r->jfc].users;
  r->state = QueueState::kReset;
  release_id(s, id);
  s.jfrs.free(record);
  ta::resume_jfc(s, r->jfc);  // the places of its receives are free
  return Status::kOk;
}

Status create_jetty(CoreState& s, const JettyConfig& config, uint32_t* id) {
  const SendQueueConfig& qc = config.sq;
  uint32_t jfr = 0;
  if (config.kind == ObjectKind::kJetty && jfr_of(s, config.jfr, &jfr) == nullptr) return Status::kInvalid;
  if (qc.slots == nullptr || qc.indices == nullptr || qc.work == nullptr || !valid_ring(qc.slot_count) ||
      qc.depth == 0 || qc.depth > kMaxSendDepth || !valid_jfc(s, qc.jfc) ||
      (config.recv_jfc != 0 && !valid_jfc(s, config.recv_jfc))) {
    return Status::kInvalid;
  }
  const uint32_t group = config.group == 0 ? 0 : find_group(s, config.group, config.owner);
  if (config.group != 0 && (group == 0 || jfr == 0 || config.mode != Mode::kRm)) return Status::kInvalid;
  if (group != 0 && s.groups[group].count == kMaxGroupMembers) return Status::kNoMemory;
  uint32_t record = s.jettys.alloc();
  uint32_t queue = record == 0 ? 0 : s.queues.alloc();
  uint32_t new_id = queue == 0 ? 0 : allocate_id(s, config.wanted_id);
  if (new_id == 0) {
    if (queue != 0) s.queues.free(queue);
    if (record != 0) s.jettys.free(record);
    return queue == 0 ? Status::kNoMemory : Status::kNoId;
  }
  Jetty& j = s.jettys[record];
  j = Jetty{};
  j.user_data = config.user_data;
  j.id = new_id;
  j.queue = queue;
  j.jfr = jfr;
  j.recv_jfc = jfr == 0 ? 0 : (config.recv_jfc != 0 ? config.recv_jfc : s.jfrs[jfr].jfc);
  j.kind = config.kind;
  j.mode = config.mode;
  j.pinned = config.lower_layer_order;

  SendQueue& q = s.queues[queue];
  auto generation = static_cast<uint8_t>(q.generation + 1);
  q = SendQueue{};
  q.generation = generation;
  q.slots = qc.slots;
  q.source = qc.source;
  q.pacer = qc.pacer;
  q.owner = config.owner;
  q.indices = qc.indices;
  q.work = reinterpret_cast<WrState*>(qc.work);
  q.slot_mask = qc.slot_count - 1;
  q.work_mask = std::bit_ceil(qc.depth) - 1;
  q.jetty = record;
  q.rcid = new_id;
  q.jfc = qc.jfc;
  q.rnr_retry = qc.rnr_retry;
  q.state = QueueState::kReady;
  q.in_use = true;
  q.unreliable = config.mode == Mode::kUm;
  q.request_timeout = request_timeout(qc.err_timeout);
  q.deadline = Instant::never();

  ++s.jfcs[qc.jfc].users;
  if (jfr != 0) {
    ++s.jfrs[jfr].users;
    ++s.jfcs[j.recv_jfc].users;
  }
  s.ids[new_id] = IdSlot{record, 0, config.kind};
  if (group != 0) join_group(s, group, record);
  *id = new_id;
  return Status::kOk;
}

Status destroy_jetty(CoreState& s, uint32_t id) {
  uint32_t record;
  Jetty* j = jetty_of(s, id, &record);
  if (j == nullptr) return Status::kInvalid;
  SendQueue& q = s.queues[j->queue];
  leave_group(s, record);
  ta::leave_list(s, j->queue);
  set_held_back(s, &q.held_back, false);
  for (uint32_t n = q.started_head; n != q.started_tail; ++n) ta::give_up(s, j->queue, n, CrStatus::kWrFlush);
  ta::stop_waiting(s, q.jfc, j->queue);
  s.timers.cancel(s.timer_of_queue(j->queue));
  q.in_use = false;
  --s.jfcs[q.jfc].users;
  if (j->jfr != 0) {
    detach_open_receives(s, j->jfr, record);
    --s.jfrs[j->jfr].users;
    --s.jfcs[j->recv_jfc].users;
  }
  if (q.copies_pending == 0) s.queues.free(j->queue);  // else with the last of them
  release_id(s, id);
  s.jettys.free(record);
  return Status::kOk;
}

Status set_state(CoreState& s, uint32_t id, QueueState state) {
  uint32_t record;
  if (Jfr* r = jfr_of(s, id, &record)) {
    if (state == QueueState::kSuspended) return Status::kInvalid;
    r->state = state;
    r->indices->armed.store(static_cast<uint32_t>(state == QueueState::kError ? Armed::kAny : Armed::kNo),
                            std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);  // who posts looks at it behind publishing
    flush_receives(s, record);
    return Status::kOk;
  }
  Jetty* j = jetty_of(s, id, &record);
  if (j == nullptr || state == QueueState::kSuspended) return Status::kInvalid;
  SendQueue& q = s.queues[j->queue];
  if (q.state == state) return Status::kOk;
  if (state == QueueState::kError) {
    ta::flush_queue(s, j->queue);
    return Status::kOk;
  }
  // READY and RESET begin with an empty queue: everything in it must have been handed back.
  if (q.state == QueueState::kError && (q.started_head != q.started_tail || q.flush_done_pending ||
                                        q.next_slot != q.indices->produced.load(std::memory_order_acquire))) {
    return Status::kBusy;
  }
  q.state = state;
  set_held_back(s, &q.held_back, false);
  if (state == QueueState::kReady) ta::schedule_queue(s, j->queue);
  return Status::kOk;
}

QueueState state_of(const CoreState& s, uint32_t id) {
  auto& mutable_state = const_cast<CoreState&>(s);
  uint32_t record;
  if (const Jfr* r = jfr_of(mutable_state, id, &record)) return r->state;
  if (const Jetty* j = jetty_of(mutable_state, id, &record)) return s.queues[j->queue].state;
  return QueueState::kReset;
}

Status set_receive_threshold(CoreState& s, uint32_t id, uint32_t slots) {
  uint32_t record;
  Jfr* r = jfr_of(s, id, &record);
  if (r == nullptr) return Status::kInvalid;
  r->threshold = slots;
  r->limit_armed = slots != 0;
  return Status::kOk;
}

uint32_t take_receive(CoreState& s, uint32_t jfr, uint32_t jfc) {
  Jfr& r = s.jfrs[jfr];
  if (!ta::jfc_has_room(s, jfc)) return 0;
  uint32_t index = r.returned;
  if (index != 0) {
    r.returned = s.receives[index].next;
  } else {
    uint32_t produced = r.indices->produced.load(std::memory_order_acquire);
    if (produced - r.consumed > r.mask + 1) return 0;  // an index that cannot be
    PostedReceive rqe;
    if (!fetch_receive(r, produced, &rqe)) return 0;
    if (rqe.slot[0].skip != 0) {
      r.consumed += rqe.slot[0].slots;
      r.indices->consumed.store(r.consumed, std::memory_order_release);
      if (!fetch_receive(r, produced, &rqe) || rqe.slot[0].skip != 0) return 0;
    }
    index = s.receives.alloc();
    if (index == 0) return 0;
    const Rqe& head = rqe.slot[0];
    RxReceive& receive = s.receives[index];
    receive.user_ctx = head.user_ctx;
    receive.length = head.length;
    receive.sge_count = head.sge_count;
    for (uint32_t i = 0; i < head.sge_count; ++i) receive.sges[i] = sge_of(head, i);
    r.consumed += head.slots;
    r.indices->retired.store(r.indices->retired.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    r.indices->consumed.store(r.consumed, std::memory_order_release);
    if (r.limit_armed && produced - r.consumed < r.threshold) {
      r.limit_armed = false;
      push_event(s, EventKind::kJfrLimit, r.user_data, r.owner);
    }
  }
  RxReceive& receive = s.receives[index];
  receive.jfr = jfr;
  receive.jfc = jfc;
  receive.jetty = 0;
  receive.filled = 0;
  receive.counted = true;
  receive.returns = false;
  ++s.jfcs[jfc].reserved;
  return index;
}

void return_receive(CoreState& s, uint32_t index) {
  RxReceive& receive = s.receives[index];
  uint32_t jfr = receive.jfr, jfc = receive.jfc;
  if (receive.counted) --s.jfcs[jfc].reserved;
  receive.counted = false;
  receive.next = s.jfrs[jfr].returned;
  s.jfrs[jfr].returned = index;
  flush_receives(s, jfr);
  ta::resume_jfc(s, jfc);
}

void return_receive_later(CoreState& s, uint32_t index, uint32_t tpn, uint32_t copies) {
  RxReceive& receive = s.receives[index];
  receive.dead_tpn = tpn;
  receive.copies = copies;
  receive.next = s.haunted_receives;
  s.haunted_receives = index;
}

void dead_copy_done(CoreState& s, uint32_t tpn) {
  for (uint32_t* link = &s.haunted_receives; *link != 0; link = &s.receives[*link].next) {
    uint32_t index = *link;
    RxReceive& receive = s.receives[index];
    if (receive.dead_tpn != tpn) continue;
    if (--receive.copies != 0) return;
    *link = receive.next;
    if (receive.jfr != 0) return return_receive(s, index);
    return release_receive(s, index);
  }
}

void release_receive(CoreState& s, uint32_t index) {
  RxReceive& receive = s.receives[index];
  if (receive.counted) --s.jfcs[receive.jfc].reserved;
  s.receives.free(index);
}

// ---- targets ---------------------------------------------------------------------------------------------------

Status add_target(CoreState& s, const TargetConfig& config, uint32_t* target) {
  if (config.path.link == 0 || config.path.link > s.links.high_water() || config.instance.uasid == 0) {
    return Status::kInvalid;
  }
  uint32_t index = s.targets.alloc();
  if (index == 0) return Status::kNoMemory;
  uint32_t peer = setup::find_or_add_peer(s, config);
  if (peer == 0) {
    s.targets.free(index);
    return Status::kNoMemory;
  }
  Target& t = s.targets[index];
  t = Target{};
  t.instance = config.instance;
  t.peer = peer;
  t.id = config.id;
  t.token = config.token;
  t.owner = config.owner;
  t.kind = config.kind;
  t.mode = config.mode;
  t.in_use = true;
  ++s.peers[peer].users;
  if (config.mode != Mode::kUm) setup::channel_to(s, peer, false);
  *target = index;
  return Status::kOk;
}

Status remove_target(CoreState& s, uint32_t target) {
  if (target == 0 || target > s.targets.high_water() || !s.targets[target].in_use) return Status::kInvalid;
  uint32_t peer = s.targets[target].peer;
  s.targets[target].in_use = false;
  s.targets.free(target);
  --s.peers[peer].users;
  setup::drop_unused_peer(s, peer);
  return Status::kOk;
}

Status bind_jetty(CoreState& s, uint32_t jetty, uint32_t target) {
  uint32_t record;
  Jetty* j = jetty_of(s, jetty, &record);
  if (j == nullptr || target == 0 || target > s.targets.high_water() || !s.targets[target].in_use) {
    return Status::kInvalid;
  }
  if (j->bound_target != 0 && j->bound_target != target) return Status::kExists;
  j->bound_target = target;
  return Status::kOk;
}

Status unbind_jetty(CoreState& s, uint32_t jetty) {
  uint32_t record;
  Jetty* j = jetty_of(s, jetty, &record);
  if (j == nullptr || j->bound_target == 0) return Status::kInvalid;
  j->bound_target = 0;
  return Status::kOk;
}

}  // namespace ub
