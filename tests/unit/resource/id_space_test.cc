// SPDX-License-Identifier: Apache-2.0
//
// Blocks of ids, the ports that stand for them, and giving ids out.
#include "lib/transport/resource/id_space.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <vector>

#include "tests/unit/transport/test_state.h"

namespace ub {
namespace {

constexpr uint32_t kBlock = 40;
constexpr uint32_t kFirst = kBlock * wire::kIdsOfBlock;

// The state of a Core that has no block yet.
struct State : TestState {
  explicit State(bool every_id = false, uint64_t seed = 1) : TestState(config(every_id, seed)) {}
  uint32_t take(uint32_t wanted = 0) {
    const uint32_t id = allocate_id(*s, wanted);
    if (id != 0) s->ids[id] = IdSlot{1, 0, ObjectKind::kGroup};
    return id;
  }

 private:
  static CoreConfig config(bool every_id, uint64_t seed) {
    CoreConfig c = small_tables();
    c.every_id = every_id;
    c.seed = seed;
    return c;
  }
};

TEST(IdSpace, without_a_block__there_is_no_id_but_that_which_is_wanted) {
  State state;
  EXPECT_EQ(state.take(), 0u);
  EXPECT_EQ(allocate_token_id(*state.s), 0u);
  EXPECT_EQ(state.take(77), 77u);
  EXPECT_EQ(state.take(77), 0u);
}

TEST(IdSpace, a_block__gives_each_of_its_ids_once_then_none) {
  State state;
  add_id_block(*state.s, kBlock);
  std::set<uint32_t> ids, token_ids;
  for (uint32_t n = 0; n < wire::kIdsOfBlock; ++n) {
    ids.insert(state.take());
    token_ids.insert(allocate_token_id(*state.s));
  }
  for (const auto& all : {ids, token_ids}) {
    EXPECT_EQ(all.size(), wire::kIdsOfBlock);
    EXPECT_EQ(*all.begin(), kFirst);
    EXPECT_EQ(*all.rbegin(), kFirst + wire::kIdsOfBlock - 1);
  }
  EXPECT_EQ(state.take(), 0u);
  EXPECT_EQ(allocate_token_id(*state.s), 0u);
  add_id_block(*state.s, kBlock + 100);
  EXPECT_EQ(state.take() / wire::kIdsOfBlock, kBlock + 100);
  EXPECT_EQ(allocate_token_id(*state.s) / wire::kIdsOfBlock, kBlock + 100);
}

TEST(IdSpace, with_none_left__number_0_stays_nobodys) {
  State state;
  EXPECT_EQ(allocate_token_id(*state.s), 0u);
  EXPECT_FALSE(state.s->token_ids[0].in_use);
}

TEST(IdSpace, what_was_given_back__rests_as_long_as_it_says_from_the_first_moment_on) {
  State state;
  state.s->now = Instant{0};
  ASSERT_EQ(state.take(77), 77u);
  release_id(*state.s, 77);
  state.s->now = Instant{0} + state.s->config.id_rest - nanoseconds(1);
  EXPECT_EQ(state.take(77), 0u);
  state.s->now += nanoseconds(1);
  EXPECT_EQ(state.take(77), 77u);
}

// Whoever had this block before gave out other numbers first, as a rule.
TEST(IdSpace, the_first_id__is_anywhere_in_the_block) {
  std::set<uint32_t> ids, token_ids;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    State state(false, seed);
    add_id_block(*state.s, kBlock);
    ids.insert(state.take());
    token_ids.insert(allocate_token_id(*state.s));
  }
  EXPECT_GE(ids.size(), 15u);
  EXPECT_GE(token_ids.size(), 15u);
}

TEST(IdSpace, what_was_given_back__rests) {
  State state;
  add_id_block(*state.s, kBlock);
  std::vector<uint32_t> ids, token_ids;
  for (uint32_t n = 0; n < wire::kIdsOfBlock; ++n) {
    ids.push_back(state.take());
    token_ids.push_back(allocate_token_id(*state.s));
  }
  release_id(*state.s, ids[5]);
  release_token_id(*state.s, token_ids[9]);
  state.s->now = state.s->now + state.s->config.id_rest - milliseconds(1);
  EXPECT_EQ(state.take(), 0u);
  EXPECT_EQ(state.take(ids[5]), 0u);
  EXPECT_EQ(allocate_token_id(*state.s), 0u);
  state.s->now = state.s->now + milliseconds(1);
  EXPECT_EQ(state.take(), ids[5]);
  EXPECT_EQ(allocate_token_id(*state.s), token_ids[9]);
}

// However far the turn has to go.
TEST(IdSpace, the_only_free_one__is_found_wherever_it_lies) {
  State state;
  add_id_block(*state.s, kBlock);
  std::vector<uint32_t> ids, token_ids;
  for (uint32_t n = 0; n < wire::kIdsOfBlock; ++n) {
    ids.push_back(state.take());
    token_ids.push_back(allocate_token_id(*state.s));
  }
  for (size_t at : {size_t{0}, ids.size() - 1, ids.size() - 1, ids.size() - 2, size_t{1}, size_t{0}}) {
    release_id(*state.s, ids[at]);
    release_token_id(*state.s, token_ids[at]);
    state.s->now = state.s->now + state.s->config.id_rest;
    EXPECT_EQ(state.take(), ids[at]) << at;
    EXPECT_EQ(allocate_token_id(*state.s), token_ids[at]) << at;
  }
}

// Whoever makes and destroys without end is content with some blocks, and never gets what is used.
TEST(IdSpace, with_many_blocks__what_rested_longest_is_given_out_again) {
  State state;
  for (uint32_t block = 0; block < 15; ++block) add_id_block(*state.s, kBlock + block);
  const uint32_t kept = state.take(), kept_token = allocate_token_id(*state.s);
  std::vector<uint32_t> order, token_order;
  while (const uint32_t id = state.take()) {
    order.push_back(id);
    release_id(*state.s, id);
  }
  while (const uint32_t id = allocate_token_id(*state.s)) {
    token_order.push_back(id);
    release_token_id(*state.s, id);
  }
  EXPECT_EQ(order.size(), 15 * wire::kIdsOfBlock - 1) << "all but the one that is kept, and then none";
  EXPECT_EQ(token_order.size(), 15 * wire::kIdsOfBlock - 1);
  add_id_block(*state.s, kBlock + 15);
  for (uint32_t n = 0; n < 1000; ++n) {
    const uint32_t id = state.take(), token = allocate_token_id(*state.s);
    ASSERT_NE(id, 0u);
    ASSERT_NE(token, 0u);
    ASSERT_NE(id, kept);
    ASSERT_NE(token, kept_token);
    release_id(*state.s, id);
    release_token_id(*state.s, token);
  }
  const uint32_t next = state.take();
  release_id(*state.s, next);
  std::set<uint32_t> seen;
  for (uint32_t n = 0; n < 16 * wire::kIdsOfBlock - 2; ++n) {
    const uint32_t id = state.take();
    const uint32_t token = allocate_token_id(*state.s);
    ASSERT_NE(id, next) << "it rested shortest, and comes last";
    ASSERT_TRUE(seen.insert(id).second);
    ASSERT_NE(token, 0u);
    ASSERT_NE(token, kept_token);
    release_id(*state.s, id);
    release_token_id(*state.s, token);
  }
  EXPECT_EQ(state.take(), next);
}

TEST(IdSpace, wanted_ids__are_given_as_asked_or_another_one) {
  State state;
  add_id_block(*state.s, kBlock);
  EXPECT_EQ(state.take(3), 3u);
  EXPECT_EQ(state.take(3071), 3071u);
  EXPECT_EQ(state.take(700'000), 700'000u);
  EXPECT_EQ(state.take(kIdSpace - 1), kIdSpace - 1);
  for (uint32_t wanted : {0u, 1u, 2u, 3u, kIdSpace, kIdSpace + 3, UINT32_MAX}) {
    const uint32_t id = state.take(wanted);
    EXPECT_EQ(id / wire::kIdsOfBlock, kBlock) << wanted;
  }
}

// Nothing below kFirstDynamicId, and everything above.
TEST(IdSpace, every_id__goes_round) {
  State state(true);
  EXPECT_EQ(state.take(), kFirstDynamicId);
  state.s->next_id = kIdSpace - 1;
  EXPECT_EQ(state.take(), kIdSpace - 1);
  EXPECT_EQ(state.take(), kFirstDynamicId + 1);
}

TEST(IdSpace, private_ids__come_from_anywhere) {
  State state;
  EXPECT_EQ(allocate_private_id(*state.s, 500'000), 500'000u);
  EXPECT_EQ(state.take(500'000), 500'000u);
  EXPECT_EQ(allocate_private_id(*state.s, 500'000), 500'001u);
  EXPECT_EQ(allocate_private_id(*state.s, kIdSpace), kFirstDynamicId);
  EXPECT_EQ(allocate_private_id(*state.s, 0), kFirstDynamicId);
}

TEST(IdSpace, private_ids__end_with_the_last) {
  State state;
  for (uint32_t id = kFirstDynamicId; id < kIdSpace; ++id) state.s->ids[id].kind = ObjectKind::kGroup;
  state.s->ids[kIdSpace - 1].kind = ObjectKind::kNone;
  EXPECT_EQ(allocate_private_id(*state.s, kFirstDynamicId), kIdSpace - 1);
  state.s->ids[kIdSpace - 1].kind = ObjectKind::kGroup;
  EXPECT_EQ(allocate_private_id(*state.s, kFirstDynamicId), 0u);
  state.s->ids[kIdSpace] = IdSlot{};  // what lies behind the table
  EXPECT_EQ(allocate_private_id(*state.s, kIdSpace), 0u);
}

TEST(IdPort, every_id_has_one_port_and_blocks_have_1024) {
  std::map<uint16_t, uint32_t> ids_of;
  for (uint32_t id = kFirstRequestableId; id < kIdSpace; ++id) {
    const uint16_t port = wire::port_of_id(id);
    ASSERT_TRUE(wire::is_id_port(port)) << id;
    ++ids_of[port];
  }
  EXPECT_EQ(ids_of.size(), 3069u + 1021u);
  for (auto [port, ids] : ids_of) EXPECT_EQ(ids, port >= 62464 ? 1u : 1024u) << port;
}

// Numbers that peers compute with: a change is a change of the protocol.
TEST(IdPort, golden) {
  EXPECT_EQ(wire::port_of_id(3), 62467);
  EXPECT_EQ(wire::port_of_id(3071), 65535);
  EXPECT_EQ(wire::port_of_id(3072), 61443);
  EXPECT_EQ(wire::port_of_id(4095), 61443);
  EXPECT_EQ(wire::port_of_id(4096), 61444);
  EXPECT_EQ(wire::port_of_id(0xfffff), 62463);
  EXPECT_EQ(wire::port_of_block(3), 61443);
  EXPECT_FALSE(wire::is_id_port(4792));
  EXPECT_FALSE(wire::is_id_port(60999));
}

TEST(IdBlocks, next__skips_what_is_not_ours_and_goes_round) {
  IdBlocks blocks;
  blocks.add(5);
  EXPECT_EQ(blocks.next(0), 5 * 1024u);
  EXPECT_EQ(blocks.next(5 * 1024 + 7), 5 * 1024u + 7);
  EXPECT_EQ(blocks.next(6 * 1024), 5 * 1024u);
  blocks.add(1023);
  EXPECT_EQ(blocks.next(6 * 1024), 1023 * 1024u);
  EXPECT_EQ(blocks.next(kIdSpace - 1), kIdSpace - 1);
  EXPECT_EQ(blocks.next(kIdSpace), 5 * 1024u);
  EXPECT_EQ(blocks.next(1), 5 * 1024u);
}

TEST(IdBlocks, a_block_counts_once) {
  IdBlocks blocks;
  EXPECT_EQ(blocks.ids(), 0u);
  for (uint32_t block : {3u, 3u, 64u, 1023u, 64u}) blocks.add(block);
  EXPECT_EQ(blocks.ids(), 3 * 1024u);
  EXPECT_TRUE(blocks.has(64));
  EXPECT_FALSE(blocks.has(65));
  EXPECT_FALSE(blocks.has(0));
}

}  // namespace
}  // namespace ub
