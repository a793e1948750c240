// SPDX-License-Identifier: Apache-2.0
//
// Requests and their answers: missing receives, access faults, deaths and flushes in the middle.
#include "tests/sim/directed.h"

namespace ub::sim {
namespace {

constexpr CrStatus kSuccess = CrStatus::kSuccess;

RequestSpec with(Wrong what) {
  RequestSpec s;
  s.wrong = what;
  return s;
}

QueueSpec queue_of(Mode mode, uint8_t rnr_retry) {
  QueueSpec q = usual_queue();
  q.mode = mode;
  q.rnr_retry = rnr_retry;
  return q;
}

TEST(Request, zero_length__send_write_read) {
  Stage s;
  s.b().give_receives(1);
  const Wr& w = s.write(0);
  const Wr& r = s.read(0);
  const Wr& m = s.send(0);
  s.finish();
  s.quiet();
  EXPECT_EQ(w.status, kSuccess);
  EXPECT_EQ(r.status, kSuccess);
  EXPECT_EQ(m.status, kSuccess);
  EXPECT_TRUE(s.b().jfr->posted.empty());
  s.check_memory();
}

TEST(Request, every_operation_at_every_boundary_size) {
  Stage s;
  s.b().give_receives(200, 70'000 / 16);
  std::vector<const Wr*> all;
  for (uint32_t size : {1u, 7u, 8u, 9u, 1023u, 1024u, 1025u, 2048u, 4096u, 4097u})
    for (WrOp op : {WrOp::kWrite, WrOp::kWriteImm, WrOp::kWriteNotify, WrOp::kRead, WrOp::kSend, WrOp::kSendImm})
      for (uint32_t sges : {1u, 3u}) {
        RequestSpec spec;
        spec.sges = sges;
        all.push_back(&s.request(s.a(), s.b(), op, size, spec));
      }
  for (uint32_t size : {65535u, 65536u, 65537u, 131072u, 200'001u})
    for (WrOp op : {WrOp::kWrite, WrOp::kWriteImm, WrOp::kWriteNotify, WrOp::kRead})
      all.push_back(&s.request(s.a(), s.b(), op, size));
  s.finish();
  for (const Wr* w : all) EXPECT_EQ(w->status, kSuccess) << s.world.model.describe(*w);
  s.check_memory();
}

TEST(Request, wrong_token_id_range__rem_access_abort) {
  Stage s;
  for (Wrong what : {Wrong::kToken, Wrong::kTokenId, Wrong::kRange}) {
    const Wr& w = s.write(5000, with(what));
    const Wr& r = s.read(5000, with(what));
    s.finish();
    EXPECT_EQ(w.status, CrStatus::kRemAccessAbort);
    EXPECT_EQ(r.status, CrStatus::kRemAccessAbort);
  }
  const Wr& good = s.write(5000);
  s.finish();
  EXPECT_EQ(good.status, kSuccess);
  s.check_memory();
}

// 9.4, 11.4: a new token takes the place of the former one while requests with either are under way, and none fails.
TEST(Request, a_token_is_replaced_in_steps__nobody_who_stays_notices) {
  Options o = directed_options();
  o.net.loss = 0.02;
  o.work.late_token = 0;
  Stage s(o);
  RequestSpec spec;
  spec.remote = s.b().node->add_target(*s.b().app, {.length = 1 << 20,
                                                    .access = kAccessRead | kAccessWrite,
                                                    .token = {true, 0x1111},
                                                    .odd_address = true,
                                                    .token_id = 0});
  std::vector<const Wr*> all;
  const auto post_some = [&] {
    for (int i = 0; i < 16; ++i) all.push_back(&(i % 2 == 0 ? s.write(5000, spec) : s.read(5000, spec)));
  };
  const auto show_former = [](const Wr* w) { return w->token == 0x1111; };
  post_some();
  s.b().node->replace_token(spec.remote, 0x2222);
  post_some();  // with either
  EXPECT_GT(std::count_if(all.begin() + 16, all.end(), show_former), 0);
  EXPECT_LT(std::count_if(all.begin() + 16, all.end(), show_former), 16);
  s.finish();
  s.b().node->withdraw_token(spec.remote);
  post_some();
  EXPECT_EQ(std::count_if(all.begin() + 32, all.end(), show_former), 0);
  s.finish();
  for (const Wr* w : all) EXPECT_EQ(w->status, kSuccess) << s.world.model.describe(*w);
  s.world.options.work.late_token = 1;
  const Wr& late = s.write(5000, spec);
  s.finish();
  EXPECT_EQ(late.status, CrStatus::kRemAccessAbort);
  s.check_memory();
}

// What is under way when the former token is withdrawn may fail, and nothing of it is placed from then on.
TEST(Request, a_token_is_withdrawn__what_shows_it_comes_to_a_stop) {
  Options o = directed_options();
  o.work.late_token = 0;
  o.net.ns_per_byte = 1;
  Stage s(o);
  s.warm_up();
  const Wr& w = s.write(200'000);
  s.world.run_for(microseconds(100));
  s.b().node->replace_token(s.b().target, 0x2222);
  s.world.run_for(microseconds(30));
  s.b().node->withdraw_token(s.b().target);
  s.finish();
  EXPECT_EQ(w.status, CrStatus::kRemAccessAbort);
  s.check_memory();
}

// The same for messages: those to a JFR, whose sender imports it again.
TEST(Request, the_token_of_a_receiver_is_replaced_in_steps) {
  Options o = directed_options();
  o.work.late_token = 0;
  Stage s(o);
  s.b().give_receives(40);
  std::vector<const Wr*> all;
  const auto send_some = [&] {
    for (int i = 0; i < 10; ++i) all.push_back(&s.send(100));
  };
  send_some();
  s.b().node->replace_token(s.b().jfr, 0x2222);
  send_some();
  s.finish();
  s.b().node->withdraw_token(s.b().jfr);
  send_some();
  s.finish();
  for (const Wr* w : all) EXPECT_EQ(w->status, kSuccess) << s.world.model.describe(*w);
  s.world.options.work.late_token = 1;
  const Wr& late = s.send(100);
  s.finish();
  EXPECT_EQ(late.status, CrStatus::kRemAccessAbort);
  s.check_memory();
}

TEST(Request, permission__decides) {
  Stage s;
  RequestSpec spec;
  auto region = [&](uint8_t access) {
    spec.remote = s.b().node->add_target(
        *s.b().app, {.length = 8192, .access = access, .token = {}, .odd_address = true, .token_id = 0});
  };
  auto status = [&](WrOp op) {
    const Wr& w = s.request(s.a(), s.b(), op, 8, spec);
    s.finish();
    return w.status;
  };
  region(kAccessRead);
  EXPECT_EQ(status(WrOp::kRead), kSuccess);
  EXPECT_EQ(status(WrOp::kWrite), CrStatus::kRemAccessAbort);
  EXPECT_EQ(status(WrOp::kFetchAdd), CrStatus::kRemAccessAbort);
  region(kAccessRead | kAccessWrite);
  EXPECT_EQ(status(WrOp::kWrite), kSuccess);
  EXPECT_EQ(status(WrOp::kFetchAdd), CrStatus::kRemAccessAbort);
  region(kAccessRead | kAccessWrite | kAccessAtomic);
  EXPECT_EQ(status(WrOp::kFetchAdd), kSuccess);
  region(0);
  EXPECT_EQ(status(WrOp::kRead), CrStatus::kRemAccessAbort);
  region(kAccessLocalOnly);
  EXPECT_EQ(status(WrOp::kRead), CrStatus::kRemAccessAbort);
  s.check_memory();
}

TEST(Request, wrong_receiver_token__rem_access_abort_even_for_zero_length) {
  Stage s;
  s.b().give_receives(2);
  const Wr& w = s.send(10, with(Wrong::kReceiverToken));
  const Wr& z = s.send(0, with(Wrong::kReceiverToken));
  s.finish();
  EXPECT_EQ(w.status, CrStatus::kRemAccessAbort);
  EXPECT_EQ(z.status, CrStatus::kRemAccessAbort);
  EXPECT_EQ(s.b().jfr->posted.size(), 2u);
}

TEST(Request, local_faults__loc_access) {
  Stage s;
  s.b().give_receives(2);
  for (Wrong what : {Wrong::kLocalRange, Wrong::kLocalHandle}) {
    const Wr& w = s.write(5000, with(what));
    const Wr& r = s.read(5000, with(what));
    const Wr& m = s.send(2000, with(what));
    s.finish();
    EXPECT_EQ(w.status, CrStatus::kLocAccess);
    EXPECT_EQ(r.status, CrStatus::kLocAccess);
    EXPECT_EQ(m.status, CrStatus::kLocAccess);
  }
  const Wr& good = s.send(100);
  s.finish();
  EXPECT_EQ(good.status, kSuccess);
  s.check_memory();
}

TEST(Request, too_long_send__loc_len_and_rem_operation) {
  Stage s;
  s.b().jfr->buffer_bytes = 100;
  s.b().give_receives(2, 100);
  const Wr& w = s.send(3000);
  s.finish();
  s.quiet();
  EXPECT_EQ(w.status, CrStatus::kRemOperation);
  EXPECT_EQ(s.b().jfr->posted.size(), 1u);  // one receive completed with LOC_LEN: the oracle checked it
  const Wr& good = s.send(100);
  s.finish();
  EXPECT_EQ(good.status, kSuccess);
}

TEST(Rnr, receive_comes_later__send_succeeds) {
  Stage s;
  const Wr& w = s.send(100);
  s.world.run_for(milliseconds(5));
  EXPECT_EQ(w.state, Wr::State::kOutstanding);
  s.b().give_receives(1);
  double took = s.finish();
  EXPECT_EQ(w.status, kSuccess);
  EXPECT_LT(took, 0.002);
  EXPECT_GE(s.count(s.b(), Counter::kTaTxRnr), 2u);
}

TEST(Rnr, limit__ends_after_so_many_retries) {
  for (uint8_t limit : {uint8_t{0}, uint8_t{1}, uint8_t{3}}) {
    Stage s;
    s.warm_up();
    End e = s.equip(*s.a().node, queue_of(Mode::kRm, limit));
    const Wr& w = s.request(e, s.b(), WrOp::kSend, 100);
    s.finish();
    EXPECT_EQ(w.status, CrStatus::kRnrRetryExceeded);
    EXPECT_EQ(s.count(s.b(), Counter::kTaTxRnr), limit + 1u);
  }
}

TEST(Rnr, long_message_refused__is_sent_whole_again) {
  Stage s;
  const Wr& w = s.send(100'000);
  s.b().jfr->buffer_bytes = 120'000;
  const_cast<Wr&>(w).allowed = bit(kSuccess);
  s.world.run_for(milliseconds(3));
  s.b().give_receives(1, 120'000);
  s.finish();
  EXPECT_EQ(w.status, kSuccess);
  s.check_memory();
}

TEST(Rnr, rc__keeps_the_order_whatever_comes) {
  Stage s;
  End x = s.equip(*s.a().node, queue_of(Mode::kRc, 7), [] {
    JfrSpec r = usual_jfr();
    r.mode = Mode::kRc;
    return r;
  }());
  End y = s.equip(*s.b().node, queue_of(Mode::kRc, 7), [] {
    JfrSpec r = usual_jfr();
    r.mode = Mode::kRc;
    return r;
  }());
  x.node->bind(x.queue, y.queue);
  y.node->bind(y.queue, x.queue);
  std::vector<const Wr*> all;
  for (int i = 0; i < 40; ++i) {
    RequestSpec spec;
    spec.order = static_cast<uint8_t>(i % 3);
    all.push_back(
        &s.request(x, y, i % 4 == 3 ? WrOp::kWriteImm : WrOp::kSend, 20 + static_cast<uint32_t>(i % 5) * 700, spec));
    if (i % 3 == 0) s.world.run_for(microseconds(30));
  }
  for (int i = 0; i < 40; ++i) {
    y.give_receives(1);
    s.world.run_for(microseconds(37 * (i % 7)));
  }
  s.finish();
  for (const Wr* w : all) EXPECT_EQ(w->status, kSuccess);
}

TEST(Rnr, rc_given_up_message__does_not_block_the_next) {
  Stage s;
  JfrSpec r = usual_jfr();
  r.mode = Mode::kRc;
  End x = s.equip(*s.a().node, queue_of(Mode::kRc, 1), r);
  End y = s.equip(*s.b().node, queue_of(Mode::kRc, 1), r);
  x.node->bind(x.queue, y.queue);
  y.node->bind(y.queue, x.queue);
  const Wr& lost = s.request(x, y, WrOp::kSend, 100);
  s.finish();
  EXPECT_EQ(lost.status, CrStatus::kRnrRetryExceeded);
  y.give_receives(2);
  const Wr& next = s.request(x, y, WrOp::kSend, 100);
  s.finish();
  EXPECT_EQ(next.status, kSuccess);
}

TEST(Read, job_pool_empty__comes_later_and_costs_no_retry) {
  Options o = directed_options();
  o.core.read_jobs = 1;
  Stage s(o);
  End e = s.equip(*s.a().node, queue_of(Mode::kRm, 0));
  std::vector<const Wr*> all;
  for (int i = 0; i < 20; ++i) all.push_back(&s.request(e, s.b(), i % 4 == 0 ? WrOp::kFetchAdd : WrOp::kRead, 40'000));
  s.finish();
  for (const Wr* w : all) EXPECT_EQ(w->status, kSuccess);
  EXPECT_GE(s.count(s.b(), Counter::kTaTxRnr), 1u);
  s.check_memory();
}

TEST(Vanished, source_unregistered_in_flight__fakes_fill_the_gap) {
  Stage s;
  s.warm_up();
  End other = s.equip(*s.a().node);
  s.request(other, s.b(), WrOp::kWrite, 8);
  s.finish();
  s.world.network.tamper.add(drop(3, from(0, is_request), 2));
  const Wr& w = s.write(8000);
  s.a().node->unregister(s.a().app->local);
  s.a().node->drive();
  const Wr& next = s.request(other, s.b(), WrOp::kWrite, 3000);
  double took = s.finish();
  EXPECT_EQ(w.status, CrStatus::kLocAccess);
  EXPECT_EQ(next.status, kSuccess);
  EXPECT_LT(took, 0.2);
  EXPECT_GE(s.count(s.a(), Counter::kTpTxFake), 1u);
  s.check_memory();
}

TEST(Vanished, read_source_unregistered_in_flight__the_reader_is_told) {
  Stage s;
  s.warm_up();
  s.world.network.tamper.add(
      drop(3, from(1, [](const PacketInfo& p) { return p.ta_is(wire::TaOpcode::kReadResponse); }), 2));
  const Wr& w = s.read(30'000);
  s.world.run_for(microseconds(25));
  s.b().node->unregister(s.b().target);
  s.b().node->drive();
  s.finish();
  EXPECT_EQ(w.status, CrStatus::kRemAccessAbort);
  End other = s.equip(*s.b().node);
  const Wr& next = s.request(s.a(), other, WrOp::kRead, 3000);
  s.finish();
  EXPECT_EQ(next.status, kSuccess);
}

TEST(Vanished, target_unregistered_in_flight__rem_access_abort) {
  Stage s;
  s.warm_up();
  const Wr& w = s.write(1 << 20);
  s.world.run_for(microseconds(40));
  s.b().node->unregister(s.b().target);
  s.finish();
  EXPECT_EQ(w.status, CrStatus::kRemAccessAbort);
  s.check_memory();
}

TEST(Vanished, application_killed_with_traffic_both_ways__others_go_on) {
  Stage s;
  s.b().give_receives(50);
  End mate = s.equip(*s.b().node);
  End mine = s.equip(*s.a().node);
  std::vector<const Wr*> all;
  for (int i = 0; i < 30; ++i) {
    s.write(5000);
    s.read(5000);
    s.send(2000);
    s.request(s.b(), s.a(), WrOp::kWrite, 9000);
    all.push_back(&s.request(mine, mate, WrOp::kWrite, 2000));
  }
  s.world.run_for(microseconds(60));
  s.b().node->kill_app(*s.b().app);
  s.world.run_for(microseconds(100));
  s.b().node->bury_app(*s.b().app);
  for (int i = 0; i < 10; ++i) all.push_back(&s.request(mine, mate, WrOp::kWrite, 2000));
  s.finish();
  for (const Wr* w : all) EXPECT_EQ(w->status, kSuccess);
  s.check_memory();
}

TEST(Flush, half_sent_send__is_dropped_by_the_target) {
  Stage s;
  s.warm_up();
  s.b().jfr->buffer_bytes = 100'000;
  s.b().give_receives(3, 100'000);
  s.world.network.tamper.add(
      drop(kAlways, from(0, [n = 0](const PacketInfo& p) mutable { return p.request() && ++n > 10; })));
  const Wr& half = s.send(60'000);
  const Wr& behind = s.send(100);
  s.world.run_for(microseconds(200));
  s.a().node->flush(s.a().queue);
  s.finish();
  EXPECT_EQ(half.status, CrStatus::kWrFlush);
  EXPECT_TRUE(behind.status == CrStatus::kWrFlush || behind.status == CrStatus::kWrUnhandled);
  s.world.network.tamper.clear();
  End other = s.equip(*s.a().node);
  const Wr& next = s.request(other, s.b(), WrOp::kSend, 500);
  s.finish();
  EXPECT_EQ(next.status, kSuccess);
  EXPECT_EQ(s.b().jfr->posted.size(), 2u);
  s.check_memory();
}

TEST(Flush, waits_for_no_network) {
  Stage s;
  s.warm_up();
  s.world.network.cut(0, 1, true);
  s.extra_allowed = bit(CrStatus::kAckTimeout);
  for (int i = 0; i < 50; ++i) s.write(3000);
  s.world.run_for(milliseconds(1));
  s.a().node->flush(s.a().queue);
  EXPECT_LT(s.finish(), 0.001);
}

TEST(Flush, of_an_empty_queue__still_ends_with_the_marker) {
  Stage s;
  s.a().node->flush(s.a().queue);
  s.world.run_for(milliseconds(1));
  EXPECT_EQ(s.a().queue->state, Queue::State::kGone);  // FLUSH_DONE came and the queue was destroyed
}

TEST(Flush, target_jetty_in_error__drops_and_senders_time_out) {
  Stage s;
  s.warm_up();
  s.b().give_receives(3);
  s.b().node->flush(s.b().queue);
  s.extra_allowed = bit(CrStatus::kAckTimeout) | bit(CrStatus::kRemAccessAbort);
  const Wr& w = s.send(100);
  EXPECT_LE(s.finish(), 5.0);
  EXPECT_NE(w.status, kSuccess);
}

TEST(Jfc, full__loses_nothing) {
  Stage s;
  End e;
  e.node = s.a().node;
  e.app = s.a().app;
  e.jfc = e.node->add_jfc(*e.app, 2);
  e.queue = e.node->add_queue(*e.app, e.jfc, s.a().jfr, usual_queue());
  s.world.options.work.poll_ns = 2'000'000;
  s.world.options.work.poll_batch = 1;
  std::vector<const Wr*> all;
  for (int i = 0; i < 30; ++i) all.push_back(&s.request(e, s.b(), WrOp::kWrite, 100));
  s.finish();
  for (const Wr* w : all) EXPECT_EQ(w->status, kSuccess);
}

TEST(Jfc, receiver_full__sender_retries) {
  Stage s;
  Jfc* small = s.b().node->add_jfc(*s.b().app, 1);
  End e = s.b();
  e.jfc = small;
  e.jfr = e.node->add_jfr(*e.app, small, usual_jfr());
  e.queue = e.node->add_queue(*e.app, small, e.jfr, usual_queue());
  s.world.options.work.poll_ns = 500'000;
  e.give_receives(20);
  std::vector<const Wr*> all;
  for (int i = 0; i < 20; ++i) all.push_back(&s.request(s.a(), e, WrOp::kSend, 100));
  s.finish();
  for (const Wr* w : all) EXPECT_EQ(w->status, kSuccess);
  EXPECT_TRUE(s.world.run_until([&] { return e.jfr->posted.empty(); }, seconds(1)));
}

TEST(Order, fence_waits_for_reads) {
  Stage s;
  s.warm_up();
  std::vector<wire::TaOpcode> seen;
  s.world.network.tamper.add(watch([&](const PacketInfo& p) {
    if (p.request() || p.ta_is(wire::TaOpcode::kReadResponse)) seen.push_back(p.ta.opcode());
    return false;
  }));
  s.read(100);
  RequestSpec fenced;
  fenced.fence = true;
  s.write(100, fenced);
  s.finish();
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_EQ(seen[1], wire::TaOpcode::kReadResponse);
  EXPECT_EQ(seen[2], wire::TaOpcode::kWrite);
}

TEST(Order, strong_waits_for_relaxed_and_strong_but_not_for_unordered) {
  Stage s;
  s.warm_up();
  uint32_t writes = 0, answers = 0, answers_at_third = 0;
  s.world.network.tamper.add(watch([&](const PacketInfo& p) {
    if (p.taack()) answers += 1 + p.ta.rsp.rspinfo;
    if (p.ta_is(wire::TaOpcode::kWrite) && ++writes == 3) answers_at_third = answers;
    return false;
  }));
  RequestSpec relaxed, strong;
  relaxed.order = 1;
  strong.order = 2;
  s.write(100, relaxed);
  s.write(100);
  s.write(100, strong);
  s.finish();
  EXPECT_GE(answers_at_third, 1u);
}

// The queue stands at a channel to a third instance, which never answers, when the order allows a request to the other.
TEST(Order, strong_goes_when_it_may_wherever_its_queue_stands) {
  Stage s(directed_options(), 3);
  s.warm_up();
  s.world.network.tamper.add(drop(1'000'000, [](const PacketInfo& p) { return p.to == 2; }));
  RequestSpec relaxed, strong;
  relaxed.order = 1;
  strong.order = 2;
  const Wr& first = s.write(100, relaxed);
  const Wr& second = s.write(100, strong);
  RequestSpec to_nobody;
  to_nobody.extra_allowed = UINT32_MAX;
  s.request(s.a(), s.ends[2], WrOp::kWrite, 100, to_nobody);
  s.world.run_for(milliseconds(1));
  EXPECT_EQ(first.status, CrStatus::kSuccess);
  EXPECT_EQ(second.state, Wr::State::kSuccess);
  s.finish();
}

// The same world with copies done at once and with copies that come later: applications see the same.
TEST(Pending, results_are_the_same) {
  auto run = [](double pending) {
    Options o = directed_options();
    o.host.pending = pending;
    o.host.pending_ns = 300'000;
    Stage s(o);
    s.b().give_receives(100);
    std::vector<const Wr*> all;
    for (uint32_t i = 0; i < 100; ++i) {
      static constexpr WrOp kOps[] = {WrOp::kWrite,    WrOp::kRead,     WrOp::kSend,
                                      WrOp::kFetchAdd, WrOp::kWriteImm, WrOp::kWriteNotify};
      RequestSpec spec;
      spec.plain_add = true;
      spec.wrong = i % 17 == 3 && kOps[i % 6] != WrOp::kFetchAdd ? Wrong::kTokenId : Wrong::kNothing;
      if (takes_receive(kOps[i % 6])) spec.wrong = Wrong::kNothing;
      all.push_back(&s.request(s.a(), s.b(), kOps[i % 6], i * 37 % 4000 + 1, spec));
    }
    s.finish();
    s.check_memory();
    std::vector<CrStatus> statuses;
    for (const Wr* w : all) statuses.push_back(w->status);
    uint64_t sum = 0;
    std::memcpy(&sum, s.b().target->memory(), 8);
    return std::pair{statuses, sum - pattern_word(kUntouched | s.b().target->uid, 0)};
  };
  auto at_once = run(0);
  EXPECT_EQ(at_once, run(1));
  EXPECT_EQ(at_once, run(0.5));
}

}  // namespace
}  // namespace ub::sim
