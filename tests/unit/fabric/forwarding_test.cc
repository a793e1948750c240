// SPDX-License-Identifier: Apache-2.0
//
// What a fabric does to a frame and where it sends it: other addresses, learned MAC addresses, tags of offloads.
#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "lib/base/bytes.h"
#include "lib/transport/wire/icrc.h"
#include "tests/unit/fabric/frames.h"
#include "tools/fabric/mac_table.h"
#include "tools/fabric/offload.h"
#include "tools/fabric/readdress.h"

namespace ub::fabric {
namespace {

// ---- other addresses ----

Endpoint v4(uint32_t ip, uint16_t port) { return {IpAddress::from_v4(ip), port}; }
Endpoint v6(uint8_t last, uint16_t port) {
  Endpoint end;
  end.ip.bytes[0] = 0xfd;
  end.ip.bytes[15] = last;
  end.port = port;
  return end;
}

// A payload of 100 bytes, sealed for a route, with room in front of it.
class Sealed {
 public:
  explicit Sealed(const Route& route) {
    for (size_t i = 0; i < kBytes; ++i) payload()[i] = static_cast<std::byte>(i);
    wire::NetTemplate headers;
    headers.init({}, {}, route.from, route.to, 0);
    std::byte* frame = payload().data() - headers.size;
    headers.write(frame, kBytes, 0);
    std::byte* end = payload().data() + kBytes - wire::kIcrcSize;
    const auto covered = static_cast<size_t>(end - frame) - wire::kEthSize;
    wire::icrc_store(end, wire::icrc_compute(frame + wire::kEthSize, covered, headers.v6()));
  }
  std::span<std::byte> payload() { return {bytes_.data() + kHeaderRoom, kBytes}; }

 private:
  static constexpr size_t kBytes = 100;
  std::array<std::byte, kHeaderRoom + kBytes> bytes_{};
};

void expect_sealed_for(std::span<const std::byte> frame, const Route& route) {
  wire::NetHeader net;
  ASSERT_EQ(wire::parse_network(frame, net), wire::Drop::kNone);
  EXPECT_EQ(net.src, route.from);
  EXPECT_EQ(net.dst, route.to);
  EXPECT_TRUE(wire::icrc_matches(net));
}

TEST(Readdress, a_packet_is_sealed_for_its_new_addresses) {
  const Route was{v4(0x7f4d0101, 4792), v4(0x7f4d0202, 61443)}, is{v4(0x7f4d0201, 4792), v4(0x7f4d0102, 61443)};
  Sealed packet(was);
  expect_sealed_for(readdress(packet.payload(), 0, was, is), is);
}

TEST(Readdress, ipv6_as_well) {
  const Route was{v6(1, 4792), v6(2, 4792)}, is{v6(3, 4792), v6(4, 4792)};
  Sealed packet(was);
  expect_sealed_for(readdress(packet.payload(), 0, was, is), is);
}

TEST(Readdress, keeps_dscp_and_ecn) {
  const Route was{v4(1 << 24, 4792), v4(2 << 24, 4792)}, is{v4(3 << 24, 4792), v4(4 << 24, 4792)};
  Sealed packet(was);
  wire::NetHeader net;
  ASSERT_EQ(wire::parse_network(readdress(packet.payload(), 26 << 2 | wire::kEcnCe, was, is), net), wire::Drop::kNone);
  EXPECT_EQ(net.dscp(), 26);
  EXPECT_EQ(net.ecn(), wire::kEcnCe);
}

TEST(Readdress, a_damaged_packet_stays_damaged) {
  const Route was{v4(1 << 24, 4792), v4(2 << 24, 4792)}, is{v4(3 << 24, 4792), v4(4 << 24, 4792)};
  for (size_t byte : {size_t{0}, size_t{50}, size_t{99}}) {
    Sealed packet(was);
    packet.payload()[byte] ^= std::byte{0x10};
    wire::NetHeader net;
    ASSERT_EQ(wire::parse_network(readdress(packet.payload(), 0, was, is), net), wire::Drop::kNone);
    EXPECT_FALSE(wire::icrc_matches(net)) << byte;
    packet.payload()[byte] ^= std::byte{0x10};
    EXPECT_TRUE(wire::icrc_matches(net)) << "only that bit is wrong, at byte " << byte;
  }
}

TEST(Readdress, a_payload_too_short_for_an_icrc_is_passed_on_as_it_is) {
  std::array<std::byte, kHeaderRoom + 3> bytes{};
  bytes.back() = std::byte{7};
  const Route route{v4(1 << 24, 1), v4(2 << 24, 2)};
  const auto frame = readdress({bytes.data() + kHeaderRoom, 3}, 0, route, route);
  EXPECT_EQ(frame.size(), wire::NetTemplate::kSizeV4 + 3);
  EXPECT_EQ(frame.back(), std::byte{7});
}

// ---- MAC addresses ----

TEST(MacTable, a_frame_goes_to_all_until_its_receiver_was_seen) {
  MacTable table;
  EXPECT_EQ(table.look_up(frame_from_to(1, 2), 0), std::nullopt);
  EXPECT_EQ(table.look_up(frame_from_to(2, 1), 1), 0u);
  EXPECT_EQ(table.look_up(frame_from_to(1, 2), 0), 1u);
}

TEST(MacTable, a_group_address_goes_to_all_and_is_not_learned) {
  MacTable table;
  std::vector<std::byte> frame = frame_from_to(1, 2, 3);
  frame[6] = std::byte{3};
  EXPECT_EQ(table.look_up(frame, 0), std::nullopt);
  EXPECT_EQ(table.size(), 0u);
}

TEST(MacTable, an_address_that_moves_is_found_where_it_was_seen_last) {
  MacTable table;
  table.look_up(frame_from_to(1, 9), 0);
  table.look_up(frame_from_to(1, 9), 2);
  EXPECT_EQ(table.look_up(frame_from_to(2, 1), 1), 2u);
}

TEST(MacTable, does_not_grow_beyond_its_limit_and_known_addresses_may_still_move) {
  MacTable table;
  std::vector<std::byte> frame = frame_from_to(0, 200);
  for (uint32_t i = 0; i < 2 * MacTable::kMostAddresses; ++i) {
    store_be32(frame.data() + 8, i);
    table.look_up(frame, 0);
  }
  EXPECT_EQ(table.size(), MacTable::kMostAddresses);
  store_be32(frame.data() + 8, 5);
  table.look_up(frame, 3);
  std::vector<std::byte> back = frame_from_to(9, 0);
  std::memcpy(back.data(), frame.data() + 6, 6);
  EXPECT_EQ(table.look_up(back, 1), 3u);
}

// ---- offloads ----

TEST(Offload, a_tag_has_all_but_the_length_of_the_headers) {
  Offload o{.flags = 1,
            .segmentation = 0x83,
            .header_bytes = 66,
            .segment_bytes = 1448,
            .checksum_from = 34,
            .checksum_at = 0xFFFE};
  Offload back = offload_of(tag_of(o));
  EXPECT_EQ(back.header_bytes, 0);
  back.header_bytes = 66;
  EXPECT_EQ(back, o);
}

}  // namespace
}  // namespace ub::fabric
