// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/wire/network_header.h"

#include <gtest/gtest.h>

#include "tests/unit/wire/wire_test_util.h"

namespace ub::wire {
namespace {

constexpr size_t kIp = kEthSize;

/// The textbook form: add 16-bit big-endian words, fold, complement.
uint16_t ipv4_checksum(const std::byte* ip) {
  uint32_t sum = 0;
  for (int i = 0; i < 20; i += 2)
    if (i != 10) sum += load_be16(ip + i);
  while (sum > 0xFFFF) sum = (sum & 0xFFFF) + (sum >> 16);
  return static_cast<uint16_t>(~sum);
}

Drop parse(const Bytes& frame) {
  const Exact exact(frame);
  NetHeader net;
  return parse_network(exact.span(), net);
}

Bytes plain_v4() { return frame_of(template_v4(), Bytes(16)); }
Bytes plain_v6() { return frame_of(template_v6(), Bytes(16)); }

/// Changes an IPv4 header field and mends the checksum.
Bytes changed_v4(size_t offset, uint8_t value) {
  Bytes f = plain_v4();
  store_u8(&f[kIp + offset], value);
  store_be16(&f[kIp + 10], ipv4_checksum(&f[kIp]));
  return f;
}

TEST(IpAddress, v4_is_mapped) {
  constexpr IpAddress a = IpAddress::from_v4(0x01020304);
  static_assert(a.is_v4() && a.v4() == 0x01020304);
  EXPECT_EQ(a.bytes, (std::array<uint8_t, 16>{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 1, 2, 3, 4}));
  EXPECT_FALSE(v6_address(1).is_v4());
  EXPECT_FALSE(IpAddress{}.is_v4());
}

TEST(NetTemplate, checksum_is_right_for_random_paths) {
  Prng rng(21);
  for (int i = 0; i < 20000; ++i) {
    NetTemplate t;
    const Endpoint a{IpAddress::from_v4(rng.next_u32()), static_cast<uint16_t>(rng.next_u32())};
    const Endpoint b{IpAddress::from_v4(rng.next_u32()), static_cast<uint16_t>(rng.next_u32())};
    t.init({}, {}, a, b, static_cast<uint8_t>(rng.below(64)));
    std::byte f[NetTemplate::kMaxSize];
    const size_t payload = rng.below(65535 - 28);
    ASSERT_EQ(t.write(f, payload, static_cast<uint8_t>(rng.below(4))), 42u);
    ASSERT_EQ(load_be16(f + kIp + 10), ipv4_checksum(f + kIp));
    ASSERT_EQ(load_be16(f + kIp + 2), 28 + payload);
    ASSERT_EQ(load_be16(f + 42 - 4), 8 + payload);
  }
}

TEST(NetTemplate, v4_fields_are_where_they_belong) {
  NetTemplate t = template_v4(46);
  Bytes f(42);
  t.write(f.data(), 100, kEcnEct0);
  EXPECT_EQ(to_hex(std::span(f).first(14)), "02 00 00 00 00 02 02 00 00 00 00 01 08 00 ");
  EXPECT_EQ(load_u8(&f[kIp + 1]), 46 << 2 | 2);
  EXPECT_EQ(load_be16(&f[kIp + 4]), 0);       // ID
  EXPECT_EQ(load_be16(&f[kIp + 6]), 0x4000);  // DF
  EXPECT_EQ(load_u8(&f[kIp + 8]), 64);
  EXPECT_EQ(load_be16(&f[kIp + 26]), 0);  // UDP checksum
}

TEST(NetTemplate, frames_are_read_back_with_ecn_and_dscp) {
  for (const bool v6 : {false, true}) {
    for (uint8_t ecn = 0; ecn < 4; ++ecn) {
      const NetTemplate t = v6 ? template_v6(11) : template_v4(11);
      const Exact f(frame_of(t, Bytes(20), ecn));
      NetHeader net;
      ASSERT_EQ(parse_network(f.span(), net), Drop::kNone);
      EXPECT_EQ(net.v6, v6);
      EXPECT_EQ(net.ecn(), ecn);
      EXPECT_EQ(net.dscp(), 11);
      EXPECT_EQ(t.dscp(), 11);
      EXPECT_EQ(net.src.port, 49152);
      EXPECT_EQ(net.dst.port, kUbUdpPort);
      EXPECT_EQ(net.dst.ip, v6 ? v6_address(2) : kV4B.ip);
      EXPECT_EQ(net.l3, f.begin() + kEthSize);
      EXPECT_EQ(net.tph, f.begin() + t.size);
      EXPECT_EQ(net.tp_size(), 20u);
      EXPECT_TRUE(icrc_matches(net));
    }
  }
}

TEST(NetTemplate, mixed_families_travel_as_ipv6) {
  NetTemplate t;
  t.init({}, {}, kV4A, {v6_address(1), 1}, 0);
  EXPECT_TRUE(t.v6());
}

TEST(ParseNetwork, any_destination_port_is_accepted) {
  NetTemplate t;
  t.init({}, {}, kV4A, {kV4B.ip, 50000}, 0);
  EXPECT_EQ(parse(frame_of(t, Bytes(16))), Drop::kNone);
}

TEST(ParseNetwork, truncation_at_every_length_is_refused) {
  for (const Bytes& f : {plain_v4(), plain_v6()}) {
    for (size_t n = 0; n < f.size(); ++n)
      EXPECT_NE(parse(Bytes(f.begin(), f.begin() + static_cast<ptrdiff_t>(n))), Drop::kNone) << n;
    EXPECT_EQ(parse(f), Drop::kNone);
  }
}

TEST(ParseNetwork, ethernet_padding_is_ignored) {
  Bytes f = plain_v4();
  const size_t size = f.size();
  f.resize(size + 30, std::byte{0x55});
  const Exact e(f);
  NetHeader net;
  ASSERT_EQ(parse_network(e.span(), net), Drop::kNone);
  EXPECT_EQ(net.end, e.begin() + size - kIcrcSize);
  EXPECT_TRUE(icrc_matches(net));
}

TEST(ParseNetwork, one_vlan_tag_is_skipped_two_are_not) {
  for (Bytes f : {plain_v4(), plain_v6()}) {
    const Bytes tag = hex("81 00 00 05");
    f.insert(f.begin() + 12, tag.begin(), tag.end());
    EXPECT_EQ(parse(f), Drop::kNone);
    for (size_t n = 0; n < f.size(); ++n)
      EXPECT_NE(parse(Bytes(f.begin(), f.begin() + static_cast<ptrdiff_t>(n))), Drop::kNone) << n;
    f.insert(f.begin() + 12, tag.begin(), tag.end());
    EXPECT_EQ(parse(f), Drop::kNotIp);
  }
}

TEST(ParseNetwork, names_what_is_wrong_with_ipv4) {
  EXPECT_EQ(parse(changed_v4(0, 0x46)), Drop::kBadIpHeader);  // options
  EXPECT_EQ(parse(changed_v4(0, 0x65)), Drop::kBadIpHeader);  // version
  EXPECT_EQ(parse(changed_v4(2, 0x10)), Drop::kBadIpHeader);  // total length beyond the frame
  EXPECT_EQ(parse(changed_v4(3, 19)), Drop::kBadIpHeader);    // or below the header
  EXPECT_EQ(parse(changed_v4(3, 20)), Drop::kBadUdpLength);
  EXPECT_EQ(parse(changed_v4(3, 47)), Drop::kBadUdpLength);
  EXPECT_EQ(parse(changed_v4(6, 0x20)), Drop::kFragment);  // more fragments
  EXPECT_EQ(parse(changed_v4(7, 1)), Drop::kFragment);     // offset
  EXPECT_EQ(parse(changed_v4(6, 0x00)), Drop::kNone);      // DF cleared on the way
  EXPECT_EQ(parse(changed_v4(9, 6)), Drop::kNotUdp);
  Bytes f = plain_v4();
  f[kIp + 10] ^= std::byte{1};
  EXPECT_EQ(parse(f), Drop::kBadIpHeader);
}

TEST(ParseNetwork, every_flipped_bit_of_an_ipv4_header_is_noticed) {
  for (size_t bit = 0; bit < 160; ++bit) {
    Bytes f = plain_v4();
    f[kIp + bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
    EXPECT_NE(parse(f), Drop::kNone) << bit;
  }
}

TEST(ParseNetwork, names_what_is_wrong_with_ipv6) {
  const auto changed = [](size_t offset, uint8_t value) {
    Bytes f = plain_v6();
    store_u8(&f[kIp + offset], value);
    return f;
  };
  EXPECT_EQ(parse(changed(0, 0x40)), Drop::kBadIpHeader);
  EXPECT_EQ(parse(changed(4, 0x10)), Drop::kBadIpHeader);
  EXPECT_EQ(parse(changed(5, 0)), Drop::kBadUdpLength);
  EXPECT_EQ(parse(changed(5, 27)), Drop::kBadUdpLength);
  EXPECT_EQ(parse(changed(6, 44)), Drop::kFragment);
  EXPECT_EQ(parse(changed(6, 0)), Drop::kNotUdp);  // hop-by-hop options
  EXPECT_EQ(parse(changed(6, 6)), Drop::kNotUdp);
}

TEST(ParseNetwork, udp_length_must_equal_the_ip_payload) {
  for (size_t size : {size_t{42}, size_t{62}}) {
    for (int delta : {-1, 1}) {
      Bytes f = size == 42 ? plain_v4() : plain_v6();
      std::byte* udp_length = &f[size - 4];
      store_be16(udp_length, static_cast<uint16_t>(load_be16(udp_length) + delta));
      EXPECT_EQ(parse(f), Drop::kBadUdpLength);
    }
  }
}

TEST(ParseNetwork, datagram_without_room_for_an_icrc_is_refused) {
  const NetTemplate t = template_v4();
  for (size_t payload = 0; payload < 8; ++payload) {
    Bytes f(t.size + payload);
    t.write(f.data(), payload, 0);
    EXPECT_EQ(parse(f), payload < kIcrcSize ? Drop::kBadUdpLength : Drop::kNone);
  }
}

TEST(ParseNetwork, other_ether_types_are_not_ip) {
  Bytes f = plain_v4();
  for (uint16_t type : {0x0806, 0x88B5, 0x0801, 0x0000}) {
    store_be16(&f[12], type);
    EXPECT_EQ(parse(f), Drop::kNotIp);
  }
}

TEST(Icrc, ignores_what_hops_change_and_notices_the_rest) {
  for (const bool v6 : {false, true}) {
    const Bytes clean = frame_of(v6 ? template_v6() : template_v4(), Bytes(24));
    for (size_t bit = kEthSize * 8; bit < clean.size() * 8; ++bit) {
      Bytes f = clean;
      f[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
      const size_t at = bit / 8 - kEthSize;
      bool masked = false;
      if (v6) {
        masked = (at == 0 && bit % 8 < 4) || (at >= 1 && at <= 3) || at == 7 || at == 46 || at == 47;
      } else {
        masked = at == 1 || at == 8 || at == 10 || at == 11 || at == 26 || at == 27;
      }
      const std::byte* l3 = f.data() + kEthSize;
      const bool same = icrc_compute(l3, f.size() - kEthSize - kIcrcSize, v6) == icrc_load(&f[f.size() - kIcrcSize]);
      EXPECT_EQ(same, masked) << (v6 ? "v6 " : "v4 ") << at << '.' << bit % 8;
    }
  }
}

TEST(Icrc, sealing_in_pieces_equals_one_pass) {
  Prng rng(22);
  for (const bool v6 : {false, true}) {
    const NetTemplate t = v6 ? template_v6() : template_v4();
    for (size_t payload_len : {0u, 1u, 64u, 1000u, 4096u}) {
      Bytes payload(payload_len), headers(40), f(t.size + 40 + payload_len);
      rng.fill(payload.data(), payload.size());
      rng.fill(headers.data(), headers.size());
      t.write(f.data(), 40 + payload_len + kIcrcSize, 0);
      std::memcpy(&f[t.size], headers.data(), 40);
      uint32_t s = icrc_begin(f.data() + kEthSize, v6);
      s = crc32_update(s, &f[t.size], 40);
      s = crc32_copy_update(s, f.data() + t.size + 40, payload.data(), payload_len);
      EXPECT_EQ(icrc_finish(s), icrc_compute(f.data() + kEthSize, f.size() - kEthSize, v6));
    }
  }
}

}  // namespace
}  // namespace ub::wire
