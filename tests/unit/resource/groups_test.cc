// SPDX-License-Identifier: Apache-2.0
//
// Jetty groups: who is a member, and which member gets the next message (UB Base Specification Rev 2.0, 8.2.2).
#include "lib/transport/resource/groups.h"

#include "tests/unit/resource/objects.h"

namespace ub {
namespace {

struct Grouped : Objects {
  explicit Grouped(GroupPolicy policy = GroupPolicy::kRoundRobin, uint32_t count = 3) {
    EXPECT_EQ(create_group(*s, {.policy = policy, .token = {true, 0x1234}, .owner = 5}, &group), Status::kOk);
    for (uint32_t i = 0; i < count; ++i) {
      jfrs.push_back(make_jfr());
      members.push_back(join(jfrs.back()));
    }
  }
  uint32_t join(uint32_t jfr) {
    JettyConfig c = jetty_config(jfr);
    c.group = group;
    return make(c);
  }
  Group& it() { return s->groups[s->ids[group].record]; }
  void post_receives(uint32_t member, uint32_t slots) { receive_rings[member].indices.produced.store(slots); }
  /// Which member the next message goes to.
  uint32_t chosen(uint8_t hint = 0) {
    const uint32_t record = choose_member(*s, s->ids[group].record, hint);
    for (uint32_t i = 0; i < members.size(); ++i) {
      if (s->ids[members[i]].record == record) return i;
    }
    return UINT32_MAX;
  }

  uint32_t group = 0;
  std::vector<uint32_t> jfrs, members;
};

// ---- members ---------------------------------------------------------------------------------------------------

TEST(Groups, one_is_as_it_was_asked_for_whatever_the_last_user_left) {
  Grouped g(GroupPolicy::kHint, 0);
  g.it().next = 9;
  ASSERT_EQ(destroy_group(*g.s, g.group), Status::kOk);
  EXPECT_EQ(g.s->ids[g.group].kind, ObjectKind::kNone);
  uint32_t id = 0;
  ASSERT_EQ(create_group(*g.s, {.policy = GroupPolicy::kQueueDepth, .token = {true, 7}, .owner = 6}, &id), Status::kOk);
  const Group& made = g.s->groups[g.s->ids[id].record];
  EXPECT_EQ(g.s->ids[id].kind, ObjectKind::kGroup);
  EXPECT_EQ(made.id, id);
  EXPECT_EQ(made.policy, GroupPolicy::kQueueDepth);
  EXPECT_EQ(made.token.value, 7u);
  EXPECT_EQ(made.owner, 6);
  EXPECT_EQ(made.next + made.count, 0u);
  EXPECT_EQ(g.s->groups.in_use(), 1u);
}

// 11.4
TEST(Groups, a_new_token_takes_the_place_of_the_former_one) {
  Grouped g;
  ASSERT_EQ(set_queue_token(*g.s, g.group, 7, 0x1234), Status::kOk);
  EXPECT_TRUE(g.it().token.fits(7));
  EXPECT_TRUE(g.it().token.fits(0x1234));
  ASSERT_EQ(set_queue_token(*g.s, g.group, 7, 7), Status::kOk);
  EXPECT_FALSE(g.it().token.fits(0x1234));
  EXPECT_EQ(set_queue_token(*g.s, g.jfrs[0], 7, 7), Status::kInvalid) << "it asks for no token";
  for (uint32_t none : {g.members[0], g.group + 100, kIdSpace}) {
    EXPECT_EQ(set_queue_token(*g.s, none, 7, 7), Status::kInvalid) << none;
  }
}

TEST(Groups, without_a_record_or_an_id_nothing_is_taken) {
  Objects o;
  uint32_t id = 0;
  for (int i = 0; i < 8; ++i) EXPECT_EQ(create_group(*o.s, {}, &id), Status::kOk);
  EXPECT_EQ(create_group(*o.s, {}, &id), Status::kNoMemory);
  CoreConfig config = small_tables();
  config.every_id = false;
  Objects without(config);
  EXPECT_EQ(create_group(*without.s, {}, &id), Status::kNoId);
  EXPECT_EQ(without.s->groups.in_use(), 0u);
}

TEST(Groups, are_found_by_their_owner) {
  Grouped g;
  EXPECT_EQ(find_group(*g.s, g.group, 5), g.s->ids[g.group].record);
  EXPECT_EQ(find_group(*g.s, g.group, 6), 0u);
  EXPECT_EQ(find_group(*g.s, g.members[0], 5), 0u) << "a jetty";
  g.trap_behind_ids(ObjectKind::kGroup);
  EXPECT_EQ(find_group(*g.s, kIdSpace, 5), 0u);
  EXPECT_EQ(find_group(*g.s, UINT32_MAX, 5), 0u);
}

TEST(Groups, that_have_members_cannot_be_destroyed) {
  Grouped g(GroupPolicy::kRoundRobin, 1);
  EXPECT_EQ(destroy_group(*g.s, g.group), Status::kBusy);
  EXPECT_EQ(destroy_group(*g.s, g.members[0]), Status::kInvalid) << "a jetty";
  ASSERT_EQ(destroy_jetty(*g.s, g.members[0]), Status::kOk);
  g.trap_behind_ids(ObjectKind::kGroup);
  EXPECT_EQ(destroy_group(*g.s, kIdSpace), Status::kInvalid);
  EXPECT_EQ(destroy_group(*g.s, g.group), Status::kOk);
  EXPECT_EQ(destroy_group(*g.s, g.group), Status::kInvalid) << "once";
  EXPECT_EQ(g.s->groups.in_use(), 0u);
}

TEST(Groups, jettys_join_in_order_and_any_may_leave) {
  Grouped g;
  const uint32_t first = g.s->ids[g.members[0]].record, last = g.s->ids[g.members[2]].record;
  ASSERT_EQ(g.it().count, 3u);
  EXPECT_EQ(g.s->jettys[first].group, g.s->ids[g.group].record);
  ASSERT_EQ(destroy_jetty(*g.s, g.members[1]), Status::kOk);
  ASSERT_EQ(g.it().count, 2u);
  EXPECT_EQ(g.it().members[0], first);
  EXPECT_EQ(g.it().members[1], last);
  leave_group(*g.s, first);
  EXPECT_EQ(g.s->jettys[first].group, 0u);
  EXPECT_EQ(g.it().members[0], last);
  leave_group(*g.s, first);
  EXPECT_EQ(g.it().count, 1u) << "once";
}

TEST(Groups, only_jettys_of_its_owner_that_receive_reliable_messages_may_join) {
  Grouped g(GroupPolicy::kRoundRobin, 1);
  const auto status = [&](void (*change)(JettyConfig&)) {
    JettyConfig c = g.jetty_config(g.jfrs[0]);
    c.group = g.group;
    change(c);
    uint32_t made = 0;
    return create_jetty(*g.s, c, &made);
  };
  EXPECT_EQ(status([](JettyConfig& c) { c.owner = 6; }), Status::kInvalid);
  EXPECT_EQ(status([](JettyConfig& c) { c.mode = Mode::kRc; }), Status::kInvalid);
  EXPECT_EQ(status([](JettyConfig& c) { c.kind = ObjectKind::kJfs; }), Status::kInvalid);
  EXPECT_EQ(status([](JettyConfig&) {}), Status::kOk);
  g.it().count = kMaxGroupMembers;
  EXPECT_EQ(status([](JettyConfig&) {}), Status::kNoMemory);
  EXPECT_EQ(status([](JettyConfig& c) { c.group = 0; }), Status::kOk) << "it need not join";
  g.it().count = 2;
}

// ---- who gets a message ----------------------------------------------------------------------------------------

TEST(Groups, an_empty_one_has_nobody_for_a_message) {
  Grouped g(GroupPolicy::kRoundRobin, 0);
  EXPECT_EQ(choose_member(*g.s, g.s->ids[g.group].record, 0), 0u);
}

TEST(RoundRobin, members_with_receives_have_their_turns) {
  Grouped g;
  for (uint32_t member : {0u, 1u, 2u}) g.post_receives(member, 1);
  for (uint32_t n = 0; n < 7; ++n) EXPECT_EQ(g.chosen(), n % 3) << n;
}

TEST(RoundRobin, members_without_receives_are_passed) {
  Grouped g;
  g.post_receives(0, 1);
  g.post_receives(2, 1);
  for (uint32_t expected : {0u, 2u, 0u, 2u}) EXPECT_EQ(g.chosen(), expected);
}

// Who is refused then is told to come again, and finds another one perhaps.
TEST(RoundRobin, where_nobody_has_a_receive_the_turn_goes_round_nevertheless) {
  Grouped g;
  for (uint32_t n = 0; n < 7; ++n) EXPECT_EQ(g.chosen(), n % 3) << n;
}

TEST(RoundRobin, the_last_member_is_looked_at_too) {
  Grouped g;
  g.post_receives(2, 1);
  EXPECT_EQ(g.chosen(), 2u);
  EXPECT_EQ(g.chosen(), 2u) << "after a whole round";
}

TEST(Hint, of_the_sender_decides_modulo_the_members) {
  Grouped g(GroupPolicy::kHint);
  g.post_receives(1, 8);
  for (uint32_t hint = 0; hint < 7; ++hint) EXPECT_EQ(g.chosen(static_cast<uint8_t>(hint)), hint % 3);
}

TEST(QueueDepth, who_has_most_receives_gets_it) {
  Grouped g(GroupPolicy::kQueueDepth);
  g.post_receives(0, 2);
  g.post_receives(1, 5);
  g.post_receives(2, 3);
  EXPECT_EQ(g.chosen(), 1u);
  g.s->jfrs[g.s->ids[g.jfrs[1]].record].consumed = 3;
  EXPECT_EQ(g.chosen(), 2u) << "of which three are taken";
}

TEST(QueueDepth, a_receive_that_was_given_back_counts_as_one) {
  Grouped g(GroupPolicy::kQueueDepth);
  g.post_receives(0, 1);
  g.post_receives(1, 1);
  g.post_receives(2, 1);
  g.jfr(g.jfrs[1]).returned.push_back<&RxReceive::on_list>(g.s->receives, g.s->receives.alloc());
  EXPECT_EQ(g.chosen(), 1u);
  g.post_receives(2, 2);
  g.post_receives(0, 3);
  EXPECT_EQ(g.chosen(), 0u);
  g.post_receives(0, 0);
  g.post_receives(1, 0);
  EXPECT_EQ(g.chosen(), 2u);
  g.post_receives(2, 0);
  EXPECT_EQ(g.chosen(), 1u) << "more than nothing";
}

TEST(QueueDepth, an_index_that_cannot_be_counts_as_nothing_posted) {
  Grouped g(GroupPolicy::kQueueDepth);
  g.post_receives(0, kRingSlots + 1);
  g.post_receives(1, 1);
  EXPECT_EQ(g.chosen(), 1u);
  g.post_receives(0, kRingSlots);
  EXPECT_EQ(g.chosen(), 0u) << "a full ring can be";
}

TEST(QueueDepth, who_would_refuse_gets_nothing) {
  const auto chosen_instead = [](void (*change)(Grouped&)) {
    Grouped g(GroupPolicy::kQueueDepth);
    g.post_receives(0, 1);
    g.post_receives(1, 8);
    change(g);
    return g.chosen();
  };
  EXPECT_EQ(chosen_instead([](Grouped&) {}), 1u);
  EXPECT_EQ(chosen_instead([](Grouped& g) {
              g.post_receives(0, 0);
              g.jfr(g.jfrs[1]).state = QueueState::kError;
              g.post_receives(2, 0);
            }),
            0u)
      << "nothing is no more than nothing";
  EXPECT_EQ(chosen_instead([](Grouped& g) { g.jfr(g.jfrs[1]).state = QueueState::kError; }), 0u);
  EXPECT_EQ(chosen_instead([](Grouped& g) { g.jfr(g.jfrs[1]).state = QueueState::kReset; }), 0u);
  EXPECT_EQ(chosen_instead([](Grouped& g) { g.queue(g.members[1]).state = QueueState::kError; }), 0u);
  EXPECT_EQ(chosen_instead([](Grouped& g) { g.queue(g.members[1]).state = QueueState::kReset; }), 0u);
}

}  // namespace
}  // namespace ub
