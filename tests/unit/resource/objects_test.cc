// SPDX-License-Identifier: Apache-2.0
//
// Making and destroying what applications own: what is refused takes nothing, what is made is as it was asked for, and
// what is destroyed leaves nothing behind.
#include "tests/unit/resource/objects.h"

#include "lib/transport/resource/owner_limits.h"
#include "lib/transport/setup/channel_life.h"
#include "lib/transport/ta/completion.h"
#include "lib/transport/ta/waiting_list.h"
#include "lib/transport/wire/response_status.h"
#include "tests/unit/transport/test_host.h"

namespace ub {
namespace {

// ---- JFCs ------------------------------------------------------------------------------------------------------

TEST(JfcObject, what_cannot_be_is_refused_and_takes_nothing) {
  Objects o;
  const auto status = [&](void (*change)(JfcConfig&)) {
    JfcConfig c = o.jfc_config();
    change(c);
    uint32_t made = 0;
    const Status result = create_jfc(*o.s, c, &made);
    EXPECT_TRUE(result != Status::kOk || destroy_jfc(*o.s, made) == Status::kOk);
    return result;
  };
  EXPECT_EQ(status([](JfcConfig&) {}), Status::kOk);
  EXPECT_EQ(status([](JfcConfig& c) { c.slots = nullptr; }), Status::kInvalid);
  EXPECT_EQ(status([](JfcConfig& c) { c.indices = nullptr; }), Status::kInvalid);
  EXPECT_EQ(status([](JfcConfig& c) { c.slot_count = c.depth = 3; }), Status::kInvalid);
  EXPECT_EQ(status([](JfcConfig& c) { c.slot_count = 0; }), Status::kInvalid);
  EXPECT_EQ(status([](JfcConfig& c) { c.depth = 0; }), Status::kInvalid);
  EXPECT_EQ(status([](JfcConfig& c) { c.depth = c.slot_count + 1; }), Status::kInvalid);
  EXPECT_EQ(status([](JfcConfig& c) { c.depth = 1; }), Status::kOk);
  EXPECT_EQ(o.s->jfcs.in_use(), 1u);
}

TEST(JfcObject, is_as_it_was_asked_for_whatever_the_last_user_left) {
  Objects o;
  o.the_jfc().produced = o.the_jfc().solicited = 9;
  o.the_jfc().full = true;
  ASSERT_EQ(destroy_jfc(*o.s, o.jfc), Status::kOk);
  JfcConfig c = o.jfc_config();
  c.depth = 100;
  ASSERT_EQ(create_jfc(*o.s, c, &o.jfc), Status::kOk);
  const Jfc& j = o.the_jfc();
  EXPECT_EQ(j.slots, o.cqes.data());
  EXPECT_EQ(j.indices, &o.cq);
  EXPECT_EQ(j.cookie, 77u);
  EXPECT_EQ(j.owner, 5);
  EXPECT_EQ(j.mask, 255u);
  EXPECT_EQ(j.depth, 100u);
  EXPECT_EQ(j.produced + j.solicited, 0u);
  EXPECT_FALSE(j.full);
  EXPECT_TRUE(j.in_use);
}

// Those that were waited for drop it when its turn comes, not before.
TEST(JfcObject, a_record_that_is_used_again_stays_where_it_stands_on_the_list) {
  Objects o;
  o.the_jfc().on_blocked_list.next = 7;
  ASSERT_EQ(destroy_jfc(*o.s, o.jfc), Status::kOk);
  ASSERT_EQ(create_jfc(*o.s, o.jfc_config(), &o.jfc), Status::kOk);
  EXPECT_EQ(o.the_jfc().on_blocked_list.next, 7u);
}

TEST(JfcObject, there_are_no_more_than_records) {
  Objects o;
  uint32_t made = 0;
  for (int i = 1; i < 8; ++i) EXPECT_EQ(create_jfc(*o.s, o.jfc_config(), &made), Status::kOk);
  EXPECT_EQ(create_jfc(*o.s, o.jfc_config(), &made), Status::kNoMemory);
}

TEST(JfcObject, what_is_no_jfc_cannot_be_destroyed) {
  Objects o;
  for (uint32_t none : {0u, 2u, UINT32_MAX}) EXPECT_EQ(destroy_jfc(*o.s, none), Status::kInvalid) << none;
  EXPECT_EQ(destroy_jfc(*o.s, o.jfc), Status::kOk);
  EXPECT_EQ(destroy_jfc(*o.s, o.jfc), Status::kInvalid) << "once";
  EXPECT_EQ(o.s->jfcs.in_use(), 0u);
}

TEST(JfcObject, that_somebody_completes_into_cannot_be_destroyed) {
  Objects o;
  o.the_jfc().users = 1;
  EXPECT_EQ(destroy_jfc(*o.s, o.jfc), Status::kBusy);
  o.the_jfc().users = 0;
  o.the_jfc().reserved = 1;
  EXPECT_EQ(destroy_jfc(*o.s, o.jfc), Status::kBusy);
}

TEST(JfcObject, its_period_ends_with_it) {
  Objects o;
  ASSERT_EQ(moderate_jfc(*o.s, o.jfc, {std::nullopt, microseconds(50)}), Status::kOk);
  arm(o.cq, Armed::kAny);
  ta::push_completion(*o.s, o.jfc, Cqe{});
  ASSERT_EQ(o.s->timers.earliest(), o.s->now + microseconds(50));
  ASSERT_EQ(destroy_jfc(*o.s, o.jfc), Status::kOk);
  EXPECT_TRUE(o.s->timers.earliest().is_never());
}

TEST(JfcObject, its_events_go_with_it_and_those_of_others_stay) {
  for (uint32_t gone : {1u, 2u, 3u}) {
    Objects o;
    uint32_t made = 0;
    for (uint64_t cookie : {2, 3}) {
      JfcConfig c = o.jfc_config();
      c.cookie = cookie;
      ASSERT_EQ(create_jfc(*o.s, c, &made), Status::kOk);
    }
    o.s->jfcs[1].cookie = 1;
    for (uint32_t jfc : {1u, 2u, 3u}) push_jfc_event(*o.s, jfc, true);
    ASSERT_EQ(destroy_jfc(*o.s, gone), Status::kOk);
    const std::vector<Event> events = o.events();
    ASSERT_EQ(events.size(), 2u);
    for (const Event& e : events) EXPECT_NE(e.object, gone);
  }
}

// ---- JFRs ------------------------------------------------------------------------------------------------------

TEST(JfrObject, what_cannot_be_is_refused_and_takes_nothing) {
  Objects o;
  const auto status = [&](void (*change)(JfrConfig&)) {
    JfrConfig c = o.jfr_config();
    change(c);
    uint32_t made = 0;
    const Status result = create_jfr(*o.s, c, &made);
    EXPECT_TRUE(result != Status::kOk || destroy_jfr(*o.s, made) == Status::kOk);
    return result;
  };
  EXPECT_EQ(status([](JfrConfig&) {}), Status::kOk);
  EXPECT_EQ(status([](JfrConfig& c) { c.slots = nullptr; }), Status::kInvalid);
  EXPECT_EQ(status([](JfrConfig& c) { c.indices = nullptr; }), Status::kInvalid);
  EXPECT_EQ(status([](JfrConfig& c) { c.slot_count = 3; }), Status::kInvalid);
  EXPECT_EQ(status([](JfrConfig& c) { c.slot_count = 0; }), Status::kInvalid);
  EXPECT_EQ(status([](JfrConfig& c) { c.jfc = 0; }), Status::kInvalid);
  EXPECT_EQ(status([](JfrConfig& c) { c.jfc = 2; }), Status::kInvalid);
  EXPECT_EQ(status([](JfrConfig& c) { c.min_rnr_timer = 32; }), Status::kInvalid);
  EXPECT_EQ(status([](JfrConfig& c) { c.min_rnr_timer = 31; }), Status::kOk);
  EXPECT_EQ(o.s->jfrs.in_use(), 0u);
  EXPECT_EQ(o.the_jfc().users, 0u);
}

TEST(JfrObject, is_as_it_was_asked_for_whatever_the_last_user_left) {
  Objects o;
  const uint32_t first = o.make_jfr();
  o.jfr(first).consumed = o.jfr(first).threshold = 9;
  ASSERT_EQ(destroy_jfr(*o.s, first), Status::kOk);
  JfrConfig c = o.jfr_config();
  c.mode = Mode::kUm;
  c.token = {true, 0x1234};
  c.receive_slots = 3;
  const uint32_t id = o.make(c);
  const Jfr& r = o.jfr(id);
  EXPECT_EQ(o.s->ids[id].kind, ObjectKind::kJfr);
  EXPECT_EQ(r.slots, c.slots);
  EXPECT_EQ(r.indices, c.indices);
  EXPECT_EQ(r.user_data, 99u);
  EXPECT_EQ(r.receive_slots, 3);
  EXPECT_EQ(r.owner, 5);
  EXPECT_EQ(r.token.value, 0x1234u);
  EXPECT_EQ(r.id, id);
  EXPECT_EQ(r.mask, kRingSlots - 1);
  EXPECT_EQ(r.jfc, o.jfc);
  EXPECT_EQ(r.state, QueueState::kReady);
  EXPECT_EQ(r.mode, Mode::kUm);
  EXPECT_EQ(r.consumed + r.threshold + r.users, 0u);
  EXPECT_EQ(o.the_jfc().users, 1u);
  c = o.jfr_config();
  c.receive_slots = 0;
  EXPECT_EQ(o.jfr(o.make(c)).receive_slots, 1);
}

// 7.3.1.1 and the timers of the API: no shorter than was asked for.
TEST(JfrObject, its_rnr_timer_is_the_least_of_the_wire_that_is_long_enough) {
  Objects o;
  const auto code = [&](uint8_t timer) {
    JfrConfig c = o.jfr_config();
    c.min_rnr_timer = timer;
    const uint32_t id = o.make(c);
    const uint8_t made = o.jfr(id).rnr_code;
    destroy_jfr(*o.s, id);
    return made;
  };
  EXPECT_EQ(code(0), wire::rnr_code_at_least(microseconds(655360)));
  EXPECT_EQ(code(1), wire::rnr_code_at_least(microseconds(10)));
  EXPECT_EQ(code(5), wire::rnr_code_at_least(microseconds(60))) << "64 us";
  EXPECT_EQ(code(12), wire::rnr_code_at_least(microseconds(640)));
  EXPECT_EQ(code(31), wire::rnr_code_at_least(microseconds(491520)));
}

TEST(JfrObject, without_a_record_or_an_id_nothing_is_taken) {
  Objects o;
  for (int i = 0; i < 8; ++i) o.make_jfr();
  uint32_t made = 0;
  EXPECT_EQ(create_jfr(*o.s, o.jfr_config(), &made), Status::kNoMemory);
  CoreConfig config = small_tables();
  config.every_id = false;
  Objects without(config);
  EXPECT_EQ(create_jfr(*without.s, without.jfr_config(), &made), Status::kNoId);
  EXPECT_EQ(without.s->jfrs.in_use(), 0u);
  EXPECT_EQ(without.the_jfc().users, 0u);
}

TEST(JfrObject, leaves_nothing_behind) {
  Objects o;
  const uint32_t id = o.make_jfr(), record = o.s->ids[id].record;
  o.jfr(id).returned.push_back<&RxReceive::on_list>(o.s->receives, o.s->receives.alloc());
  ta::wait_for_room(*o.s, o.jfc, o.s->jfr_waiters.of(record));
  ASSERT_EQ(destroy_jfr(*o.s, id), Status::kOk);
  EXPECT_EQ(o.s->ids[id].kind, ObjectKind::kNone);
  EXPECT_EQ(o.s->jfrs.in_use(), 0u);
  EXPECT_EQ(o.s->receives.in_use(), 0u);
  EXPECT_EQ(o.the_jfc().users, 0u);
  EXPECT_TRUE(o.the_jfc().waiting.empty());
  EXPECT_EQ(o.s->jfrs[record].state, QueueState::kReset);
  EXPECT_EQ(destroy_jfr(*o.s, id), Status::kInvalid);
}

TEST(JfrObject, that_a_jetty_shares_cannot_be_destroyed) {
  Objects o;
  const uint32_t id = o.make_jfr(), jetty = o.make_jetty(id);
  EXPECT_EQ(destroy_jfr(*o.s, id), Status::kBusy);
  EXPECT_EQ(destroy_jetty(*o.s, id), Status::kInvalid) << "it is none";
  EXPECT_EQ(destroy_jfr(*o.s, jetty), Status::kInvalid);
  EXPECT_EQ(destroy_jetty(*o.s, jetty), Status::kOk);
  EXPECT_EQ(destroy_jfr(*o.s, id), Status::kOk);
}

TEST(JfrObject, numbers_beyond_the_ids_name_nothing) {
  Objects o;
  o.s->jfrs[1].token.required = true;
  for (uint32_t none : {kIdSpace, UINT32_MAX}) {
    if (none == kIdSpace) o.trap_behind_ids(ObjectKind::kJfr);
    EXPECT_EQ(destroy_jfr(*o.s, none), Status::kInvalid);
    EXPECT_EQ(destroy_jetty(*o.s, none), Status::kInvalid);
    EXPECT_EQ(set_state(*o.s, none, QueueState::kReady), Status::kInvalid);
    EXPECT_EQ(state_of(*o.s, none), QueueState::kReset);
    EXPECT_EQ(set_receive_threshold(*o.s, none, 1), Status::kInvalid);
    EXPECT_EQ(set_queue_token(*o.s, none, 7, 0), Status::kInvalid);
    EXPECT_EQ(unbind_jetty(*o.s, none), Status::kInvalid);
  }
  o.trap_behind_ids(ObjectKind::kJetty);
  EXPECT_EQ(state_of(*o.s, kIdSpace), QueueState::kReset);
  o.s->queues[0].state = QueueState::kReady;
  EXPECT_EQ(state_of(*o.s, kIdSpace), QueueState::kReset);
}

// ---- jettys ----------------------------------------------------------------------------------------------------

TEST(JettyObject, what_cannot_be_is_refused_and_takes_nothing) {
  Objects o;
  const uint32_t jfr = o.make_jfr();
  const auto status = [&](void (*change)(JettyConfig&)) {
    JettyConfig c = o.jetty_config(jfr);
    change(c);
    uint32_t made = 0;
    const Status result = create_jetty(*o.s, c, &made);
    EXPECT_TRUE(result != Status::kOk || destroy_jetty(*o.s, made) == Status::kOk);
    return result;
  };
  EXPECT_EQ(status([](JettyConfig&) {}), Status::kOk);
  EXPECT_EQ(status([](JettyConfig& c) { c.jfr = 0; }), Status::kInvalid);
  EXPECT_EQ(status([](JettyConfig& c) { c.jfr = 0, c.kind = ObjectKind::kJfs; }), Status::kOk);
  EXPECT_EQ(status([](JettyConfig& c) { c.sq.slots = nullptr; }), Status::kInvalid);
  EXPECT_EQ(status([](JettyConfig& c) { c.sq.indices = nullptr; }), Status::kInvalid);
  EXPECT_EQ(status([](JettyConfig& c) { c.sq.work = nullptr; }), Status::kInvalid);
  EXPECT_EQ(status([](JettyConfig& c) { c.sq.slot_count = 3; }), Status::kInvalid);
  EXPECT_EQ(status([](JettyConfig& c) { c.sq.depth = 0; }), Status::kInvalid);
  EXPECT_EQ(status([](JettyConfig& c) { c.sq.depth = kMaxSendDepth + 1; }), Status::kInvalid);
  EXPECT_EQ(status([](JettyConfig& c) { c.sq.depth = kMaxSendDepth; }), Status::kOk);
  EXPECT_EQ(status([](JettyConfig& c) { c.sq.jfc = 0; }), Status::kInvalid);
  EXPECT_EQ(status([](JettyConfig& c) { c.recv_jfc = 2; }), Status::kInvalid);
  EXPECT_EQ(status([](JettyConfig& c) { c.recv_jfc = 1; }), Status::kOk);
  EXPECT_EQ(status([](JettyConfig& c) { c.group = 4711; }), Status::kInvalid);
  EXPECT_EQ(o.s->jettys.in_use(), 0u);
  EXPECT_EQ(o.s->queues.in_use(), 0u);
  EXPECT_EQ(o.the_jfc().users, 1u) << "the JFR's";
}

TEST(JettyObject, is_as_it_was_asked_for_whatever_the_last_user_left) {
  Objects o;
  const uint32_t jfr = o.make_jfr();
  const uint32_t first = o.make_jetty(jfr);
  o.jetty(first).bound_target = o.jetty(first).refused_rcid = 9;
  o.queue(first).retries = 9;
  o.queue(first).generation = 254;
  ASSERT_EQ(destroy_jetty(*o.s, first), Status::kOk);
  uint32_t other_jfc = 0;
  ASSERT_EQ(create_jfc(*o.s, o.jfc_config(), &other_jfc), Status::kOk);
  JettyConfig c = o.jetty_config(jfr);
  OwnerLimits limits;
  std::vector<Wqe> source(kRingSlots);
  c.mode = Mode::kRc;
  c.recv_jfc = other_jfc;
  c.lower_layer_order = true;
  c.sq.depth = 5;
  c.sq.limits = &limits;
  c.sq.source = source.data();
  c.sq.rnr_retry = 3;
  const uint32_t id = o.make(c);
  const Jetty& j = o.jetty(id);
  EXPECT_EQ(o.s->ids[id].kind, ObjectKind::kJetty);
  EXPECT_EQ(j.user_data, 88u);
  EXPECT_EQ(j.id, id);
  EXPECT_EQ(j.jfr, o.s->ids[jfr].record);
  EXPECT_EQ(j.recv_jfc, other_jfc);
  EXPECT_EQ(j.kind, ObjectKind::kJetty);
  EXPECT_EQ(j.mode, Mode::kRc);
  EXPECT_EQ(j.bound_target + j.refused_rcid + j.group, 0u);
  const SendQueue& q = o.queue(id);
  EXPECT_EQ(q.generation, 255);
  EXPECT_TRUE(q.pinned);
  EXPECT_EQ(q.slots, c.sq.slots);
  EXPECT_EQ(q.source, source.data());
  EXPECT_EQ(q.limits, &limits);
  EXPECT_EQ(q.owner, 5);
  EXPECT_EQ(q.indices, c.sq.indices);
  EXPECT_EQ(q.slot_mask, kRingSlots - 1);
  EXPECT_EQ(q.work_mask, 7u) << "5 requests, and a power of two";
  EXPECT_EQ(q.jetty, o.s->ids[id].record);
  EXPECT_EQ(q.rcid, id);
  EXPECT_EQ(q.jfc, o.jfc);
  EXPECT_EQ(q.rnr_retry, 3);
  EXPECT_EQ(q.state, QueueState::kReady);
  EXPECT_EQ(q.retries, 0u);
  EXPECT_TRUE(q.in_use && q.deadline.is_never());
  EXPECT_FALSE(q.unreliable);
  EXPECT_EQ(o.the_jfc().users, 2u);
  EXPECT_EQ(o.s->jfcs[other_jfc].users, 1u);
  EXPECT_EQ(o.jfr(jfr).users, 1u);
}

TEST(JettyObject, completes_receives_into_the_jfc_of_its_jfr_if_it_names_none) {
  Objects o;
  const uint32_t jfr = o.make_jfr();
  uint32_t other_jfc = 0;
  ASSERT_EQ(create_jfc(*o.s, o.jfc_config(), &other_jfc), Status::kOk);
  JettyConfig c = o.jetty_config(jfr);
  c.sq.jfc = other_jfc;
  EXPECT_EQ(o.jetty(o.make(c)).recv_jfc, o.jfc);
  c = o.jetty_config();
  EXPECT_EQ(o.jetty(o.make(c)).recv_jfc, 0u) << "a JFS has no receives";
}

TEST(JettyObject, the_generation_of_a_queue_changes_with_each_user) {
  Objects o;
  uint8_t last = 255;
  for (int i = 0; i < 3; ++i) {
    const uint32_t id = o.make_jetty();
    if (i == 0) last = static_cast<uint8_t>(o.queue(id).generation - 1);
    EXPECT_EQ(o.queue(id).generation, static_cast<uint8_t>(last + 1));
    last = o.queue(id).generation;
    ASSERT_EQ(destroy_jetty(*o.s, id), Status::kOk);
  }
}

TEST(JettyObject, requests_have_eight_times_the_time_of_the_api_and_at_least_80_ms) {
  Objects o;
  const auto timeout = [&](uint8_t code) {
    JettyConfig c = o.jetty_config();
    c.sq.err_timeout = code;
    const uint32_t id = o.make(c);
    const Duration made = o.queue(id).request_timeout;
    destroy_jetty(*o.s, id);
    return made;
  };
  EXPECT_EQ(timeout(0), milliseconds(80));
  EXPECT_EQ(timeout(11), milliseconds(80));
  EXPECT_EQ(timeout(12), nanoseconds(int64_t{4096} << 12) * 8);
  EXPECT_EQ(timeout(31), nanoseconds(int64_t{4096} << 31) * 8);
  EXPECT_EQ(timeout(32), nanoseconds(int64_t{4096} << 31) * 8);
}

TEST(JettyObject, without_a_record_a_queue_or_an_id_nothing_is_taken) {
  uint32_t made = 0;
  Objects no_jetty;
  while (no_jetty.s->jettys.alloc() != 0) {
  }
  EXPECT_EQ(create_jetty(*no_jetty.s, no_jetty.jetty_config(), &made), Status::kNoMemory);
  EXPECT_EQ(no_jetty.s->queues.in_use(), 0u);
  Objects no_queue;
  while (no_queue.s->queues.alloc() != 0) {
  }
  EXPECT_EQ(create_jetty(*no_queue.s, no_queue.jetty_config(), &made), Status::kNoMemory);
  EXPECT_EQ(no_queue.s->jettys.in_use(), 0u);
  CoreConfig config = small_tables();
  config.every_id = false;
  Objects no_id(config);
  EXPECT_EQ(create_jetty(*no_id.s, no_id.jetty_config(), &made), Status::kNoId);
  EXPECT_EQ(no_id.s->jettys.in_use(), 0u);
  EXPECT_EQ(no_id.s->queues.in_use(), 0u);
}

TEST(JettyObject, leaves_nothing_behind) {
  Objects o;
  const uint32_t jfr = o.make_jfr(), id = o.make_jetty(jfr), queue = o.jetty(id).queue;
  const uint32_t channel = o.s->channels.alloc();
  o.s->channels[channel] = tp::Channel{};
  ta::join_list(*o.s, queue, channel);
  set_held_back(*o.s, &o.queue(id).held_back, true);
  ta::wait_for_room(*o.s, o.jfc, o.s->queue_waiters.of(queue));
  o.s->timers.arm(o.s->timer_of_queue(queue), o.s->now);
  ASSERT_EQ(destroy_jetty(*o.s, id), Status::kOk);
  EXPECT_EQ(o.s->jettys.in_use() + o.s->queues.in_use(), 0u);
  EXPECT_FALSE(o.s->queues[queue].in_use);
  EXPECT_EQ(o.s->ids[id].kind, ObjectKind::kNone);
  EXPECT_TRUE(o.s->channels[channel].queues.empty());
  EXPECT_EQ(o.s->held_back, 0u);
  EXPECT_TRUE(o.the_jfc().waiting.empty());
  EXPECT_EQ(o.the_jfc().users, 1u) << "the JFR's";
  EXPECT_EQ(o.jfr(jfr).users, 0u);
  EXPECT_TRUE(o.s->timers.earliest().is_never());
}

// Copies of its READ responses name the record.
TEST(JettyObject, the_record_of_its_queue_is_free_when_the_last_copy_for_it_is_done) {
  Objects o;
  const uint32_t id = o.make_jetty();
  o.queue(id).copies_pending = 1;
  ASSERT_EQ(destroy_jetty(*o.s, id), Status::kOk);
  EXPECT_EQ(o.s->queues.in_use(), 1u);
  EXPECT_EQ(o.s->jettys.in_use(), 0u);
}

// ---- states ----------------------------------------------------------------------------------------------------

TEST(ObjectState, of_a_jfr_in_error_posters_are_asked_to_tell) {
  Objects o;
  const uint32_t id = o.make_jfr();
  EXPECT_EQ(state_of(*o.s, id), QueueState::kReady);
  EXPECT_EQ(set_state(*o.s, id, QueueState::kError), Status::kOk);
  EXPECT_EQ(state_of(*o.s, id), QueueState::kError);
  EXPECT_EQ(o.receive_rings[0].indices.armed.load(), static_cast<uint32_t>(Armed::kAny));
  EXPECT_EQ(set_state(*o.s, id, QueueState::kReady), Status::kOk);
  EXPECT_EQ(o.receive_rings[0].indices.armed.load(), static_cast<uint32_t>(Armed::kNo));
  EXPECT_EQ(set_state(*o.s, id, QueueState::kSuspended), Status::kInvalid);
  EXPECT_EQ(state_of(*o.s, id), QueueState::kReady);
}

TEST(ObjectState, of_a_jetty_is_that_of_its_queue) {
  Objects o;
  const uint32_t id = o.make_jetty();
  EXPECT_EQ(state_of(*o.s, id), QueueState::kReady);
  EXPECT_EQ(set_state(*o.s, id, QueueState::kSuspended), Status::kInvalid);
  EXPECT_EQ(set_state(*o.s, id, QueueState::kReset), Status::kOk);
  EXPECT_EQ(state_of(*o.s, id), QueueState::kReset);
  EXPECT_EQ(state_of(*o.s, id + 1), QueueState::kReset) << "nobody";
}

TEST(ObjectState, each_new_one_is_noted) {
  Objects o;
  TestHost host;
  o.s->looker.begin(host);
  const uint32_t jfr = o.make_jfr(), jetty = o.make_jetty(jfr);
  const auto note = [](Stage stage, uint32_t object, QueueState state) {
    return std::vector<Note>{{stage, object, static_cast<uint32_t>(state)}};
  };
  ASSERT_EQ(set_state(*o.s, jfr, QueueState::kError), Status::kOk);
  EXPECT_EQ(host.noted(Stage::kJfrState), note(Stage::kJfrState, o.s->ids[jfr].record, QueueState::kError));
  ASSERT_EQ(set_state(*o.s, jetty, QueueState::kReset), Status::kOk);
  ASSERT_EQ(set_state(*o.s, jetty, QueueState::kReset), Status::kOk) << "no other state";
  std::vector<Note> queue_notes = note(Stage::kQueueState, o.jetty(jetty).queue, QueueState::kReset);
  EXPECT_EQ(host.noted(Stage::kQueueState), queue_notes);
  ASSERT_EQ(set_state(*o.s, jetty, QueueState::kReady), Status::kOk);
  queue_notes.push_back({Stage::kQueueState, o.jetty(jetty).queue, static_cast<uint32_t>(QueueState::kReady)});
  EXPECT_EQ(host.noted(Stage::kQueueState), queue_notes);
}

TEST(ObjectState, a_jetty_that_fails_says_when_everything_was_handed_back) {
  Objects o;
  const uint32_t id = o.make_jetty();
  ASSERT_EQ(set_state(*o.s, id, QueueState::kError), Status::kOk);
  const std::vector<Cqe> done = o.completions();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].status, CrStatus::kWrFlushDone);
  EXPECT_EQ(set_state(*o.s, id, QueueState::kError), Status::kOk);
  EXPECT_TRUE(o.completions().empty()) << "once";
  EXPECT_EQ(set_state(*o.s, id, QueueState::kReady), Status::kOk);
}

// READY and RESET begin with an empty queue.
TEST(ObjectState, a_failed_jetty_is_busy_until_everything_was_handed_back) {
  for (QueueState state : {QueueState::kReady, QueueState::kReset}) {
    Objects o;
    const uint32_t id = o.make_jetty();
    ASSERT_EQ(set_state(*o.s, id, QueueState::kError), Status::kOk);
    SendQueue& q = o.queue(id);
    q.marker_pending = true;
    EXPECT_EQ(set_state(*o.s, id, state), Status::kBusy);
    q.marker_pending = false;
    ++q.started_tail;
    EXPECT_EQ(set_state(*o.s, id, state), Status::kBusy);
    --q.started_tail;
    o.send_rings[0].indices.produced.store(1);
    EXPECT_EQ(set_state(*o.s, id, state), Status::kBusy);
    o.send_rings[0].indices.produced.store(0);
    EXPECT_EQ(set_state(*o.s, id, state), Status::kOk);
  }
}

// A NOP at the front of the ring of the only jetty.
void post_nop(Objects& o) {
  Wqe& w = o.send_rings[0].slots[0];
  w = {};
  w.op = WrOp::kNop;
  w.flags = kWrSignaled;
  w.slots = 1;
  w.user_ctx = 11;
  o.send_rings[0].indices.produced.store(1);
}

TEST(ObjectState, what_was_posted_in_reset_has_failed_before_the_jetty_is_ready) {
  Objects o;
  const uint32_t id = o.make_jetty();
  ASSERT_EQ(set_state(*o.s, id, QueueState::kReset), Status::kOk);
  o.queue(id).held_back = false;
  set_held_back(*o.s, &o.queue(id).held_back, true);
  post_nop(o);
  EXPECT_EQ(set_state(*o.s, id, QueueState::kReady), Status::kOk);
  const std::vector<Cqe> done = o.completions();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].user_ctx, 11u);
  EXPECT_EQ(done[0].status, CrStatus::kWrFlush);
  EXPECT_EQ(o.s->held_back, 0u);
}

TEST(ObjectState, a_jetty_with_requests_that_have_not_failed_yet_stays_in_reset) {
  Objects o;
  const uint32_t id = o.make_jetty();
  while (ta::jfc_has_room(*o.s, o.jfc)) ta::push_completion(*o.s, o.jfc, Cqe{});
  post_nop(o);
  ASSERT_EQ(set_state(*o.s, id, QueueState::kReset), Status::kOk);
  EXPECT_EQ(set_state(*o.s, id, QueueState::kReady), Status::kBusy);
  o.completions();
  ta::resume_jfc(*o.s, o.jfc);
  EXPECT_EQ(o.completions().size(), 1u);
  EXPECT_EQ(set_state(*o.s, id, QueueState::kReady), Status::kOk);
}

// ---- targets ---------------------------------------------------------------------------------------------------

TEST(Targets, what_cannot_be_is_refused_and_takes_nothing) {
  Objects o;
  uint32_t made = 0;
  for (uint32_t link : {0u, 2u}) {
    TargetConfig t = o.target_config();
    t.path.link = link;
    EXPECT_EQ(add_target(*o.s, t, &made), Status::kInvalid);
  }
  EXPECT_EQ(add_target(*o.s, o.target_config(0), &made), Status::kInvalid);
  EXPECT_EQ(o.s->targets.in_use() + o.s->peers.in_use(), 0u);
}

TEST(Targets, without_a_record_or_a_peer_nothing_is_taken) {
  Objects o;
  uint32_t made = 0;
  while (o.s->peers.alloc() != 0) {
  }
  EXPECT_EQ(add_target(*o.s, o.target_config(), &made), Status::kNoMemory);
  EXPECT_EQ(o.s->targets.in_use(), 0u);
  Objects full;
  while (full.s->targets.alloc() != 0) {
  }
  EXPECT_EQ(add_target(*full.s, full.target_config(), &made), Status::kNoMemory);
  EXPECT_EQ(full.s->peers.in_use(), 0u);
}

TEST(Targets, are_as_they_were_asked_for_and_begin_a_channel) {
  Objects o;
  TargetConfig c = o.target_config();
  c.kind = ObjectKind::kGroup;
  c.token = {true, 0x1234};
  const Target& t = o.s->targets[o.add(c)];
  EXPECT_EQ(t.instance, c.instance);
  EXPECT_EQ(t.id, 4711u);
  EXPECT_EQ(t.kind, ObjectKind::kGroup);
  EXPECT_EQ(t.mode, Mode::kRm);
  EXPECT_EQ(t.token.value, 0x1234u);
  EXPECT_EQ(t.owner, 5);
  EXPECT_TRUE(t.in_use);
  EXPECT_NE(o.s->peers[t.peer].lanes[0].channels[0], 0u);
  EXPECT_EQ(o.s->peers[t.peer].lanes[1].channels[0], 0u);
  EXPECT_EQ(o.s->peers[t.peer].users, 2u);
}

TEST(Targets, of_unreliable_messages_and_of_rc_begin_no_channel) {
  for (const Mode mode : {Mode::kUm, Mode::kRc}) {
    Objects o;
    TargetConfig c = o.target_config();
    c.mode = mode;
    const uint32_t target = o.add(c);
    EXPECT_EQ(o.s->targets[target].mode, mode);
    EXPECT_EQ(o.s->channels.in_use(), 0u);
    EXPECT_EQ(remove_target(*o.s, target), Status::kOk);
    EXPECT_EQ(o.s->peers.in_use(), 0u);
  }
}

TEST(Targets, of_rc_begin_the_channel_that_keeps_the_order_of_the_jetty_when_it_is_bound) {
  for (const bool on : {false, true}) {
    for (const bool by_channel : {false, true}) {
      CoreConfig config = small_tables();
      config.rol = on;
      Objects o(config);
      JettyConfig c = o.jetty_config(o.make_jfr());
      c.mode = Mode::kRc;
      c.lower_layer_order = by_channel;
      const uint32_t id = o.make(c);
      TargetConfig t = o.target_config();
      t.mode = Mode::kRc;
      const uint32_t target = o.add(t);
      ASSERT_EQ(bind_jetty(*o.s, id, target), Status::kOk);
      const Peer& peer = o.s->peers[o.s->targets[target].peer];
      EXPECT_EQ(o.s->channels.in_use(), 1u);
      EXPECT_NE(peer.lanes[on && by_channel ? kOrderedLane : kSmallLane].channels[0], 0u);
    }
  }
}

TEST(Targets, of_a_jetty_that_has_moved_to_the_bulk_lane_begin_a_channel_there) {
  Objects o;
  JettyConfig c = o.jetty_config(o.make_jfr());
  c.mode = Mode::kRc;
  c.lower_layer_order = true;
  const uint32_t id = o.make(c);
  o.queue(id).pinned_bulk = true;
  TargetConfig t = o.target_config();
  t.mode = Mode::kRc;
  const uint32_t target = o.add(t);
  ASSERT_EQ(bind_jetty(*o.s, id, target), Status::kOk);
  EXPECT_NE(o.s->peers[o.s->targets[target].peer].lanes[kBulkLane].channels[0], 0u);
}

TEST(Targets, begin_the_channel_at_the_place_of_the_jetty) {
  CoreConfig config = small_tables();
  config.channels_per_lane = 2;
  Objects o(config);
  const uint32_t id = o.make_jetty(), target = o.add(o.target_config());
  o.s->queues[o.jetty(id).queue].jetty = 1;
  ASSERT_EQ(bind_jetty(*o.s, id, target), Status::kOk);
  EXPECT_NE(o.s->peers[o.s->targets[target].peer].lanes[kSmallLane].channels[1], 0u);
}

TEST(Targets, end_once) {
  Objects o;
  const uint32_t first = o.add(o.target_config()), second = o.add(o.target_config());
  const uint32_t peer = o.s->targets[first].peer;
  for (uint32_t none : {0u, 3u, UINT32_MAX}) EXPECT_EQ(remove_target(*o.s, none), Status::kInvalid);
  EXPECT_EQ(remove_target(*o.s, first), Status::kOk);
  EXPECT_EQ(remove_target(*o.s, first), Status::kInvalid);
  EXPECT_EQ(o.s->peers[peer].users, 2u) << "the other one and the channel";
  EXPECT_EQ(o.s->targets.in_use(), 1u);
  EXPECT_EQ(remove_target(*o.s, second), Status::kOk);
}

// RC
TEST(Targets, a_jetty_is_bound_to_one_until_it_is_unbound) {
  Objects o;
  const uint32_t id = o.make_jetty();
  const uint32_t first = o.add(o.target_config()), second = o.add(o.target_config());
  EXPECT_EQ(unbind_jetty(*o.s, id), Status::kInvalid);
  EXPECT_EQ(bind_jetty(*o.s, id, first), Status::kOk);
  EXPECT_EQ(o.jetty(id).bound_target, first);
  EXPECT_EQ(bind_jetty(*o.s, id, first), Status::kOk);
  EXPECT_EQ(bind_jetty(*o.s, id, second), Status::kExists);
  EXPECT_EQ(o.jetty(id).bound_target, first);
  EXPECT_EQ(unbind_jetty(*o.s, id), Status::kOk);
  EXPECT_EQ(unbind_jetty(*o.s, id), Status::kInvalid);
  EXPECT_EQ(bind_jetty(*o.s, id, second), Status::kOk);
}

TEST(Targets, a_jetty_is_bound_to_nothing_that_is_none) {
  Objects o;
  const uint32_t id = o.make_jetty(), target = o.add(o.target_config());
  for (uint32_t none : {0u, target + 1, UINT32_MAX}) EXPECT_EQ(bind_jetty(*o.s, id, none), Status::kInvalid);
  EXPECT_EQ(bind_jetty(*o.s, id + 1, target), Status::kInvalid);
  ASSERT_EQ(remove_target(*o.s, target), Status::kOk);
  EXPECT_EQ(bind_jetty(*o.s, id, target), Status::kInvalid);
  EXPECT_EQ(o.jetty(id).bound_target, 0u);
}

}  // namespace
}  // namespace ub
