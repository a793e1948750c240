// SPDX-License-Identifier: Apache-2.0
//
// What atomics of a peer do at the target, and those that cannot be (UB Base Specification Rev 2.0, 7.2, 7.3).
#include "tests/unit/ta/delivery.h"

namespace ub::ta {
namespace {

using wire::TaOpcode;

TEST(DeliverAtomic, answers_with_the_old_value) {
  Delivery d;
  const uint64_t operands[2] = {2, 0};
  std::memcpy(d.bytes, operands, sizeof operands);
  const uint64_t before = 40;
  std::memcpy(d.base + 8, &before, sizeof before);
  d.give(d.on_memory(TaOpcode::kAtomicFetchAdd, 8, 8), 16);
  const std::vector<tp::TxMessage> a = d.answers();
  ASSERT_EQ(a.size(), 1u);
  EXPECT_EQ(a[0].opcode, TaOpcode::kAtomicResponse);
  EXPECT_EQ(a[0].value, 40u);
  EXPECT_EQ(a[0].value_bytes, 8);
  uint64_t after;
  std::memcpy(&after, d.base + 8, sizeof after);
  EXPECT_EQ(after, 42u);
}

TEST(DeliverAtomic, changes_as_many_bytes_as_it_is_wide) {
  for (const uint32_t width : {1u, 2u, 4u, 8u}) {
    Delivery d;
    std::memset(d.base, 0xff, 16);
    std::memset(d.bytes, 0, 16);
    d.bytes[0] = std::byte{2};  // little-endian
    d.give(d.on_memory(TaOpcode::kAtomicFetchAdd, width, 8), 2 * width);
    const std::vector<tp::TxMessage> a = d.answers();
    ASSERT_EQ(a.size(), 1u);
    EXPECT_EQ(a[0].value, ~uint64_t{0} >> (64 - 8 * width));
    EXPECT_EQ(a[0].value_bytes, width);
    uint64_t before, after, expected = ~uint64_t{0};
    std::memcpy(&before, d.base, sizeof before);
    std::memcpy(&after, d.base + 8, sizeof after);
    const uint64_t one = 1;
    std::memcpy(&expected, &one, width);  // the sum wraps within its width
    EXPECT_EQ(before, ~uint64_t{0});
    EXPECT_EQ(after, expected);
  }
}

TEST(DeliverAtomic, of_a_form_that_cannot_be_changes_nothing) {
  const auto verdict = [](uint32_t width, uint32_t payload, uint64_t offset, bool last = true) {
    Delivery d;
    std::memset(d.bytes, 1, 64);
    std::byte before[64];
    std::memcpy(before, d.base, sizeof before);
    d.give(d.on_memory(TaOpcode::kAtomicFetchAdd, width, offset), payload, last);
    if (!last) d.give(d.on_memory(TaOpcode::kAtomicFetchAdd, width, offset), payload);
    const auto result = d.verdict();
    EXPECT_EQ(std::memcmp(before, d.base, sizeof before) == 0, result != kFine);
    return result;
  };
  EXPECT_EQ(verdict(8, 16, 8), kFine);
  EXPECT_EQ(verdict(4, 8, 4), kFine);
  EXPECT_EQ(verdict(2, 4, 2), kFine);
  EXPECT_EQ(verdict(1, 2, 3), kFine);
  EXPECT_EQ(verdict(0, 0, 0), kNotSupported) << "no width";
  EXPECT_EQ(verdict(3, 6, 0), kNotSupported);
  EXPECT_EQ(verdict(32, 64, 0), kNotSupported) << "no CPU does it in one piece";
  EXPECT_EQ(verdict(8, 12, 0), kNotSupported) << "too few operands";
  EXPECT_EQ(verdict(8, 20, 0), kNotSupported);
  EXPECT_EQ(verdict(8, 16, 4), kNotSupported) << "not aligned";
  EXPECT_EQ(verdict(8, kMtu, 0, false), kNotSupported) << "more than a packet";
}

// Its address is what the peer sees of it; where its memory lies is another matter.
TEST(DeliverAtomic, is_aligned_by_its_address_and_not_by_its_memory_alone) {
  Delivery d;
  SegmentConfig c;
  c.memory = d.base;
  c.local_address = reinterpret_cast<uint64_t>(d.base);
  c.address = 0x1004;
  c.length = 64;
  c.token = {true, kToken};
  c.access = kAccessAtomic;
  c.owner = 5;
  RegisteredSegment odd;
  ASSERT_EQ(register_segment(*d.s, c, &odd), Status::kOk);
  wire::TaPacket p = d.on_memory(TaOpcode::kAtomicFetchAdd, 8);
  p.ma.address = c.address;
  p.ma.token_id = odd.token_id;
  d.give(p, 16);
  EXPECT_EQ(d.verdict(), kNotSupported);
  p.req.opcode = TaOpcode::kAtomicSwap;
  p.ma.length = 4;
  p.req.tassn = Tassn(d.tassn);
  d.give(p, 8);
  EXPECT_EQ(d.verdict(), kFine) << "four bytes are aligned there";
}

// 7.2: operations that this NIC does not have.
TEST(DeliverAtomic, an_operation_that_is_none_changes_nothing) {
  for (TaOpcode op : {TaOpcode::kWriteback, TaOpcode::kPrefetch}) {
    Delivery d;
    d.give(d.on_memory(op, 8), op == TaOpcode::kPrefetch ? 0 : 16);
    EXPECT_EQ(d.verdict(), kNotSupported);
  }
}

TEST(DeliverAtomic, needs_its_own_permission) {
  Delivery d;
  wire::TaPacket p = d.on_memory(TaOpcode::kAtomicSwap, 8);
  p.token_value = 1;
  d.give(p, 16);
  EXPECT_EQ(d.verdict(), kAborted);
}

}  // namespace
}  // namespace ub::ta
