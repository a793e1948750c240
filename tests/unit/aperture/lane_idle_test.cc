// SPDX-License-Identifier: Apache-2.0
//
// Lanes from which nothing comes, programs that ring for nothing, and programs that want all lanes.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/aperture/lane_pair.h"
#include "tests/unit/threads.h"

namespace ub::aperture {
namespace {

using ipc::LaneLayout;

class IdleLanes : public testing::Test {
 protected:
  void open(size_t count, bool drives = true) {
    const RemoteSegment segment = nic.add(0, 4096);
    for (size_t i = 0; i < count; ++i) programs.push_back(std::make_unique<Program>(nic, segment, seconds(4), drives));
    nic.drive();
    ASSERT_EQ(nic.port.lane_count(), count);
  }
  void expect_load(size_t program) {
    uint64_t word = 0;
    ASSERT_EQ(programs[program]->load(8, &word, 8), URMA_CR_SUCCESS);
    EXPECT_EQ(std::memcmp(&word, nic.memory.data() + 8, 8), 0);
  }
  void drive(uint32_t rounds) {
    for (uint32_t i = 0; i < rounds; ++i) nic.drive();
  }
  // So long that lanes are left alone which were used just before.
  void be_idle() { drive(2 * LanePort::kIdleRounds); }

  ServingNic nic;
  std::vector<std::unique_ptr<Program>> programs;
};

TEST_F(IdleLanes, a_few_are_always_looked_at) {
  open(LanePort::kFewLanes);
  be_idle();
  EXPECT_EQ(nic.port.watched_count(), LanePort::kFewLanes);
}

TEST_F(IdleLanes, of_more_those_without_requests_are_left_alone) {
  open(20);
  drive(LanePort::kIdleRounds - 2);
  EXPECT_EQ(nic.port.watched_count(), 20u);
  for (uint32_t i = 0; i < 4 * LanePort::kIdleRounds; ++i) expect_load(3);
  EXPECT_EQ(nic.port.watched_count(), 1u);
  be_idle();
  EXPECT_EQ(nic.port.watched_count(), 0u);
}

TEST_F(IdleLanes, one_that_comes_back_rings_and_is_answered_at_once) {
  open(20);
  be_idle();
  const uint64_t rings = nic.port.counters().doorbells;
  uint64_t word = 7;
  ASSERT_EQ(programs[5]->store(8, &word, 8), URMA_CR_SUCCESS);
  EXPECT_EQ(nic.drive(), 1u) << "in the next round";
  EXPECT_EQ(nic.port.counters().doorbells, rings + 1);
  EXPECT_EQ(nic.port.watched_count(), 1u);
  ASSERT_EQ(programs[5]->store(8, &word, 8), URMA_CR_SUCCESS);
  EXPECT_EQ(nic.drive(), 1u);
  EXPECT_EQ(nic.port.counters().doorbells, rings + 1) << "it is looked at again";
  for (size_t i = 0; i < programs.size(); ++i) expect_load(i);
  EXPECT_EQ(nic.port.counters().idle_doorbells, 0u);
}

TEST_F(IdleLanes, a_nic_that_sleeps_is_woken_by_them_each_time) {
  open(20);
  be_idle();
  for (int i = 0; i < 3; ++i) {
    ASSERT_FALSE(nic.port.prepare_sleep());
    uint64_t word = 7;
    ASSERT_EQ(programs[5]->store(8, &word, 8), URMA_CR_SUCCESS);
    EXPECT_TRUE(nic.port.poll_control(nic.now)) << i;
    EXPECT_TRUE(nic.port.anything_waits());
    if (i != 1) nic.port.finish_sleep();  // else somebody drives without waking it
    EXPECT_EQ(nic.drive(), 1u);
    nic.port.finish_sleep();
  }
}

// Who takes a ring and does not drive says so.
TEST_F(IdleLanes, a_ring_is_remembered_until_its_lane_was_looked_at) {
  open(20);
  be_idle();
  uint64_t word = 7;
  ASSERT_EQ(programs[5]->store(8, &word, 8), URMA_CR_SUCCESS);
  EXPECT_FALSE(nic.port.was_rung());
  nic.port.poll_control(nic.now);
  nic.port.adopt_pending(nic.now, [](const LinkConfig&) { return 0u; });
  EXPECT_TRUE(nic.port.was_rung());
  nic.drive();
  EXPECT_FALSE(nic.port.was_rung());
}

TEST_F(IdleLanes, one_that_ends_is_dropped) {
  open(20);
  be_idle();
  programs[5].reset();
  nic.drive();
  EXPECT_EQ(nic.port.lane_count(), 19u);
  EXPECT_EQ(nic.port.watched_count(), 0u);
}

// A program that has seen no flag does not ring. The NIC finds its request, whatever it is about to do in that round.
TEST_F(IdleLanes, a_request_that_comes_before_the_flag_needs_no_ring) {
  open(LanePort::kFewLanes + 1);
  Program& program = *programs[5];
  softub_lane_t& lane = program.pub.lane;
  uint32_t without = 0;
  for (uint32_t silence = 0; silence < 2 * LanePort::kIdleRounds; ++silence) {
    expect_load(5);
    drive(silence);
    if (softub_lane_must_ring(&lane)) continue;
    softub_lane_send(&lane, &lane.load, softub_lane_begin(&lane, &lane.load, kBase));
    ASSERT_EQ(nic.drive(), 1u) << "after " << silence << " rounds";
    uint64_t word;
    ASSERT_EQ(program.path->finish_load(0, &word, 8), URMA_CR_SUCCESS);
    ++without;
  }
  EXPECT_GE(without, LanePort::kIdleRounds);
}

// Programs load just as they are told that they are left alone, and some time before; each load has its answer.
TEST_F(IdleLanes, none_is_lost_between_its_last_request_and_the_flag) {
  constexpr size_t kThreads = 3;
  constexpr uint32_t kLoads = 200;
  open(4 * kThreads, false);
  std::atomic<size_t> running{kThreads}, failed{0};
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      uint32_t patience = 1;
      for (uint32_t i = 0; i < kLoads && failed == 0; ++i) {
        Program& program = *programs[t * 4 + i / 2 % 4];
        patience = patience * 1664525 + 1013904223;
        const uint32_t most = i % 2 == 1 ? UINT32_MAX : patience % 4096;
        for (uint32_t looks = 0; looks < most; ++looks) {
          if (__atomic_load_n(program.pub.lane.nic_sleeps, __ATOMIC_RELAXED) != 0) break;
          if (looks % 1024 == 1023) std::this_thread::yield();  // the NIC may need this CPU
        }
        uint64_t word = 0;
        if (program.load(8, &word, 8) != URMA_CR_SUCCESS) ++failed;
      }
      --running;
    });
  }
  while (running != 0) nic.drive();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failed, 0u);
  EXPECT_EQ(nic.served, kThreads * kLoads);
  EXPECT_GE(nic.port.counters().doorbells, kThreads * kLoads / 2);
}

// ---- ringing for nothing ---------------------------------------------------------------------------------------

class Ringing : public testing::Test {
 protected:
  void ring() const {
    const char bell = 0;
    ::send(hostile.socket.get(), &bell, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
  }
  // Until it is not heard any more.
  void ring_until_unheard() {
    for (int i = 0; i < 1000 && nic.port.counters().unheard == 0; ++i) {
      ring();
      nic.drive();
    }
    ASSERT_EQ(nic.port.counters().unheard, 1u);
  }
  uint64_t heard() const { return nic.port.counters().doorbells; }

  ServingNic nic;
  ipc::OpenedLane hostile = nic.connect();
};

TEST_F(Ringing, without_end_takes_a_share_of_the_time) {
  const Instant end = nic.now + milliseconds(100);
  for (; nic.now < end; nic.now += microseconds(5)) {
    ring();
    nic.drive();
  }
  EXPECT_LE(heard(), 1'100u);
  EXPECT_GE(heard(), 900u);
  EXPECT_EQ(nic.port.counters().idle_doorbells, heard());
}

TEST_F(Ringing, by_many_lanes_takes_no_more) {
  std::vector<ipc::OpenedLane> more;
  for (int i = 0; i < 15; ++i) more.push_back(nic.connect());
  const Instant end = nic.now + milliseconds(100);
  for (; nic.now < end; nic.now += microseconds(50)) {
    ring();
    const char bell = 0;
    for (const auto& lane : more) ::send(lane.socket.get(), &bell, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    nic.drive();
  }
  EXPECT_LE(heard(), 1'300u);
}

TEST_F(Ringing, is_heard_again_when_the_time_has_come) {
  ring_until_unheard();
  const uint64_t before = heard();
  const Instant again = nic.port.listens_again_at();
  ASSERT_FALSE(again.is_never());
  EXPECT_LE(again - nic.now, Allowance::kMost);
  ring();
  nic.now = again - nanoseconds(1);
  nic.drive();
  EXPECT_EQ(heard(), before);
  nic.now = again;
  nic.drive();
  EXPECT_EQ(heard(), before + 1);
}

TEST_F(Ringing, for_nothing_is_no_matter_of_others) {
  Program honest(nic, nic.add(0, 4096));
  nic.drive();
  ring_until_unheard();
  for (int i = 0; i < 1000; ++i) {
    ring();
    ASSERT_FALSE(nic.port.prepare_sleep());
    uint64_t word = 7;
    ASSERT_EQ(honest.store(8, &word, 8), URMA_CR_SUCCESS);
    ASSERT_TRUE(nic.port.poll_control(nic.now));
    nic.port.finish_sleep();
    ASSERT_EQ(nic.drive(), 1u);
  }
  EXPECT_EQ(nic.port.counters().unheard, 1u);
}

TEST_F(Ringing, with_requests_is_free) {
  Program honest(nic, nic.add(0, 4096));
  nic.drive();
  for (int i = 0; i < 1000; ++i) {
    uint64_t word = 7;
    ASSERT_FALSE(nic.port.prepare_sleep());
    ASSERT_EQ(honest.store(8, &word, 8), URMA_CR_SUCCESS);
    nic.port.finish_sleep();
    nic.drive();
  }
  EXPECT_GE(heard(), 1000u);
  EXPECT_EQ(nic.port.counters().idle_doorbells, 0u);
}

TEST_F(Ringing, who_is_not_heard_is_dropped_when_he_hangs_up) {
  ring_until_unheard();
  for (int i = 0; i < 100; ++i) ring();
  hostile.socket.reset();
  EXPECT_TRUE(test::eventually([this] { return nic.drive(), nic.port.lane_count() == 0; }));
}

// ---- all lanes for one program ---------------------------------------------------------------------------------

TEST(LanesOfAProgram, have_a_limit_and_others_get_theirs) {
  ServingNic nic;
  std::vector<ipc::OpenedLane> lanes;
  for (size_t i = 0; i < LanePort::kMaxLanesOfProgram; ++i) {
    lanes.push_back(nic.connect());
    ASSERT_TRUE(lanes.back().memory) << i;
    lanes.back().memory.reset();
  }
  EXPECT_FALSE(nic.connect().memory);
  EXPECT_STREQ(nic.reply.text, "process 1 has 256 lanes of the NIC already, as many as one program may have");
  EXPECT_EQ(nic.port.counters().refused, 1u);
  EXPECT_EQ(nic.port.counters().refused_program, 1u);
  EXPECT_TRUE(nic.connect(ipc::kLaneVersion, 2).memory) << "another program";

  nic.drive();
  lanes.pop_back();
  nic.drive();
  EXPECT_TRUE(nic.connect().memory) << "one has ended";
  EXPECT_FALSE(nic.connect().memory);
}

}  // namespace
}  // namespace ub::aperture
