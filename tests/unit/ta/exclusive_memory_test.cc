// SPDX-License-Identifier: Apache-2.0
//
// Exclusive memory: requests without E_bit fail on it as those without permission do (UB Base Specification Rev 2.0,
// 9.4).
#include <algorithm>

#include "tests/unit/ta/delivery.h"

namespace ub::ta {
namespace {

using wire::TaOpcode;

// The memory of a Delivery, which is exclusive or not, and beside it memory that is the other.
struct TwoSegments : Delivery {
  explicit TwoSegments(bool exclusive) : beside(64) {
    SegmentConfig c;
    c.memory = beside.data();
    c.address = c.local_address = reinterpret_cast<uint64_t>(beside.data());
    c.length = beside.size();
    c.token = {true, kToken};
    c.access = kAccessRead | kAccessWrite | kAccessAtomic;
    c.exclusive = !exclusive;
    c.owner = 5;
    EXPECT_EQ(register_segment(*s, c, &other), Status::kOk);
    EXPECT_EQ(set_segment_exclusive(*s, target_memory.handle, exclusive), Status::kOk);
  }
  bool touched() const {
    return std::any_of(base, base + 64, [](std::byte b) { return b != std::byte{0}; }) ||
           std::any_of(beside.begin(), beside.end(), [](std::byte b) { return b != std::byte{0}; });
  }

  std::vector<std::byte> beside;
  RegisteredSegment other;
};

// A whole request of this kind, 64 bytes at most.
struct Form {
  TaOpcode op;
  uint32_t length, payload;
};
constexpr Form kForms[] = {
    {TaOpcode::kWrite, 64, 64},      {TaOpcode::kWriteImmediate, 64, 64},   {TaOpcode::kWriteByteEnable, 64, 64},
    {TaOpcode::kRead, 64, 0},        {TaOpcode::kAtomicCompareSwap, 8, 16}, {TaOpcode::kAtomicFetchAdd, 8, 16},
    {TaOpcode::kAtomicStore, 8, 16}, {TaOpcode::kAtomicLoad, 8, 16},
};

std::pair<int, int> verdict_of(Delivery& d, const Form& form, bool e_bit) {
  static constexpr std::byte kAll[8] = {std::byte{0xff}, std::byte{0xff}, std::byte{0xff}, std::byte{0xff},
                                        std::byte{0xff}, std::byte{0xff}, std::byte{0xff}, std::byte{0xff}};
  wire::TaPacket p = d.on_memory(form.op, form.length);
  p.req.e_bit = e_bit;
  p.has_mt = p.has_imm = form.op == TaOpcode::kWriteImmediate;
  p.mt = {0, wire::kTcTypeQueue, d.id};
  p.imm = {0x77, 0, 64};
  p.has_ud = true;
  p.ud = 0;
  p.has_be = form.op == TaOpcode::kWriteByteEnable;
  p.be = {kAll, 64};
  d.post_receive(0);
  std::memset(d.bytes + 8, 0, 8);  // what a compare-and-swap compares with
  d.give(p, form.payload);
  return d.verdict();
}

TEST(ExclusiveMemory, is_reached_by_requests_with_e_bit_alone) {
  for (const Form& form : kForms) {
    for (const bool e_bit : {false, true}) {
      TwoSegments d(true);
      EXPECT_EQ(verdict_of(d, form, e_bit), e_bit ? kFine : kAborted) << static_cast<int>(form.op) << e_bit;
      EXPECT_EQ(d.touched(), e_bit && form.op != TaOpcode::kRead);
      const bool takes_receive = e_bit && form.op == TaOpcode::kWriteImmediate;
      EXPECT_EQ(d.receive_completions().size(), takes_receive ? 1u : 0u);
    }
  }
}

TEST(ExclusiveMemory, is_none_unless_it_was_registered_as_such) {
  for (const Form& form : kForms) {
    for (const bool e_bit : {false, true}) {
      TwoSegments d(false);
      EXPECT_EQ(verdict_of(d, form, e_bit), kFine) << static_cast<int>(form.op) << e_bit;
    }
  }
}

TEST(ExclusiveMemory, for_a_notification_needs_e_bit_whatever_the_bytes_need) {
  for (const bool data_exclusive : {false, true}) {
    for (const bool e_bit : {false, true}) {
      TwoSegments d(data_exclusive);
      wire::TaPacket p = d.on_memory(TaOpcode::kWriteNotify, 8);
      p.req.e_bit = e_bit;
      p.has_ntf = true;
      p.ntf = {reinterpret_cast<uint64_t>(d.beside.data()), d.other.token_id, kToken, 5};
      d.give(p, 8);
      EXPECT_EQ(d.verdict(), e_bit ? kFine : kAborted) << data_exclusive;
      EXPECT_EQ(d.beside[0] != std::byte{0}, e_bit) << data_exclusive;
    }
  }
}

TEST(ExclusiveMemory, is_not_written_ahead_of_a_gap_without_e_bit) {
  for (const bool e_bit : {false, true}) {
    TwoSegments d(true);
    wire::TaPacket p = d.on_memory(TaOpcode::kWrite, 2 * kMtu);
    p.req.e_bit = e_bit;
    d.give(1, p, kMtu, false, 0);
    EXPECT_EQ(d.touched(), e_bit);
    EXPECT_EQ(d.s->kept.in_use(), e_bit ? 0u : 1u);
  }
}

// Of a WRITE each packet is checked by itself.
TEST(ExclusiveMemory, is_written_by_no_packet_that_lacks_e_bit) {
  TwoSegments d(true);
  wire::TaPacket p = d.on_memory(TaOpcode::kWrite, kMtu + 8);
  p.req.e_bit = true;
  d.give(p, kMtu, false);
  p = d.on_memory(TaOpcode::kWrite, kMtu + 8, kMtu);
  d.give(p, 8, true, kMtu);
  EXPECT_EQ(d.verdict(), kAborted);
  EXPECT_TRUE(d.holds(kMtu));
  EXPECT_FALSE(d.holds(8, kMtu, kMtu));
}

}  // namespace
}  // namespace ub::ta
