// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/wire/control_record.h"

#include <gtest/gtest.h>

#include "tests/unit/wire/wire_test_util.h"

namespace ub::wire {
namespace {

ControlRecord random_record(RecordType type, Prng& rng) {
  ControlRecord r;
  r.type = type;
  r.reason = static_cast<RecordReason>(rng.below(8));
  r.sender_incarnation = rng.next_u64();
  r.receiver_incarnation = rng.next_u64();
  r.attempt = rng.next_u32();
  r.flags = static_cast<uint8_t>(rng.next_u32());
  r.sender_tpn = static_cast<uint32_t>(rng.below(1 << 24));
  r.selective = rng.chance(0.5);
  r.oor = rng.chance(0.5);
  r.sack_size_code = static_cast<uint8_t>(rng.below(8));
  const bool names_object = type == RecordType::kFind || type == RecordType::kFound;
  (names_object ? r.object : r.receiver_tpn) = static_cast<uint32_t>(rng.below(1 << 24));
  r.compact = rng.chance(0.5);
  r.repeats = rng.chance(0.5);
  r.several_paths = rng.chance(0.5);
  r.cc = static_cast<CcAlgorithm>(rng.below(4));
  r.initial_psn = Psn(rng.next_u32());
  r.mtu = static_cast<uint16_t>(rng.next_u32());
  r.rcv_window = static_cast<uint16_t>(rng.next_u32());
  r.rto_base_us = rng.next_u32();
  r.rto_growth_n = static_cast<uint8_t>(rng.below(16));
  r.retry_limit = static_cast<uint8_t>(rng.below(16));
  r.so_credit = static_cast<uint8_t>(rng.next_u32());
  r.keepalive_10ms = static_cast<uint16_t>(rng.next_u32());
  r.upi = rng.next_u32();
  for (Eid* e : {&r.sender_eid, &r.wanted_eid})
    for (uint8_t& b : e->bytes) b = static_cast<uint8_t>(rng.next_u32());
  if (type == RecordType::kScFree) {
    r.scid = static_cast<uint32_t>(rng.below(1 << 24));
  } else {
    r.sender_uasid = rng.next_u32();
    r.wanted_uasid = rng.next_u32();
  }
  if (rng.chance(0.5)) r.application = rng.next_u32() | 1;
  return r;
}

Bytes bytes_of(const ControlRecord& r) {
  Bytes b(control_record_size(r));
  write_control_record(r, b.data());
  return b;
}

Drop read(const Bytes& b, ControlRecord& r) { return read_control_record(Exact(b).span(), r); }

TEST(ControlRecord, fields_are_where_the_layout_says) {
  ControlRecord r;
  r.type = RecordType::kRep;
  r.reason = RecordReason::kGlare;
  r.sender_incarnation = 0x0102030405060708;
  r.receiver_incarnation = 0x1112131415161718;
  r.attempt = 0x21222324;
  r.flags = kRecordRol | kRecordReadMeta | kRecordBulk;
  r.sender_tpn = 0x313233;
  r.selective = true;
  r.oor = true;
  r.place = 5;
  r.sack_size_code = 2;
  r.receiver_tpn = 0x414243;
  r.cc = CcAlgorithm::kLdcp;
  r.initial_psn = Psn(0x515253);
  r.mtu = 4096;
  r.rcv_window = 256;
  r.rto_base_us = 4000;
  r.rto_growth_n = 3;
  r.retry_limit = 7;
  r.so_credit = 8;
  r.keepalive_10ms = 1000;
  r.upi = 1;
  r.sender_eid.bytes[15] = 0x61;
  r.wanted_eid.bytes[0] = 0x71;
  r.sender_uasid = 0x81828384;
  r.wanted_uasid = 0x91929394;
  const Bytes want =
      hex("55 42 43 31 | 02 03 00 60 | 01 02 03 04 05 06 07 08 | 11 12 13 14 15 16 17 18 | 21 22 23 24 |"
          "89 31 32 33 | ea 41 42 43 | 02 51 52 53 | 10 00 01 00 | 00 00 0f a0 | 37 08 03 e8 | 00 00 00 01 |"
          "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 61 | 71 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 |"
          "81 82 83 84 | 91 92 93 94");
  EXPECT_EQ(to_hex(bytes_of(r)), to_hex(want));
  ControlRecord back;
  ASSERT_EQ(read(want, back), Drop::kNone);
  EXPECT_EQ(back, r);
}

TEST(ControlRecord, about_several_paths_has_a_bit_beside_the_algorithm) {
  ControlRecord r;
  r.several_paths = true;
  r.cc = CcAlgorithm::kDcqcn;
  const Bytes b = bytes_of(r);
  EXPECT_EQ(std::to_integer<int>(b[36]), 0x20 | static_cast<int>(CcAlgorithm::kDcqcn));
  ControlRecord back;
  ASSERT_EQ(read(b, back), Drop::kNone);
  EXPECT_EQ(back, r);
}

TEST(ControlRecord, application_makes_it_longer) {
  ControlRecord r;
  r.application = 0xA1A2A3A4;
  const Bytes b = bytes_of(r);
  EXPECT_EQ(b.size(), 100u);
  EXPECT_EQ(to_hex(std::span(b).subspan(6, 2)), "00 64 ");
  EXPECT_EQ(to_hex(std::span(b).last(4)), "a1 a2 a3 a4 ");
  ControlRecord back;
  ASSERT_EQ(read(b, back), Drop::kNone);
  EXPECT_EQ(back, r);
}

TEST(ControlRecord, sc_free_has_its_scid_in_place_of_the_uasids) {
  ControlRecord r;
  r.type = RecordType::kScFree;
  r.scid = 0xABCDEF;
  const Bytes b = bytes_of(r);
  EXPECT_EQ(to_hex(std::span(b).last(8)), "ab cd ef 00 00 00 00 00 ");
  ControlRecord back;
  ASSERT_EQ(read(b, back), Drop::kNone);
  EXPECT_EQ(back, r);
}

TEST(ControlRecord, find_and_found_have_an_id_in_place_of_the_peers_tpn) {
  for (RecordType type : {RecordType::kFind, RecordType::kFound}) {
    ControlRecord r;
    r.type = type;
    r.object = 0x0ABCDE;
    r.flags = kRecordTokenId;
    const Bytes b = bytes_of(r);
    EXPECT_EQ(to_hex(std::span(b).subspan(4, 1)), type == RecordType::kFind ? "0b " : "0c ");
    EXPECT_EQ(to_hex(std::span(b).subspan(28, 8)), "01 00 00 00 00 0a bc de ");
    ControlRecord back;
    ASSERT_EQ(read(b, back), Drop::kNone);
    EXPECT_EQ(back, r);
  }
}

TEST(ControlRecord, random_records_round_trip) {
  Prng rng(41);
  for (int i = 0; i < 5000; ++i) {
    const ControlRecord r = random_record(static_cast<RecordType>(1 + rng.below(12)), rng);
    ControlRecord back;
    ASSERT_EQ(read(bytes_of(r), back), Drop::kNone);
    ASSERT_EQ(back, r);
  }
}

TEST(ControlRecord, padding_behind_the_record_is_ignored) {
  Prng rng(42);
  const ControlRecord r = random_record(RecordType::kReq, rng);
  Bytes b = bytes_of(r);
  b.resize(1400);
  ControlRecord back;
  ASSERT_EQ(read(b, back), Drop::kNone);
  EXPECT_EQ(back, r);
}

TEST(ControlRecord, truncation_at_every_length_is_refused) {
  Prng rng(43);
  const Bytes b = bytes_of(random_record(RecordType::kReq, rng));
  for (size_t n = 0; n < b.size(); ++n) {
    ControlRecord back;
    EXPECT_EQ(read(Bytes(b.begin(), b.begin() + static_cast<ptrdiff_t>(n)), back), Drop::kBadRecordMagic) << n;
  }
}

TEST(ControlRecord, length_field_must_fit_the_bytes_and_the_version) {
  Prng rng(44);
  ControlRecord r = random_record(RecordType::kReq, rng);
  r.application = 0;
  Bytes b = bytes_of(r);
  ControlRecord back;
  for (uint16_t length : {0, 95, 97, 65535}) {
    store_be16(&b[6], length);
    EXPECT_EQ(read(b, back), Drop::kBadRecordMagic) << length;
  }
  b.resize(97);
  store_be16(&b[6], 97);
  EXPECT_EQ(read(b, back), Drop::kNone);
}

TEST(ControlRecord, other_magic_is_refused) {
  Prng rng(45);
  const Bytes b = bytes_of(random_record(RecordType::kReq, rng));
  ControlRecord back;
  for (size_t i = 0; i < 3; ++i) {
    Bytes c = b;
    c[i] ^= std::byte{1};
    EXPECT_EQ(read(c, back), Drop::kBadRecordMagic);
  }
  for (char not_a_digit : {'/', ':', 'A', '\0'}) {
    Bytes c = b;
    c[3] = static_cast<std::byte>(not_a_digit);
    EXPECT_EQ(read(c, back), Drop::kBadRecordMagic);
  }
}

TEST(ControlRecord, another_version_says_enough_to_answer) {
  Prng rng(46);
  const ControlRecord r = random_record(RecordType::kReq, rng);
  Bytes b = bytes_of(r);
  b[3] = std::byte{'2'};
  for (size_t n : {size_t{28}, size_t{40}, size_t{96}}) {
    b.resize(n);
    ControlRecord back;
    ASSERT_EQ(read(b, back), Drop::kBadRecordVersion);
    EXPECT_EQ(back.version, 2);
    EXPECT_EQ(back.type, r.type);
    EXPECT_EQ(back.sender_incarnation, r.sender_incarnation);
    EXPECT_EQ(back.receiver_incarnation, r.receiver_incarnation);
    EXPECT_EQ(back.attempt, r.attempt);
  }
}

TEST(ControlRecord, unknown_types_are_named) {
  Prng rng(47);
  Bytes b = bytes_of(random_record(RecordType::kReq, rng));
  for (int type : {0, 13, 255}) {
    b[4] = static_cast<std::byte>(type);
    ControlRecord back;
    EXPECT_EQ(read(b, back), Drop::kBadRecordType);
  }
}

}  // namespace
}  // namespace ub::wire
