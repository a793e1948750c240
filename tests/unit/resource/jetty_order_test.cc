// SPDX-License-Identifier: Apache-2.0
//
// Who keeps the order of a jetty's requests, by what it was made with (UB Base Specification Rev 2.0, 7.3.3), and what
// may carry them.
#include "tests/unit/resource/objects.h"

namespace ub {
namespace {

SendQueue queue_of(Mode mode, bool lower_layer_order, bool target_order, bool rol = false) {
  CoreConfig config = small_tables();
  config.rol = rol;
  Objects o(config);
  JettyConfig c = o.jetty_config(o.make_jfr());
  c.mode = mode;
  c.lower_layer_order = lower_layer_order;
  c.target_order = target_order;
  return o.queue(o.make(c));
}

TEST(JettyOrder, requests_without_one_may_go_by_ctp_if_they_are_reliable_messages) {
  EXPECT_TRUE(queue_of(Mode::kRm, false, false).compact);
  EXPECT_FALSE(queue_of(Mode::kRm, true, false).compact) << "they stay on one lane";
  EXPECT_FALSE(queue_of(Mode::kRc, false, false).compact);
  EXPECT_FALSE(queue_of(Mode::kUm, false, false).compact);
}

TEST(JettyOrder, that_a_channel_keeps_may_be_kept_by_one_of_ctp) {
  EXPECT_TRUE(queue_of(Mode::kRc, true, false, true).compact);
  EXPECT_FALSE(queue_of(Mode::kRc, true, false, false).compact) << "there are no such channels";
  EXPECT_FALSE(queue_of(Mode::kRc, false, false, true).compact) << "the initiator keeps it, and receives need one lane";
  EXPECT_FALSE(queue_of(Mode::kRm, true, false, true).compact);
}

TEST(JettyOrder, is_kept_by_the_target_of_an_rc_jetty_that_asks_for_it) {
  EXPECT_TRUE(queue_of(Mode::kRc, false, true).rot);
  EXPECT_FALSE(queue_of(Mode::kRc, false, false).rot) << "nobody asked";
  EXPECT_FALSE(queue_of(Mode::kRc, true, true).rot) << "the lower layer keeps it";
  EXPECT_FALSE(queue_of(Mode::kRm, false, true).rot);
}

}  // namespace
}  // namespace ub
