// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/roce/wire/icrc.h"

#include <gtest/gtest.h>

#include "tests/unit/roce/golden_frames.h"

namespace ub::roce {
namespace {

/// The definition, byte by byte: ones in front, and ones wherever a hop may write.
uint32_t icrc_by_definition(Bytes packet, bool v6) {
  const auto ones = [&packet](size_t at, uint8_t mask) { packet[at] |= std::byte{mask}; };
  const size_t ip = v6 ? 40 : 20;
  if (v6) {
    ones(0, 0x0F);
    for (size_t at : {1, 2, 3, 7}) ones(at, 0xFF);
  } else {
    for (size_t at : {1, 8, 10, 11}) ones(at, 0xFF);
  }
  ones(ip + 6, 0xFF);
  ones(ip + 7, 0xFF);
  ones(ip + 8 + 4, 0xFF);
  packet.insert(packet.begin(), 8, std::byte{0xFF});
  uint32_t crc = 0xFFFFFFFF;
  for (std::byte b : packet) {
    crc ^= static_cast<uint8_t>(b);
    for (int i = 0; i < 8; ++i) crc = crc >> 1 ^ ((crc & 1) != 0 ? 0xEDB88320 : 0);
  }
  return ~crc;
}

bool matches(const Bytes& frame, bool (*fits)(const wire::NetHeader&) = icrc_fits) {
  const Exact exact(frame);
  wire::NetHeader net;
  EXPECT_EQ(wire::parse_network(exact.span(), net), wire::Drop::kNone);
  return fits(net);
}

TEST(RoceIcrc, start_is_the_state_behind_eight_bytes_of_ones) {
  const Bytes ones(8, std::byte{0xFF});
  EXPECT_EQ(crc32_update(crc32_init(), ones.data(), ones.size()), kIcrcStart);
}

// Made up, its ICRC computed with zlib: traffic class, flow label, hop limit and FECN are set, and masked.
TEST(RoceIcrc, ipv6) {
  const Bytes frame =
      hex("525400a35ecd 52540048011e 86dd 6a512345 0020 11 3f fd000000000000000000000000000001"
          "fd000000000000000000000000000002 c001 12b7 0020 0000 0460ffff801234568000000a 68656c6c6f210000 d2d5efcf");
  EXPECT_TRUE(matches(frame));
}

TEST(RoceIcrc, follows_the_definition) {
  Prng rng(51);
  for (const bool v6 : {false, true}) {
    for (size_t size = Bth::kSize; size < 300; size += 4) {
      const Bytes frame = frame_of(random_bytes(size, rng), v6);
      const Bytes covered(frame.begin() + wire::kEthSize, frame.end() - wire::kIcrcSize);
      ASSERT_EQ(wire::icrc_load(&frame[frame.size() - wire::kIcrcSize]), icrc_by_definition(covered, v6)) << size;
    }
  }
}

TEST(RoceIcrc, one_wrong_bit_is_found_unless_a_hop_may_write_it) {
  for (const auto& [name, good] : golden::all()) {
    const size_t udp = wire::kEthSize + wire::kIpv4Size;
    for (size_t at = udp; at < good.size(); ++at) {
      if (at == udp + 4 || at == udp + 5) continue;  // the UDP length: not a frame any more
      Bytes bad = good;
      bad[at] ^= std::byte{0x10};
      const bool masked = at == udp + 6 || at == udp + 7 || at == udp + wire::kUdpSize + 4;
      ASSERT_EQ(matches(bad), masked) << name << " byte " << at;
    }
  }
}

TEST(RoceIcrc, fits_without_the_identification) {
  for (const auto& [name, good] : golden::all()) {
    Bytes lost = good;
    set_identification(&lost, 0);
    EXPECT_FALSE(matches(lost)) << name;  // Linux does not send ID 0
    EXPECT_TRUE(matches(lost, icrc_fits_some_identification)) << name;
    EXPECT_TRUE(matches(good, icrc_fits_some_identification)) << name;
    for (size_t at = wire::kEthSize + wire::kIpv4Size + wire::kUdpSize; at < lost.size(); ++at) {
      Bytes bad = lost;
      bad[at] ^= std::byte{0x10};
      const bool masked = at == wire::kEthSize + wire::kIpv4Size + wire::kUdpSize + 4;
      ASSERT_EQ(matches(bad, icrc_fits_some_identification), masked) << name << " byte " << at;
    }
  }
}

TEST(RoceIcrc, ipv6_has_no_identification) {
  Prng rng(52);
  const size_t behind = 64 + wire::kIpv6Size + wire::kUdpSize - 4;
  for (const bool v6 : {false, true}) {
    Bytes frame = frame_of(random_bytes(v6 ? 64 : 64 + wire::kIpv6Size - wire::kIpv4Size, rng), v6);
    EXPECT_TRUE(matches(frame, icrc_fits_some_identification));
    // What another identification would make of the sum.
    Bytes difference(behind);
    difference[0] = std::byte{0xA6};
    std::byte* icrc = &frame[frame.size() - wire::kIcrcSize];
    wire::icrc_store(icrc, wire::icrc_load(icrc) ^ crc32_update(0, difference.data(), behind));
    EXPECT_EQ(matches(frame, icrc_fits_some_identification), !v6);
  }
}

TEST(RoceIcrc, too_short_for_a_transport_header) {
  for (size_t size = 0; size < Bth::kSize; ++size) {
    Bytes packet(size);
    const wire::NetTemplate net = net_template(false);
    Bytes frame(net.size + size + wire::kIcrcSize);
    net.write(frame.data(), size + wire::kIcrcSize, 0);
    EXPECT_FALSE(matches(frame)) << size;
    EXPECT_FALSE(matches(frame, icrc_fits_some_identification)) << size;
  }
}

}  // namespace
}  // namespace ub::roce
