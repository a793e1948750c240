// SPDX-License-Identifier: Apache-2.0
//
// What the short programs about order run over: each transport, with what each has to put up with. Seeds are looked for
// by what they draw, since a new option shifts all draws.
#include <gtest/gtest.h>

#include <functional>

#include "tests/sim/options.h"
#include "tests/sim/order_programs.h"

namespace ub::sim {
namespace {

constexpr uint64_t kSeedsLookedAt = 200;

// The first few seeds that draw such a world keep all promises, and one of them at least comes to that state.
void expect_reached(ReachedState state, const std::function<bool(const Options&)>& wanted) {
  constexpr int kEnough = 3;
  int runs = 0;
  bool reached = false;
  for (uint64_t seed = 1; seed <= kSeedsLookedAt && runs < kEnough && !reached; ++seed) {
    if (!wanted(Options::draw_for_programs(seed))) continue;
    const RunResult r = run_order_programs(seed, {.states = true});
    EXPECT_EQ(r.failure, "") << "seed " << seed;
    reached = r.states[static_cast<size_t>(state)];
    ++runs;
  }
  EXPECT_GT(runs, 0) << "no seed draws it";
  EXPECT_TRUE(reached) << sentence_of(state);
}

TEST(OrderPrograms, run_over_ctp_on_a_wire_that_loses_doubles_and_reorders) {
  expect_reached(ReachedState::kCompactRepeats, [](const Options& o) {
    return o.compact && o.net.loss != 0 && o.net.duplicate != 0 && o.net.reorder_packets != 0;
  });
}

TEST(OrderPrograms, run_over_ctp_in_rol_with_requests_that_want_no_answer) {
  expect_reached(ReachedState::kCompactSilent, [](const Options& o) {
    return o.compact && o.lossless && o.core.rol == 1 && !o.core.compact_answers;
  });
}

TEST(OrderPrograms, run_over_rtp_with_losses_and_64_packets_out_of_order) {
  expect_reached(ReachedState::kFarAhead, [](const Options& o) {
    return !o.compact && o.net.loss != 0 && o.net.reorder_packets == 64 && o.core.go_back_n == 0;
  });
}

TEST(OrderPrograms, run_over_go_back_n_with_losses) {
  expect_reached(ReachedState::kGoneBack, [](const Options& o) { return o.net.loss != 0 && o.core.go_back_n == 1; });
}

TEST(OrderPrograms, run_over_paths_that_live_again) {
  expect_reached(ReachedState::kPathLivesAgain, [](const Options& o) {
    return !o.compact && o.net.paths > 1 && o.fault.path_faults >= 10 && o.work.control != cc::Control::kDcqcn;
  });
}

}  // namespace
}  // namespace ub::sim
