// SPDX-License-Identifier: Apache-2.0
//
// What is counted of a channel: each cause once, and by no other one (channel_counts.def).
#include <initializer_list>
#include <map>

#include "tests/sim/directed.h"

namespace ub::sim {
namespace {

using Counted = std::map<std::string, uint64_t>;

// What the channels of an end count together, without what is 0. It is what the counters of the instance say.
Counted counted(Stage& s, const End& e) {
  Counted all;
  for (size_t i = 0; i < kChannelCounts; ++i) {
    uint64_t sum = 0;
    for (const ChannelInfo& c : s.channels(e)) sum += c.counts.v[i];
    EXPECT_EQ(sum, s.count(e, total_of(static_cast<ChannelCount>(i)))) << kChannelCountNames[i];
    if (sum != 0) all[kChannelCountNames[i]] = sum;
  }
  return all;
}
uint64_t sent_again(Stage& s, const End& e) {
  uint64_t sum = 0;
  for (const ChannelInfo& c : s.channels(e)) sum += c.retransmits;
  return sum;
}
// A WRITE of so many bytes of which one packet is lost.
void lose(Stage& s, uint32_t bytes, uint32_t which) {
  s.warm_up();
  EXPECT_EQ(counted(s, s.a()), Counted{});
  s.world.network.tamper.add(drop(1, from(0, is_request), which));
  s.write(bytes);
  s.finish();
  s.quiet();
}

TEST(Counts, a_loss_that_many_packets_follow_is_one_by_distance) {
  Options o = directed_options();
  o.core.loss_window = false;  // which would stop the sender
  Stage s(o);
  lose(s, 200'000, 20);
  EXPECT_EQ(counted(s, s.a()), (Counted{{"again_distance", 1}}));
  EXPECT_EQ(sent_again(s, s.a()), 1u);
  EXPECT_EQ(counted(s, s.b()).count("out_of_order"), 1u);
  EXPECT_EQ(counted(s, s.b()).size(), 1u);
}

TEST(Counts, a_loss_that_few_packets_follow_is_one_by_time) {
  Stage s;
  lose(s, 5000, 0);
  EXPECT_EQ(counted(s, s.a()), (Counted{{"again_time", 1}}));
  EXPECT_EQ(sent_again(s, s.a()), 1u);
  EXPECT_EQ(counted(s, s.b()), (Counted{{"out_of_order", 4}}));
}

TEST(Counts, a_lost_tail_is_asked_for_by_a_probe) {
  Stage s;
  lose(s, 3000, 2);
  Counted of_a = counted(s, s.a());
  EXPECT_EQ(of_a, (Counted{{"again_probe", sent_again(s, s.a())}}));
}

TEST(Counts, without_fast_retransmission_a_loss_is_one_timeout) {
  Options o = directed_options();
  o.core.fast_retransmit = false;
  Stage s(o);
  lose(s, 3000, 0);
  EXPECT_EQ(counted(s, s.a()), (Counted{{"again_timeout", 1}, {"timeouts", 1}})) << "the others were reported";
}

TEST(Counts, of_go_back_n_a_nak_is_the_cause_and_what_came_behind_is_discarded) {
  Options o = directed_options();
  o.core.go_back_n = 1;
  Stage s(o);
  lose(s, 5000, 0);
  EXPECT_EQ(counted(s, s.a()), (Counted{{"again_nak", 5}}));
  EXPECT_EQ(counted(s, s.b()), (Counted{{"discarded", 4}}));
}

TEST(Counts, a_packet_that_comes_twice_is_a_duplicate) {
  Stage s;
  s.warm_up();
  s.world.network.tamper.add(duplicate(1, microseconds(5), from(0, is_request)));
  s.write(100);
  s.finish();
  s.quiet();
  EXPECT_EQ(counted(s, s.a()), Counted{});
  EXPECT_EQ(counted(s, s.b()), (Counted{{"duplicate", 1}}));
}

TEST(Counts, a_receiver_that_is_not_ready_counts_at_both_ends) {
  Stage s;
  s.warm_up();
  s.send(100);
  EXPECT_TRUE(s.world.run_until([&] { return s.count(s.a(), Counter::kTaRxRnr) == 1; }, seconds(1)));
  s.b().give_receives(1);
  s.finish();
  s.quiet();
  EXPECT_EQ(counted(s, s.a()), (Counted{{"rnr_received", 1}}));
  EXPECT_EQ(counted(s, s.b()), (Counted{{"rnr_sent", 1}}));
}

TEST(Counts, a_full_window_counts_once_until_nothing_is_left_to_send) {
  Options o = directed_options();
  o.core.window_packets = 128;
  o.core.loss_window = false;
  Stage s(o);
  s.warm_up();
  s.write(100 * 1024);
  s.finish();
  EXPECT_EQ(counted(s, s.a()), Counted{}) << "it fits";
  for (uint64_t episodes : {1u, 2u}) {
    s.write(300 * 1024);
    s.finish();
    s.quiet();
    EXPECT_EQ(counted(s, s.a()), (Counted{{"window_shut", episodes}}));
  }
}

TEST(Counts, marked_packets_count_where_they_arrive) {
  Options o = directed_options();
  o.work.control = cc::Control::kDcqcn;
  o.work.line_rate = 1'250'000'000;
  o.net.mark = 1;
  Stage s(o);
  s.warm_up();
  s.write(3000);
  s.finish();
  s.quiet();
  // Its answers were marked, too, and the peer told it so.
  const Counted told{{"marked", s.count(s.b(), Counter::kTpRxData)}, {"marks", s.count(s.b(), Counter::kTpRxCnp)}};
  EXPECT_EQ(counted(s, s.b()), told);
}

}  // namespace
}  // namespace ub::sim
