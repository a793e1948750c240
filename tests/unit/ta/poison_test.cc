// SPDX-License-Identifier: Apache-2.0
//
// Requests whose payload is known to be bad (UB Base Specification Rev 2.0, 7.2.1), at their target.
#include <algorithm>

#include "tests/unit/ta/delivery.h"

namespace ub::ta {
namespace {

using wire::TaOpcode;

wire::TaPacket poisoned(wire::TaPacket p) {
  p.req.poison = true;
  return p;
}

bool untouched(const std::byte* from, size_t bytes) {
  return std::all_of(from, from + bytes, [](std::byte b) { return b == std::byte{0}; });
}

TEST(Poison, of_a_request_fails_it_and_touches_nothing) {
  for (const TaOpcode op : {TaOpcode::kWrite, TaOpcode::kAtomicFetchAdd}) {
    Delivery d;
    d.give(poisoned(d.on_memory(op, 8)), op == TaOpcode::kWrite ? 8 : 16);
    EXPECT_EQ(d.verdict(), kAborted);
    EXPECT_TRUE(untouched(d.base, 16));
    EXPECT_EQ(d.count(Counter::kTaRxPoison), 1u);
  }
  Delivery d;
  d.post_receive(64);
  d.give(poisoned(d.send()), 8);
  EXPECT_EQ(d.verdict(), kAborted);
  EXPECT_TRUE(untouched(d.memory.data(), 64));
  EXPECT_TRUE(d.completions().empty()) << "no receive was taken";
  d.give(d.send(), 8);
  EXPECT_EQ(d.verdict(), kFine);
}

TEST(Poison, of_one_packet_fails_all_that_come_behind_it) {
  Delivery d;
  d.give(d.on_memory(TaOpcode::kWrite, 3 * kMtu), kMtu, false);
  d.give(poisoned(d.on_memory(TaOpcode::kWrite, 3 * kMtu, kMtu)), kMtu, false, kMtu);
  d.give(d.on_memory(TaOpcode::kWrite, 3 * kMtu, 2 * kMtu), kMtu, true, 2 * kMtu);
  EXPECT_EQ(d.verdict(), kAborted);
  EXPECT_TRUE(d.holds(kMtu));
  EXPECT_TRUE(untouched(d.base + kMtu, 2 * kMtu));
}

TEST(Poison, of_a_message_that_has_its_receive_is_told_there) {
  Delivery d;
  d.post_receive(2 * kMtu);
  d.give(d.send(0), kMtu, false);
  d.give(poisoned(d.send(1)), 5);
  EXPECT_EQ(d.verdict(), kAborted);
  const std::vector<Cqe> done = d.completions();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].status, CrStatus::kLocDataPoison);
  EXPECT_EQ(done[0].length, 0u);
}

TEST(Poison, is_not_placed_ahead_of_a_gap) {
  Delivery d;
  d.give(1, poisoned(d.on_memory(TaOpcode::kWrite, 3 * kMtu, kMtu)), kMtu, false, 0, kMtu);
  EXPECT_TRUE(untouched(d.base + kMtu, kMtu));
  EXPECT_EQ(d.s->kept.in_use(), 1u) << "it is judged in its turn";
}

}  // namespace
}  // namespace ub::ta
