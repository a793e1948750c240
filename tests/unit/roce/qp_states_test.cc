// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/roce/qp_states.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>

namespace ub::roce {
namespace {

constexpr QpState kAll[kQpStates] = {QpState::kReset, QpState::kInit, QpState::kRtr,  QpState::kRts,
                                     QpState::kSqd,   QpState::kSqe,  QpState::kError};
constexpr QpType kTypes[] = {QpType::kRc, QpType::kUc, QpType::kUd};
constexpr uint32_t kEverything = (1u << 15) - 1;

/// What ibv_rc_pingpong says on its way.
constexpr uint32_t kRcInit = kQpPkey | kQpPort | kQpAccess;
constexpr uint32_t kRcRtr = kQpPath | kQpMtu | kQpDestination | kQpReceivePsn | kQpReadsServed | kQpRnrTimer;
constexpr uint32_t kRcRts = kQpTimeout | kQpRetries | kQpRnrRetries | kQpSendPsn | kQpReadsInFlight;

TEST(QpStates, the_way_of_a_reliable_connection) {
  EXPECT_TRUE(step_is_allowed(QpType::kRc, QpState::kReset, QpState::kInit, kRcInit));
  EXPECT_TRUE(step_is_allowed(QpType::kRc, QpState::kInit, QpState::kRtr, kRcRtr));
  EXPECT_TRUE(step_is_allowed(QpType::kRc, QpState::kRtr, QpState::kRts, kRcRts));
}

TEST(QpStates, the_way_of_datagrams_and_unreliable_connections) {
  EXPECT_TRUE(step_is_allowed(QpType::kUd, QpState::kReset, QpState::kInit, kQpPkey | kQpPort | kQpQkey));
  EXPECT_TRUE(step_is_allowed(QpType::kUd, QpState::kInit, QpState::kRtr, 0));
  EXPECT_TRUE(step_is_allowed(QpType::kUd, QpState::kRtr, QpState::kRts, kQpSendPsn));
  EXPECT_TRUE(step_is_allowed(QpType::kUc, QpState::kReset, QpState::kInit, kRcInit));
  EXPECT_TRUE(
      step_is_allowed(QpType::kUc, QpState::kInit, QpState::kRtr, kQpPath | kQpMtu | kQpDestination | kQpReceivePsn));
  EXPECT_TRUE(step_is_allowed(QpType::kUc, QpState::kRtr, QpState::kRts, kQpSendPsn));
}

TEST(QpStates, each_needed_attribute_is_needed) {
  const auto check = [](QpState from, QpState to, uint32_t needed) {
    for (uint32_t bit = 1; bit <= kEverything; bit <<= 1) {
      if ((needed & bit) != 0) {
        EXPECT_FALSE(step_is_allowed(QpType::kRc, from, to, needed & ~bit)) << bit;
      }
    }
  };
  check(QpState::kReset, QpState::kInit, kRcInit);
  check(QpState::kInit, QpState::kRtr, kRcRtr);
  check(QpState::kRtr, QpState::kRts, kRcRts);
}

TEST(QpStates, nothing_out_of_place) {
  EXPECT_TRUE(step_is_allowed(QpType::kRc, QpState::kInit, QpState::kRtr, kRcRtr | kQpAccess));
  EXPECT_FALSE(step_is_allowed(QpType::kRc, QpState::kInit, QpState::kRtr, kRcRtr | kQpSendPsn));
  EXPECT_FALSE(step_is_allowed(QpType::kRc, QpState::kRts, QpState::kRts, kQpMtu));
  EXPECT_TRUE(step_is_allowed(QpType::kRc, QpState::kRts, QpState::kRts, kQpRnrTimer));
  EXPECT_FALSE(step_is_allowed(QpType::kUd, QpState::kRts, QpState::kRts, kQpRnrTimer));
  EXPECT_TRUE(step_is_allowed(QpType::kUd, QpState::kRts, QpState::kRts, kQpQkey));
}

TEST(QpStates, reset_and_error_can_be_reached_from_everywhere_and_say_nothing) {
  for (const QpType type : kTypes) {
    for (const QpState from : kAll) {
      for (const QpState to : {QpState::kReset, QpState::kError}) {
        EXPECT_TRUE(step_is_allowed(type, from, to, 0));
        EXPECT_FALSE(step_is_allowed(type, from, to, kQpAccess));
      }
    }
  }
}

TEST(QpStates, all_other_steps) {
  using S = QpState;
  const std::set<std::pair<S, S>> connected{{S::kReset, S::kInit}, {S::kInit, S::kInit}, {S::kInit, S::kRtr},
                                            {S::kRtr, S::kRts},    {S::kRts, S::kRts},   {S::kRts, S::kSqd},
                                            {S::kSqd, S::kSqd},    {S::kSqd, S::kRts}};
  for (const QpType type : kTypes) {
    for (const S from : kAll) {
      for (const S to : kAll) {
        if (to == S::kReset || to == S::kError) continue;
        bool possible = false;
        for (uint32_t attributes = 0; attributes <= kEverything; ++attributes) {
          possible |= step_is_allowed(type, from, to, attributes);
        }
        const bool mends = type != QpType::kRc && from == S::kSqe && to == S::kRts;
        EXPECT_EQ(possible, connected.count({from, to}) != 0 || mends)
            << static_cast<int>(type) << ' ' << qp_state_name(from) << " > " << qp_state_name(to);
      }
    }
  }
}

TEST(QpStates, what_each_may_do) {
  const std::string receiving = "RTR RTS SQD SQE ", sending = "RTS SQD ";
  std::string r, s;
  for (const QpState state : kAll) {
    if (receives(state)) r += std::string(qp_state_name(state)) + ' ';
    if (sends(state)) s += std::string(qp_state_name(state)) + ' ';
  }
  EXPECT_EQ(r, receiving);
  EXPECT_EQ(s, sending);
}

}  // namespace
}  // namespace ub::roce
