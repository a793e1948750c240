// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/resource/objects.h"

#include <algorithm>
#include <bit>

#include "lib/transport/resource/groups.h"
#include "lib/transport/resource/id_space.h"
#include "lib/transport/resource/receives.h"
#include "lib/transport/ta/completion.h"
#include "lib/transport/ta/giving_up.h"
#include "lib/transport/ta/request_state.h"
#include "lib/transport/ta/scheduler.h"
#include "lib/transport/ta/target_order.h"
#include "lib/transport/ta/waiting_list.h"
#include "lib/transport/wire/response_status.h"

namespace ub {

namespace {

Jfr* jfr_of(CoreState& s, uint32_t id, uint32_t* record) {
  if (id >= kIdSpace || s.ids[id].kind != ObjectKind::kJfr) return nullptr;
  *record = s.ids[id].record;
  return &s.jfrs[*record];
}

// The times of the API's codes for min_rnr_timer (URMA API 0.9), in units of 10 us.
constexpr uint32_t kRnrTimer10us[32] = {65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,   32,
                                        48,    64,   96,   128,  192,  256,   384,   512,   768,   1024, 1536,
                                        2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};

void leave_jfc(CoreState& s, uint32_t jfc) {
  UB_DCHECK(s.jfcs[jfc].in_use && s.jfcs[jfc].users != 0);
  --s.jfcs[jfc].users;
}

Duration request_timeout(uint8_t err_timeout) {
  Duration unit = nanoseconds(int64_t{4096} << (err_timeout > 31 ? 31 : err_timeout));
  return (unit < milliseconds(10) ? milliseconds(10) : unit) * 8;
}

}  // namespace

Jetty* jetty_of(CoreState& s, uint32_t id, uint32_t* record) {
  if (id >= kIdSpace) return nullptr;
  const IdSlot& slot = s.ids[id];
  if (slot.kind != ObjectKind::kJetty && slot.kind != ObjectKind::kJfs) return nullptr;
  *record = slot.record;
  return &s.jettys[*record];
}

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
  // The record may still stand on the list of blocked JFCs, which it leaves only when its turn comes.
  j.on_blocked_list = former.on_blocked_list;
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
  UB_DCHECK(j.waiting.empty());  // every waiter is a user
  j.in_use = false;
  s.of_gone.completions += j.produced;
  s.timers.cancel(s.jfc_timers.of(jfc));
  if (!j.on_event_list) s.jfcs.free(jfc);  // else drain_events() frees it
  return Status::kOk;
}

Status moderate_jfc(CoreState& s, uint32_t jfc, const Moderation& wanted) {
  if (!valid_jfc(s, jfc)) return Status::kInvalid;
  Jfc& j = s.jfcs[jfc];
  JfcModeration& m = s.moderations[jfc];
  if (!j.moderated) m = JfcModeration{};
  j.moderated = true;
  m.count = wanted.count.value_or(m.count);
  m.period = wanted.period.value_or(m.period);
  const uint32_t timer = s.jfc_timers.of(jfc);
  s.timers.cancel(timer);  // its deadline is that of the former period
  ta::check_armed(s, jfc);
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

Status destroy_jfr(CoreState& s, uint32_t id) {
  uint32_t record;
  Jfr* r = jfr_of(s, id, &record);
  if (r == nullptr) return Status::kInvalid;
  if (r->users != 0) return Status::kBusy;
  detach_open_receives(s, record, 0);
  free_returned(s, *r);
  ta::stop_waiting(s, r->jfc, s.jfr_waiters.of(record));
  leave_jfc(s, r->jfc);
  r->state = QueueState::kReset;
  release_id(s, id);
  s.jfrs.free(record);
  ta::resume_jfc(s, r->jfc);  // the places reserved for its receives are free
  return Status::kOk;
}

Status create_jetty(CoreState& s, const JettyConfig& config, uint32_t* id) {
  const SendQueueConfig& qc = config.sq;
  uint32_t jfr = 0;
  if (config.kind == ObjectKind::kJetty && jfr_of(s, config.jfr, &jfr) == nullptr) return Status::kInvalid;
  if (qc.slots == nullptr || qc.indices == nullptr || qc.work == nullptr || !valid_ring(qc.slot_count) ||
      qc.depth == 0 || qc.depth > kMaxSendDepth || qc.priority > kMostPriority || !valid_jfc(s, qc.jfc) ||
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
  j.priority = qc.priority & kMostPriority;

  SendQueue& q = s.queues[queue];
  auto generation = static_cast<uint8_t>(q.generation + 1);
  q = SendQueue{};
  q.generation = generation;
  q.slots = qc.slots;
  q.source = qc.source;
  q.limits = qc.limits;
  q.owner = config.owner;
  q.indices = qc.indices;
  q.work = reinterpret_cast<WrState*>(qc.work);
  q.slot_mask = qc.slot_count - 1;
  q.work_mask = std::bit_ceil(qc.depth) - 1;
  q.jetty = record;
  q.rcid = new_id;
  // Answers name an RCID and a TASSN. A late one to a former queue of the RCID would be taken for one to this queue.
  const uint32_t random_tassn = s.prng.next_u32();
  q.next_tassn = Tassn(s.config.first_tassn == UINT32_MAX ? random_tassn : s.config.first_tassn);
  q.jfc = qc.jfc;
  q.rnr_retry = qc.rnr_retry;
  q.state = QueueState::kReady;
  q.in_use = true;
  q.suspends = qc.suspends;
  q.completes_early = qc.completes_early && config.mode != Mode::kUm;
  q.unreliable = config.mode == Mode::kUm;
  q.takes_other_turns = q.unreliable || qc.priority != 0;
  q.pinned = config.lower_layer_order;
  q.rol = s.config.rol && config.lower_layer_order && config.mode == Mode::kRc;
  q.compact = q.rol || (config.mode == Mode::kRm && !config.lower_layer_order);
  q.rot = config.target_order && !config.lower_layer_order && config.mode == Mode::kRc;
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
  ta::leave_context(s, q);
  ta::close_repeat_queues(s, q.rcid);
  ta::stop_waiting(s, q.jfc, s.queue_waiters.of(j->queue));
  s.timers.cancel(s.timer_of_queue(j->queue));
  (q.unreliable ? s.of_gone.datagrams : s.of_gone.requests) += q.indices->retired.load(std::memory_order_relaxed);
  q.in_use = false;
  forget_routes(s);
  leave_jfc(s, q.jfc);
  if (j->jfr != 0) {
    detach_open_receives(s, j->jfr, record);
    UB_DCHECK(s.jfrs[j->jfr].users != 0);
    --s.jfrs[j->jfr].users;
    leave_jfc(s, j->recv_jfc);
  }
  if (q.copies_pending == 0) s.queues.free(j->queue);  // else when the last copy is done
  release_id(s, id);
  s.jettys.free(record);
  return Status::kOk;
}

Status set_state(CoreState& s, uint32_t id, QueueState state) {
  uint32_t record;
  if (Jfr* r = jfr_of(s, id, &record)) {
    if (state == QueueState::kSuspended) return Status::kInvalid;
    r->state = state;
    s.note(Stage::kJfrState, record, static_cast<uint32_t>(state));
    r->indices->armed.store(static_cast<uint32_t>(state == QueueState::kError ? Armed::kAny : Armed::kNo),
                            std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);  // a post reads `armed` after it has published its element
    flush_receives(s, record);
    return Status::kOk;
  }
  Jetty* j = jetty_of(s, id, &record);
  if (j == nullptr) return Status::kInvalid;
  SendQueue& q = s.queues[j->queue];
  if (q.state == state) return Status::kOk;
  if (state == QueueState::kSuspended) {
    if (!q.suspends || q.state != QueueState::kReady) return Status::kInvalid;
    ta::suspend_queue(s, q);
    ta::retire_requests(s, j->queue);
    return Status::kOk;
  }
  if (state == QueueState::kError) {
    ta::flush_queue(s, j->queue);
    return Status::kOk;
  }
  if (state == QueueState::kReset && q.state == QueueState::kReady) {
    ta::reset_queue(s, j->queue);
    return Status::kOk;
  }
  if (q.state == QueueState::kReset) ta::schedule_queue(s, j->queue);  // which ends what was posted and not seen yet
  // READY begins with an empty queue, and so does RESET behind ERROR (8.2.2.3): all its requests must have been
  // completed or taken back.
  if (q.state != QueueState::kReady && (q.started_head != q.started_tail || q.marker_pending ||
                                  q.next_slot != q.indices->produced.load(std::memory_order_acquire))) {
    return Status::kBusy;
  }
  q.state = state;
  s.note(Stage::kQueueState, j->queue, static_cast<uint32_t>(state));
  set_held_back(s, &q.held_back, false);
  ta::schedule_queue(s, j->queue);
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

Status set_queue_token(CoreState& s, uint32_t id, uint32_t value, uint32_t former) {
  if (id >= kIdSpace) return Status::kInvalid;
  const IdSlot& slot = s.ids[id];
  if (slot.kind == ObjectKind::kJfr) return set_token(s.jfrs[slot.record].token, value, former);
  if (slot.kind == ObjectKind::kGroup) return set_token(s.groups[slot.record].token, value, former);
  return Status::kInvalid;
}

}  // namespace ub
