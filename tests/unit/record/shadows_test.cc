// SPDX-License-Identifier: Apache-2.0
#include "lib/record/shadows.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

namespace ub::record {
namespace {

// What an application has.
struct Real {
  explicit Real(RingKind kind, uint32_t slots = 8) : elements(slots * kSlotBytes), work(4 * 64) {
    ring.kind = kind;
    ring.slot_count = slots;
    ring.real_slots = elements.data();
    ring.real_indices = &indices;
    if (kind != RingKind::kSend) return;
    ring.real_work = work.data();
    ring.work_bytes = work.size();
  }
  std::vector<std::byte> elements, work;
  QueueIndices indices{};
  Ring ring;
};

class ShadowsTest : public testing::Test {
 protected:
  ShadowsTest() { EXPECT_TRUE(shadows.begin()); }
  Shadows shadows;
};

void complete(Ring& ring, uint8_t what) {
  const uint32_t at = ring.indices->produced.load();
  ring.slots[size_t{at & (ring.slot_count - 1)} * kSlotBytes] = std::byte{what};
  ring.indices->produced.store(at + 1);
}

TEST_F(ShadowsTest, CompletionsAreSeenWhenTheyAreTold) {
  Real jfc(RingKind::kCompletion);
  Ring& ring = shadows[shadows.lend(jfc.ring)];
  for (uint8_t i = 1; i <= 3; ++i) complete(ring, i);
  EXPECT_EQ(jfc.indices.produced.load(), 0u);
  EXPECT_FALSE(shadows.tell().is_empty());
  EXPECT_EQ(jfc.indices.produced.load(), 3u);
  for (uint8_t i = 0; i < 3; ++i) EXPECT_EQ(jfc.elements[i * kSlotBytes], std::byte(i + 1));
  EXPECT_TRUE(shadows.tell().is_empty()) << "nothing is told twice";
}

TEST_F(ShadowsTest, ADigestTellsOneCompletionFromAnother) {
  Real a(RingKind::kCompletion), b(RingKind::kCompletion);
  Shadows others;
  ASSERT_TRUE(others.begin());
  Ring& here = shadows[shadows.lend(a.ring)];
  Ring& there = others[others.lend(b.ring)];
  complete(here, 1);
  complete(there, 1);
  EXPECT_EQ(shadows.tell().sum(), others.tell().sum());
  complete(here, 1);
  complete(there, 2);
  EXPECT_NE(shadows.tell().sum(), others.tell().sum());
}

TEST_F(ShadowsTest, AnArmThatCameMeanwhileStays) {
  Real jfc(RingKind::kCompletion);
  Ring& ring = shadows[shadows.lend(jfc.ring)];
  const auto any = static_cast<uint32_t>(Armed::kAny), solicited = static_cast<uint32_t>(Armed::kSolicited);
  jfc.indices.armed = solicited;
  ring.armed = solicited;
  ring.indices->armed = solicited;
  ring.indices->armed = 0;  // the Core tells
  jfc.indices.armed = any;  // and the application arms again
  shadows.tell();
  EXPECT_EQ(jfc.indices.armed.load(), any);
  ring.armed = any;
  ring.indices->armed = any;
  ring.indices->armed = 0;
  shadows.tell();
  EXPECT_EQ(jfc.indices.armed.load(), 0u);
}

TEST_F(ShadowsTest, ElementsThatCompletedEarlyAreMarked) {
  Real queue(RingKind::kSend);
  std::vector<std::byte> source(8 * kSlotBytes);
  queue.ring.real_source = source.data();
  queue.ring.completes_early = true;
  Ring& ring = shadows[shadows.lend(queue.ring)];
  ring.produced = 4;
  ring.indices->produced = 4;
  reinterpret_cast<Wqe*>(ring.source)[2].flags = kWrReported;
  shadows.tell();
  const auto* real = reinterpret_cast<const Wqe*>(source.data());
  EXPECT_EQ(real[2].flags, kWrReported);
  EXPECT_EQ(real[1].flags, 0);
  // What has retired belongs to the application again: no mark may fall on what it writes there next.
  reinterpret_cast<Wqe*>(ring.source)[3].flags = kWrReported;
  ring.indices->consumed = 4;
  ring.indices->retired = 4;
  shadows.tell();
  EXPECT_EQ(real[3].flags, 0);
}

// Whoever takes over the rings of a daemon that was killed goes by the indices.
TEST_F(ShadowsTest, ACompletionRetiresItsRequestAndThoseBeforeIt) {
  Real queue(RingKind::kSend), jfc(RingKind::kCompletion);
  const uint32_t number = shadows.lend(queue.ring), of_jfc = shadows.lend(jfc.ring);
  shadows.name(number, 77);
  Ring &ring = shadows[number], &completions = shadows[of_jfc];
  auto* elements = reinterpret_cast<Wqe*>(ring.slots);
  for (int i = 0; i < 6; ++i) elements[i].slots = 1;
  elements[1].slots = 2;  // requests begin at 0, 1, 3 and, behind what fills the end, at 8
  elements[4].op = WrOp::kSkip;
  ring.produced = 9;
  for (const uint32_t stamp : {1u, 3u}) {
    Cqe cqe{};
    cqe.local_id = 77;
    cqe.stamp = stamp;
    std::memcpy(completions.slots + completions.indices->produced.load() * kSlotBytes, &cqe, sizeof cqe);
    completions.indices->produced.fetch_add(1);
  }
  // The Core has retired a fourth one, without a completion.
  ring.indices->consumed = 9;
  ring.indices->retired = 4;
  ring.indices->retiring = 3;
  shadows.tell();
  EXPECT_EQ(queue.indices.retired.load(), 4u);
  EXPECT_EQ(queue.indices.consumed.load(), 9u);
  EXPECT_EQ(queue.indices.retiring.load(), 3u);
  EXPECT_EQ(jfc.indices.produced.load(), 2u);
  EXPECT_EQ(ring.told_consumed, 9u);
}

TEST_F(ShadowsTest, ARingIsFoundByItsObject) {
  Real queue(RingKind::kSend), jfc(RingKind::kCompletion);
  const uint32_t a = shadows.lend(queue.ring), b = shadows.lend(jfc.ring);
  shadows.name(a, 5);
  shadows.name(b, 5);
  EXPECT_EQ(shadows.find(RingKind::kSend, 5), a);
  EXPECT_EQ(shadows.find(RingKind::kCompletion, 5), b);
  shadows.give_back(a);
  EXPECT_EQ(shadows.find(RingKind::kSend, 5), 0u);
  EXPECT_EQ(shadows.find(RingKind::kCompletion, 5), b);
  EXPECT_EQ(shadows.find(RingKind::kSend, 1000000), 0u);
}

TEST_F(ShadowsTest, AReceiveThatCameWhileItsQueueWentToErrorIsLookedAt) {
  Real jfr(RingKind::kReceive);
  Ring& ring = shadows[shadows.lend(jfr.ring)];
  ring.indices->armed = static_cast<uint32_t>(Armed::kAny);
  shadows.tell();
  EXPECT_FALSE(shadows.take_look_again());
  ring.indices->armed = 0;
  shadows.tell();
  ring.indices->armed = static_cast<uint32_t>(Armed::kAny);
  jfr.indices.produced = 1;
  shadows.tell();
  EXPECT_TRUE(shadows.take_look_again());
  EXPECT_FALSE(shadows.take_look_again());
}

TEST_F(ShadowsTest, AnImpossibleIndexEndsNoLoop) {
  Real queue(RingKind::kSend);
  std::vector<std::byte> source(8 * kSlotBytes);
  queue.ring.real_source = source.data();
  queue.ring.completes_early = true;
  Ring& ring = shadows[shadows.lend(queue.ring)];
  ring.produced = 0x80000000;
  shadows.tell();
  shadows.return_contents(ring);
}

TEST_F(ShadowsTest, MemoryComesBackZeroed) {
  Real queue(RingKind::kSend);
  const uint32_t first = shadows.lend(queue.ring);
  std::byte* at = shadows[first].slots;
  std::fill_n(at, 8 * kSlotBytes, std::byte{1});
  std::fill_n(shadows[first].work, queue.work.size(), std::byte{1});
  shadows.give_back(first);
  const uint32_t second = shadows.lend(queue.ring);
  EXPECT_EQ(second, first);
  const Ring& ring = shadows[second];
  for (size_t i = 0; i < 8 * kSlotBytes; ++i) ASSERT_EQ(ring.slots[i], std::byte{0});
  for (size_t i = 0; i < queue.work.size(); ++i) ASSERT_EQ(ring.work[i], std::byte{0});
}

TEST_F(ShadowsTest, OfElementsThatRetiredNothingStays) {
  constexpr uint32_t kMany = 1 << 16;
  Real queue(RingKind::kSend, kMany);
  std::vector<std::byte> source(kMany * kSlotBytes);
  queue.ring.real_source = source.data();
  Ring& ring = shadows[shadows.lend(queue.ring)];
  std::fill_n(ring.slots, 6 * kSlotBytes, std::byte{1});
  std::fill_n(ring.source, 6 * kSlotBytes, std::byte{1});
  ring.produced = 5;
  ring.indices->produced = 5;
  ring.indices->consumed = 3;
  shadows.forget_retired();
  for (const std::byte* at : {ring.slots, ring.source}) {
    for (uint32_t slot = 0; slot < 6; ++slot)
      EXPECT_EQ(at[slot * kSlotBytes + 5], std::byte(slot == 3 || slot == 4)) << slot;
  }
  size_t touched = 0;
  ipc::each_touched_run(
      shadows.used(), [](void* sum, size_t, size_t bytes) { *static_cast<size_t*>(sum) += bytes; }, &touched);
  EXPECT_LT(touched, size_t{64} << 10) << "what was never used has no memory";
}

TEST_F(ShadowsTest, QueuesOfAnOwnerShareItsLimits) {
  OwnerLimits limits;
  limits.pacer.bytes_per_second = 5;
  Real a(RingKind::kSend), b(RingKind::kSend);
  a.ring.real_limits = b.ring.real_limits = &limits;
  const uint32_t first = shadows.lend(a.ring), second = shadows.lend(b.ring);
  ASSERT_NE(shadows[first].limits, &limits);
  EXPECT_EQ(shadows[first].limits, shadows[second].limits);
  EXPECT_EQ(shadows[first].limits->pacer.bytes_per_second, 5u);
  shadows[first].limits->pacer.next = Instant{77};
  shadows.give_back(first);
  EXPECT_EQ(limits.pacer.next.ns, 0u) << "the other one still has them";
  shadows.give_back(second);
  EXPECT_EQ(limits.pacer.next.ns, 77u);
}

TEST_F(ShadowsTest, ARecordedRingElsewhereIsRefused) {
  Ring ring;
  ring.kind = RingKind::kSend;
  ring.slot_count = 8;
  std::vector<std::byte> mine(8 * kSlotBytes + sizeof(QueueIndices));
  ring.slots = mine.data();
  ring.indices = reinterpret_cast<QueueIndices*>(mine.data() + 8 * kSlotBytes);
  EXPECT_FALSE(shadows.put_zeroed(1, ring));
  ring.slots = shadows.memory().data();
  ring.indices = reinterpret_cast<QueueIndices*>(shadows.memory().data() + Shadows::kBytes - 64);
  EXPECT_FALSE(shadows.put_zeroed(1, ring)) << "it reaches beyond the end";
  ring.indices = reinterpret_cast<QueueIndices*>(shadows.memory().data() + 8 * kSlotBytes);
  EXPECT_TRUE(shadows.put_zeroed(1, ring));
  ring.slot_count = 7;
  EXPECT_FALSE(shadows.put_zeroed(1, ring));
}

}  // namespace
}  // namespace ub::record
