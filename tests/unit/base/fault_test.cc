// SPDX-License-Identifier: Apache-2.0
// Which occasions faults choose, when they last, and the text that says so.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lib/base/fault/plan_text.h"
#include "lib/base/fault/program_faults.h"

namespace ub::fault {
namespace {

std::vector<int> chosen_of(const Choice& choice, int occasions) {
  Selector selector(choice);
  std::vector<int> chosen;
  for (int i = 1; i <= occasions; ++i) {
    if (selector.next()) chosen.push_back(i);
  }
  EXPECT_EQ(selector.chosen(), chosen.size());
  return chosen;
}

Plan plan_of(const char* text) {
  ParsedPlan parsed = parse_plan(text);
  EXPECT_EQ(parsed.error, "") << text;
  return parsed.plan.value_or(Plan{});
}

constexpr Instant at(int64_t ms) { return Instant{} + milliseconds(ms); }

TEST(FaultSelector, every_nth_is_chosen_up_to_the_limit) {
  EXPECT_EQ(chosen_of({.by = By::kEvery, .n = 3}, 10), (std::vector<int>{3, 6, 9}));
  EXPECT_EQ(chosen_of({.by = By::kEvery, .n = 3, .at_most = 2}, 20), (std::vector<int>{3, 6}));
  EXPECT_EQ(chosen_of({}, 3), (std::vector<int>{1, 2, 3}));
}

TEST(FaultSelector, the_nth_is_chosen_and_those_behind_it_up_to_the_limit) {
  EXPECT_EQ(chosen_of({.by = By::kNth, .n = 4, .at_most = 1}, 10), (std::vector<int>{4}));
  EXPECT_EQ(chosen_of({.by = By::kNth, .n = 4, .at_most = 3}, 10), (std::vector<int>{4, 5, 6}));
}

TEST(FaultSelector, chance_depends_on_the_seed_alone) {
  const Choice choice{.by = By::kChance, .n = 100, .seed = 7};
  const std::vector<int> first = chosen_of(choice, 2000);
  EXPECT_EQ(chosen_of(choice, 2000), first);
  EXPECT_NE(chosen_of({.by = By::kChance, .n = 100, .seed = 8}, 2000), first);
  EXPECT_GT(first.size(), 150u);
  EXPECT_LT(first.size(), 250u);
  EXPECT_EQ(chosen_of({.by = By::kChance, .n = 1000}, 3), (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(chosen_of({.by = By::kChance, .n = 1000, .at_most = 2}, 9), (std::vector<int>{1, 2}));
}

TEST(FaultTimetable, lasts_from_its_beginning_to_its_end) {
  const Timetable once({.after = milliseconds(20), .lasts = milliseconds(5)}, at(100));
  EXPECT_FALSE(once.lasts(at(119)));
  EXPECT_TRUE(once.lasts(at(120)));
  EXPECT_TRUE(once.lasts(at(124)));
  EXPECT_FALSE(once.lasts(at(125)));
  EXPECT_EQ(once.next_change(at(100)), at(120));
  EXPECT_EQ(once.next_change(at(122)), at(125));
  EXPECT_TRUE(once.next_change(at(125)).is_never());
}

TEST(FaultTimetable, without_an_end_lasts_for_ever) {
  const Timetable end({.after = milliseconds(20)}, at(0));
  EXPECT_FALSE(end.lasts(at(19)));
  EXPECT_TRUE(end.lasts(at(1'000'000)));
  EXPECT_EQ(end.next_change(at(3)), at(20));
  EXPECT_TRUE(end.next_change(at(20)).is_never());
}

TEST(FaultTimetable, comes_again) {
  const Timetable flaps({.after = milliseconds(10), .lasts = milliseconds(2), .every = milliseconds(100)}, at(0));
  EXPECT_TRUE(flaps.lasts(at(11)));
  EXPECT_FALSE(flaps.lasts(at(12)));
  EXPECT_EQ(flaps.next_change(at(12)), at(110));
  EXPECT_TRUE(flaps.lasts(at(311)));
  EXPECT_EQ(flaps.next_change(at(311)), at(312));
}

TEST(FaultText, says_everything_that_a_plan_can) {
  const Plan plan = plan_of(
      "completion every=100 status=RNR_RETRY_CNT_EXC_ERR op=SEND queue=9; post nth=7 error=ENOMEM side=receive\n"
      "rnr count=3 ; port down after=2s for=500ms every=10s; stop after=5s;; "
      "completion chance=5 seed=42 count=2 status=LOC_LEN_ERR jfc=4");
  ASSERT_EQ(plan.program.completions.size(), 2u);
  const CompletionRule& first = plan.program.completions[0];
  EXPECT_EQ(first.choice.by, By::kEvery);
  EXPECT_EQ(first.choice.n, 100u);
  EXPECT_EQ(first.status, CrStatus::kRnrRetryExceeded);
  EXPECT_EQ(first.filter.op, WrOp::kSend);
  EXPECT_EQ(first.filter.queue, 9u);
  EXPECT_EQ(first.filter.side, Side::kSend);
  const CompletionRule& second = plan.program.completions[1];
  EXPECT_EQ(second.choice.by, By::kChance);
  EXPECT_EQ(second.choice.n, 5u);
  EXPECT_EQ(second.choice.seed, 42u);
  EXPECT_EQ(second.choice.at_most, 2u);
  EXPECT_EQ(second.filter.side, Side::kBoth);
  EXPECT_EQ(second.filter.jfc, 4u);
  ASSERT_EQ(plan.program.posts.size(), 1u);
  EXPECT_EQ(plan.program.posts[0].choice.by, By::kNth);
  EXPECT_EQ(plan.program.posts[0].choice.at_most, 1u);
  EXPECT_EQ(plan.program.posts[0].filter.side, Side::kReceive);
  EXPECT_EQ(plan.program.posts[0].error, PostError::kFull);
  ASSERT_TRUE(plan.nic.rnr && plan.nic.port_down && plan.nic.stop);
  EXPECT_EQ(plan.nic.rnr->choice.at_most, 3u);
  EXPECT_EQ(plan.nic.port_down->after, seconds(2));
  EXPECT_EQ(plan.nic.port_down->lasts, milliseconds(500));
  EXPECT_EQ(plan.nic.port_down->every, seconds(10));
  EXPECT_EQ(plan.nic.stop->after, seconds(5));
  EXPECT_EQ(plan.nic.stop->lasts, Duration{});
}

TEST(FaultText, of_nothing_is_a_plan_without_faults) {
  for (const char* text : {"", " ; \n "}) {
    const Plan plan = plan_of(text);
    EXPECT_TRUE(plan.program.empty());
    EXPECT_FALSE(plan.nic.rnr || plan.nic.port_down || plan.nic.stop);
  }
}

TEST(FaultText, mistakes_name_the_clause_and_what_is_known) {
  const struct {
    const char* text;
    const char* error;
  } kMistakes[] = {
      {"lose nth=3", "fault 1, \"lose nth=3\": \"lose\" is none of completion, post, rnr, port down, stop"},
      {"rnr; post nth=0", "fault 2, \"post nth=0\": nth=0 is no number of 1 to 4294967295"},
      {"post nth=2x", "fault 1, \"post nth=2x\": nth=2x is no number of 1 to 4294967295"},
      {"post nth=-1", "fault 1, \"post nth=-1\": nth=-1 is no number of 1 to 4294967295"},
      {"post nth=4294967296", "fault 1, \"post nth=4294967296\": nth=4294967296 is no number of 1 to 4294967295"},
      {"post chance=1001", "fault 1, \"post chance=1001\": chance=1001 is no number of 1 to 1000"},
      {"post nth=1 every=2", "fault 1, \"post nth=1 every=2\": only one of nth, every and chance can choose"},
      {"post seed=2", "fault 1, \"post seed=2\": seed is of use only beside chance"},
      {"post error=EIO", "fault 1, \"post error=EIO\": error=EIO is none of ENOMEM, EINVAL"},
      {"post status=X",
       "fault 1, \"post status=X\": \"status=X\" is not understood here; known are error, side, op, queue, nth, every, "
       "chance, seed, count"},
      {"post nth=1 nth=2",
       "fault 1, \"post nth=1 nth=2\": \"nth=2\" is not understood here; known are error, side, op, queue, nth, every, "
       "chance, seed, count"},
      {"post op=SEND side=receive", "fault 1, \"post op=SEND side=receive\": a receive that is posted has no op"},
      {"completion", "fault 1, \"completion\": status= is missing"},
      {"completion status=ACK_TIMEOUT_ERR side=receive",
       "fault 1, \"completion status=ACK_TIMEOUT_ERR side=receive\": no receive ends with that status"},
      {"port", "fault 1, \"port\": \"down\" is missing behind \"port\""},
      {"stop for=3", "fault 1, \"stop for=3\": for=3 is no time such as 500ms: 1 to 1000000 and one of s, ms, us"},
      {"stop for=0s", "fault 1, \"stop for=0s\": for=0s is no time such as 500ms: 1 to 1000000 and one of s, ms, us"},
      {"stop every=2s", "fault 1, \"stop every=2s\": every= must be longer than for=, which must be there"},
      {"stop; stop", "fault 2, \"stop\": there is one of that kind already"},
      {"rnr; rnr", "fault 2, \"rnr\": there is an rnr already"},
  };
  for (const auto& mistake : kMistakes) {
    const ParsedPlan parsed = parse_plan(mistake.text);
    EXPECT_FALSE(parsed.plan.has_value()) << mistake.text;
    EXPECT_EQ(parsed.error, mistake.error);
  }
  EXPECT_NE(parse_plan("completion status=SUCCESS").error.find("is none of UNSUPPORTED_OPCODE_ERR, LOC_LEN_ERR"),
            std::string::npos);
}

constexpr Occasion kSent{.side = Side::kSend, .op = WrOp::kSend, .queue = 5, .jfc = 1};
constexpr Occasion kRead{.side = Side::kSend, .op = WrOp::kRead, .queue = 6, .jfc = 2};
constexpr Occasion kReceived{.side = Side::kReceive, .op = WrOp::kSend, .queue = 5, .jfc = 1};

TEST(ProgramFaults, a_rule_counts_only_what_it_is_about) {
  ProgramFaults faults(plan_of("completion op=SEND side=send every=2 status=LOC_LEN_ERR").program);
  EXPECT_FALSE(faults.completion(kSent));
  EXPECT_FALSE(faults.completion(kRead));
  EXPECT_FALSE(faults.completion(kReceived));
  EXPECT_EQ(faults.completion(kSent), CrStatus::kLocLen);
  EXPECT_EQ(faults.counts().completions, 1u);
}

TEST(ProgramFaults, a_rule_may_name_a_queue_or_a_jfc) {
  ProgramFaults faults(
      plan_of("completion queue=6 status=LOC_LEN_ERR; completion jfc=1 status=LOC_ACCESS_ERR").program);
  EXPECT_EQ(faults.completion(kRead), CrStatus::kLocLen);
  EXPECT_EQ(faults.completion(kSent), CrStatus::kLocAccess);
  EXPECT_EQ(faults.completion(kReceived), CrStatus::kLocAccess);
}

TEST(ProgramFaults, the_first_rule_that_chooses_has_it_and_all_rules_count_it) {
  ProgramFaults faults(plan_of("completion every=2 status=LOC_LEN_ERR; completion every=2 status=LOC_ACCESS_ERR;"
                               "completion nth=3 status=LOC_OPERATION_ERR")
                           .program);
  EXPECT_FALSE(faults.completion(kSent));
  EXPECT_EQ(faults.completion(kSent), CrStatus::kLocLen);
  EXPECT_EQ(faults.completion(kSent), CrStatus::kLocOperation);
  EXPECT_EQ(faults.counts().completions, 2u);
}

TEST(ProgramFaults, posts_are_refused_and_completions_are_not) {
  ProgramFaults faults(plan_of("post nth=1 side=send; post nth=1 error=EINVAL side=receive").program);
  EXPECT_FALSE(faults.completion(kSent));
  EXPECT_EQ(faults.post(kSent), PostError::kFull);
  EXPECT_EQ(faults.post({.side = Side::kReceive, .op = WrOp::kSkip, .queue = 7, .jfc = 0}), PostError::kInvalid);
  EXPECT_FALSE(faults.post(kSent));
  EXPECT_EQ(faults.counts().posts, 2u);
  EXPECT_EQ(faults.counts().completions, 0u);
}

}  // namespace
}  // namespace ub::fault
