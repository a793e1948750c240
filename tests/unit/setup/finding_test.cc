// SPDX-License-Identifier: Apache-2.0
//
// Which instance has an id: asked by FIND, answered by FOUND, repeated while somebody asks (docs/identity.md).
#include "lib/transport/setup/finding.h"

#include <set>

#include "lib/transport/resource/id_space.h"
#include "tests/unit/setup/instance.h"

namespace ub::setup {
namespace {

constexpr uint32_t kId = 4711;

struct Asking : Instance {
  FindConfig question(uint32_t id = kId) const {
    FindConfig f;
    f.local_eid = s->config.self.eid;
    f.eid = peer_id.eid;
    f.id = id;
    f.path = {1, from.local, from.remote};
    return f;
  }
  Status ask(const FindConfig& f) { return find(*s, f, &uasid); }
  Status ask() { return ask(question()); }
  // What the peer says to the newest question.
  ControlRecord answer_to(const ControlRecord& asked) const {
    ControlRecord r;
    r.type = RecordType::kFound;
    r.attempt = asked.attempt;
    r.object = asked.object;
    r.upi = s->config.upi;
    r.sender_eid = peer_id.eid;
    r.wanted_eid = s->config.self.eid;
    r.sender_uasid = 77;
    return r;
  }
  uint32_t uasid = 0;
};

TEST(Finding, a_question_says_who_asks_whom_for_what) {
  Asking a;
  a.s->config.incarnation = kOurIncarnation;
  EXPECT_EQ(a.ask(), Status::kBusy);
  const OutRecord out = a.only();
  ControlRecord expected;
  expected.type = RecordType::kFind;
  expected.sender_incarnation = kOurIncarnation;
  expected.attempt = out.record.attempt;
  expected.object = kId;
  expected.upi = a.s->config.upi;
  expected.sender_eid = a.s->config.self.eid;
  expected.wanted_eid = a.peer_id.eid;
  expected.sender_uasid = a.s->config.self.uasid;
  EXPECT_EQ(out.record, expected);
  EXPECT_EQ(out.link, 1u);
  EXPECT_EQ(out.pad_to_mtu, 0u);
  EXPECT_EQ(out.local, a.from.local);
  EXPECT_EQ(out.remote, a.from.remote);
  FindConfig memory = a.question();
  memory.token_id = true;
  a.ask(memory);
  const OutRecord other = a.only();
  EXPECT_EQ(other.record.flags, wire::kRecordTokenId);
  EXPECT_NE(other.record.attempt, out.record.attempt);
}

TEST(Finding, an_answer_is_given_to_whoever_asks_next_and_then_forgotten) {
  Asking a;
  a.ask();
  on_record(*a.s, a.from, a.answer_to(a.only().record));
  EXPECT_EQ(a.ask(), Status::kOk);
  EXPECT_EQ(a.uasid, 77u);
  EXPECT_EQ(a.ask(), Status::kBusy) << "it may be another one by now";
  EXPECT_EQ(a.sent().size(), 1u);
}

TEST(Finding, who_has_it_not_says_so) {
  Asking a;
  a.ask();
  ControlRecord r = a.answer_to(a.only().record);
  r.reason = RecordReason::kUnknownEntity;
  on_record(*a.s, a.from, r);
  EXPECT_EQ(a.ask(), Status::kInvalid);
  EXPECT_EQ(a.ask(), Status::kBusy);
}

TEST(Finding, a_question_is_repeated_at_doubling_pauses_while_somebody_asks) {
  Asking a;
  Duration pause = a.s->config.setup_retry_min;
  a.ask();
  const uint32_t attempt = a.only().record.attempt;
  for (int n = 0; n < 5; ++n) {
    a.s->now += pause - nanoseconds(1);
    a.ask();
    EXPECT_TRUE(a.sent().empty()) << n;
    a.s->now += nanoseconds(1);
    a.ask();
    EXPECT_EQ(a.only().record.attempt, attempt);
    pause = pause * 2;
  }
}

TEST(Finding, what_nobody_came_for_in_a_second_is_asked_anew) {
  Asking a;
  a.ask();
  const ControlRecord asked = a.only().record;
  on_record(*a.s, a.from, a.answer_to(asked));
  a.s->now += seconds(1);
  EXPECT_EQ(a.ask(), Status::kBusy) << "the answer may be old";
  EXPECT_NE(a.only().record.attempt, asked.attempt);
  Asking late;
  late.ask();
  on_record(*late.s, late.from, late.answer_to(late.only().record));
  late.s->now += seconds(1) - nanoseconds(1);
  EXPECT_EQ(late.ask(), Status::kOk);
}

TEST(Finding, an_answer_to_an_abandoned_question_is_stale) {
  Asking a;
  a.ask();
  const ControlRecord asked = a.only().record;
  a.s->now += seconds(1);
  on_record(*a.s, a.from, a.answer_to(asked));
  EXPECT_EQ(a.count(Counter::kRxDropRecordStale), 1u);
}

TEST(Finding, questions_that_differ_in_anything_are_different) {
  Asking a;
  std::set<uint32_t> attempts;
  const auto ask = [&](void (*change)(FindConfig&)) {
    FindConfig f = a.question();
    change(f);
    EXPECT_EQ(a.ask(f), Status::kBusy);
    const std::vector<OutRecord> out = a.sent();
    if (!out.empty()) attempts.insert(out[0].record.attempt);
    return out.size();
  };
  a.s->links.alloc();
  EXPECT_EQ(ask([](FindConfig&) {}), 1u);
  EXPECT_EQ(ask([](FindConfig&) {}), 0u);
  EXPECT_EQ(ask([](FindConfig& f) { f.id = kId + 1; }), 1u);
  EXPECT_EQ(ask([](FindConfig& f) { f.eid.bytes[0] = 9; }), 1u);
  EXPECT_EQ(ask([](FindConfig& f) { f.local_eid.bytes[0] = 9; }), 1u);
  EXPECT_EQ(ask([](FindConfig& f) { f.token_id = true; }), 1u);
  EXPECT_EQ(ask([](FindConfig& f) { f.path.link = 2; }), 1u);
  EXPECT_EQ(attempts.size(), 6u);
}

TEST(Finding, questions_that_cannot_be_are_refused) {
  Asking a;
  FindConfig f = a.question(0);
  EXPECT_EQ(a.ask(f), Status::kInvalid);
  for (uint32_t link : {0u, 2u}) {
    f = a.question();
    f.path.link = link;
    EXPECT_EQ(a.ask(f), Status::kInvalid);
  }
  EXPECT_TRUE(a.sent().empty());
}

// ---- what is believed ------------------------------------------------------------------------------------------

TEST(Finding, an_answer_to_something_else_is_stale) {
  const auto stale = [](void (*change)(ControlRecord&)) {
    Asking a;
    a.ask();
    ControlRecord r = a.answer_to(a.only().record);
    change(r);
    on_record(*a.s, a.from, r);
    EXPECT_EQ(a.ask() == Status::kBusy, a.count(Counter::kRxDropRecordStale) == 1);
    return a.count(Counter::kRxDropRecordStale) == 1;
  };
  EXPECT_FALSE(stale([](ControlRecord&) {}));
  EXPECT_TRUE(stale([](ControlRecord& r) { ++r.attempt; }));
  EXPECT_TRUE(stale([](ControlRecord& r) { ++r.object; }));
}

TEST(Finding, an_answer_from_elsewhere_is_not_believed) {
  const auto from_elsewhere = [](void (*change)(Asking&, ControlRecord&)) {
    Asking a;
    a.ask();
    ControlRecord r = a.answer_to(a.only().record);
    change(a, r);
    on_record(*a.s, a.from, r);
    EXPECT_EQ(a.ask() == Status::kBusy, a.count(Counter::kRxDropRecordPeer) == 1);
    EXPECT_EQ(a.count(Counter::kRxDropRecordStale), 0u);
    return a.count(Counter::kRxDropRecordPeer) == 1;
  };
  EXPECT_FALSE(from_elsewhere([](Asking&, ControlRecord&) {}));
  EXPECT_TRUE(from_elsewhere([](Asking& a, ControlRecord&) { a.from.link = 2; }));
  EXPECT_TRUE(from_elsewhere([](Asking& a, ControlRecord&) { a.from.remote.port = 5555; }));
  EXPECT_TRUE(from_elsewhere([](Asking&, ControlRecord& r) { r.sender_eid.bytes[0] = 9; }));
}

TEST(Finding, the_first_answer_counts) {
  Asking a;
  a.ask();
  ControlRecord r = a.answer_to(a.only().record);
  on_record(*a.s, a.from, r);
  r.sender_uasid = 78;
  on_record(*a.s, a.from, r);
  EXPECT_EQ(a.count(Counter::kRxDropRecordStale), 1u);
  EXPECT_EQ(a.ask(), Status::kOk);
  EXPECT_EQ(a.uasid, 77u);
}

TEST(Finding, answers_that_cannot_be_are_dropped_by_name) {
  Asking a;
  a.ask();
  ControlRecord r = a.answer_to(a.only().record);
  r.upi = 9;
  on_record(*a.s, a.from, r);
  EXPECT_EQ(a.count(Counter::kRxDropRecordUpi), 1u);
  r = a.answer_to(r);
  r.sender_uasid = 0;
  on_record(*a.s, a.from, r);
  EXPECT_EQ(a.count(Counter::kRxDropRecordParameter), 1u);
  EXPECT_EQ(a.ask(), Status::kBusy);
}

// ---- when there are many ---------------------------------------------------------------------------------------

struct Crowd : Asking {
  static constexpr uint32_t kMany = std::tuple_size_v<Findings>;
  Crowd() {
    for (uint32_t n = 0; n < kMany; ++n) {
      s->now += nanoseconds(1);
      ask(question(1000 + n));
    }
    asked = sent();
  }
  // Answers the n-th of them.
  void answer(uint32_t n) { on_record(*s, from, answer_to(asked[n].record)); }
  bool known(uint32_t n) {
    return std::any_of(s->findings.begin(), s->findings.end(), [&](const Finding& f) { return f.what.id == 1000 + n; });
  }
  std::vector<OutRecord> asked;
};

TEST(Finding, of_too_many_the_one_that_was_looked_at_longest_ago_gives_way) {
  Crowd c;
  c.s->now += nanoseconds(1);
  c.ask(c.question(1000));  // somebody came for the oldest
  c.ask(c.question());
  EXPECT_TRUE(c.known(0));
  EXPECT_FALSE(c.known(1));
  for (uint32_t n = 2; n < Crowd::kMany; ++n) EXPECT_TRUE(c.known(n)) << n;
}

TEST(Finding, answers_give_way_last) {
  Crowd c;
  for (uint32_t n = 0; n < 10; ++n) c.answer(n);
  c.ask(c.question());
  for (uint32_t n = 0; n < 10; ++n) EXPECT_TRUE(c.known(n)) << n;
  EXPECT_FALSE(c.known(10));
}

TEST(Finding, a_free_record_is_used_before_any_gives_way) {
  Crowd c;
  c.answer(100);
  EXPECT_EQ(c.ask(c.question(1100)), Status::kOk);
  c.ask(c.question());
  for (uint32_t n = 0; n < Crowd::kMany; ++n) EXPECT_EQ(c.known(n), n != 100) << n;
}

TEST(Finding, an_abandoned_one_is_used_before_any_gives_way) {
  Crowd c;
  c.answer(7);
  c.s->now += seconds(1);
  for (uint32_t n = 0; n < Crowd::kMany; ++n) {
    if (n != 7) c.s->findings[n].looked_at = c.s->now;
  }
  c.ask(c.question());
  for (uint32_t n = 0; n < Crowd::kMany; ++n) EXPECT_EQ(c.known(n), n != 7) << n;
}

// ---- answering -------------------------------------------------------------------------------------------------

struct Asked : Instance {
  Asked() { s->ids[kId] = IdSlot{1, 0, ObjectKind::kJetty}; }
  ControlRecord question() const {
    ControlRecord r = request_of_peer();
    r.type = RecordType::kFind;
    r.flags = 0;
    r.object = kId;
    r.sender_tpn = 0;
    return r;
  }
};

TEST(Found, an_id_that_we_have_is_told) {
  Asked a;
  on_record(*a.s, a.from, a.question());
  const OutRecord out = a.only();
  EXPECT_EQ(out.record.type, RecordType::kFound);
  EXPECT_EQ(out.record.reason, RecordReason::kNone);
  EXPECT_EQ(out.record.object, kId);
  EXPECT_EQ(out.record.attempt, 9u);
  EXPECT_EQ(out.record.sender_uasid, a.s->config.self.uasid);
  EXPECT_EQ(out.record.sender_eid, a.s->config.self.eid);
  EXPECT_EQ(out.link, 1u);
  EXPECT_EQ(out.remote, a.from.remote);
  EXPECT_EQ(out.local, a.from.local);
  EXPECT_EQ(out.pad_to_mtu, 0u);
}

TEST(Found, what_we_have_not_or_is_not_meant_for_us_is_told_too) {
  const auto reason = [](void (*change)(ControlRecord&)) {
    Asked a;
    ControlRecord r = a.question();
    change(r);
    on_record(*a.s, a.from, r);
    return a.only().record.reason;
  };
  EXPECT_EQ(reason([](ControlRecord&) {}), RecordReason::kNone);
  EXPECT_EQ(reason([](ControlRecord& r) { ++r.object; }), RecordReason::kUnknownEntity);
  EXPECT_EQ(reason([](ControlRecord& r) { r.wanted_uasid = 9; }), RecordReason::kUnknownEntity);
  EXPECT_EQ(reason([](ControlRecord& r) { r.flags = wire::kRecordTokenId; }), RecordReason::kUnknownEntity);
}

TEST(Found, a_question_of_another_upi_is_dropped) {
  Asked a;
  ControlRecord r = a.question();
  r.upi = 9;
  on_record(*a.s, a.from, r);
  EXPECT_TRUE(a.sent().empty());
  EXPECT_EQ(a.count(Counter::kRxDropRecordUpi), 1u);
}

// Whoever asks without end takes no room from channels.
TEST(Found, with_a_quarter_of_the_room_taken_nobody_is_answered) {
  Asked a;
  for (uint32_t n = 0; n + 1 < kOutboxRing / 4; ++n) send_record(*a.s, OutRecord{});
  on_record(*a.s, a.from, a.question());
  EXPECT_EQ(a.s->outbox_tail - a.s->outbox_head, kOutboxRing / 4);
  EXPECT_EQ(a.count(Counter::kRxDropRecordBusy), 0u);
  on_record(*a.s, a.from, a.question());
  EXPECT_EQ(a.s->outbox_tail - a.s->outbox_head, kOutboxRing / 4);
  EXPECT_EQ(a.count(Counter::kRxDropRecordBusy), 1u);
}

TEST(Found, ids_name_queues_and_groups_and_token_ids_memory) {
  Asked a;
  for (ObjectKind kind : {ObjectKind::kNone, ObjectKind::kJfs, ObjectKind::kJfr, ObjectKind::kJetty, ObjectKind::kGroup,
                          ObjectKind::kQp}) {
    a.s->ids[kId].kind = kind;
    EXPECT_EQ(has_id(*a.s, kId, false), kind != ObjectKind::kNone && kind != ObjectKind::kQp);
  }
  const uint32_t token_id = allocate_token_id(*a.s);
  EXPECT_TRUE(has_id(*a.s, token_id, true));
  EXPECT_FALSE(has_id(*a.s, token_id, false));
  EXPECT_FALSE(has_id(*a.s, kId, true));
  a.trap_behind_ids(ObjectKind::kJetty);
  EXPECT_FALSE(has_id(*a.s, kIdSpace, true));
  EXPECT_FALSE(has_id(*a.s, kIdSpace, false));
}

}  // namespace
}  // namespace ub::setup
