// SPDX-License-Identifier: Apache-2.0
// Every fixed-size header: random values survive writing and reading, short buffers are refused without being
// read, reserved codes are named.
#include <gtest/gtest.h>

#include <cstdio>
#include <set>
#include <string>

#include "lib/transport/wire/compact_header.h"
#include "lib/transport/wire/congestion_header.h"
#include "lib/transport/wire/entity_header.h"
#include "lib/transport/wire/link_header.h"
#include "lib/transport/wire/response_status.h"
#include "lib/transport/wire/sack.h"
#include "lib/transport/wire/utp_header.h"
#include "tests/unit/wire/wire_test_util.h"

namespace ub::wire {
namespace {

constexpr int kRounds = 20000;

/// Any bytes that decode must encode to something that decodes the same; a shorter buffer never decodes.
template <class Header>
void round_trip_from_bytes() {
  Prng rng(11);
  int good = 0;
  for (int i = 0; i < kRounds; ++i) {
    Bytes b(Header::kSize);
    rng.fill(b.data(), b.size());
    const Exact wire(b);
    Header a{}, c{};
    if (Header::read(wire.begin(), wire.size(), a) != Drop::kNone) continue;
    ++good;
    const Exact again(written(a));
    ASSERT_EQ(Header::read(again.begin(), again.size(), c), Drop::kNone);
    ASSERT_EQ(a, c);
    ASSERT_EQ(to_hex(written(c)), to_hex(again.span()));
  }
  EXPECT_GT(good, 0);
  for (size_t n = 0; n < Header::kSize; ++n) {
    const Exact wire{Bytes(n)};
    Header a{};
    EXPECT_NE(Header::read(wire.begin(), n, a), Drop::kNone) << n;
  }
}

template <class Header>
void round_trip_extension() {
  Prng rng(12);
  for (int i = 0; i < kRounds; ++i) {
    Bytes b(Header::kSize);
    rng.fill(b.data(), b.size());
    const Exact wire(b);
    const Header a = Header::read(wire.begin());
    const Exact again(written(a));
    ASSERT_EQ(Header::read(again.begin()), a);
  }
}

TEST(Headers, random_bytes_round_trip) {
  round_trip_from_bytes<RtpHeader>();
  round_trip_from_bytes<UtpHeader>();
  round_trip_from_bytes<CtpHeader>();
  round_trip_from_bytes<LinkHeader>();
  round_trip_from_bytes<Nth16>();
  round_trip_from_bytes<Nth24>();
  round_trip_from_bytes<CetphLdcp>();
  round_trip_from_bytes<CetphCaqm>();
  round_trip_from_bytes<CetphCnp>();
  round_trip_from_bytes<EntityHeader>();
  round_trip_from_bytes<EntityHeaderShort>();
  round_trip_from_bytes<Btah>();
  round_trip_from_bytes<Atah>();
  round_trip_from_bytes<AtahCompact>();
  round_trip_extension<Maetah>();
  round_trip_extension<MaetahCompact>();
  round_trip_extension<Mtetah>();
  round_trip_extension<Tvetah>();
  round_trip_extension<Udetah>();
  round_trip_extension<Taidetah>();
  round_trip_extension<Ofstetah>();
  round_trip_extension<Immetah>();
  round_trip_extension<Ntfetah>();
  round_trip_extension<Mgmtetah>();
}

TEST(Headers, cci_round_trips_and_refuses_reserved_modes) {
  for (uint32_t v = 0; v < 65536; ++v) {
    Cci a, b;
    const bool ok = Cci::unpack(static_cast<uint16_t>(v), a);
    EXPECT_EQ(ok, v >> 13 == 0 || v >> 13 == 2 || v >> 13 == 4);
    if (!ok) continue;
    ASSERT_TRUE(Cci::unpack(a.pack(), b));
    ASSERT_EQ(a, b);
  }
}

TEST(RtpHeader, refuses_reserved_opcodes_versions_and_next_layers) {
  Bytes b(16);
  RtpHeader h;
  for (uint32_t op = 0; op < 256; ++op) {
    store_u8(b.data(), static_cast<uint8_t>(op));
    const bool known = std::set<uint32_t>{0, 1, 2, 3, 5, 6, 8}.count(op & 0x7F) != 0;
    EXPECT_EQ(RtpHeader::read(b.data(), 16, h), known ? Drop::kNone : Drop::kBadTpOpcode) << op;
    if (known) {
      EXPECT_EQ(h.last, op == 0x81) << op;  // Last means something in data packets only
    }
  }
  store_u8(b.data(), 1);
  for (uint32_t v = 0; v < 256; ++v) {
    store_u8(b.data() + 1, static_cast<uint8_t>(v));
    const Drop want = v >> 6 != 0 ? Drop::kBadTpVersion : (v & 15) > 1 ? Drop::kBadNlp : Drop::kNone;
    EXPECT_EQ(RtpHeader::read(b.data(), 16, h), want) << v;
  }
  store_u8(b.data(), 2);  // responses have no next layer: the field is ignored
  store_u8(b.data() + 1, 9);
  EXPECT_EQ(RtpHeader::read(b.data(), 16, h), Drop::kNone);
}

TEST(RtpHeader, reads_an_unreliable_packet_too) {
  const Bytes b = written(UtpHeader{.padding = 3, .nlp = 1});
  RtpHeader h;
  ASSERT_EQ(RtpHeader::read(b.data(), b.size(), h), Drop::kNone);
  EXPECT_EQ(h.opcode, TpOpcode::kUnreliable);
  EXPECT_EQ(h.padding, 3);
  EXPECT_EQ(h.nlp, 1);
}

TEST(RtpHeader, fields_beyond_their_width_do_not_leak_into_others) {
  const RtpHeader h{.src_tpn = 0xFF000001, .dst_tpn = 0xFF000002, .psn = Psn(3), .tpmsn = Tpmsn(4)};
  EXPECT_EQ(to_hex(written(h)), to_hex(hex("01 00 00 00 01 00 00 02 00 00 00 03 00 00 00 04")));
}

TEST(Headers, reserved_bits_are_ignored_and_not_written_back) {
  const Bytes rtp = hex("81 00 12 34 56 ab cd ef bf 00 00 0a 00 00 00 07");
  RtpHeader h;
  ASSERT_EQ(RtpHeader::read(rtp.data(), rtp.size(), h), Drop::kNone);
  EXPECT_EQ(to_hex(written(h)), "81 00 12 34 56 ab cd ef 80 00 00 0a 00 00 00 07 ");
  const Bytes request = hex("03 3a 12 34 10 9a bc de");
  Btah b;
  ASSERT_EQ(Btah::read(request.data(), request.size(), b), Drop::kNone);
  EXPECT_EQ(to_hex(written(b)), "03 18 12 34 10 1a bc de ");
  EXPECT_EQ(b, (Btah{.opcode = TaOpcode::kWrite, .tv_en = true, .tassn = Tassn(0x1234), .odr = 1, .rc_id = 0xABCDE}));
  const Bytes response = hex("11 33 12 34 09 da bc de");
  Atah a;
  ASSERT_EQ(Atah::read(response.data(), response.size(), a), Drop::kNone);
  EXPECT_EQ(to_hex(written(a)), "11 00 12 34 09 1a bc de ");
}

TEST(RtpHeader, padding_completes_to_four) {
  for (size_t n = 0; n < 100; ++n) {
    EXPECT_LT(padding_for(n), 4);
    EXPECT_EQ((n + padding_for(n)) % 4, 0u);
  }
}

TEST(Sack, every_size_keeps_its_bits_and_refuses_to_be_cut) {
  Prng rng(13);
  for (uint8_t code = 0; code <= kSackSizeCodeMax; ++code) {
    uint64_t words[kSackMaxWords];
    for (uint64_t& w : words) w = rng.next_u64();
    Bytes b(sack_size(code));
    ASSERT_EQ(write_sack(b.data(), code, Psn(0xFFFFFF), words), b.size());
    SackView s;
    const Exact wire(b);
    ASSERT_EQ(SackView::read(wire.begin(), wire.size(), s), Drop::kNone);
    EXPECT_EQ(s.size_code, code);
    EXPECT_EQ(s.size(), b.size());
    EXPECT_EQ(s.max_rcv_psn, Psn(0xFFFFFF));
    for (uint32_t i = 0; i < s.bit_count(); ++i) EXPECT_EQ(s.test(i), (words[i / 64] >> (i % 64) & 1) != 0);
    for (uint32_t i = 0; i < s.word_count(); ++i) EXPECT_EQ(s.word(i), words[i]);
    for (size_t n = 0; n < b.size(); ++n) {
      const Exact cut{std::span(b).first(n)};
      EXPECT_EQ(SackView::read(cut.begin(), n, s), Drop::kTruncatedHeader) << n;
    }
  }
}

TEST(Sack, bit_order_is_least_significant_first_in_each_byte) {
  Bytes b = hex("00 00 00 00 | 01 80 00 00 00 00 00 40");
  SackView s;
  ASSERT_EQ(SackView::read(b.data(), b.size(), s), Drop::kNone);
  for (uint32_t i = 0; i < 64; ++i) EXPECT_EQ(s.test(i), i == 0 || i == 15 || i == 62) << i;
}

TEST(Sack, reserved_sizes_are_refused) {
  Bytes b(4 + 128);
  SackView s;
  for (uint8_t code = 5; code < 8; ++code) {
    store_u8(b.data(), code);
    EXPECT_EQ(SackView::read(b.data(), b.size(), s), Drop::kBadSackSize);
  }
  store_u8(b.data(), 0xF8);  // reserved bits above the code are ignored
  EXPECT_EQ(SackView::read(b.data(), b.size(), s), Drop::kNone);
}

TEST(ResponseStatus, rnr_timer_codes) {
  EXPECT_EQ(rnr_duration(0), microseconds(2));
  EXPECT_EQ(rnr_duration(19), microseconds(2 << 19));
  EXPECT_EQ(rnr_duration(31), rnr_duration(19));
  EXPECT_EQ(refusal_duration(kRspPageFault, 0), Duration{});
  EXPECT_EQ(refusal_duration(kRspPageFault, 1), rnr_duration(1));
  EXPECT_EQ(refusal_duration(kRspRnr, 0), rnr_duration(0));
  for (uint8_t c = 0; c <= kRnrTimerMax; ++c) EXPECT_EQ(rnr_code_at_least(rnr_duration(c)), c);
  EXPECT_EQ(rnr_code_at_least(microseconds(640)), 9);  // 0.64 ms rounds up to 1.024 ms
  EXPECT_EQ(rnr_code_at_least(Duration{}), 0);
  EXPECT_EQ(rnr_code_at_least(seconds(100)), kRnrTimerMax);
}

TEST(Opcodes, table_knows_each_and_no_other) {
  std::set<uint32_t> known;
  for (TaOpcode op : kAllOpcodes) {
    known.insert(static_cast<uint32_t>(op));
    EXPECT_STRNE(ta_opcode_name(op), "?");
    EXPECT_NE(ta_is_request(op), ta_is_response_code(static_cast<uint8_t>(op)));
  }
  EXPECT_EQ(known.size(), 24u);
  for (uint32_t c = 0; c < 256; ++c) EXPECT_EQ(ta_is_known(static_cast<uint8_t>(c)), known.count(c) != 0) << c;
  EXPECT_STREQ(ta_opcode_name(static_cast<TaOpcode>(0x16)), "?");
  EXPECT_STREQ(ta_opcode_name(static_cast<TaOpcode>(0x40)), "?");
}

TEST(Opcodes, receives_are_taken_by_sends_and_write_with_immediate) {
  for (TaOpcode op : kAllOpcodes) {
    const bool want = op == TaOpcode::kSend || op == TaOpcode::kSendImmediate || op == TaOpcode::kSendInvalidate ||
                      op == TaOpcode::kWriteImmediate;
    EXPECT_EQ(ta_consumes_receive(op), want) << ta_opcode_name(op);
  }
}

TEST(Drop, each_has_its_own_counter_with_its_name) {
  std::set<std::string> names;
#define X(name) names.insert(counter_name(drop_counter(Drop::k##name)));
  UB_WIRE_DROPS(X)
#undef X
  EXPECT_EQ(names.size(), static_cast<size_t>(Drop::kWrongPeer));
  EXPECT_STREQ(drop_name(Drop::kNone), "none");
  EXPECT_STREQ(drop_name(Drop::kBadIcrc), "bad_icrc");
  EXPECT_STREQ(drop_name(Drop::kTruncatedHeader), "truncated_header");
}

}  // namespace
}  // namespace ub::wire
