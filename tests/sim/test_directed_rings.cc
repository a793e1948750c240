// SPDX-License-Identifier: Apache-2.0
//
// What an application that cannot be trusted may cost the others by what it leaves in its rings, and how often it
// rings.
#include "lib/transport/resource/owner_limits.h"
#include "tests/sim/directed_raw.h"

namespace ub::sim {
namespace {

// What nothing is sent for is passed a part at a time, and the queue comes back to the rest by itself.
TEST(Ring, long_and_full_of_nothing__is_passed_in_parts) {
  Stage s;
  Raw x(s, *s.a().node, 0, 4096), y(s, *s.b().node, 0);
  uint32_t target = x.import(y);
  ASSERT_EQ(x.outcome(x.element(WrOp::kWrite, 100, target, y.region)), kSuccess);
  for (WrOp op : {WrOp::kSkip, WrOp::kNop}) {
    Wqe nothing{};
    nothing.op = op;
    nothing.slots = 1;
    std::fill(x.source.begin(), x.source.end(), nothing);
    const uint32_t first = x.indices.consumed.load();
    x.indices.produced.store(first + 4000);
    for (int i = 0; i < 3; ++i) x.ring();  // no further in one round, however often it rings
    EXPECT_GE(x.queue().next_slot - first, 32u);
    EXPECT_LE(x.queue().next_slot - first, 36u);
    EXPECT_LE(x.queue().produced - first, 128u);
    s.a().node->drive();
    s.world.run_for(milliseconds(1));
    EXPECT_EQ(x.indices.consumed.load() - first, 4000u);
    EXPECT_EQ(x.outcome(x.element(WrOp::kWrite, 100, target, y.region)), kSuccess);
  }
  others_go_on(s);
}

// An owner's allowance is for all its queues, comes back with time, and is no matter of those who send.
TEST(Ring, full_of_nothing__costs_no_more_than_the_owners_allowance) {
  Stage s;
  OwnerLimits limits;
  Raw x(s, *s.a().node, 0, 1 << 16, 17, &limits), other(s, *s.a().node, 1, 16, 17, &limits), y(s, *s.b().node, 0);
  uint32_t target = x.import(y);
  ASSERT_EQ(x.outcome(x.element(WrOp::kWrite, 100, target, y.region)), kSuccess);
  Wqe nothing{};
  nothing.op = WrOp::kNop;
  nothing.slots = 1;
  std::fill(x.source.begin(), x.source.end(), nothing);
  const uint32_t first = x.indices.consumed.load();
  const Instant begin = s.world.now();
  x.indices.produced.store(first + 40'000);
  x.ring();
  s.a().node->drive();
  uint32_t rests = 0;
  while (x.indices.consumed.load() - first < 40'000 && s.world.now() - begin < seconds(1)) {
    s.world.run_for(microseconds(100));
    const auto passed = static_cast<int64_t>(x.indices.consumed.load() - first);
    EXPECT_LE(OwnerLimits::kPassedSlot * passed,
              s.world.now() - begin + Allowance::kMost + OwnerLimits::kPassedSlot * 32);
    if (limits.passing.has_any(s.world.now())) continue;
    ++rests;
    uint64_t nop = other.post(other.element(WrOp::kNop, 0, 0, nullptr)).user_ctx;
    EXPECT_EQ(other.indices.consumed.load(), other.indices.produced.load() - 1);
    s.world.run_for(Allowance::kMost);
    EXPECT_EQ(other.status(nop), kSuccess);
  }
  EXPECT_EQ(x.indices.consumed.load() - first, 40'000u);
  EXPECT_GE(rests, 3u);
  EXPECT_EQ(x.outcome(x.element(WrOp::kWrite, 100, target, y.region)), kSuccess);
  others_go_on(s);
}

// Who posts in answer to a completion looks there whether its place is about to be free.
TEST(Ring, completion__is_announced_before_its_request_is_retired) {
  Stage s;
  Raw x(s, *s.a().node, 0, 1024), y(s, *s.b().node, 0);
  uint32_t target = x.import(y);
  for (uint32_t i = 1; i <= 3; ++i) {
    ASSERT_EQ(x.outcome(x.element(WrOp::kWrite, 100, target, y.region)), kSuccess);
    EXPECT_EQ(x.indices.retiring.load(), i);
    EXPECT_EQ(x.indices.retired.load(), i);
  }
}

TEST(Ring, element_at_the_end_of_what_is_taken_over__stays_whole) {
  Stage s;
  Raw x(s, *s.a().node, 0, 1024), y(s, *s.b().node, 0);
  uint32_t target = x.import(y);
  Wqe skip{};
  skip.op = WrOp::kSkip;
  skip.slots = 1;
  for (uint32_t before : {63u, 62u, 61u}) {  // 64 slots are taken over in one go
    const uint32_t first = x.indices.produced.load();
    ASSERT_EQ(x.queue().next_slot, first);
    for (uint32_t i = 0; i < before; ++i) x.source[(first + i) % 1024] = skip;
    std::vector<Wqe> all;
    uint32_t at = first + before;
    for (int i = 0; i < 4; ++i) {
      all.push_back(x.element(WrOp::kFetchAdd, 8, target, y.region));
      x.source[at % 1024] = all.back();
      at += all.back().slots;
    }
    x.indices.produced.store(at);
    x.ring();
    s.a().node->drive();
    s.world.run_for(milliseconds(20));
    EXPECT_FALSE(x.broken());
    for (const Wqe& e : all) EXPECT_EQ(x.status(e.user_ctx), kSuccess) << before;
  }
  others_go_on(s);
}

TEST(Armed, solicited__is_counted_and_not_looked_for_in_the_ring) {
  Stage s;
  Raw x(s, *s.a().node, 0);
  auto nop = [&] { x.outcome(x.element(WrOp::kNop, 0, 0, nullptr)); };
  EXPECT_FALSE(x.told_when_armed(Armed::kAny));
  EXPECT_FALSE(x.told_when_armed(Armed::kSolicited));
  for (int i = 0; i < 3; ++i) nop();
  EXPECT_FALSE(x.told_when_armed(Armed::kSolicited));
  for (uint32_t i = 0; i < 64; ++i) x.completion(i).flags |= kCqeSolicited;
  x.jfc_indices.consumed.store(1000);  // cannot be
  EXPECT_FALSE(x.told_when_armed(Armed::kSolicited));
  x.jfc_indices.consumed.store(0);
  EXPECT_TRUE(x.told_when_armed(Armed::kAny));

  EXPECT_FALSE(x.told_when_armed(Armed::kSolicited));
  x.outcome(x.element(WrOp::kWrite, 8, 0, nullptr));  // no such target: an error counts as solicited
  EXPECT_EQ(x.jfc_indices.armed.load(), static_cast<uint32_t>(Armed::kNo));
  nop();
  nop();
  EXPECT_TRUE(x.told_when_armed(Armed::kSolicited));
  x.jfc_indices.consumed.store(3);
  EXPECT_TRUE(x.told_when_armed(Armed::kSolicited));
  x.jfc_indices.consumed.store(4);  // the error
  EXPECT_FALSE(x.told_when_armed(Armed::kSolicited));
  EXPECT_TRUE(x.told_when_armed(Armed::kAny));
}

TEST(Moderated, completions__are_told_when_there_are_enough_or_their_period_is_over) {
  Stage s;
  Raw x(s, *s.a().node, 0);
  const auto nop = [&] { x.outcome(x.element(WrOp::kNop, 0, 0, nullptr)); };  // and 20 ms pass
  x.moderate({uint16_t{3}, milliseconds(50)});
  EXPECT_FALSE(x.told_when_armed(Armed::kAny));
  nop();
  nop();
  EXPECT_FALSE(x.told());
  nop();
  EXPECT_TRUE(x.told()) << "three";
  x.jfc_indices.consumed.store(3);
  EXPECT_FALSE(x.told_when_armed(Armed::kAny));
  nop();
  s.world.run_for(milliseconds(29));
  EXPECT_FALSE(x.told());
  s.world.run_for(milliseconds(2));
  EXPECT_TRUE(x.told()) << "51 ms";
  x.jfc_indices.consumed.store(4);
  EXPECT_FALSE(x.told_when_armed(Armed::kAny));
  x.outcome(x.element(WrOp::kWrite, 8, 0, nullptr));  // no such target
  EXPECT_TRUE(x.told()) << "an error";
}

// Each goes again in its own time, whatever the order in which receives come; a bell meanwhile changes nothing.
TEST(Refused, sends_to_several__go_again_each_by_itself) {
  Stage s;
  Raw x(s, *s.a().node, 0);
  Raw y0(s, *s.b().node, 0), y1(s, *s.b().node, 1), y2(s, *s.b().node, 2), y3(s, *s.b().node, 3);
  Raw* to[] = {&y0, &y1, &y2, &y3};
  ASSERT_EQ(x.outcome(x.element(WrOp::kWrite, 100, x.import(y0), y0.region)), kSuccess);
  std::vector<uint64_t> sends;
  for (Raw* y : to) {
    sends.push_back(x.post(x.element(WrOp::kSend, 100, x.import(*y), nullptr)).user_ctx);
    x.post(x.element(WrOp::kNop, 0, 0, nullptr));
  }
  s.world.run_for(milliseconds(20));
  EXPECT_EQ(x.queue().retries, 4u);
  for (int i : {2, 0, 3, 1}) {
    uint64_t receive = to[i]->post_receive(100, to[i]->region).user_ctx;
    for (int n = 0; n < 20; ++n) {
      x.ring();
      s.a().node->drive();
      s.world.run_for(milliseconds(1));
    }
    EXPECT_EQ(to[i]->status(receive), kSuccess) << i;
  }
  EXPECT_EQ(x.indices.retired.load(), 9u);
  EXPECT_EQ(x.queue().retries, 0u);
  EXPECT_EQ(x.queue().receives_refused, 0u);
  for (uint64_t send : sends) EXPECT_EQ(x.status(send), kSuccess);
  others_go_on(s);
}

}  // namespace
}  // namespace ub::sim
