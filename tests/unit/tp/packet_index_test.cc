// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/tp/packet_index.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "lib/base/prng.h"
#include "tests/unit/transport/zeroed_memory.h"

namespace ub::tp {
namespace {

constexpr uint32_t kPackets = 20;

struct Index : PacketIndex {
  Index() : memory(4096) {
    Arena arena(memory.get());
    init(arena, kPackets);
  }
  ZeroedMemory memory;
};

TEST(PacketIndex, finds_a_packet_by_channel_and_psn) {
  Index i;
  EXPECT_EQ(i.find(3, Psn(100)), 0u);
  i.insert(3, Psn(100), 7);
  EXPECT_EQ(i.find(3, Psn(100)), 7u);
  EXPECT_EQ(i.find(4, Psn(100)), 0u);
  EXPECT_EQ(i.find(3 + 32, Psn(100)), 0u) << "its packets are in the same list: there are 32";
  EXPECT_EQ(i.find(3, Psn(101)), 0u);
  i.remove(3, Psn(100));
  EXPECT_EQ(i.find(3, Psn(100)), 0u);
  EXPECT_EQ(i.size(), 0u);
}

TEST(PacketIndex, a_list_loses_any_of_its_packets) {
  for (uint32_t lost = 0; lost < 3; ++lost) {
    Index i;
    for (uint32_t n = 0; n < 3; ++n) i.insert(1, Psn(5 + 32 * n), n + 1);  // in one list
    i.remove(1, Psn(5 + 32 * lost));
    for (uint32_t n = 0; n < 3; ++n) EXPECT_EQ(i.find(1, Psn(5 + 32 * n)), n == lost ? 0 : n + 1) << lost;
  }
}

TEST(PacketIndex, the_last_packet_has_an_entry_of_its_own) {
  Index i;
  i.insert(1, Psn(1), kPackets);
  i.insert(1, Psn(2), kPackets - 1);
  EXPECT_EQ(i.find(1, Psn(1)), kPackets);
  EXPECT_EQ(i.find(1, Psn(2)), kPackets - 1);
}

TEST(PacketIndex, random__is_what_a_map_is) {
  Prng random(1);
  Index index;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> known;
  std::vector<uint32_t> unused;
  for (uint32_t packet = 1; packet <= kPackets; ++packet) unused.push_back(packet);
  for (int step = 0; step < 50'000; ++step) {
    const uint32_t channel = 1 + 16 * static_cast<uint32_t>(random.below(3));
    const Psn psn = Psn(0xFFFFF0) + static_cast<int64_t>(random.below(40));
    const auto found = known.find({channel, psn.value()});
    ASSERT_EQ(index.find(channel, psn), found == known.end() ? 0 : found->second);
    if (found != known.end()) {
      index.remove(channel, psn);
      unused.push_back(found->second);
      known.erase(found);
    } else if (!unused.empty()) {
      index.insert(channel, psn, unused.back());
      known[{channel, psn.value()}] = unused.back();
      unused.pop_back();
    }
    ASSERT_EQ(index.size(), known.size());
  }
}

}  // namespace
}  // namespace ub::tp
