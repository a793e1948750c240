// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <random>
#include <set>

#include "dataplane/waiting_frames.h"

namespace ub {
namespace {

using wire::IpAddress;
using wire::MacAddress;

constexpr MacAddress kMac{2, 0, 0, 0, 0, 9}, kOther{2, 0, 0, 0, 0, 8};
constexpr Instant kBegin{5'000'000'000};

IpAddress hop(uint32_t i) { return IpAddress::from_v4(0x0a000000 + i); }

struct WaitingFramesTest : testing::Test {
  static constexpr size_t kFrames = 10000;
  std::vector<std::byte> memory = std::vector<std::byte>(kFrames);
  WaitingFrames waiting;
  MacAddress mac{};

  std::byte* frame(size_t i) { return &memory.at(i); }
  // The hops that are asked for now.
  std::vector<IpAddress> asked(Instant now) {
    std::vector<IpAddress> hops;
    waiting.ask(now, [&](const IpAddress& h, const std::byte*) {
      hops.push_back(h);
      return true;
    });
    return hops;
  }
  size_t late(Instant now) {
    asked(now);
    size_t count = 0;
    while (waiting.take_late(now) != nullptr) ++count;
    return count;
  }
};

TEST_F(WaitingFramesTest, frames_leave_in_order_when_the_hop_answers) {
  for (size_t i = 0; i < 10; ++i) EXPECT_EQ(waiting.hold(hop(1), frame(i)), nullptr);
  EXPECT_EQ(waiting.hold(hop(2), frame(20)), nullptr);
  EXPECT_EQ(waiting.take_answered(&mac), nullptr);
  waiting.answer(hop(3), kOther);  // nobody waits for it
  EXPECT_FALSE(waiting.has_answered());
  waiting.answer(hop(1), kMac);
  for (size_t i = 0; i < 10; ++i) {
    EXPECT_TRUE(waiting.waits_for(hop(1)));
    EXPECT_EQ(waiting.take_answered(&mac), frame(i));
    EXPECT_EQ(mac, kMac);
    if (i == 3) {
      EXPECT_EQ(waiting.hold(hop(1), frame(10)), nullptr);
    }  // behind them
  }
  EXPECT_EQ(waiting.take_answered(&mac), frame(10));
  EXPECT_EQ(waiting.take_answered(&mac), nullptr);
  EXPECT_FALSE(waiting.waits_for(hop(1)));
  EXPECT_TRUE(waiting.waits_for(hop(2)));
  EXPECT_EQ(waiting.size(), 1u);
}

TEST_F(WaitingFramesTest, a_hop_is_asked_for_more_and_more_rarely) {
  EXPECT_TRUE(waiting.next_deadline().is_never());
  waiting.hold(hop(1), frame(0));
  EXPECT_TRUE(asked(kBegin).empty());  // the first question was the caller's
  std::vector<int64_t> pauses;
  for (Instant now = kBegin, last = kBegin; pauses.size() < 8;) {
    ASSERT_GT(waiting.next_deadline(), now);
    now = waiting.next_deadline();
    ASSERT_EQ(asked(now), std::vector<IpAddress>{hop(1)});
    pauses.push_back((now - last).ms());
    last = now;
    EXPECT_TRUE(asked(now).empty());
  }
  EXPECT_EQ(pauses, (std::vector<int64_t>{20, 20, 40, 80, 160, 320, 320, 320}));
}

TEST_F(WaitingFramesTest, questions_go_at_once_when_they_can_be_heard_again) {
  waiting.hold(hop(1), frame(0));
  Instant now = kBegin;
  for (int i = 0; i < 7; ++i, now = waiting.next_deadline()) asked(now);
  now = kBegin + seconds(1);
  asked(now);
  EXPECT_TRUE(asked(now + milliseconds(1)).empty());
  waiting.ask_again(now + milliseconds(1));
  EXPECT_EQ(waiting.next_deadline(), now + milliseconds(1));
  EXPECT_EQ(asked(now + milliseconds(1)), std::vector<IpAddress>{hop(1)});
  EXPECT_EQ(waiting.next_deadline(), now + milliseconds(21));
  EXPECT_EQ(late(kBegin + WaitingFrames::kPatience), 1u);  // that gave it no more time
}

TEST_F(WaitingFramesTest, whoever_does_not_answer_is_given_up) {
  waiting.hold(hop(1), frame(0));
  waiting.hold(hop(1), frame(1));
  EXPECT_EQ(late(kBegin), 0u);
  waiting.hold(hop(2), frame(2));
  EXPECT_EQ(late(kBegin + seconds(2)), 0u);
  EXPECT_EQ(waiting.hold(hop(1), frame(3)), nullptr);
  EXPECT_EQ(late(kBegin + WaitingFrames::kPatience - nanoseconds(1)), 0u);
  EXPECT_EQ(late(kBegin + WaitingFrames::kPatience), 3u);
  EXPECT_EQ(waiting.size(), 1u);
  EXPECT_EQ(late(kBegin + seconds(2) + WaitingFrames::kPatience), 1u);
  EXPECT_TRUE(waiting.empty());
  EXPECT_TRUE(waiting.next_deadline().is_never());
}

TEST_F(WaitingFramesTest, what_answered_is_not_late) {
  waiting.hold(hop(1), frame(0));
  asked(kBegin);
  waiting.answer(hop(1), kMac);
  EXPECT_TRUE(asked(kBegin + seconds(100)).empty());
  EXPECT_EQ(late(kBegin + seconds(100)), 0u);
  EXPECT_TRUE(waiting.next_deadline().is_never());
  EXPECT_EQ(waiting.take_answered(&mac), frame(0));
}

TEST_F(WaitingFramesTest, the_time_of_a_hop_begins_when_the_time_is_told) {
  EXPECT_EQ(late(kBegin), 0u);
  waiting.hold(hop(1), frame(0));  // the last time it heard of may be long ago
  EXPECT_EQ(waiting.take_late(kBegin + seconds(50)), nullptr);
  EXPECT_EQ(late(kBegin + seconds(50)), 0u);
  EXPECT_EQ(waiting.next_deadline(), kBegin + seconds(50) + milliseconds(20));
}

TEST_F(WaitingFramesTest, one_hop_has_a_short_queue) {
  for (size_t i = 0; i < WaitingFrames::kMostOfOne; ++i) EXPECT_EQ(waiting.hold(hop(1), frame(i)), nullptr);
  EXPECT_EQ(waiting.hold(hop(1), frame(900)), frame(900));
  EXPECT_EQ(waiting.hold(hop(2), frame(901)), nullptr);
  EXPECT_EQ(waiting.size(), WaitingFrames::kMostOfOne + 1);
}

TEST_F(WaitingFramesTest, a_flood_of_hops_takes_the_oldest_first_and_no_more_than_its_room) {
  for (size_t i = 0; i < kFrames; ++i) {
    std::byte* dropped = waiting.hold(hop(static_cast<uint32_t>(i)), frame(i));
    EXPECT_EQ(dropped, i < WaitingFrames::kMost ? nullptr : frame(i - WaitingFrames::kMost));
    EXPECT_LE(waiting.size(), WaitingFrames::kMost);
    // One that answers before the flood has gone round is served.
    if (i % 100 == 0) waiting.hold(hop(1 << 20), frame(i));
    if (i % 100 != 50 || !waiting.waits_for(hop(1 << 20))) continue;
    waiting.answer(hop(1 << 20), kMac);
    EXPECT_EQ(waiting.take_answered(&mac), frame(i - 50));
    break;
  }
}

// A frame may take the room of the one that waits for the same hop, whether that was asked for or has answered: it
// waits as the first one of a hop does.
TEST_F(WaitingFramesTest, a_hop_that_gives_way_to_itself_is_asked_for_anew) {
  for (const bool answered : {false, true}) {
    for (uint32_t i = 0; i < WaitingFrames::kMost; ++i) {
      ASSERT_EQ(waiting.hold(hop(i), frame(i)), nullptr);
      if (answered) waiting.answer(hop(i), kMac);
    }
    asked(kBegin);
    EXPECT_EQ(waiting.hold(hop(0), frame(900)), frame(0));
    EXPECT_EQ(waiting.size(), WaitingFrames::kMost);
    ASSERT_TRUE(waiting.waits_for(hop(0)));
    EXPECT_EQ(waiting.next_deadline(), Instant{}) << "its time begins with the next ask()";
    waiting.answer(hop(0), kOther);
    std::byte* last = nullptr;
    while (std::byte* f = waiting.take_answered(&mac)) last = f;
    EXPECT_EQ(last, frame(900));
    EXPECT_EQ(mac, kOther);
    while (waiting.take_any() != nullptr) {
    }
    EXPECT_TRUE(waiting.empty());
  }
}

TEST_F(WaitingFramesTest, nothing_is_lost_or_comes_twice) {
  std::mt19937 random(11);
  std::set<std::byte*> inside;
  std::map<uint32_t, std::deque<std::byte*>> order;
  std::map<std::byte*, uint32_t> hop_of;
  Instant now = kBegin;
  const auto leaves = [&](std::byte* f) {
    ASSERT_EQ(inside.erase(f), 1u);
    std::deque<std::byte*>& row = order[hop_of[f]];
    ASSERT_EQ(row.front(), f);
    row.pop_front();
  };
  for (size_t i = 0; i < kFrames; ++i) {
    const uint32_t to = random() % (random() % 2 == 0 ? 8 : 2000);
    std::byte* dropped = waiting.hold(hop(to), frame(i));
    hop_of[frame(i)] = to;
    if (dropped != frame(i)) {
      if (dropped != nullptr) leaves(dropped);
      inside.insert(frame(i));
      order[to].push_back(frame(i));
    }
    if (random() % 4 == 0) waiting.answer(hop(random() % 8), kMac);
    if (random() % 2 == 0) {
      if (std::byte* f = waiting.take_answered(&mac)) leaves(f);
    }
    now += milliseconds(random() % 8);
    asked(now);
    while (std::byte* f = waiting.take_late(now)) leaves(f);
    ASSERT_EQ(waiting.size(), inside.size());
    ASSERT_LE(waiting.size(), WaitingFrames::kMost);
  }
  while (std::byte* f = waiting.take_any()) leaves(f);
  EXPECT_TRUE(inside.empty());
  EXPECT_TRUE(waiting.empty());
}

}  // namespace
}  // namespace ub
