// SPDX-License-Identifier: Apache-2.0
// How long the daemon waits for an application's agent. The Core behind it has no channel, so what fails goes nowhere.
#include "dataplane/softubd/agent.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <optional>

#include "dataplane/nic.h"
#include "lib/ipc/memfd.h"
#include "lib/transport/copy_prefix.h"

namespace ub {
namespace {

constexpr Duration kPatience = milliseconds(80);
constexpr Duration kStarvedPatience = seconds(5);
constexpr CopyTag kTag = uint64_t{kHeldCopyPrefix} << kCopyPrefixShift;  // of a gather

class AgentTest : public testing::Test {
 protected:
  AgentTest() {
    LoadedConfig config;
    config.port.kinds = {"loopback"};
    config.device.eids = {"127.0.0.1"};
    std::string error;
    nic = Nic::start(config, 0, {}, &error);
    EXPECT_NE(nic, nullptr) << error;
    EXPECT_TRUE(memory.map_private(sizeof(ipc::AppPage)));
    agent = std::make_unique<Agent>(page());
  }
  ipc::AppPage& page() { return *reinterpret_cast<ipc::AppPage*>(memory.data()); }
  CopyResult submit() { return agent->gather(nullptr, nullptr, 0x1000, 64, kTag); }
  // Whoever is asked what the application does says `condition`, at once; none: nobody is there to say it.
  Agent::Verdict look_after(Duration d) {
    now += d;
    return nic->control([&](auto& core, Instant) {
      const Agent::Verdict verdict = agent->poll(core, now, {kPatience, starved_patience});
      if (verdict != Agent::Verdict::kOverdue) return verdict;
      ++questions;
      if (condition) agent->answer(core, now, agent->wait(), *condition);
      return verdict;
    });
  }
  bool answer(uint32_t wait, Condition late) {
    return nic->control([&](auto& core, Instant) { return agent->answer(core, now, wait, late); });
  }
  // Looks every millisecond.
  void look_for(Duration d) {
    for (Instant end = now + d; now < end;) look_after(milliseconds(1));
  }
  bool stalled() const { return agent->times_stalled() != 0; }

  std::unique_ptr<Nic> nic;
  ipc::Mapping memory;
  std::unique_ptr<Agent> agent;
  Instant now = Instant{} + seconds(1000);
  Duration starved_patience = kStarvedPatience;
  std::optional<Condition> condition = Condition::kAsleep;
  int questions = 0;
};

TEST_F(AgentTest, answers_are_taken) {
  ASSERT_EQ(submit(), CopyResult::kPending);
  EXPECT_TRUE(agent->take_published());
  EXPECT_EQ(look_after(milliseconds(1)), Agent::Verdict::kNothing);
  page().ops[0].done_ok = 1;
  page().ops_consumed.store(1);
  EXPECT_EQ(look_after(milliseconds(1)), Agent::Verdict::kWorked);
  EXPECT_FALSE(agent->has_work());
  EXPECT_EQ(agent->copies(), 1u);
}

// Bytes for a frame that was held go to its copy, those for one that was given up nowhere.
TEST_F(AgentTest, bytes_follow_their_frame) {
  std::byte frames[2][64] = {}, held[2][64] = {};
  for (auto& frame : frames) ASSERT_EQ(agent->gather(frame, frame + 8, 0x1000, 16, kTag), CopyResult::kPending);
  for (int i = 0; i < 2; ++i) agent->frame_held(frames[i], held[i]);
  agent->frame_aborted(held[1]);
  for (uint32_t n = 0; n < 2; ++n) {
    std::memset(page().agent_data + n * ipc::kAgentBytes, 0x5a, 16);
    page().ops[n].done_ok = 1;
  }
  page().ops_consumed.store(2);
  EXPECT_EQ(look_after(milliseconds(1)), Agent::Verdict::kWorked);
  for (size_t i = 0; i < 64; ++i) {
    EXPECT_EQ(held[0][i], std::byte{i >= 8 && i < 24 ? uint8_t{0x5a} : uint8_t{0}}) << i;
    EXPECT_EQ(frames[0][i] | frames[1][i] | held[1][i], std::byte{0}) << i;
  }
}

TEST_F(AgentTest, an_index_ahead_of_the_ring_is_a_lie) {
  ASSERT_EQ(submit(), CopyResult::kPending);
  page().ops_consumed.store(2);
  EXPECT_EQ(look_after(milliseconds(1)), Agent::Verdict::kLied);
}

TEST_F(AgentTest, silent_for_its_patience) {
  ASSERT_EQ(submit(), CopyResult::kPending);
  look_for(kPatience - milliseconds(5));
  EXPECT_FALSE(stalled());
  look_for(milliseconds(10));
  EXPECT_TRUE(stalled());
  EXPECT_EQ(submit(), CopyResult::kFailed);
  page().ops_consumed.store(1);
  look_after(milliseconds(1));
  EXPECT_EQ(submit(), CopyResult::kPending) << "it answers again";
}

// The whole machine stood still: that says nothing about the application.
TEST_F(AgentTest, time_in_which_nobody_looked_is_not_held_against_it) {
  ASSERT_EQ(submit(), CopyResult::kPending);
  look_after(milliseconds(1));
  for (int n = 0; n < 5; ++n) look_after(seconds(10));
  EXPECT_FALSE(stalled());
  look_for(kPatience);
  EXPECT_TRUE(stalled());
}

TEST_F(AgentTest, a_worker_that_sleeps_till_its_deadline_sees_the_end) {
  ASSERT_EQ(submit(), CopyResult::kPending);
  look_after({});
  int looks = 0;
  for (; !stalled() && looks < 100; ++looks) look_after(agent->deadline({kPatience, starved_patience}) - now);
  EXPECT_EQ(looks, 8);
}

TEST_F(AgentTest, who_moves_but_slowly_is_waited_for_longer) {
  uint32_t posted = 0;
  for (; posted < 200; ++posted) ASSERT_EQ(submit(), CopyResult::kPending);
  for (uint32_t n = 1; n <= 7; ++n) {
    page().ops_consumed.store(n);
    look_for(kPatience / 2);
  }
  EXPECT_FALSE(stalled());
  for (uint32_t n = 8; n <= 10; ++n) {
    page().ops_consumed.store(n);
    look_for(kPatience / 2);
  }
  EXPECT_TRUE(stalled());
}

// ---- starved or stuck ------------------------------------------------------------------------------------------

TEST_F(AgentTest, what_is_not_starved_is_given_up) {
  for (Condition c : {Condition::kStopped, Condition::kAsleep, Condition::kRan, Condition::kUnseen}) {
    agent = std::make_unique<Agent>(page());
    page().ops_consumed.store(0);
    condition = c;
    ASSERT_EQ(submit(), CopyResult::kPending);
    look_for(kPatience + milliseconds(5));
    EXPECT_TRUE(stalled());
    EXPECT_EQ(agent->stall().why, c);
    EXPECT_GE(agent->stall().waited, kPatience);
    EXPECT_EQ(agent->times_starved(), 0u);
  }
}

TEST_F(AgentTest, who_is_starved_loses_nothing) {
  condition = Condition::kStarved;
  ASSERT_EQ(submit(), CopyResult::kPending);
  look_for(kPatience * 20);
  EXPECT_FALSE(stalled());
  EXPECT_EQ(submit(), CopyResult::kPending) << "what comes meanwhile waits, too";
  page().ops[0].done_ok = page().ops[1].done_ok = 1;
  page().ops_consumed.store(2);
  EXPECT_EQ(look_after(milliseconds(1)), Agent::Verdict::kWorked);
  look_after(milliseconds(1));
  EXPECT_EQ(agent->copies(), 2u);
  EXPECT_EQ(agent->times_starved(), 1u);
  EXPECT_GE(agent->longest_starved(), kPatience * 20);
  EXPECT_FALSE(stalled());
}

TEST_F(AgentTest, nobody_is_asked_before_the_patience_is_over_and_seldom_afterwards) {
  condition = Condition::kStarved;
  ASSERT_EQ(submit(), CopyResult::kPending);
  look_for(kPatience - milliseconds(5));
  EXPECT_EQ(questions, 0);
  look_for(milliseconds(1000));
  EXPECT_GE(questions, 8);
  EXPECT_LE(questions, 11);
}

TEST_F(AgentTest, the_second_answer_decides_where_the_first_is_unclear) {
  condition = Condition::kUnclear;
  ASSERT_EQ(submit(), CopyResult::kPending);
  look_for(kPatience + milliseconds(50));
  EXPECT_FALSE(stalled());
  condition = Condition::kRan;
  look_for(milliseconds(100));
  EXPECT_TRUE(stalled());
}

TEST_F(AgentTest, starving_ends_too) {
  condition = Condition::kStarved;
  ASSERT_EQ(submit(), CopyResult::kPending);
  look_for(kStarvedPatience - milliseconds(20));
  EXPECT_FALSE(stalled());
  look_for(milliseconds(40));
  EXPECT_TRUE(stalled());
  EXPECT_EQ(agent->stall().why, Condition::kStarved);
}

TEST_F(AgentTest, without_patience_for_the_starved_nobody_is_asked) {
  starved_patience = {};
  ASSERT_EQ(submit(), CopyResult::kPending);
  look_for(kPatience + milliseconds(5));
  EXPECT_TRUE(stalled());
  EXPECT_EQ(questions, 0);
}

TEST_F(AgentTest, nobody_answers) {
  condition.reset();
  ASSERT_EQ(submit(), CopyResult::kPending);
  look_for(kPatience * 20);
  EXPECT_FALSE(stalled());
  look_for(kPatience * 2);
  EXPECT_TRUE(stalled());
  EXPECT_EQ(agent->stall().why, Condition::kUnclear);
  EXPECT_EQ(questions, 1);
}

TEST_F(AgentTest, an_answer_that_came_too_late_changes_nothing) {
  condition.reset();
  ASSERT_EQ(submit(), CopyResult::kPending);
  look_for(kPatience + milliseconds(5));
  ASSERT_EQ(questions, 1);
  const uint32_t wait = agent->wait();
  page().ops_consumed.store(1);
  look_after(milliseconds(1));
  EXPECT_FALSE(answer(wait, Condition::kStopped)) << "it has copied meanwhile";
  ASSERT_EQ(submit(), CopyResult::kPending);
  look_for(kPatience + milliseconds(5));
  ASSERT_EQ(questions, 2);
  EXPECT_FALSE(answer(wait, Condition::kStopped)) << "an answer to another question";
  EXPECT_FALSE(stalled());
  EXPECT_TRUE(answer(agent->wait(), Condition::kStopped));
}

// It finished one operation between question and answer; others still wait.
TEST_F(AgentTest, who_moves_again_is_not_given_up) {
  condition.reset();
  for (int n = 0; n < 2; ++n) ASSERT_EQ(submit(), CopyResult::kPending);
  look_for(kPatience + milliseconds(5));
  page().ops_consumed.store(1);
  look_after(milliseconds(1));
  EXPECT_FALSE(answer(agent->wait(), Condition::kAsleep));
  EXPECT_FALSE(stalled());
}

// The rest after a stall is for what it could have done: else the starved would rest for minutes.
TEST_F(AgentTest, the_rest_does_not_grow_with_starving) {
  condition = Condition::kStarved;
  for (uint32_t n = 1; n <= 2; ++n) {
    ASSERT_EQ(submit(), CopyResult::kPending);
    look_for(kStarvedPatience + milliseconds(20));
    ASSERT_EQ(agent->times_stalled(), n);
    page().ops_consumed.store(n);
    look_after(milliseconds(1));
  }
  EXPECT_EQ(submit(), CopyResult::kFailed);
  look_for(kPatience * 4 * 20);
  EXPECT_EQ(submit(), CopyResult::kPending);
}

}  // namespace
}  // namespace ub
