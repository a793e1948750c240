// SPDX-License-Identifier: Apache-2.0
//
// Atomic stores and loads at their target: which function of UDETAH they carry out, and how they are answered (UB Base
// Specification Rev 2.0, 7.4).
#include "lib/transport/ta/atomic_function.h"

#include "tests/unit/ta/delivery.h"

namespace ub::ta {
namespace {

using wire::AtomicAlu;
using wire::TaOpcode;

constexpr TaOpcode kForms[] = {TaOpcode::kAtomicStore, TaOpcode::kAtomicLoad};
constexpr uint64_t kValue = 0x8000'0000'0000'0f35, kOperand = 0x0000'0000'0000'00f1;

wire::TaPacket with_function(const Delivery& d, TaOpcode op, uint32_t function, uint32_t width = 8) {
  wire::TaPacket p = d.on_memory(op, width, 8);
  p.has_ud = true;
  p.ud = function << wire::kUdAluShift;
  return p;
}
wire::TaPacket with_function(const Delivery& d, TaOpcode op, AtomicAlu function, uint32_t width = 8) {
  return with_function(d, op, static_cast<uint32_t>(function), width);
}
void put(std::byte* at, uint64_t value) { std::memcpy(at, &value, sizeof value); }
uint64_t word(const std::byte* at) {
  uint64_t value;
  std::memcpy(&value, at, sizeof value);
  return value;
}
// kValue is in memory, kOperand in the payload.
void prepare(Delivery& d, uint32_t width = 8) {
  put(d.base + 8, kValue);
  put(d.bytes, kOperand);
  std::memset(d.bytes + width, 0xFF, width);  // the second operand has no meaning
}

TEST(AtomicFunction, is_carried_out_on_the_word_in_memory) {
  const std::pair<AtomicAlu, uint64_t> results[] = {
      {AtomicAlu::kAdd, kValue + kOperand}, {AtomicAlu::kClr, kValue & ~kOperand}, {AtomicAlu::kEor, kValue ^ kOperand},
      {AtomicAlu::kSet, kValue | kOperand}, {AtomicAlu::kSmax, kOperand},          {AtomicAlu::kSmin, kValue},
      {AtomicAlu::kUmax, kValue},           {AtomicAlu::kUmin, kOperand},
  };
  for (const TaOpcode form : kForms) {
    for (const auto& [function, result] : results) {
      Delivery d;
      prepare(d);
      d.give(with_function(d, form, function), 16);
      EXPECT_EQ(d.verdict(), kFine);
      EXPECT_EQ(word(d.base + 8), result) << static_cast<int>(function);
      EXPECT_EQ(word(d.base), 0u);
      EXPECT_EQ(word(d.base + 16), 0u);
    }
  }
}

TEST(AtomicFunction, of_a_load_is_answered_with_the_old_value_and_that_of_a_store_without) {
  for (const uint32_t width : {1u, 2u, 4u, 8u}) {
    for (const TaOpcode form : kForms) {
      Delivery d;
      prepare(d, width);
      d.give(with_function(d, form, AtomicAlu::kAdd, width), 2 * width);
      const uint64_t mask = ~uint64_t{0} >> (64 - 8 * width);
      EXPECT_EQ(word(d.base + 8), (kValue & ~mask) | ((kValue + kOperand) & mask));
      const std::vector<tp::TxMessage> a = d.answers();
      ASSERT_EQ(a.size(), 1u);
      EXPECT_EQ(a[0].opcode, TaOpcode::kAtomicResponse);
      EXPECT_EQ(a[0].rspst, wire::kRspOk);
      EXPECT_EQ(a[0].source, kPeerRcid);
      EXPECT_EQ(a[0].tassn, Tassn(0));
      EXPECT_EQ(a[0].value_bytes, form == TaOpcode::kAtomicLoad ? width : 0);
      if (form == TaOpcode::kAtomicStore) continue;
      EXPECT_EQ(a[0].value, kValue & mask);
    }
  }
}

TEST(AtomicFunction, of_16_bytes_works_where_the_cpu_can) {
  if (!has_wide_atomics()) GTEST_SKIP() << "the CPU has no atomics of 16 bytes";
  Delivery d;
  const uint128 value = make_uint128(7, uint64_t{1} << 63), operand = make_uint128(8, 1);
  std::memcpy(d.base + 16, &value, 16);
  std::memcpy(d.bytes, &operand, 16);
  wire::TaPacket p = with_function(d, TaOpcode::kAtomicLoad, AtomicAlu::kSmax, 16);
  p.ma.address += 8;
  d.give(p, 32);
  const std::vector<tp::TxMessage> a = d.answers();
  ASSERT_EQ(a.size(), 1u);
  EXPECT_EQ(a[0].value_bytes, 16);
  EXPECT_EQ(a[0].value, 7u);
  EXPECT_EQ(a[0].value_high, uint64_t{1} << 63);
  EXPECT_EQ(std::memcmp(d.base + 16, &operand, 16), 0);
}

// Only TAACKs stand for several requests.
TEST(AtomicFunction, of_several_stores_are_answered_one_by_one) {
  Delivery d;
  prepare(d);
  for (int i = 0; i < 3; ++i) d.give(with_function(d, TaOpcode::kAtomicStore, AtomicAlu::kAdd), 16);
  const std::vector<tp::TxMessage> a = d.answers();
  ASSERT_EQ(a.size(), 3u);
  for (uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(a[i].tassn, Tassn(i));
    EXPECT_EQ(a[i].rspinfo, 0);
  }
  EXPECT_EQ(word(d.base + 8), kValue + 3 * kOperand);
}

TEST(AtomicFunction, is_in_four_bits_of_udetah_and_the_others_have_no_meaning) {
  Delivery d;
  prepare(d);
  wire::TaPacket p = with_function(d, TaOpcode::kAtomicStore, AtomicAlu::kEor);
  p.ud |= 0xFF0F'FFFF;
  d.give(p, 16);
  EXPECT_EQ(d.verdict(), kFine);
  EXPECT_EQ(word(d.base + 8), kValue ^ kOperand);
}

TEST(AtomicFunction, that_is_missing_or_unknown_changes_nothing) {
  for (const TaOpcode form : kForms) {
    for (uint32_t function = 8; function < 16; ++function) {
      Delivery d;
      prepare(d);
      d.give(with_function(d, form, function), 16);
      EXPECT_EQ(d.verdict(), kNotSupported) << function;
      EXPECT_EQ(word(d.base + 8), kValue);
    }
    Delivery d;
    prepare(d);
    wire::TaPacket p = with_function(d, form, AtomicAlu::kAdd);
    p.has_ud = false;
    d.give(p, 16);
    EXPECT_EQ(d.verdict(), kNotSupported);
    EXPECT_EQ(word(d.base + 8), kValue);
  }
}

TEST(AtomicFunction, needs_what_every_atomic_needs) {
  for (const TaOpcode form : kForms) {
    const auto verdict = [&](uint32_t payload, void (*change)(wire::TaPacket&)) {
      Delivery d;
      prepare(d);
      wire::TaPacket p = with_function(d, form, AtomicAlu::kAdd);
      change(p);
      d.give(p, payload);
      const std::vector<tp::TxMessage> a = d.answers();
      EXPECT_EQ(a.at(0).opcode, TaOpcode::kAtomicResponse);
      EXPECT_EQ(a.at(0).rspst == wire::kRspOk, word(d.base + 8) != kValue);
      return std::pair<int, int>(a.at(0).rspst, a.at(0).rspinfo);
    };
    EXPECT_EQ(verdict(16, [](wire::TaPacket&) {}), kFine);
    EXPECT_EQ(verdict(8, [](wire::TaPacket&) {}), kNotSupported) << "one operand";
    EXPECT_EQ(verdict(16, [](wire::TaPacket& p) { p.ma.length = 3; }), kNotSupported);
    EXPECT_EQ(verdict(16, [](wire::TaPacket& p) { p.ma.address += 4; }), kNotSupported) << "not aligned";
    EXPECT_EQ(verdict(16, [](wire::TaPacket& p) { ++p.token_value; }), kAborted);
    EXPECT_EQ(verdict(16, [](wire::TaPacket& p) { p.ma.address += 256 * 1024; }), kAborted);
    EXPECT_EQ(verdict(16, [](wire::TaPacket& p) { p.req.poison = true; }), kAborted);
    Delivery d;
    d.s->segments[d.target_memory.handle & 0xFFFFF].access = kAccessRead | kAccessWrite;
    d.give(with_function(d, form, AtomicAlu::kAdd), 16);
    EXPECT_EQ(d.verdict(), kAborted) << "no permission";
  }
}

TEST(AtomicFunction, in_memory_that_answers_later_is_answered_when_it_was_done) {
  for (const TaOpcode form : kForms) {
    Slow d;
    prepare(d);
    d.give(with_function(d, form, AtomicAlu::kAdd), 16);
    EXPECT_EQ(d.host.pending_copies(), 1u);
    EXPECT_TRUE(d.answers().empty());
    d.finish_copies();
    const std::vector<tp::TxMessage> a = d.answers();
    ASSERT_EQ(a.size(), 1u);
    EXPECT_EQ(a[0].value_bytes, form == TaOpcode::kAtomicLoad ? 8 : 0);
    EXPECT_EQ(word(d.base + 8), kValue + kOperand);
  }
}

// What the initiator asks for is what the target carries out.
TEST(AtomicFunction, of_the_other_atomics_is_in_their_opcode) {
  const std::pair<WrOp, AtomicOp> all[] = {
      {WrOp::kCompareSwap, AtomicOp::kCompareSwap}, {WrOp::kSwap, AtomicOp::kSwap},
      {WrOp::kFetchAdd, AtomicOp::kFetchAdd},       {WrOp::kFetchSub, AtomicOp::kFetchSub},
      {WrOp::kFetchAnd, AtomicOp::kFetchAnd},       {WrOp::kFetchOr, AtomicOp::kFetchOr},
      {WrOp::kFetchXor, AtomicOp::kFetchXor},
  };
  wire::TaPacket p{};
  for (const auto& [asked, done] : all) {
    p.req.opcode = wire_opcode(asked);
    EXPECT_EQ(atomic_op(p), done);
  }
  p.req.opcode = TaOpcode::kWrite;
  EXPECT_EQ(atomic_op(p), kNoAtomicOp);
}

}  // namespace
}  // namespace ub::ta
