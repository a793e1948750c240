// SPDX-License-Identifier: Apache-2.0
//
// Jetty groups: which member gets a message, whose token is asked for, and what happens when members come and go.
#include "tests/sim/directed_raw.h"

namespace ub::sim {
namespace {

// A group of three at node b, and somebody at node a who sends to it.
struct Team {
  explicit Team(GroupPolicy policy, Token token = {}) : group(make(policy, token)) {}
  ~Team() {
    for (auto& member : members) member.reset();
    EXPECT_EQ(core().destroy_group(s.world.now(), group), Status::kOk);
  }

  SimCore& core() { return s.b().node->core(); }
  uint32_t make(GroupPolicy policy, Token token) {
    uint32_t id = 0;
    // All have one owner, as the jettys of an application do.
    EXPECT_EQ(core().create_group({0, policy, token, kFirstHostileOwner}, &id), Status::kOk);
    return id;
  }
  void give_receives(int member, int count) {
    for (int i = 0; i < count; ++i) members[member]->post_receive(4096, members[member]->region);
  }
  CrStatus send(uint8_t hint, uint32_t to) {
    Wqe e = sender.element(WrOp::kSend, 100, to, nullptr);
    e.hint = hint;
    return sender.outcome(e);
  }
  uint32_t got(int member) const { return members[member]->jfc_indices.produced.load(); }

  Stage s;
  uint32_t group;
  std::unique_ptr<Raw> members[3] = {member(), member(), member()};
  Raw sender{s, *s.a().node, 0};

  std::unique_ptr<Raw> member() { return std::make_unique<Raw>(s, *s.b().node, 0, 16, 17, nullptr, group); }
};

TEST(Group, round_robin__takes_turns_and_passes_over_who_has_no_receive) {
  Team t(GroupPolicy::kRoundRobin);
  const uint32_t to = t.sender.import(*t.s.b().node, ObjectKind::kGroup, t.group);
  t.give_receives(0, 4);
  t.give_receives(2, 4);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(t.send(0, to), kSuccess);
  EXPECT_EQ(t.got(0), 3u);
  EXPECT_EQ(t.got(1), 0u);
  EXPECT_EQ(t.got(2), 3u);
  t.give_receives(1, 4);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(t.send(0, to), kSuccess);
  EXPECT_EQ(t.got(1), 1u);
  EXPECT_EQ(t.members[1]->completion(0).local_id, t.members[1]->id);
  EXPECT_NE(t.members[1]->completion(0).flags & kCqeJetty, 0);
  others_go_on(t.s);
}

TEST(Group, hint__decides_whoever_has_receives) {
  Team t(GroupPolicy::kHint);
  const uint32_t to = t.sender.import(*t.s.b().node, ObjectKind::kGroup, t.group);
  for (int m : {0, 1, 2}) t.give_receives(m, 4);
  for (uint8_t hint : {0, 3, 2, 255, 5}) EXPECT_EQ(t.send(hint, to), kSuccess);
  EXPECT_EQ(t.got(0), 3u);  // 0, 3, 255
  EXPECT_EQ(t.got(1), 0u);
  EXPECT_EQ(t.got(2), 2u);
  others_go_on(t.s);
}

TEST(Group, queue_depth__goes_to_the_best_supplied) {
  Team t(GroupPolicy::kQueueDepth);
  const uint32_t to = t.sender.import(*t.s.b().node, ObjectKind::kGroup, t.group);
  t.give_receives(0, 1);
  t.give_receives(1, 4);
  t.give_receives(2, 2);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(t.send(0, to), kSuccess);  // 1 1 1(tie: the first) 2 ...
  EXPECT_EQ(t.got(0) + t.got(1) + t.got(2), 5u);
  EXPECT_EQ(t.got(1), 3u);
  EXPECT_EQ(t.got(2), 1u);
  others_go_on(t.s);
}

TEST(Group, nobody_has_a_receive__waits_for_the_first_who_has) {
  Team t(GroupPolicy::kRoundRobin);
  const uint32_t to = t.sender.import(*t.s.b().node, ObjectKind::kGroup, t.group);
  Wqe e = t.sender.element(WrOp::kSend, 100, to, nullptr);
  t.sender.post(e);
  t.s.world.run_for(milliseconds(20));
  EXPECT_EQ(t.sender.queue().retries, 1u);
  t.give_receives(2, 1);
  t.s.world.run_for(milliseconds(20));
  EXPECT_EQ(t.sender.status(e.user_ctx), kSuccess);
  EXPECT_EQ(t.got(2), 1u);
  others_go_on(t.s);
}

TEST(Group, token_and_kind__must_be_the_groups) {
  Team t(GroupPolicy::kRoundRobin, {true, 0x77});
  t.give_receives(0, 2);
  const Node& node = *t.s.b().node;
  EXPECT_EQ(t.send(0, t.sender.import(node, ObjectKind::kGroup, t.group)), CrStatus::kRemAccessAbort);
  EXPECT_EQ(t.send(0, t.sender.import(node, ObjectKind::kJetty, t.group)), CrStatus::kRemAccessAbort);
  EXPECT_EQ(t.send(0, t.sender.import(node, ObjectKind::kGroup, t.members[0]->id)), CrStatus::kRemAccessAbort);
  EXPECT_EQ(t.got(0), 0u);
  others_go_on(t.s);
}

TEST(Group, empties__while_messages_come) {
  Team t(GroupPolicy::kRoundRobin);
  const uint32_t to = t.sender.import(*t.s.b().node, ObjectKind::kGroup, t.group);
  t.give_receives(1, 4);
  EXPECT_EQ(t.core().destroy_group(t.s.world.now(), t.group), Status::kBusy);
  EXPECT_EQ(t.send(0, to), kSuccess);
  t.members[1].reset();
  t.give_receives(0, 1);
  EXPECT_EQ(t.send(0, to), kSuccess);
  t.members[0].reset();
  t.members[2].reset();
  EXPECT_EQ(t.send(0, to), CrStatus::kRemAccessAbort) << "nobody is there";
  others_go_on(t.s);
}

TEST(Group, of_somebody_else__cannot_be_joined) {
  Stage s;
  uint32_t id = 0;
  SimCore& core = s.b().node->core();
  ASSERT_EQ(core.create_group({0, GroupPolicy::kHint, {}, static_cast<Owner>(kFirstHostileOwner + 7)}, &id),
            Status::kOk);
  EXPECT_EQ(find_group(core.state(), id, kFirstHostileOwner), 0u);
  EXPECT_NE(find_group(core.state(), id, static_cast<Owner>(kFirstHostileOwner + 7)), 0u);
  EXPECT_EQ(core.destroy_group(s.world.now(), id), Status::kOk);
  EXPECT_EQ(core.destroy_group(s.world.now(), id), Status::kInvalid);
}

}  // namespace
}  // namespace ub::sim
