// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "dataplane/neighbours.h"

namespace ub {
namespace {

using wire::IpAddress;
using wire::MacAddress;

constexpr IpAddress v4(uint32_t a) { return IpAddress::from_v4(a); }
constexpr IpAddress v6(uint8_t network, uint8_t host) {
  return {{0xfd, network, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host}};
}
constexpr MacAddress kMac{2, 0, 0, 0, 0, 9};

struct NeighboursTest : testing::Test {
  Neighbours table{{{v4(0x0a000001), 24}, {v6(1, 1), 64}}, v4(0x0a0000fe), IpAddress{}};
  Instant now{1'000'000'000};
  bool ask = false;
};

TEST_F(NeighboursTest, networks_and_gateways) {
  IpAddress hop;
  ASSERT_TRUE(table.next_hop(v4(0x0a000037), &hop));
  EXPECT_EQ(hop, v4(0x0a000037));
  ASSERT_TRUE(table.next_hop(v4(0x0a000137), &hop));  // the next network
  EXPECT_EQ(hop, v4(0x0a0000fe));
  ASSERT_TRUE(table.next_hop(v6(1, 7), &hop));
  EXPECT_EQ(hop, v6(1, 7));
  EXPECT_FALSE(table.next_hop(v6(2, 7), &hop));  // no IPv6 gateway
  EXPECT_TRUE(table.is_own(v4(0x0a000001)));
  EXPECT_FALSE(table.is_own(v4(0x0a000002)));
}

TEST_F(NeighboursTest, prefixes_that_end_inside_a_byte) {
  IpNetwork n{v4(0xc0a80a40), 26};
  EXPECT_TRUE(n.contains(v4(0xc0a80a7f)));
  EXPECT_FALSE(n.contains(v4(0xc0a80a80)));
  EXPECT_FALSE(n.contains(IpAddress{{0xc0, 0xa8}}));
  EXPECT_TRUE((IpNetwork{v4(1), 0}.contains(v4(0xffffffff))));
}

TEST_F(NeighboursTest, asks_until_answered) {
  EXPECT_EQ(table.find(now, v4(0x0a000002), &ask), nullptr);
  EXPECT_TRUE(ask);
  EXPECT_EQ(table.find(now + microseconds(10), v4(0x0a000002), &ask), nullptr);
  EXPECT_FALSE(ask);  // not for every packet
  now += milliseconds(25);
  EXPECT_EQ(table.find(now, v4(0x0a000002), &ask), nullptr);
  EXPECT_TRUE(ask);
  table.learn(now, v4(0x0a000002), kMac, false);
  const MacAddress* mac = table.find(now, v4(0x0a000002), &ask);
  ASSERT_NE(mac, nullptr);
  EXPECT_EQ(*mac, kMac);
  EXPECT_FALSE(ask);
}

TEST_F(NeighboursTest, confirms_what_is_used_and_forgets_the_dead) {
  table.find(now, v4(0x0a000002), &ask);
  table.learn(now, v4(0x0a000002), kMac, false);
  now += seconds(31);
  EXPECT_NE(table.find(now, v4(0x0a000002), &ask), nullptr);  // still used meanwhile
  EXPECT_TRUE(ask);
  now += seconds(30);
  EXPECT_EQ(table.find(now, v4(0x0a000002), &ask), nullptr);
  EXPECT_TRUE(ask);
}

// Each answer counts from when it came, with the address that it names: a neighbour that answers is known for good.
TEST_F(NeighboursTest, stays_known_as_long_as_it_answers) {
  table.find(now, v4(0x0a000002), &ask);
  for (uint8_t times = 0; times < 5; ++times) {
    const MacAddress moved{2, 0, 0, 0, 0, times};
    table.learn(now, v4(0x0a000002), moved, false);
    EXPECT_NE(table.find(now + seconds(29), v4(0x0a000002), &ask), nullptr);
    EXPECT_FALSE(ask) << "fresh";
    now += seconds(31);
    EXPECT_NE(table.find(now, v4(0x0a000002), &ask), nullptr);
    EXPECT_TRUE(ask);
    EXPECT_NE(table.find(now + milliseconds(1), v4(0x0a000002), &ask), nullptr);
    EXPECT_FALSE(ask) << "not for every packet";
    now += seconds(1);
    const MacAddress* mac = table.find(now, v4(0x0a000002), &ask);
    ASSERT_NE(mac, nullptr);
    EXPECT_EQ(*mac, moved);
    EXPECT_TRUE(ask) << "until it answers";
  }
}

TEST_F(NeighboursTest, believes_only_answers_and_those_who_ask_us) {
  table.learn(now, v4(0x0a000003), kMac, false);  // nobody asked
  EXPECT_EQ(table.size(), 0u);
  table.learn(now, v4(0x0b000003), kMac, true);                // not of our network
  table.learn(now, v4(0x0a000001), kMac, true);                // says it is us
  table.learn(now, v4(0x0a000003), {1, 0, 0, 0, 0, 0}, true);  // a group address
  EXPECT_EQ(table.size(), 0u);
  table.learn(now, v4(0x0a000003), kMac, true);
  EXPECT_NE(table.find(now, v4(0x0a000003), &ask), nullptr);
}

TEST_F(NeighboursTest, static_ones_stay) {
  table.add_static(v4(0x0a000004), kMac);
  table.learn(now, v4(0x0a000004), {2, 2, 2, 2, 2, 2}, true);
  now += seconds(1000);
  const MacAddress* mac = table.find(now, v4(0x0a000004), &ask);
  ASSERT_NE(mac, nullptr);
  EXPECT_EQ(*mac, kMac);
  EXPECT_FALSE(ask);
}

TEST_F(NeighboursTest, says_once_who_became_known) {
  table.find(now, v4(0x0a000002), &ask);
  EXPECT_EQ(table.take_news(), std::nullopt);
  table.learn(now, v4(0x0a000002), kMac, false);
  EXPECT_EQ(table.take_news(), v4(0x0a000002));
  EXPECT_EQ(table.take_news(), std::nullopt);
  table.learn(now, v4(0x0a000002), kMac, false);  // was known
  EXPECT_EQ(table.take_news(), std::nullopt);
  table.learn(now, v4(0x0a000003), kMac, true);  // nobody asked, but it will hear from us
  EXPECT_EQ(table.take_news(), v4(0x0a000003));
}

TEST_F(NeighboursTest, addresses_that_nobody_has_push_out_no_neighbour) {
  Neighbours wide({{v4(0x0a000001), 8}}, {}, {});
  wide.find(now, v4(0x0a000002), &ask);
  wide.learn(now, v4(0x0a000002), kMac, false);
  for (uint32_t i = 1; i < 2 * Neighbours::kMaxEntries; ++i) wide.find(now + nanoseconds(i), v4(0x0a010000 + i), &ask);
  EXPECT_EQ(wide.size(), Neighbours::kMaxEntries);
  EXPECT_NE(wide.find(now + seconds(1), v4(0x0a000002), &ask), nullptr);
}

TEST_F(NeighboursTest, a_full_table_forgets_the_least_used) {
  table.add_static(v4(0x0a000004), kMac);
  Neighbours wide({{v4(0x0a000001), 8}}, {}, {});
  for (uint32_t i = 0; i < Neighbours::kMaxEntries + 10; ++i) wide.find(now + nanoseconds(i), v4(0x0a010000 + i), &ask);
  EXPECT_EQ(wide.size(), Neighbours::kMaxEntries);
  wide.find(now + seconds(1), v4(0x0a010000 + 5), &ask);  // was forgotten: is asked for at once
  EXPECT_TRUE(ask);
  wide.learn(now, v4(0x0a020000), kMac, true);  // strangers do not push out what we use
  EXPECT_EQ(wide.find(now + seconds(1), v4(0x0a010000 + 2000), &ask), nullptr);
  EXPECT_EQ(wide.size(), Neighbours::kMaxEntries);
}

}  // namespace
}  // namespace ub
