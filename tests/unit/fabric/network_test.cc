// SPDX-License-Identifier: Apache-2.0
//
// Paths between NICs: who gets a frame, when, and by which of several paths.
#include "tools/fabric/network.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/unit/fabric/frames.h"
#include "tests/unit/fabric/two_nics.h"

namespace ub::fabric {
namespace {

constexpr Instant kStart{1'000'000'000};

struct Delivered {
  size_t to;
  std::vector<std::byte> frame;
  uint64_t tag;
  bool operator==(const Delivered&) const = default;
};

std::vector<Delivered> deliver(Network& network, Instant now) {
  std::vector<Delivered> all;
  network.deliver(now, [&](size_t to, std::span<const std::byte> frame, uint64_t tag) {
    all.push_back({to, {frame.begin(), frame.end()}, tag});
  });
  return all;
}

void delay(Network& network, const PathId& id, Duration by) {
  impair::Spec spec;
  spec.delay = by;
  network.link(id).set(kStart, spec);
}

TEST(FabricNetwork, hands_a_frame_to_its_receiver_with_its_tag_when_it_is_due) {
  const Config config = over_udp({"a", "b", "c"});
  Network network(config, kStart);
  delay(network, {0, 2, 0}, microseconds(5));
  const std::vector<std::byte> frame = udp_frame(1, 2);
  network.offer(kStart, 0, 2, frame, 77);
  EXPECT_EQ(network.next_due(), kStart + microseconds(5));
  EXPECT_TRUE(deliver(network, kStart + nanoseconds(4999)).empty());
  EXPECT_EQ(deliver(network, kStart + microseconds(5)), (std::vector<Delivered>{{2, frame, 77}}));
  EXPECT_TRUE(network.next_due().is_never());
}

TEST(FabricNetwork, is_due_when_the_first_of_all_links_is) {
  const Config config = over_udp({"a", "b"});
  Network network(config, kStart);
  delay(network, {0, 1, 0}, microseconds(9));
  delay(network, {1, 0, 0}, microseconds(3));
  network.offer(kStart, 0, 1, udp_frame(1, 2));
  network.offer(kStart, 1, 0, udp_frame(2, 1));
  EXPECT_EQ(network.next_due(), kStart + microseconds(3));
  EXPECT_EQ(deliver(network, kStart + microseconds(3)).size(), 1u);
  EXPECT_EQ(network.next_due(), kStart + microseconds(9));
}

TEST(FabricNetwork, each_direction_has_faults_of_its_own) {
  const Config config = over_udp();
  Network network(config, kStart);
  impair::Spec cut;
  cut.down = true;
  network.link({0, 1, 0}).set(kStart, cut);
  network.offer(kStart, 0, 1, udp_frame(1, 2));
  network.offer(kStart, 1, 0, udp_frame(2, 1));
  const auto all = deliver(network, kStart);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].to, 0u);
  EXPECT_EQ(network.link({0, 1, 0}).counts().lost_down, 1u);
}

TEST(FabricNetwork, a_flow_keeps_to_one_path_and_flows_use_all) {
  Config config = over_udp();
  config.paths = 4;
  Network network(config, kStart);
  std::set<uint32_t> used;
  for (uint16_t port = 1; port <= 64; ++port) {
    for (int frame = 0; frame < 3; ++frame) network.offer(kStart, 0, 1, udp_frame(port, 4792));
    for (uint32_t path = 0; path < 4; ++path) {
      const uint64_t offered = network.link({0, 1, path}).counts().offered;
      ASSERT_EQ(offered % 3, 0u) << "a flow was divided";
      if (offered != 0) used.insert(path);
    }
  }
  EXPECT_EQ(used.size(), 4u);
}

TEST(FabricNetwork, spraying_by_packet_gives_each_path_its_turn) {
  Config config = over_udp();
  config.paths = 3;
  config.spray = Spray::kPacket;
  Network network(config, kStart);
  for (int i = 0; i < 9; ++i) network.offer(kStart, 0, 1, udp_frame(1, 2));
  for (uint32_t path = 0; path < 3; ++path) EXPECT_EQ(network.link({0, 1, path}).counts().offered, 3u);
  EXPECT_EQ(deliver(network, kStart).size(), 9u);
}

TEST(FabricNetwork, one_seed_gives_one_fate_and_links_have_different_ones) {
  auto losses = [](uint64_t seed, const PathId& id) {
    Config config = over_udp();
    config.seed = seed;
    Network network(config, kStart);
    impair::Spec spec;
    spec.loss = 0.5;
    network.link(id).set(kStart, spec);
    std::string fates;
    for (int i = 0; i < 64; ++i) {
      const uint64_t before = network.link(id).counts().lost_random;
      network.offer(kStart, id.from, id.to, udp_frame(1, 2));
      fates += network.link(id).counts().lost_random > before ? 'x' : '.';
    }
    return fates;
  };
  EXPECT_EQ(losses(1, {0, 1, 0}), losses(1, {0, 1, 0}));
  EXPECT_NE(losses(1, {0, 1, 0}), losses(2, {0, 1, 0}));
  EXPECT_NE(losses(1, {0, 1, 0}), losses(1, {1, 0, 0}));
}

}  // namespace
}  // namespace ub::fabric
