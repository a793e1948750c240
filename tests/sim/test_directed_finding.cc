// SPDX-License-Identifier: Apache-2.0
//
// Which instance has an id: FIND and FOUND, lost, late, forged and refused.
#include <algorithm>

#include "lib/transport/wire/id_port.h"
#include "tests/sim/directed.h"

namespace ub::sim {
namespace {

using wire::RecordType;

// Node 0 asks, node 1 has what is looked for: the ports of all ids lead there.
struct Search : Stage {
  Search() : Stage(directed_options(), 3) {
    for (uint32_t id : {b().queue->id, b().jfr->id, b().target->registered.token_id, kNobodys}) lead(id, 1);
  }
  void lead(uint32_t id, uint32_t node) {
    const wire::Endpoint at{world.node(node).at().ip, wire::port_of_id(id)};
    if (std::find(led.begin(), led.end(), at) == led.end()) world.network.add_node(node, at);
    led.push_back(at);
  }

  FindConfig what(uint32_t id, bool token_id = false) {
    FindConfig f;
    f.local_eid = a().node->id().eid;
    f.eid = b().node->id().eid;
    f.id = id;
    f.token_id = token_id;
    f.path = {a().node->link(), a().node->at(), {b().node->at().ip, wire::port_of_id(id)}};
    return f;
  }
  Status look(const FindConfig& f) {
    const Status status = a().node->core().find(world.now(), f, &uasid);
    a().node->drive();
    return status;
  }
  // As a program does: again and again until there is an answer.
  Status find(const FindConfig& f, Duration patience = seconds(4)) {
    const Instant until = world.now() + patience;
    Status status;
    while ((status = look(f)) == Status::kBusy && world.now() < until) world.run_for(milliseconds(1));
    return status;
  }
  uint32_t b_uasid() { return b().node->id().uasid; }

  static constexpr uint32_t kNobodys = 900'000;
  std::vector<wire::Endpoint> led;
  uint32_t uasid = 0;
};

TEST(Finding, queue_jfr_and_token_id__are_found) {
  Search s;
  EXPECT_EQ(s.find(s.what(s.b().queue->id)), Status::kOk);
  EXPECT_EQ(s.uasid, s.b_uasid());
  s.uasid = 0;
  EXPECT_EQ(s.find(s.what(s.b().jfr->id)), Status::kOk);
  EXPECT_EQ(s.uasid, s.b_uasid());
  s.uasid = 0;
  EXPECT_EQ(s.find(s.what(s.b().target->registered.token_id, true)), Status::kOk);
  EXPECT_EQ(s.uasid, s.b_uasid());
}

TEST(Finding, id_and_token_id__are_two_spaces) {
  Search s;
  uint32_t group = 0, token = 0;
  GroupConfig named;
  named.wanted_id = 500'000;
  ASSERT_EQ(s.b().node->core().create_group(named, &group), Status::kOk);
  for (int i = 0; i < 50; ++i) ASSERT_EQ(s.b().node->core().alloc_token_id(&token), Status::kOk);
  for (uint32_t id : {group, token}) s.lead(id, 1);
  EXPECT_EQ(s.find(s.what(group, false)), Status::kOk);
  EXPECT_EQ(s.find(s.what(group, true)), Status::kInvalid);
  EXPECT_EQ(s.find(s.what(token, true)), Status::kOk);
  EXPECT_EQ(s.find(s.what(token, false)), Status::kInvalid);
}

TEST(Finding, nobodys_id__is_answered_so) {
  Search s;
  EXPECT_EQ(s.find(s.what(Search::kNobodys)), Status::kInvalid);
  EXPECT_EQ(s.uasid, s.b_uasid());  // who said so
}

TEST(Finding, lost_records__go_again) {
  Search s;
  auto& finds = s.world.network.tamper.add(watch(record(0, RecordType::kFind)));
  s.world.network.tamper.add(drop(2, record(0, RecordType::kFind)));
  s.world.network.tamper.add(drop(2, record(1, RecordType::kFound)));
  EXPECT_EQ(s.find(s.what(s.b().queue->id)), Status::kOk);
  EXPECT_EQ(finds.hits, 5u);
}

TEST(Finding, silence__is_asked_ever_more_seldom) {
  Search s;
  auto& finds = s.world.network.tamper.add(watch(record(0, RecordType::kFind)));
  s.world.network.tamper.add(drop(kAlways, record(0, RecordType::kFind)));
  EXPECT_EQ(s.find(s.what(s.b().queue->id)), Status::kBusy);
  EXPECT_GE(finds.hits, 8u);  // 5, 10, 20 ... 640 ms
  EXPECT_LE(finds.hits, 14u);
}

TEST(Finding, answers_do_not_outlive_their_instance) {
  Search s;
  ASSERT_EQ(s.find(s.what(s.b().queue->id)), Status::kOk);
  const uint32_t former = s.uasid;
  s.b().node->crash();
  s.b().node->boot();
  EXPECT_EQ(s.find(s.what(s.b().queue->id)), Status::kInvalid);  // the new life has no queue
  EXPECT_NE(s.uasid, former);
}

TEST(Finding, several_questions__do_not_mix) {
  Search s;
  s.lead(s.ends[2].queue->id, 2);
  FindConfig there = s.what(s.b().queue->id), elsewhere = there;
  elsewhere.eid = s.ends[2].node->id().eid;
  elsewhere.id = s.ends[2].queue->id;
  elsewhere.path.remote = {s.ends[2].node->at().ip, wire::port_of_id(elsewhere.id)};
  EXPECT_EQ(s.look(there), Status::kBusy);
  EXPECT_EQ(s.look(elsewhere), Status::kBusy);
  s.world.run_for(milliseconds(1));
  EXPECT_EQ(s.look(elsewhere), Status::kOk);
  EXPECT_EQ(s.uasid, s.ends[2].node->id().uasid);
  EXPECT_EQ(s.look(there), Status::kOk);
  EXPECT_EQ(s.uasid, s.b_uasid());
}

// One number at once: as an id and as a token id, here and there.
TEST(Finding, questions_that_differ_in_one_thing__do_not_mix) {
  Search s;
  constexpr uint32_t kNumber = 500'000;
  GroupConfig named;
  named.wanted_id = kNumber;
  uint32_t group = 0;
  ASSERT_EQ(s.b().node->core().create_group(named, &group), Status::kOk);
  ASSERT_EQ(group, kNumber);
  s.lead(kNumber, 1);
  s.lead(kNumber, 2);
  FindConfig id = s.what(kNumber), token_id = s.what(kNumber, true), elsewhere = id;
  elsewhere.eid = s.ends[2].node->id().eid;
  elsewhere.path.remote.ip = s.ends[2].node->at().ip;
  for (const FindConfig& f : {id, token_id, elsewhere}) EXPECT_EQ(s.look(f), Status::kBusy);
  s.world.run_for(milliseconds(1));
  EXPECT_EQ(s.look(elsewhere), Status::kInvalid);
  EXPECT_EQ(s.uasid, s.ends[2].node->id().uasid);
  EXPECT_EQ(s.look(token_id), Status::kInvalid);
  EXPECT_EQ(s.look(id), Status::kOk);
  EXPECT_EQ(s.uasid, s.b_uasid());
}

// More questions than are remembered: the oldest begin anew, and all are answered in the end.
TEST(Finding, many_questions__are_all_answered) {
  Search s;
  constexpr uint32_t kMany = 300;
  std::vector<FindConfig> open;
  for (uint32_t i = 0; i < kMany; ++i) {
    open.push_back(s.what(Search::kNobodys + i));
    s.lead(open.back().id, 1);
  }
  for (int round = 0; round < 100 && !open.empty(); ++round) {
    std::erase_if(open, [&](const FindConfig& f) { return s.look(f) == Status::kInvalid; });
    s.world.run_for(milliseconds(1));
  }
  EXPECT_EQ(open.size(), 0u);
}

// More questions than are remembered, all but one without an answer: they do not push the answer away.
TEST(Finding, many_silent_peers__leave_the_others_their_answers) {
  Search s;
  const FindConfig healthy = s.what(s.b().queue->id);
  s.world.network.tamper.add(drop(
      kAlways, [&](const PacketInfo& p) { return p.is_record(RecordType::kFind) && p.record.object != healthy.id; }));
  for (uint32_t i = 1; i <= 300; ++i) s.lead(Search::kNobodys + i, 1);
  Status status = Status::kBusy;
  for (int round = 0; round < 20 && status == Status::kBusy; ++round) {
    status = s.look(healthy);
    if (status == Status::kBusy) s.world.run_for(milliseconds(1));
    for (uint32_t i = 1; i <= 300; ++i) ASSERT_EQ(s.look(s.what(Search::kNobodys + i)), Status::kBusy);
  }
  EXPECT_EQ(status, Status::kOk);
}

// Its asker gave up before the answer came. Who asks much later hears what is true then.
TEST(Finding, an_answer_that_nobody_collected__is_not_kept) {
  Search s;
  const FindConfig f = s.what(s.b().queue->id);
  ASSERT_EQ(s.look(f), Status::kBusy);
  s.world.run_for(milliseconds(1));
  s.b().node->crash();
  s.b().node->boot();
  s.world.run_for(seconds(2));
  EXPECT_EQ(s.find(f), Status::kInvalid);  // the new life has no queue
  EXPECT_EQ(s.uasid, s.b_uasid());
}

// Nor does it ask as seldom as the one before it did in the end.
TEST(Finding, a_question_that_was_given_up__begins_anew) {
  Search s;
  const FindConfig f = s.what(s.b().queue->id);
  auto& finds = s.world.network.tamper.add(watch(record(0, RecordType::kFind)));
  auto& lost = s.world.network.tamper.add(drop(kAlways, record(0, RecordType::kFind)));
  ASSERT_EQ(s.find(f), Status::kBusy);
  s.world.run_for(seconds(2));
  lost.count = lost.hits + 2;
  const uint32_t before = finds.hits;
  EXPECT_EQ(s.find(f, milliseconds(100)), Status::kOk);
  EXPECT_EQ(finds.hits - before, 3u);
}

// What is not answered exactly so is not believed.
TEST(Finding, forged_answers__are_not_believed) {
  Search s;
  const FindConfig f = s.what(s.b().queue->id);
  wire::ControlRecord asked;
  s.world.network.tamper.add(watch([&](const PacketInfo& p) {
    if (p.is_record(RecordType::kFind)) asked = p.record;
    return false;
  }));
  s.world.network.tamper.add(drop(kAlways, record(1, RecordType::kFound)));
  ASSERT_EQ(s.look(f), Status::kBusy);
  s.world.run_for(microseconds(100));
  ASSERT_EQ(asked.object, f.id);

  wire::ControlRecord good;
  good.type = RecordType::kFound;
  good.attempt = asked.attempt;
  good.object = f.id;
  good.upi = 1;
  good.sender_incarnation = 77;
  good.sender_eid = f.eid;
  good.wanted_eid = f.local_eid;
  good.sender_uasid = 0x66660000 | wire::kUbUdpPort;
  auto hear = [&](const wire::ControlRecord& r, wire::Endpoint from) {
    s.world.network.inject(1, control_frame(r, from, s.a().node->at()));
    s.world.run_for(microseconds(100));
    return s.look(f);
  };
  const wire::Endpoint right = f.path.remote;
  wire::ControlRecord r = good;
  r.attempt ^= 1;
  EXPECT_EQ(hear(r, right), Status::kBusy);
  r = good;
  r.object ^= 1;
  EXPECT_EQ(hear(r, right), Status::kBusy);
  r = good;
  r.upi = 2;
  EXPECT_EQ(hear(r, right), Status::kBusy);
  r = good;
  r.sender_eid.bytes[15] ^= 1;
  EXPECT_EQ(hear(r, right), Status::kBusy);
  r = good;
  r.sender_uasid = 0;
  EXPECT_EQ(hear(r, right), Status::kBusy);
  EXPECT_EQ(hear(good, {right.ip, static_cast<uint16_t>(right.port ^ 1)}), Status::kBusy);
  EXPECT_EQ(hear(good, {s.ends[2].node->at().ip, right.port}), Status::kBusy);
  EXPECT_EQ(hear(good, right), Status::kOk);
  EXPECT_EQ(s.uasid, good.sender_uasid);
}

TEST(Finding, strangers__get_no_answer_or_a_no) {
  Search s;
  auto& founds = s.world.network.tamper.add(watch(record(1, RecordType::kFound)));
  wire::RecordReason reason = wire::RecordReason::kNone;
  s.world.network.tamper.add(watch([&](const PacketInfo& p) {
    if (p.is_record(RecordType::kFound)) reason = p.record.reason;
    return false;
  }));
  wire::ControlRecord ask;
  ask.type = RecordType::kFind;
  ask.attempt = 5;
  ask.object = s.b().queue->id;
  ask.upi = 1;
  ask.sender_eid = s.a().node->id().eid;
  ask.wanted_eid = s.b().node->id().eid;
  ask.sender_uasid = s.a().node->id().uasid;
  auto hear = [&](const wire::ControlRecord& r) {
    s.world.network.inject(0, control_frame(r, s.a().node->at(), s.b().node->at()));
    s.world.run_for(microseconds(100));
  };
  wire::ControlRecord r = ask;
  r.upi = 2;
  hear(r);
  EXPECT_EQ(founds.hits, 0u);
  r = ask;
  r.wanted_eid.bytes[15] ^= 1;
  hear(r);
  EXPECT_EQ(founds.hits, 1u);
  EXPECT_EQ(reason, wire::RecordReason::kUnknownEntity);
  hear(ask);
  EXPECT_EQ(founds.hits, 2u);
  EXPECT_EQ(reason, wire::RecordReason::kNone);
  r = ask;
  r.object = kIdSpace + 5;  // 24 bits travel
  hear(r);
  EXPECT_EQ(reason, wire::RecordReason::kUnknownEntity);
}

// Whoever asks without end keeps nobody from setting up channels.
TEST(Finding, flood__leaves_room_for_channels) {
  Search s;
  wire::ControlRecord ask;
  ask.type = RecordType::kFind;
  ask.object = Search::kNobodys;
  ask.upi = 1;
  ask.sender_eid = s.ends[2].node->id().eid;
  ask.wanted_eid = s.b().node->id().eid;
  ask.sender_uasid = s.ends[2].node->id().uasid;
  const auto frame = control_frame(ask, s.ends[2].node->at(), s.b().node->at());
  const Instant now = s.world.now();
  for (int i = 0; i < 5000; ++i) s.b().node->core().on_packet(now, s.b().node->link(), frame);
  EXPECT_EQ(s.count(s.b(), Counter::kRecordsLost), 0u);
  const Wr& w = s.write(100);
  s.finish();
  EXPECT_EQ(w.status, CrStatus::kSuccess);
  EXPECT_EQ(s.count(s.b(), Counter::kRecordsLost), 0u);
}

TEST(Finding, bad_questions__are_invalid) {
  Search s;
  FindConfig f = s.what(s.b().queue->id);
  f.path.link = 0;
  EXPECT_EQ(s.look(f), Status::kInvalid);
  f.path.link = 99;
  EXPECT_EQ(s.look(f), Status::kInvalid);
  f = s.what(s.b().queue->id);
  f.id = 0;
  EXPECT_EQ(s.look(f), Status::kInvalid);
}

// A target without its instance is none: who asks for it by id finds it first.
TEST(Finding, target_without_uasid__is_refused) {
  Search s;
  TargetConfig c;
  c.instance.eid = s.b().node->id().eid;
  c.id = s.b().queue->id;
  c.path = {s.a().node->link(), s.a().node->at(), s.b().node->at()};
  uint32_t target = 0;
  EXPECT_EQ(s.a().node->core().add_target(s.world.now(), c, &target), Status::kInvalid);
}

}  // namespace
}  // namespace ub::sim
