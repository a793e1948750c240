// SPDX-License-Identifier: Apache-2.0
//
// The rate of an owner, over all of its send queues.
#include "lib/transport/cc/pacer.h"

#include <gtest/gtest.h>

namespace ub::cc {
namespace {

TEST(Pacer, without_a_rate_everything_may_start) {
  Pacer p;
  p.charge(Instant{1'000'000'000}, 1 << 30);
  EXPECT_EQ(p.ready_at(), Instant{});
}

TEST(Pacer, each_request_puts_off_the_next_by_its_bytes) {
  Pacer p;
  p.bytes_per_second = 1'000'000'000;  // 1 ns each
  const Instant now{seconds(1).ns};
  p.charge(now, 10'000'000 - Pacer::kRequestBytes);
  EXPECT_EQ(p.next, now + milliseconds(10));
  EXPECT_EQ(p.ready_at(), now + milliseconds(10) - Pacer::kCredit);
  p.charge(now, 10'000'000 - Pacer::kRequestBytes);
  EXPECT_EQ(p.next, now + milliseconds(20));
}

TEST(Pacer, a_pause_earns_no_more_than_a_little_credit) {
  Pacer p;
  p.bytes_per_second = 1'000'000'000;
  p.charge(Instant{seconds(1).ns}, 1);
  p.charge(Instant{seconds(100).ns}, 10'000'000 - Pacer::kRequestBytes);
  EXPECT_EQ(p.next, Instant{seconds(100).ns} + milliseconds(10));
}

TEST(Pacer, whose_rate_is_taken_away_waits_no_longer) {
  Pacer p;
  p.bytes_per_second = 1'000'000;
  p.charge(Instant{seconds(1).ns}, 1'000'000);
  ASSERT_GT(p.ready_at(), Instant{seconds(1).ns});
  p.bytes_per_second = 0;
  EXPECT_EQ(p.ready_at(), Instant{});
}

TEST(Pacer, a_rate_of_one_byte_per_second_is_a_rate) {
  Pacer p;
  p.bytes_per_second = 1;
  p.charge(Instant{seconds(1).ns}, 0);
  EXPECT_EQ(p.ready_at(), Instant{seconds(1).ns} + seconds(Pacer::kRequestBytes) - Pacer::kCredit);
}

TEST(Pacer, an_empty_request_costs_its_headers) {
  Pacer p;
  p.bytes_per_second = 1'000'000;
  p.charge(Instant{seconds(1).ns}, 0);
  EXPECT_EQ(p.next, Instant{seconds(1).ns} + microseconds(256));
}

// ---- the time that bytes take ----------------------------------------------------------------------------------

TEST(Rate, the_time_of_bytes_is_exact_where_64_bits_are_too_few) {
  EXPECT_EQ(time_of(1000, 1'000'000'000), microseconds(1));
  EXPECT_EQ(time_of(uint64_t{1} << 40, uint64_t{1} << 40), seconds(1));
  EXPECT_EQ(time_of(2, 3), nanoseconds(666'666'666)) << "rounded down";
}

TEST(Rate, in_kilobytes_no_rate_is_none_at_all_or_another_one) {
  EXPECT_EQ(kbytes_per_second(12'500'000'000), 12'500'000u);
  EXPECT_EQ(kbytes_per_second(999), 1u);
  EXPECT_EQ(kbytes_per_second(uint64_t{1} << 50), UINT32_MAX);
}

}  // namespace
}  // namespace ub::cc
