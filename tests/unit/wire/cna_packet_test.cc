// SPDX-License-Identifier: Apache-2.0
//
// Packets of RTP over UB's own network header (UB Base Specification Rev 2.0, 4.3.2.2.2, 5.2.2, 5.3.5, 5.3.7).
#include "lib/transport/wire/cna_packet.h"

#include <gtest/gtest.h>

#include <cstring>

#include "lib/transport/wire/compact_packet.h"
#include "lib/transport/wire/icrc.h"
#include "tests/unit/wire/wire_test_util.h"

namespace ub::wire {
namespace {

constexpr size_t kRest = 40;  // bytes behind NTH24, without the ICRC
const Endpoint kFrom{IpAddress::from_v4(0x0A010203), 4792}, kTo{IpAddress::from_v4(0x0A040506), 5000};

Bytes frame_with(uint8_t ecn = kEcnNotCapable, uint8_t dscp = 0) {
  Bytes frame(kCnaHeadersSize + kRest + kIcrcSize);
  EXPECT_EQ(cna_template(kFrom, kTo, dscp).write(frame.data(), kRest + kIcrcSize, ecn), kCnaHeadersSize);
  for (size_t i = 0; i < kRest; ++i) frame[kCnaHeadersSize + i] = static_cast<std::byte>(i);
  std::byte* behind_ethernet = frame.data() + kEthSize;
  const size_t covered = LinkHeader::kSize + Nth24::kSize + kRest;
  icrc_store(frame.data() + kCnaHeadersSize + kRest, icrc_of_packet(behind_ethernet, covered, NetForm::kCna24));
  return frame;
}

TEST(CnaPacket, begins_with_these_bytes) {
  const Bytes frame = frame_with();
  EXPECT_EQ(Bytes(frame.begin() + 12, frame.begin() + kCnaHeadersSize), hex("88B5 00070000 010203 040506 0000 00 02"));
  MacAddress to, from;
  std::memcpy(to.data(), frame.data(), to.size());
  std::memcpy(from.data(), frame.data() + to.size(), from.size());
  EXPECT_EQ(to, stand_in_mac(kTo));
  EXPECT_EQ(from, stand_in_mac(kFrom));
}

TEST(CnaPacket, has_the_service_level_and_virtual_lane_of_its_class) {
  for (const uint8_t dscp : {0, 7, 8, 34, 63}) {
    const Bytes frame = frame_with(kEcnNotCapable, dscp);
    CnaPacket packet;
    LinkHeader link;
    ASSERT_EQ(parse_cna(frame, packet), Drop::kNone);
    ASSERT_EQ(LinkHeader::read(frame.data() + kEthSize, LinkHeader::kSize, link), Drop::kNone);
    EXPECT_EQ(packet.sl, dscp / 8);
    EXPECT_EQ(link.vl, dscp / 8);
  }
}

TEST(CnaPacket, is_read_as_it_was_written) {
  const Bytes frame = frame_with();
  ASSERT_TRUE(has_link_header(frame));
  CnaPacket packet;
  ASSERT_EQ(parse_cna(frame, packet), Drop::kNone);
  EXPECT_EQ(packet.scna, 0x010203u);
  EXPECT_EQ(packet.dcna, 0x040506u);
  EXPECT_EQ(packet.cci, 0);
  EXPECT_EQ(packet.tph - frame.data(), static_cast<ptrdiff_t>(kCnaHeadersSize));
  EXPECT_EQ(packet.end - packet.tph, static_cast<ptrdiff_t>(kRest));
  EXPECT_TRUE(icrc_matches(packet));
}

TEST(CnaPacket, what_is_none_is_told_why) {
  CnaPacket packet;
  const Bytes whole = frame_with();
  const size_t least = kCnaHeadersSize + kIcrcSize;
  for (size_t bytes = 0; bytes < least; ++bytes)
    EXPECT_EQ(parse_cna({whole.data(), bytes}, packet), Drop::kTooShort) << bytes;
  EXPECT_EQ(parse_cna({whole.data(), least}, packet), Drop::kNone);
  Bytes other = whole;
  other[kEthSize + 1] = std::byte{9};
  EXPECT_EQ(parse_cna(other, packet), Drop::kBadLinkType);
  for (const int nlp : {0, 1, 3, 7}) {
    other = whole;
    other[kCnaHeadersSize - 1] = static_cast<std::byte>(nlp);
    EXPECT_EQ(parse_cna(other, packet), Drop::kBadNlp) << nlp;
  }
}

// Hops change the CCI and the load-balancing factor (LBF), and nothing else.
TEST(CnaPacket, the_sum_covers_all_behind_the_link_header_but_what_hops_change) {
  constexpr size_t kNth = kEthSize + LinkHeader::kSize;
  const Bytes whole = frame_with();
  for (size_t at = kNth; at < whole.size(); ++at) {
    Bytes damaged = whole;
    damaged[at] ^= std::byte{0x80};
    CnaPacket packet;
    ASSERT_NE(parse_cna(damaged, packet), Drop::kTooShort);
    const bool may_change = at >= kNth + 6 && at <= kNth + 8;
    packet.nth = damaged.data() + kNth;
    packet.end = damaged.data() + damaged.size() - kIcrcSize;
    EXPECT_EQ(icrc_matches(packet), may_change) << at;
  }
}

// ---- congestion --------------------------------------------------------------------------------------------------

TEST(CciOfFrame, is_read_and_replaced) {
  Bytes frame = frame_with();
  Cci cci;
  ASSERT_TRUE(read_cci(frame, cci));
  EXPECT_EQ(cci, Cci{});
  const Cci asks{.enable = true, .increase = true, .hint = 130};
  write_cci(frame.data(), asks);
  ASSERT_TRUE(read_cci(frame, cci));
  EXPECT_EQ(cci, asks);
  CnaPacket packet;
  ASSERT_EQ(parse_cna(frame, packet), Drop::kNone);
  EXPECT_EQ(packet.cci, asks.pack());
  EXPECT_TRUE(icrc_matches(packet));
}

TEST(CciOfFrame, says_a_code_point_as_fecn) {
  for (const uint8_t ecn : {kEcnEct0, kEcnEct1, kEcnCe}) {
    Cci cci;
    ASSERT_TRUE(read_cci(frame_with(ecn), cci));
    EXPECT_EQ(cci, (Cci{.mode = CciMode::kFecn, .fecn = ecn}));
  }
}

TEST(CciOfFrame, is_in_frames_with_nth24_only) {
  Cci cci;
  EXPECT_FALSE(read_cci(frame_of(template_v4(), Bytes(kRest)), cci));
  Bytes frame = frame_with();
  EXPECT_FALSE(read_cci({frame.data(), kCnaHeadersSize - 1}, cci));
  store_be16(frame.data() + kEthSize + LinkHeader::kSize + 6, 0x2000);
  EXPECT_FALSE(read_cci(frame, cci)) << "a reserved mode";
  frame = frame_with();
  frame[kEthSize + 1] = std::byte{9};
  EXPECT_FALSE(read_cci(frame, cci)) << "NTH16";
}

}  // namespace
}  // namespace ub::wire
