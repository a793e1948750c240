// SPDX-License-Identifier: Apache-2.0
//
// Registered memory and the checks of every access (UB Base Specification Rev 2.0, 9.4).
#include "lib/transport/resource/segments.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/unit/transport/test_state.h"

namespace ub {
namespace {

constexpr uint64_t kAddress = 0x10000, kLocal = 0x70000;
constexpr uint32_t kLength = 256, kToken = 0x4321;

struct Memory : TestState {
  SegmentConfig config() {
    SegmentConfig c;
    c.memory = bytes.data();
    c.address = kAddress;
    c.local_address = kLocal;
    c.length = kLength;
    c.token = {true, kToken};
    c.access = kAccessRead | kAccessWrite;
    c.owner = 7;
    return c;
  }
  RegisteredSegment add(const SegmentConfig& c) {
    RegisteredSegment r;
    EXPECT_EQ(register_segment(*s, c, &r), Status::kOk);
    return r;
  }
  RemoteAccess access(uint32_t token_id, uint64_t address = kAddress, uint64_t length = 1) const {
    return {token_id, true, kToken, address, length, kAccessRead};
  }
  std::byte* remote(const RemoteAccess& r) { return remote_memory(*s, r, nullptr); }

  std::vector<std::byte> bytes = std::vector<std::byte>(2 * kLength);
};

TEST(Segments, a_peer_reaches_exactly_the_bytes_of_a_segment) {
  Memory m;
  const uint32_t id = m.add(m.config()).token_id;
  EXPECT_EQ(m.remote(m.access(id, kAddress, kLength)), m.bytes.data());
  EXPECT_EQ(m.remote(m.access(id, kAddress + kLength - 1)), m.bytes.data() + kLength - 1);
  EXPECT_EQ(m.remote(m.access(id, kAddress + kLength, 0)), m.bytes.data() + kLength) << "none at all, at its end";
  EXPECT_EQ(m.remote(m.access(id, kAddress + kLength)), nullptr);
  EXPECT_EQ(m.remote(m.access(id, kAddress + 1, kLength)), nullptr);
  EXPECT_EQ(m.remote(m.access(id, kAddress - 1)), nullptr);
  EXPECT_EQ(m.remote(m.access(id, kAddress, UINT64_MAX)), nullptr) << "the end does not wrap";
  EXPECT_EQ(m.remote(m.access(id, kAddress + 1, UINT64_MAX - kAddress)), nullptr);
}

TEST(Segments, a_peer_needs_the_token) {
  Memory m;
  const uint32_t id = m.add(m.config()).token_id;
  RemoteAccess r = m.access(id);
  r.token_value = kToken + 1;
  EXPECT_EQ(m.remote(r), nullptr);
  r = m.access(id);
  r.has_token = false;
  EXPECT_EQ(m.remote(r), nullptr);
  SegmentConfig open = m.config();
  open.token.required = false;
  r.token_id = m.add(open).token_id;
  EXPECT_NE(m.remote(r), nullptr);
}

// 9.4, 11.4: one token takes the place of another while requests with either arrive.
TEST(Segments, two_tokens_are_valid_while_one_takes_the_place_of_the_other) {
  Memory m;
  const RegisteredSegment segment = m.add(m.config());
  const auto reaches = [&](uint32_t value) {
    RemoteAccess r = m.access(segment.token_id);
    r.token_value = value;
    return m.remote(r) != nullptr;
  };
  ASSERT_EQ(set_segment_token(*m.s, segment.handle, 0x99, kToken), Status::kOk);
  EXPECT_TRUE(reaches(kToken));
  EXPECT_TRUE(reaches(0x99));
  EXPECT_FALSE(reaches(0x9a));
  RemoteAccess none = m.access(segment.token_id);
  none.has_token = false;
  EXPECT_EQ(m.remote(none), nullptr);
  ASSERT_EQ(set_segment_token(*m.s, segment.handle, 0x99, 0x99), Status::kOk);
  EXPECT_FALSE(reaches(kToken));
  EXPECT_TRUE(reaches(0x99));
}

TEST(Segments, either_of_two_tokens_revokes) {
  for (uint32_t value : {kToken, 0x99u}) {
    Memory m;
    const RegisteredSegment segment = m.add(m.config());
    ASSERT_EQ(set_segment_token(*m.s, segment.handle, 0x99, kToken), Status::kOk);
    EXPECT_FALSE(invalidate_token_id(*m.s, 7, segment.token_id, 0x9a));
    EXPECT_TRUE(invalidate_token_id(*m.s, 7, segment.token_id, value)) << value;
  }
}

TEST(Segments, that_are_exclusive_are_reached_by_requests_that_are_exclusive_and_others_by_both) {
  for (const bool registered_so : {true, false}) {
    Memory m;
    SegmentConfig c = m.config();
    c.exclusive = registered_so;
    const RegisteredSegment segment = m.add(c);
    const auto reaches = [&](bool exclusive) {
      RemoteAccess r = m.access(segment.token_id);
      if (exclusive) r.access |= exclusively(r.access);
      return m.remote(r) != nullptr;
    };
    EXPECT_TRUE(reaches(true));
    EXPECT_EQ(reaches(false), !registered_so);
    ASSERT_EQ(set_segment_exclusive(*m.s, segment.handle, !registered_so), Status::kOk);
    EXPECT_TRUE(reaches(true));
    EXPECT_EQ(reaches(false), registered_so);
    RemoteAccess wrong = m.access(segment.token_id);
    wrong.access |= exclusively(wrong.access);
    ++wrong.token_value;
    EXPECT_EQ(m.remote(wrong), nullptr) << "the token is asked for all the same";
    unregister_segment(*m.s, segment.handle);
    for (uint32_t none : {segment.handle, 0u, UINT32_MAX})
      EXPECT_EQ(set_segment_exclusive(*m.s, none, true), Status::kInvalid);
  }
}

TEST(Segments, keep_the_rights_they_were_registered_with_whether_they_are_exclusive_or_not) {
  constexpr uint8_t kRights[] = {kAccessRead, kAccessWrite, kAccessAtomic};
  for (const uint8_t right : kRights) {
    Memory m;
    SegmentConfig c = m.config();
    c.access = right;
    const RegisteredSegment segment = m.add(c);
    for (const bool exclusive : {true, false}) {
      ASSERT_EQ(set_segment_exclusive(*m.s, segment.handle, exclusive), Status::kOk);
      for (const uint8_t asked : kRights) {
        RemoteAccess r = m.access(segment.token_id);
        r.access = exclusive ? exclusively(asked) : asked;
        EXPECT_EQ(m.remote(r) != nullptr, asked == right) << exclusive;
      }
    }
  }
}

TEST(Segments, a_token_is_set_where_there_is_one) {
  Memory m;
  SegmentConfig open = m.config();
  open.token.required = false;
  EXPECT_EQ(set_segment_token(*m.s, m.add(open).handle, 1, 2), Status::kInvalid);
  const uint32_t handle = m.add(m.config()).handle;
  unregister_segment(*m.s, handle);
  for (uint32_t none : {handle, 0u, UINT32_MAX}) EXPECT_EQ(set_segment_token(*m.s, none, 1, 2), Status::kInvalid);
}

TEST(Segments, a_peer_may_do_what_its_access_says) {
  Memory m;
  RemoteAccess r = m.access(m.add(m.config()).token_id);
  EXPECT_NE(m.remote(r), nullptr);
  r.access = kAccessWrite;
  EXPECT_NE(m.remote(r), nullptr);
  r.access = kAccessAtomic;
  EXPECT_EQ(m.remote(r), nullptr);
}

TEST(Segments, token_ids_that_name_nothing_reach_nothing) {
  Memory m;
  const uint32_t id = m.add(m.config()).token_id;
  for (uint32_t other : {0u, 1u, id + 1, UINT32_MAX}) EXPECT_EQ(m.remote(m.access(other)), nullptr) << other;
  m.s->token_ids[kIdSpace] = m.s->token_ids[id];  // what lies behind the table
  EXPECT_EQ(m.remote(m.access(kIdSpace)), nullptr);
  EXPECT_FALSE(invalidate_token_id(*m.s, 7, kIdSpace, kToken));
  EXPECT_EQ(free_token_id(*m.s, kIdSpace), Status::kInvalid);
  m.s->token_ids[kIdSpace].segments = 0;
  EXPECT_EQ(free_token_id(*m.s, kIdSpace), Status::kInvalid);
  SegmentConfig c = m.config();
  c.token_id = kIdSpace;
  RegisteredSegment r;
  EXPECT_EQ(register_segment(*m.s, c, &r), Status::kInvalid);
}

TEST(Segments, a_token_id_is_freed_once) {
  Memory m;
  uint32_t id = 0;
  ASSERT_EQ(alloc_token_id(*m.s, &id), Status::kOk);
  EXPECT_EQ(free_token_id(*m.s, id), Status::kOk);
  for (uint32_t none : {id, 0u, id + 1}) EXPECT_EQ(free_token_id(*m.s, none), Status::kInvalid) << none;
}

// A request may name the last byte of the address space, and nothing behind it.
TEST(Segments, may_end_where_the_address_space_ends) {
  Memory m;
  SegmentConfig c = m.config();
  c.address = UINT64_MAX - kLength;
  EXPECT_NE(m.remote(m.access(m.add(c).token_id, UINT64_MAX - 1)), nullptr);
}

TEST(Segments, each_use_of_a_record_has_a_generation_of_its_own) {
  Memory m;
  const uint32_t first = m.add(m.config()).handle;
  uint32_t last = first;
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(unregister_segment(*m.s, last), Status::kOk);
    const uint32_t next = m.add(m.config()).handle;
    EXPECT_EQ(next - last, 1u << 20);
    last = next;
  }
}

// What an application could foresee it could use to make the tree deep.
TEST(Segments, lie_in_their_tree_by_chance) {
  Memory m;
  m.add(m.config());
  m.add(m.config());
  EXPECT_NE(m.s->segments[1].priority, m.s->segments[2].priority);
}

TEST(Segments, without_a_token_asked_for_anybody_may_revoke) {
  Memory m;
  SegmentConfig c = m.config();
  c.token.required = false;
  EXPECT_TRUE(invalidate_token_id(*m.s, 7, m.add(c).token_id, kToken + 1));
}

TEST(Segments, a_request_reaches_memory_of_its_owner_by_local_address) {
  Memory m;
  const uint32_t handle = m.add(m.config()).handle;
  EXPECT_EQ(local_memory(*m.s, 7, handle, kLocal + 5, 10), m.bytes.data() + 5);
  EXPECT_EQ(local_memory(*m.s, 7, handle, kAddress, 1), nullptr) << "that is how peers name it";
  EXPECT_EQ(local_memory(*m.s, 8, handle, kLocal, 1), nullptr) << "of another application";
  EXPECT_EQ(local_memory(*m.s, 7, handle, kLocal + 1, kLength), nullptr);
  EXPECT_EQ(local_memory(*m.s, 7, 0, kLocal, 1), nullptr);
}

TEST(Segments, a_handle_of_an_earlier_life_finds_nothing) {
  Memory m;
  const RegisteredSegment first = m.add(m.config());
  EXPECT_EQ(unregister_segment(*m.s, first.handle), Status::kOk);
  EXPECT_EQ(local_memory(*m.s, 7, first.handle, kLocal, 1), nullptr);
  EXPECT_EQ(m.remote(m.access(first.token_id)), nullptr);
  EXPECT_EQ(unregister_segment(*m.s, first.handle), Status::kInvalid);
  const RegisteredSegment second = m.add(m.config());
  EXPECT_NE(second.handle, first.handle) << "the same record";
  EXPECT_EQ(local_memory(*m.s, 7, first.handle, kLocal, 1), nullptr);
  EXPECT_NE(local_memory(*m.s, 7, second.handle, kLocal, 1), nullptr);
}

TEST(Segments, of_one_token_id_do_not_overlap) {
  Memory m;
  SegmentConfig c = m.config();
  ASSERT_EQ(alloc_token_id(*m.s, &c.token_id), Status::kOk);
  m.add(c);
  RegisteredSegment r;
  EXPECT_EQ(register_segment(*m.s, c, &r), Status::kExists);
  c.address += kLength;
  m.add(c);
  EXPECT_EQ(m.remote(m.access(c.token_id, kAddress + kLength - 1, 2)), nullptr) << "no access crosses two";
  EXPECT_EQ(free_token_id(*m.s, c.token_id), Status::kBusy);
}

TEST(Segments, an_own_token_id_goes_with_its_segment_and_rests) {
  Memory m;
  const RegisteredSegment r = m.add(m.config());
  unregister_segment(*m.s, r.handle);
  EXPECT_FALSE(m.s->token_ids[r.token_id].in_use);
  EXPECT_NE(m.add(m.config()).token_id, r.token_id);
}

TEST(Segments, what_cannot_be_is_refused_and_takes_nothing) {
  Memory m;
  RegisteredSegment r;
  SegmentConfig c = m.config();
  c.length = 0;
  EXPECT_EQ(register_segment(*m.s, c, &r), Status::kInvalid);
  c = m.config();
  c.memory = nullptr;
  EXPECT_EQ(register_segment(*m.s, c, &r), Status::kInvalid);
  c = m.config();
  c.address = UINT64_MAX - kLength + 2;
  EXPECT_EQ(register_segment(*m.s, c, &r), Status::kInvalid);
  c = m.config();
  c.token_id = 5;
  EXPECT_EQ(register_segment(*m.s, c, &r), Status::kInvalid);
  EXPECT_EQ(m.s->segments.in_use(), 0u);
  c = m.config();
  for (int i = 0; i < 8; ++i) m.add(c);
  EXPECT_EQ(register_segment(*m.s, c, &r), Status::kNoMemory);
}

TEST(Segments, one_of_which_no_token_id_is_left_takes_no_record) {
  CoreConfig c = small_tables();
  c.every_id = false;
  TestState without_blocks(c);
  Memory m;
  RegisteredSegment r;
  EXPECT_EQ(register_segment(*without_blocks.s, m.config(), &r), Status::kNoId);
  EXPECT_EQ(without_blocks.s->segments.in_use(), 0u);
}

// 7.2: SEND with invalidate revokes what it names, of the owner who received it.
TEST(Segments, a_revoked_token_id_refuses_peers_and_not_its_owner) {
  Memory m;
  const RegisteredSegment r = m.add(m.config());
  EXPECT_FALSE(invalidate_token_id(*m.s, 7, r.token_id, kToken + 1));
  EXPECT_FALSE(invalidate_token_id(*m.s, 8, r.token_id, kToken)) << "of another application";
  EXPECT_FALSE(invalidate_token_id(*m.s, 7, 0, kToken));
  EXPECT_FALSE(invalidate_token_id(*m.s, 7, kIdSpace, kToken));
  EXPECT_NE(m.remote(m.access(r.token_id)), nullptr);
  EXPECT_TRUE(invalidate_token_id(*m.s, 7, r.token_id, kToken));
  EXPECT_EQ(m.remote(m.access(r.token_id)), nullptr);
  EXPECT_NE(local_memory(*m.s, 7, r.handle, kLocal, 1), nullptr);
}

TEST(Segments, all_of_a_revoked_token_id_refuse) {
  Memory m;
  SegmentConfig c = m.config();
  ASSERT_EQ(alloc_token_id(*m.s, &c.token_id), Status::kOk);
  m.add(c);
  c.address += kLength;
  m.add(c);
  EXPECT_TRUE(invalidate_token_id(*m.s, 7, c.token_id, kToken));
  EXPECT_EQ(m.remote(m.access(c.token_id)), nullptr);
  EXPECT_EQ(m.remote(m.access(c.token_id, kAddress + kLength)), nullptr);
}

TEST(Segments, a_revoked_one_may_begin_where_the_address_space_begins) {
  Memory m;
  SegmentConfig c = m.config();
  c.address = 0;
  const uint32_t id = m.add(c).token_id;
  EXPECT_NE(m.remote(m.access(id, 0)), nullptr);
  EXPECT_TRUE(invalidate_token_id(*m.s, 7, id, kToken));
  EXPECT_EQ(m.remote(m.access(id, 0)), nullptr);
}

TEST(Segments, remote_memory_of_one_owner_is_not_that_of_another) {
  Memory m;
  const uint32_t id = m.add(m.config()).token_id;
  EXPECT_NE(remote_memory_of(*m.s, 7, m.access(id)), nullptr);
  EXPECT_EQ(remote_memory_of(*m.s, 8, m.access(id)), nullptr);
}

}  // namespace
}  // namespace ub
