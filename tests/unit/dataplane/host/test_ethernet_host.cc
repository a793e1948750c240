// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "dataplane/ethernet_host.h"

namespace ub {
namespace {

using wire::IpAddress;
using wire::MacAddress;
using Verdict = EthernetHost::Verdict;
using Bytes = std::vector<std::byte>;

constexpr MacAddress kMacA{2, 0, 0, 0, 0, 0xa}, kMacB{2, 0, 0, 0, 0, 0xb};
const IpAddress kA4 = IpAddress::from_v4(0x0a000001), kB4 = IpAddress::from_v4(0x0a000002);
const IpAddress kA6{{0xfd, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xaa, 0xbb, 1}};
const IpAddress kB6{{0xfd, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xcc, 0xdd, 2}};

struct Host {
  Neighbours neighbours;
  EthernetHost host;
  Bytes answer = Bytes(2000);

  Host(const IpAddress& ip4, const IpAddress& ip6, const MacAddress& mac)
      : neighbours({{ip4, 24}, {ip6, 64}}, {}, {}), host(mac, &neighbours) {}
  // The answer is cut to its length; empty if there is none.
  Verdict take(const Bytes& frame) {
    answer.assign(2000, std::byte{0xee});
    size_t bytes = 0;
    Verdict v = host.on_frame(Instant{1}, frame, answer.data(), &bytes);
    answer.resize(bytes);
    return v;
  }
  bool knows(const IpAddress& ip, const MacAddress& mac) {
    bool ask;
    const MacAddress* found = neighbours.find(Instant{1}, ip, &ask);
    return found != nullptr && *found == mac;
  }
};

Bytes hex(const char* text) {
  Bytes out;
  for (const char* p = text; *p != 0; ++p) {
    if (*p == ' ') continue;
    out.push_back(static_cast<std::byte>(std::stoi(std::string(p, 2), nullptr, 16)));
    ++p;
  }
  return out;
}

struct EthernetHostTest : testing::Test {
  Host a{kA4, kA6, kMacA}, b{kB4, kB6, kMacB};
};

TEST_F(EthernetHostTest, arp_question_and_answer_byte_by_byte) {
  Bytes question(EthernetHost::kMaxQuestion);
  question.resize(a.host.write_question(kB4, kA4, question.data()));
  EXPECT_EQ(question, hex("ffffffffffff 02000000000a 0806 0001 0800 06 04 0001"
                          "02000000000a 0a000001 000000000000 0a000002"));
  ASSERT_EQ(b.take(question), Verdict::kAnswer);
  EXPECT_EQ(b.answer, hex("02000000000a 02000000000b 0806 0001 0800 06 04 0002"
                          "02000000000b 0a000002 02000000000a 0a000001"));
  EXPECT_TRUE(b.knows(kA4, kMacA));  // who asks us will hear from us
  bool ask;
  a.neighbours.find(Instant{1}, kB4, &ask);
  EXPECT_EQ(a.take(b.answer), Verdict::kConsumed);
  EXPECT_TRUE(a.knows(kB4, kMacB));
}

TEST_F(EthernetHostTest, arp_for_others_is_not_answered) {
  Bytes question(EthernetHost::kMaxQuestion);
  question.resize(a.host.write_question(IpAddress::from_v4(0x0a000003), kA4, question.data()));
  EXPECT_EQ(b.take(question), Verdict::kForeign);
  EXPECT_EQ(b.neighbours.size(), 0u);
}

TEST_F(EthernetHostTest, arp_probe_for_our_address_is_answered_and_not_learnt) {
  Bytes question(EthernetHost::kMaxQuestion);
  question.resize(a.host.write_question(kB4, IpAddress::from_v4(0), question.data()));
  EXPECT_EQ(b.take(question), Verdict::kAnswer);
  EXPECT_EQ(b.neighbours.size(), 0u);
}

TEST_F(EthernetHostTest, neighbour_solicitation) {
  Bytes question(EthernetHost::kMaxQuestion);
  question.resize(a.host.write_question(kB6, kA6, question.data()));
  ASSERT_EQ(question.size(), 86u);
  EXPECT_EQ(Bytes(question.begin(), question.begin() + 6), hex("3333ffccdd02"));
  EXPECT_EQ(Bytes(question.begin() + 38, question.begin() + 54), hex("ff0200000000000000000001ffccdd02"));
  ASSERT_EQ(b.take(question), Verdict::kAnswer);
  EXPECT_TRUE(b.knows(kA6, kMacA));
  bool ask;
  a.neighbours.find(Instant{1}, kB6, &ask);
  EXPECT_EQ(a.take(b.answer), Verdict::kConsumed);
  EXPECT_TRUE(a.knows(kB6, kMacB));
}

TEST_F(EthernetHostTest, damaged_solicitation_is_ignored) {
  Bytes question(EthernetHost::kMaxQuestion);
  question.resize(a.host.write_question(kB6, kA6, question.data()));
  question.back() ^= std::byte{1};
  EXPECT_EQ(b.take(question), Verdict::kDamaged);
  EXPECT_EQ(b.neighbours.size(), 0u);
}

TEST_F(EthernetHostTest, solicitation_that_a_router_passed_on_is_ignored) {
  Bytes question(EthernetHost::kMaxQuestion);
  question.resize(a.host.write_question(kB6, kA6, question.data()));
  question[14 + 7] = std::byte{254};  // the hop limit is in no checksum
  EXPECT_EQ(b.take(question), Verdict::kForeign);
  EXPECT_EQ(b.neighbours.size(), 0u);
}

// Checksums computed by hand.
TEST_F(EthernetHostTest, echo) {
  const Bytes request =
      hex("02000000000b 02000000000a 0800 45000024 1c46 4000 40 01 0a91 0a000001 0a000002"
          "0800 ebed 0001 0001 0001020304050607");
  ASSERT_EQ(b.take(request), Verdict::kAnswer);
  EXPECT_EQ(b.answer, hex("02000000000a 02000000000b 0800 45000024 1c46 4000 40 01 0a91 0a000002 0a000001"
                          "0000 f3ed 0001 0001 0001020304050607"));
  Bytes broken = request;
  broken.back() = std::byte{9};
  EXPECT_EQ(b.take(broken), Verdict::kDamaged);
  Bytes cut(request.begin(), request.end() - 3);
  EXPECT_EQ(b.take(cut), Verdict::kForeign);
}

TEST_F(EthernetHostTest, udp_is_for_the_core_if_it_is_for_us) {
  Bytes udp = hex("02000000000b 02000000000a 0800 4500001c 0000 4000 40 11 26cd 0a000001 0a000002 12b8 12b8 0008 0000");
  EXPECT_EQ(b.take(udp), Verdict::kUdp);
  EXPECT_EQ(a.take(udp), Verdict::kForeign);
}

TEST_F(EthernetHostTest, any_bytes_are_survived) {
  std::mt19937 rng(7);
  Bytes seeds[2] = {Bytes(EthernetHost::kMaxQuestion), Bytes(EthernetHost::kMaxQuestion)};
  seeds[0].resize(a.host.write_question(kB4, kA4, seeds[0].data()));
  seeds[1].resize(a.host.write_question(kB6, kA6, seeds[1].data()));
  for (int i = 0; i < 100000; ++i) {
    Bytes frame = seeds[rng() % 2];
    for (int n = rng() % 4; n >= 0; --n) frame[12 + rng() % (frame.size() - 12)] = static_cast<std::byte>(rng());
    frame.resize(rng() % (frame.size() + 1));
    frame.shrink_to_fit();  // a read behind the end is seen by a sanitizer
    b.take(frame);
  }
  EXPECT_LE(b.neighbours.size(), Neighbours::kMaxEntries);
}

}  // namespace
}  // namespace ub
