// SPDX-License-Identifier: Apache-2.0
//
// Requests to memory that the host has mapped are carried out at once (docs/same-host-design.md); all others go by
// packets, and fail as they always did.
#include <array>
#include <cstring>

#include "lib/transport/ta/mapped_requests.h"
#include "tests/unit/transport/looking.h"
#include "tests/unit/transport/ub_pair.h"

namespace ub {
namespace {

constexpr uint32_t kHalf = UbNode::kMemory / 2;

/// a has mapped the memory of b.
class Mapped : public UbPair {
 protected:
  explicit Mapped(const UbOptions& o = {}) : UbPair(o) {}
  void SetUp() override {
    connect();
    map(kAccessRead | kAccessWrite | kAccessAtomic);
  }

  void map(uint8_t access, Owner owner = 0) {
    MappedConfig c;
    c.instance = b.id;
    c.memory = b.memory.data();
    c.gate = &gate;
    c.address = b.address();
    c.length = UbNode::kMemory;
    c.token_id = b.segment.token_id;
    c.token = {true, UbNode::kToken};
    c.access = access;
    c.owner = owner;
    ASSERT_EQ(a.core->add_mapped(c, &mapped), Status::kOk);
  }
  /// Posts a request to b's memory, `place` bytes behind its half, and does not ring.
  Wqe& post(WrOp op, uint32_t length, uint32_t place = 0) {
    Wqe& w = a.post(a.sends, op, to_b, length, place);
    w.remote_address = b.address() + kHalf + place;
    w.token_id = b.segment.token_id;
    w.token_value = UbNode::kToken;
    return w;
  }
  void ring() { a.core->on_posted(now, a.jetty); }
  /// Rings for what was posted last; true: it has completed without any frame.
  bool at_once() {
    ring();
    const std::vector<Cqe> done = a.poll();
    drain(a);
    return done.size() == 1 && done[0].status == CrStatus::kSuccess && a.host.frames.empty();
  }
  /// By packets, with this end.
  void expect_packets(CrStatus status) {
    const uint64_t before = count(b, Counter::kRxPackets);
    ring();
    EXPECT_TRUE(a.poll().empty());
    exchange();
    const std::vector<Cqe> done = a.poll();
    ASSERT_EQ(done.size(), 1u);
    EXPECT_EQ(done[0].status, status);
    EXPECT_NE(count(b, Counter::kRxPackets), before);
  }
  uint64_t word_of_b(uint32_t place) const {
    uint64_t word;
    std::memcpy(&word, b.memory.data() + kHalf + place, sizeof word);
    return word;
  }
  uint64_t mapped_requests() const {
    return count(a, Counter::kMappedWrites) + count(a, Counter::kMappedReads) + count(a, Counter::kMappedAtomics);
  }

  int gate = 0;
  uint32_t mapped = 0;
};

TEST_F(Mapped, writes_and_reads_need_no_packets) {
  for (const uint32_t length : {1u, 8u, 64u, 1500u, kHalf}) {
    post(WrOp::kWrite, length);
    EXPECT_TRUE(at_once()) << length;
    EXPECT_TRUE(arrived(length));
    std::fill_n(a.memory.begin(), length, std::byte{0});
    post(WrOp::kRead, length);
    EXPECT_TRUE(at_once()) << length;
    EXPECT_TRUE(arrived(length));
  }
  EXPECT_EQ(count(a, Counter::kMappedWrites), 5u);
  EXPECT_EQ(count(a, Counter::kMappedReads), 5u);
}

TEST_F(Mapped, the_completion_says_what_it_always_says) {
  Wqe& w = post(WrOp::kWrite, 24);
  w.user_ctx = 777;
  ring();
  const std::vector<Cqe> done = a.poll();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].user_ctx, 777u);
  EXPECT_EQ(done[0].op, WrOp::kWrite);
  EXPECT_EQ(done[0].length, 24u);
  EXPECT_EQ(done[0].local_id, a.jetty);
  EXPECT_EQ(done[0].flags & kCqeJetty, kCqeJetty);
  EXPECT_EQ(done[0].stamp, a.sends.indices.retired.load());
}

TEST_F(Mapped, atomics_of_all_widths) {
  struct Case {
    WrOp op;
    uint64_t operand, compare, before, after;
  };
  constexpr Case kCases[] = {
      {WrOp::kCompareSwap, 9, 5, 5, 9}, {WrOp::kCompareSwap, 9, 5, 6, 6}, {WrOp::kSwap, 9, 0, 5, 9},
      {WrOp::kFetchAdd, 3, 0, 5, 8},    {WrOp::kFetchSub, 3, 0, 5, 2},    {WrOp::kFetchAnd, 6, 0, 5, 4},
      {WrOp::kFetchOr, 6, 0, 5, 7},     {WrOp::kFetchXor, 6, 0, 5, 3},
  };
  for (const uint32_t bytes : {1u, 2u, 4u, 8u}) {
    for (const Case& c : kCases) {
      std::memcpy(b.memory.data() + kHalf, &c.before, bytes);
      Wqe& w = post(c.op, bytes);
      w.immediate = c.operand;
      reinterpret_cast<WqeExtra&>((&w)[1]).compare = c.compare;
      EXPECT_TRUE(at_once());
      uint64_t now_there = 0, old = 0;
      std::memcpy(&now_there, b.memory.data() + kHalf, bytes);
      std::memcpy(&old, a.memory.data(), bytes);
      EXPECT_EQ(now_there, c.after) << static_cast<int>(c.op) << ", " << bytes;
      EXPECT_EQ(old, c.before) << static_cast<int>(c.op) << ", " << bytes;
    }
  }
}

TEST_F(Mapped, atomics_of_sixteen_bytes) {
  if (!has_wide_atomics()) GTEST_SKIP() << "this CPU has no atomics of 16 bytes";
  const uint32_t place = static_cast<uint32_t>(-(b.address() + kHalf) & 15);
  Wqe& w = post(WrOp::kSwap, 16, place);
  w.immediate = 1;
  reinterpret_cast<WqeExtra&>((&w)[1]).operand_high = 2;
  EXPECT_TRUE(at_once());
  EXPECT_EQ(word_of_b(place), 1u);
  EXPECT_EQ(word_of_b(place + 8), 2u);
}

TEST_F(Mapped, bytes_in_the_element_are_written) {
  constexpr char kText[] = "fifteen bytes.";
  Wqe& w = post(WrOp::kWrite, sizeof kText);
  w.flags |= kWrInline;
  w.sge_count = 0;
  std::memcpy(reinterpret_cast<std::byte*>(&w.sge), kText, sizeof kText);
  EXPECT_TRUE(at_once());
  EXPECT_EQ(std::memcmp(b.memory.data() + kHalf, kText, sizeof kText), 0);
}

// At the end of a ring, where an element of several slots does not fit.
TEST_F(Mapped, a_filler_is_no_reason_for_packets) {
  Wqe& filler = post(WrOp::kWrite, 64);
  const uint8_t slots = filler.slots;
  filler = {};
  filler.op = WrOp::kSkip;
  filler.slots = slots;
  post(WrOp::kFetchAdd, 8);
  EXPECT_TRUE(at_once());
  EXPECT_EQ(count(a, Counter::kMappedAtomics), 1u);
  const QueueIndices& indices = a.sends.indices;
  EXPECT_EQ(indices.consumed.load(), indices.produced.load());
  EXPECT_EQ(indices.retired.load(), 1u);
}

TEST_F(Mapped, an_order_is_kept_where_nothing_is_before) {
  for (const uint8_t order : {uint8_t{1}, uint8_t{2}}) {
    Wqe& w = post(WrOp::kWrite, 8);
    w.place_order = order;
    w.flags |= kWrFence | kWrCompOrder;
    EXPECT_TRUE(at_once());
  }
}

TEST_F(Mapped, a_list_of_requests_completes_in_order) {
  constexpr uint32_t kMany = 30;
  for (uint32_t i = 0; i < kMany; ++i) post(i % 2 == 0 ? WrOp::kWrite : WrOp::kRead, 8, 8 * i).user_ctx = i;
  ring();
  const std::vector<Cqe> done = a.poll();
  ASSERT_EQ(done.size(), kMany);
  for (uint32_t i = 0; i < kMany; ++i) EXPECT_EQ(done[i].user_ctx, i);
  EXPECT_EQ(a.sends.indices.consumed.load(), a.sends.indices.produced.load());
}

TEST_F(Mapped, who_wants_no_completion_gets_none) {
  post(WrOp::kWrite, 64).flags &= static_cast<uint8_t>(~kWrSignaled);
  ring();
  EXPECT_TRUE(a.poll().empty());
  EXPECT_TRUE(arrived(64));
  EXPECT_EQ(a.sends.indices.retired.load(), 1u);
}

TEST_F(Mapped, nothing_passes_a_request_that_is_under_way) {
  b.post_receive(b.receive_indices[0], b.receives[0], 0, 64);
  a.post(a.sends, WrOp::kSend, to_b, 64);
  post(WrOp::kWrite, 64);
  ring();
  post(WrOp::kWrite, 64);
  ring();
  EXPECT_EQ(mapped_requests(), 0u);
  EXPECT_FALSE(arrived(64));
  exchange();
  EXPECT_EQ(a.poll().size(), 3u);
  post(WrOp::kWrite, 64);
  EXPECT_TRUE(at_once());
}

TEST_F(Mapped, what_comes_behind_a_message_in_a_list_waits_for_it) {
  b.post_receive(b.receive_indices[0], b.receives[0], 0, 64);
  post(WrOp::kWrite, 8);
  a.post(a.sends, WrOp::kSend, to_b, 64);
  post(WrOp::kWrite, 8, 8);
  ring();
  EXPECT_EQ(mapped_requests(), 1u);
  EXPECT_EQ(a.poll().size(), 1u);
  exchange();
  EXPECT_EQ(a.poll().size(), 2u);
  EXPECT_EQ(mapped_requests(), 1u);
}

TEST_F(Mapped, a_closed_gate_leaves_all_to_packets) {
  a.host.closed_gate = &gate;
  post(WrOp::kWrite, 64);
  expect_packets(CrStatus::kSuccess);
  EXPECT_TRUE(arrived(64));
  post(WrOp::kRead, 64);
  expect_packets(CrStatus::kSuccess);
  post(WrOp::kFetchAdd, 8);
  expect_packets(CrStatus::kSuccess);
  EXPECT_EQ(mapped_requests(), 0u);
}

TEST_F(Mapped, what_was_removed_is_not_touched) {
  ASSERT_EQ(a.core->remove_mapped(mapped), Status::kOk);
  EXPECT_EQ(a.core->remove_mapped(mapped), Status::kInvalid);
  post(WrOp::kWrite, 64);
  expect_packets(CrStatus::kSuccess);
}

TEST_F(Mapped, a_wrong_token_is_refused_by_the_owner) {
  post(WrOp::kWrite, 64).token_value ^= 1;
  expect_packets(CrStatus::kRemAccessAbort);
}

TEST_F(Mapped, a_missing_token_is_refused_by_the_owner) {
  post(WrOp::kRead, 64).flags &= static_cast<uint8_t>(~kWrToken);
  expect_packets(CrStatus::kRemAccessAbort);
}

TEST_F(Mapped, what_lies_outside_is_refused_by_the_owner) {
  post(WrOp::kWrite, 64).remote_address = b.address() + UbNode::kMemory - 63;
  expect_packets(CrStatus::kRemAccessAbort);
}

TEST_F(Mapped, what_lies_before_is_refused_by_the_owner) {
  post(WrOp::kRead, 64).remote_address = b.address() - 1;
  expect_packets(CrStatus::kRemAccessAbort);
}

TEST_F(Mapped, without_the_right_packets_ask_the_owner) {
  ASSERT_EQ(a.core->remove_mapped(mapped), Status::kOk);
  map(kAccessRead);
  post(WrOp::kRead, 64);
  EXPECT_TRUE(at_once());
  post(WrOp::kWrite, 64);
  expect_packets(CrStatus::kSuccess);
  post(WrOp::kFetchAdd, 8);
  expect_packets(CrStatus::kSuccess);
  ASSERT_EQ(a.core->remove_mapped(mapped), Status::kOk);
  map(kAccessRead | kAccessWrite);
  post(WrOp::kWrite, 64);
  EXPECT_TRUE(at_once());
  post(WrOp::kFetchAdd, 8);
  expect_packets(CrStatus::kSuccess);
}

// They would keep everybody else from the Core.
TEST_F(Mapped, a_doorbell_moves_so_many_bytes_at_most) {
  constexpr uint32_t kLong = UbNode::kMemory / 2, kFit = ta::kMostMapped / kLong;
  for (uint32_t i = 0; i < kFit + 3; ++i) post(WrOp::kWrite, kLong);
  ring();
  EXPECT_EQ(a.poll().size(), kFit);
  exchange();
  EXPECT_EQ(a.poll().size(), 3u);
  EXPECT_EQ(count(a, Counter::kMappedWrites), kFit);
}

TEST_F(Mapped, an_element_that_lies_about_its_size_is_not_believed) {
  Wqe& w = post(WrOp::kWrite, 4096);
  w.flags |= kWrInline;
  w.sge_count = 0;
  ring();
  EXPECT_EQ(mapped_requests(), 0u);
  EXPECT_EQ(count(a, Counter::kBadElement), 1u);
}

TEST_F(Mapped, unusual_requests_go_by_packets) {
  post(WrOp::kWrite, 64).flags |= kWrSolicited;
  expect_packets(CrStatus::kSuccess);
  post(WrOp::kWrite, 64).exclusive = 1;
  ring();
  exchange();
  EXPECT_EQ(a.poll().size(), 1u);
  Wqe& w = post(WrOp::kWrite, 64);
  w.sge.length = 32;  // it promises more than its range has
  ring();
  exchange();
  ASSERT_EQ(a.poll().size(), 1u);
  EXPECT_EQ(mapped_requests(), 0u);
}

TEST_F(Mapped, an_empty_write_goes_by_packets) {
  post(WrOp::kWrite, 0);
  expect_packets(CrStatus::kSuccess);
}

TEST_F(Mapped, memory_that_is_not_registered_here_is_not_read) {
  post(WrOp::kWrite, 64).sge.segment = a.segment.handle + 1;
  ring();
  exchange();
  const std::vector<Cqe> done = a.poll();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_NE(done[0].status, CrStatus::kSuccess);
  EXPECT_EQ(mapped_requests(), 0u);
}

TEST_F(Mapped, a_full_jfc_loses_nothing) {
  for (uint32_t i = 0; i < UbNode::kSlots; ++i) {  // nobody polls
    post(WrOp::kWrite, 8);
    ring();
  }
  EXPECT_EQ(count(a, Counter::kMappedWrites), UbNode::kSlots);
  post(WrOp::kWrite, 8);
  ring();
  exchange();
  EXPECT_EQ(a.poll().size(), UbNode::kSlots);
  a.core->on_completions_read(now, a.jfc);
  exchange();
  EXPECT_EQ(a.poll().size(), 1u);
}

TEST_F(Mapped, who_looks_wants_packets) {
  a.core->look(true);
  post(WrOp::kWrite, 64);
  expect_packets(CrStatus::kSuccess);
  a.core->look(false);
  post(WrOp::kWrite, 64);
  EXPECT_TRUE(at_once());
}

TEST_F(Mapped, a_queue_that_is_not_ready_does_nothing_at_once) {
  ASSERT_EQ(a.core->set_state(now, a.jetty, QueueState::kError), Status::kOk);
  a.poll();
  post(WrOp::kWrite, 64);
  ring();
  EXPECT_EQ(mapped_requests(), 0u);
  EXPECT_FALSE(arrived(64));
}

TEST_F(Mapped, send_posted_does_it_too) {
  post(WrOp::kWrite, 64);
  EXPECT_EQ(a.core->send_posted(now, a.jetty, 8, Acks::kMayWait), 0u);
  EXPECT_EQ(a.poll().size(), 1u);
  EXPECT_TRUE(arrived(64));
}

TEST_F(Mapped, many_memories_are_told_apart) {
  std::array<std::byte, 128> others{};
  for (uint32_t i = 0; i < 600; ++i) {  // more than there are buckets; of other token ids and instances
    MappedConfig c;
    c.instance = b.id;
    c.instance.uasid += i % 3;
    c.memory = others.data();
    c.gate = &gate;
    c.address = b.address() + kHalf;
    c.length = others.size();
    c.token_id = b.segment.token_id + (i % 3 == 0 ? 1 + i : i);
    c.access = kAccessRead | kAccessWrite;
    uint32_t handle;
    ASSERT_EQ(a.core->add_mapped(c, &handle), Status::kOk);
    if (i % 2 == 0) {
      ASSERT_EQ(a.core->remove_mapped(handle), Status::kOk);
    }
  }
  post(WrOp::kWrite, 64);
  EXPECT_TRUE(at_once());
  EXPECT_TRUE(arrived(64));
  EXPECT_EQ(others, (std::array<std::byte, 128>{}));
}

TEST_F(Mapped, what_another_application_has_mapped_is_not_ours) {
  ASSERT_EQ(a.core->remove_mapped(mapped), Status::kOk);
  map(kAccessRead | kAccessWrite, Owner{5});
  post(WrOp::kWrite, 64);
  expect_packets(CrStatus::kSuccess);
  EXPECT_EQ(mapped_requests(), 0u);
}

TEST_F(Mapped, bad_memory_is_refused) {
  MappedConfig c;
  uint32_t handle;
  EXPECT_EQ(a.core->add_mapped(c, &handle), Status::kInvalid);
  c.memory = b.memory.data();
  EXPECT_EQ(a.core->add_mapped(c, &handle), Status::kInvalid);
  c.length = 2;
  c.address = UINT64_MAX;
  EXPECT_EQ(a.core->add_mapped(c, &handle), Status::kInvalid);
  c.address = 1;
  while (a.core->add_mapped(c, &handle) == Status::kOk) {
  }
  EXPECT_EQ(a.core->add_mapped(c, &handle), Status::kNoMemory);
}

/// The queues are of RC, and keep an order that others see.
struct MappedInOrder : Mapped {
  MappedInOrder() : Mapped(options()) {}
  static UbOptions options() {
    UbOptions o;
    o.rot = true;
    return o;
  }
};

TEST_F(MappedInOrder, connected_queues_go_by_packets) {
  post(WrOp::kWrite, 64);
  expect_packets(CrStatus::kSuccess);
  EXPECT_EQ(mapped_requests(), 0u);
}

}  // namespace
}  // namespace ub
