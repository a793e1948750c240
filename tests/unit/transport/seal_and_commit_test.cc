// SPDX-License-Identifier: Apache-2.0
//
// The last step of a packet (UB Base Specification Rev 2.0, 5.3.7): what its sum covers, where it goes, and who is
// told.
#include "lib/transport/seal_and_commit.h"

#include <gtest/gtest.h>

#include <vector>

namespace ub {
namespace {

struct Committed {
  void tx_commit(uint32_t to, std::byte* at, size_t length) {
    link = to;
    frame.assign(at, at + length);
  }
  uint32_t link = 0;
  std::vector<std::byte> frame;
};

struct Frame {
  explicit Frame(size_t size) : bytes(size) {
    for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i + 1);
  }
  template <class Icrc>
  void seal(Icrc icrc) {
    seal_and_commit(common, host, 3, bytes.data(), bytes.size(), icrc);
  }
  std::vector<std::byte> bytes;
  CoreCommon common;
  Committed host;
};

TEST(SealedFrame, its_sum_is_over_all_behind_the_ethernet_header_and_is_its_end) {
  Frame f(80);
  const std::vector<std::byte> before = f.bytes;
  const std::byte* covered = nullptr;
  f.seal([&](const std::byte* l3, size_t bytes) {
    covered = l3;
    EXPECT_EQ(bytes, 80 - wire::kEthSize - wire::kIcrcSize);
    return 0x01020304u;
  });
  EXPECT_EQ(covered, f.bytes.data() + wire::kEthSize);
  EXPECT_EQ(f.host.link, 3u);
  ASSERT_EQ(f.host.frame.size(), 80u);
  EXPECT_EQ(wire::icrc_load(&f.host.frame[76]), 0x01020304u);
  EXPECT_TRUE(std::equal(before.begin(), before.end() - 4, f.host.frame.begin())) << "the rest is as it was";
}

TEST(SealedFrame, is_in_the_books) {
  Frame small(60), large(100);
  small.seal([](const std::byte*, size_t) { return 0u; });
  EXPECT_EQ(small.common.counters[Counter::kTxPackets], 1u);
  EXPECT_EQ(small.common.counters[Counter::kTxBytes], 60u);
  large.seal([](const std::byte*, size_t) { return 0u; });
  EXPECT_EQ(large.common.counters[Counter::kTxBytes], 100u);
}

TEST(SealedFrame, of_ub_has_the_sum_of_its_network_header) {
  for (bool v6 : {false, true}) {
    Frame f(120);
    f.seal(UbIcrc{v6 ? wire::NetForm::kIpv6 : wire::NetForm::kIpv4});
    const std::byte* l3 = f.host.frame.data() + wire::kEthSize;
    const size_t covered = 120 - wire::kEthSize - wire::kIcrcSize;
    EXPECT_EQ(wire::icrc_load(l3 + covered), wire::icrc_compute(l3, covered, v6));
    EXPECT_NE(wire::icrc_load(l3 + covered), wire::icrc_compute(l3, covered, !v6));
  }
}

}  // namespace
}  // namespace ub
