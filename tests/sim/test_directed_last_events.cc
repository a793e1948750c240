// SPDX-License-Identifier: Apache-2.0
//
// Whatever fails in the simulator tells what happened just before.
#include "tests/sim/directed.h"
#include "tests/sim/scenario.h"

namespace ub::sim {
namespace {

// Of a world so slow that nothing is answered in time.
Options options_that_must_fail() {
  Options o = Options::draw(1);
  o.net.delay_ns = 10'000'000'000;
  o.fault = {.span_ns = 1000};
  return o;
}

TEST(LastEvents, of_a_lost_packet__say_that_it_goes_again) {
  Stage stage;
  stage.warm_up();
  stage.world.network.tamper.add(drop(1, from(0, is_request)));
  stage.write(64);
  stage.finish();
  const std::string told = stage.world.last_events.text(1000);
  EXPECT_NE(told.find("asks its silent peer"), std::string::npos) << told;
  EXPECT_NE(told.find("again\n"), std::string::npos) << told;
}

TEST(LastEvents, of_a_failing_seed__are_in_its_result) {
  const RunResult r = run_scenario(options_that_must_fail());
  ASSERT_NE(r.failure, "");
  EXPECT_NE(r.last_events.find("the last 40 events:\n"), std::string::npos);
  EXPECT_NE(r.last_events.find(" left over link 1\n"), std::string::npos) << r.last_events;
}

TEST(LastEvents, of_a_run_that_keeps_all_promises__are_not_told) {
  const RunResult r = run_scenario(Options::draw(2));
  EXPECT_EQ(r.failure, "");
  EXPECT_EQ(r.last_events, "");
}

TEST(LastEvents, as_many_as_are_asked_for__are_told) {
  Stage stage;
  stage.warm_up();
  const std::string told = stage.world.last_events.text(3);
  EXPECT_EQ(std::count(told.begin(), told.end(), '\n'), 4) << told;
}

TEST(LastEventsDeathTest, of_a_failed_check__are_printed) {
  Stage stage;
  stage.warm_up();
  EXPECT_DEATH(UB_ASSERT(stage.ends.empty()), "assertion failed: stage.ends.empty.*the last 40 events:.*channel 1 ");
}

}  // namespace
}  // namespace ub::sim
