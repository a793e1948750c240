// SPDX-License-Identifier: Apache-2.0
// Golden bytes, written down independently of the code: each is read and written.
#include <gtest/gtest.h>

#include "lib/transport/wire/compact_header.h"
#include "lib/transport/wire/congestion_header.h"
#include "lib/transport/wire/entity_header.h"
#include "lib/transport/wire/extension_headers.h"
#include "lib/transport/wire/link_header.h"
#include "lib/transport/wire/response_status.h"
#include "lib/transport/wire/sack.h"
#include "lib/transport/wire/utp_header.h"
#include "tests/unit/wire/wire_test_util.h"

namespace ub::wire {
namespace {

/// For headers whose read takes a length and returns a Drop.
template <class Header>
void both_ways(const char* bytes, const Header& value) {
  const Exact wire(hex(bytes));
  ASSERT_EQ(wire.size(), Header::kSize);
  EXPECT_EQ(to_hex(written(value)), to_hex(wire.span()));
  Header back{};
  ASSERT_EQ(Header::read(wire.begin(), wire.size(), back), Drop::kNone);
  EXPECT_EQ(back, value);
}

/// For extension headers, which are read without a check.
template <class Header>
void both_ways_ext(const char* bytes, const Header& value) {
  const Exact wire(hex(bytes));
  ASSERT_EQ(wire.size(), Header::kSize);
  EXPECT_EQ(to_hex(written(value)), to_hex(wire.span()));
  EXPECT_EQ(Header::read(wire.begin()), value);
}

TEST(Golden, link_header) {
  both_ways("01 07 40 00", LinkHeader{.vl = 8, .cfg = kCfgCna24, .rt_per_packet = true});
  both_ways("00 09 00 00", LinkHeader{.cfg = kCfgLoadStore});
}

TEST(Golden, cci) {
  const Cci caqm{.mode = CciMode::kCaqm, .enable = true, .increase = true, .hint = 0x20};
  const Cci fecn{.mode = CciMode::kFecn, .fecn = 2};
  Cci back;
  EXPECT_EQ(caqm.pack(), 0x0520);
  EXPECT_TRUE(Cci::unpack(0x0520, back));
  EXPECT_EQ(back, caqm);
  EXPECT_EQ(fecn.pack(), 0x8002);
  EXPECT_TRUE(Cci::unpack(0x8002, back));
  EXPECT_EQ(back, fecn);
}

TEST(Golden, nth) {
  both_ways("00 01 02 a0 b0 c0 05 20 5a 32",
            Nth24{.scna = 0x000102, .dcna = 0xA0B0C0, .cci = 0x0520, .lbf = 0x5A, .sl = 3, .nlp = 2});
  both_ways("01 02 a0 b0 80 02 5a 30", Nth16{.scna = 0x0102, .dcna = 0xA0B0, .cci = 0x8002, .lbf = 0x5A, .sl = 3});
}

RtpHeader data_header() {
  return {.opcode = TpOpcode::kData,
          .last = true,
          .ack_req = true,
          .src_tpn = 0x123456,
          .dst_tpn = 0xABCDEF,
          .psn = Psn(10),
          .tpmsn = Tpmsn(7)};
}

RtpHeader response_header(TpOpcode op) {
  return {.opcode = op, .src_tpn = 0xABCDEF, .dst_tpn = 0x123456, .psn = Psn(10), .tpmsn = Tpmsn(7)};
}

TEST(Golden, rtph) {
  both_ways("81 00 12 34 56 ab cd ef 80 00 00 0a 00 00 00 07", data_header());
  RtpHeader h = response_header(TpOpcode::kAck);
  both_ways("02 00 ab cd ef 12 34 56 00 00 00 0a 00 00 00 07", h);
  h.rspst = kRspFused;
  h.rspinfo = kFusedOk;
  both_ways("02 00 ab cd ef 12 34 56 00 00 00 0a a2 00 00 07", h);
  h.rspst = kRspError;
  h.rspinfo = kErrPsn;
  h.psn = Psn(11);
  both_ways("02 00 ab cd ef 12 34 56 00 00 00 0b 60 00 00 07", h);
}

TEST(Golden, fake_packets) {
  RtpHeader h = data_header();
  h.fake = true;
  h.psn = Psn(11);
  both_ways("81 00 12 34 56 ab cd ef c0 00 00 0b 00 00 00 07", h);
  h.psn = Psn(12);
  h.rspst = kRspRnr;
  h.rspinfo = 6;
  both_ways("81 00 12 34 56 ab cd ef c0 00 00 0c 26 00 00 07", h);
}

TEST(Golden, tpsack) {
  both_ways("05 00 ab cd ef 12 34 56 00 00 00 0a 00 00 00 07", response_header(TpOpcode::kSack));
  const Exact wire(hex("00 00 00 0d | 0d 00 00 00 00 00 00 00"));
  SackView s;
  ASSERT_EQ(SackView::read(wire.begin(), wire.size(), s), Drop::kNone);
  EXPECT_EQ(s.max_rcv_psn, Psn(13));
  EXPECT_EQ(s.bit_count(), 64u);
  for (uint32_t i = 0; i < 64; ++i) EXPECT_EQ(s.test(i), i == 0 || i == 2 || i == 3) << i;
  Bytes out(sack_size(0));
  const uint64_t bits = 0b1101;
  EXPECT_EQ(write_sack(out.data(), 0, Psn(13), &bits), wire.size());
  EXPECT_EQ(to_hex(out), to_hex(wire.span()));
}

TEST(Golden, cetph) {
  both_ways("00 00 10 00 01 02 00 40", CetphCaqm{.ack_seq = 0x1000, .increase = true, .marks = 2, .hint = 0x40});
  both_ways("e0 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00", CetphCnp{.ecn = CetphCnp::kSevere, .loc = true});
  both_ways("00 00 10 00 00 00 00 20", CetphLdcp{.ack_seq = 0x1000, .ce_seq = 0x20});
}

TEST(Golden, ctph_and_utph) {
  both_ways("12", CtpHeader{.opcode = CtpOpcode::kData, .padding = 1, .nlp = 2});
  both_ways("00 21 00 00 00 00 00 00 00 00 00 00 00 00 00 00", UtpHeader{.padding = 2, .nlp = 1});
}

TEST(Golden, btah) {
  both_ways(
      "03 18 12 34 10 1a bc de",
      Btah{.opcode = TaOpcode::kWrite, .tv_en = true, .tassn = Tassn(0x1234), .odr = kOdrRelaxed, .rc_id = 0xABCDE});
  both_ways("00 18 12 35 6c 1a bc de", Btah{.opcode = TaOpcode::kSend,
                                            .tv_en = true,
                                            .tassn = Tassn(0x1235),
                                            .fce = true,
                                            .mt_en = true,
                                            .odr = kOdrStrong | kOdrCompletion,
                                            .rc_id = 0xABCDE});
}

// ROL by CTP: a request that wants no answer.
TEST(Golden, btah_with_no_taack) {
  both_ways("03 18 12 34 90 1a bc de", Btah{.opcode = TaOpcode::kWrite,
                                            .tv_en = true,
                                            .tassn = Tassn(0x1234),
                                            .odr = kOdrRelaxed,
                                            .no_taack = true,
                                            .rc_id = 0xABCDE});
}

TEST(Golden, atah) {
  Atah a{.opcode = TaOpcode::kTaack, .tassn = Tassn(0x1234), .rc_id = 0xABCDE};
  both_ways("11 00 12 34 00 1a bc de", a);
  a.rspst = kRspRnr;
  a.rspinfo = 6;
  both_ways("11 00 12 34 26 1a bc de", a);
  EXPECT_EQ(rnr_duration(6), microseconds(128));
  a.rspst = kRspOk;
  a.rspinfo = 9;
  both_ways("11 00 12 34 09 1a bc de", a);
}

TEST(Golden, extension_headers) {
  both_ways_ext("11 22 33 44 55 66 77 88 05 43 21 00 00 00 10 00", Maetah{0x1122334455667788, 0x54321, 4096});
  both_ways_ext("7f 15 43 21", Mtetah{0x7F, 1, 0x54321});
  both_ways_ext("de ad be ef", Tvetah{0xDEADBEEF});
  both_ways_ext("11 22 33 44 55 66 77 88 00 05 43 21", MaetahCompact{0x1122334455667780, 0, true, 0, 0x54321});
}

TEST(Golden, extension_headers_by_their_tables) {
  both_ways_ext("00 30 00 00", Udetah{static_cast<uint32_t>(AtomicAlu::kSet) << kUdAluShift});
  both_ways_ext("00 00 ab cd", Taidetah{0xABCD});
  both_ways_ext("00 12 34 56", Ofstetah{0x123456});
  both_ways_ext("01 02 03 04 05 06 07 08 de ad be ef 00 01 00 00", Immetah{0x0102030405060708, 0xDEADBEEF, 65536});
  both_ways_ext("11 22 33 44 55 66 77 88 05 43 21 00 de ad be ef 00 00 00 00 00 00 00 2a",
                Ntfetah{0x1122334455667788, 0x54321, 0xDEADBEEF, 42});
  both_ways_ext("a7 05 01 23", Mgmtetah{.sub_code = 10, .code = 3, .rsp = true, .status = 5, .pdu_length = 0x123});
  const Exact compact(hex("00 00 00 00 00 00 00 7c 00 0f ff ff"));
  EXPECT_EQ(MaetahCompact::read(compact.begin()), (MaetahCompact{64, 3, true, 4, 0xFFFFF}));
  EXPECT_EQ(MaetahCompact::read(compact.begin()).length(), 1024u);
}

TEST(Golden, beetah) {
  const Exact wire(hex("00 00 00 00 00 00 00 ff"));
  const BeetahView be{wire.begin(), 64};
  for (uint32_t i = 0; i < 64; ++i) EXPECT_EQ(be.enabled(i), i < 8) << i;
  EXPECT_EQ(be.word(0), 0xFFu);
  Bytes out(8);
  BeetahView::store_word(out.data(), 64, 0, 0xFF);
  EXPECT_EQ(to_hex(out), to_hex(wire.span()));
}

TEST(Golden, beetah_word_order) {
  Bytes b(128);
  BeetahView::store_word(b.data(), 1024, 3, 1);  // payload byte 192
  const BeetahView be{b.data(), 1024};
  for (uint32_t i = 0; i < 1024; ++i) EXPECT_EQ(be.enabled(i), i == 192);
  EXPECT_EQ(be.word(3), 1u);
  EXPECT_EQ(load_u8(&b[128 - 1 - 24]), 1);
}

TEST(Golden, atomic_operands) {
  // Request operands little-endian, the response big-endian.
  Bytes request(16), response(8);
  store_le64(request.data(), 0x1122334455667788);
  store_le64(request.data() + 8, 0x99);
  store_be64(response.data(), 0x1122334455667788);
  EXPECT_EQ(request, hex("88 77 66 55 44 33 22 11 99 00 00 00 00 00 00 00"));
  EXPECT_EQ(response, hex("11 22 33 44 55 66 77 88"));
}

TEST(Golden, eidh40) { both_ways("00 01 12 34 5a bc de", EntityHeaderShort{.upi = 1, .src = 0x12345, .dst = 0xABCDE}); }

TEST(Golden, compact_transaction_headers) {
  const Exact read(hex("06 10 00 42"));
  Btah b;
  ASSERT_EQ(Btah::read_compact(read.begin(), read.size(), b), Drop::kNone);
  EXPECT_EQ(b, (Btah{.opcode = TaOpcode::kRead, .tassn = Tassn(0x42)}));
  Bytes out(4);
  b.write_compact(out.data());
  EXPECT_EQ(to_hex(out), to_hex(read.span()));
  both_ways("12 00 00 42", AtahCompact{.opcode = TaOpcode::kReadResponse, .tassn = Tassn(0x42)});
  both_ways("11 10 00 42", AtahCompact{.status = AtahCompact::kAuthenticationFailed, .tassn = Tassn(0x42)});
}

// Write "hello", Length 5, pad 3, token DEADBEEF.
constexpr char kTransport[] =
    "81 30 12 34 56 ab cd ef 80 00 00 0a 00 00 00 07 | 03 18 12 34 10 1a bc de |"
    "11 22 33 44 55 66 77 88 05 43 21 00 00 00 00 05 | de ad be ef | 68 65 6c 6c 6f 00 00 00";
constexpr char kIpv4Udp[] = "45 00 00 54 00 00 40 00 40 11 26 97 0a 00 00 01 0a 00 00 02 | c0 00 12 b8 00 40 00 00";

Bytes write_hello() {
  RtpHeader h = data_header();
  h.padding = 3;
  TaPacket t{};
  t.req = {.opcode = TaOpcode::kWrite, .tassn = Tassn(0x1234), .odr = kOdrRelaxed, .rc_id = 0xABCDE};
  t.has_ma = t.tv = true;
  t.ma = {0x1122334455667788, 0x54321, 5};
  t.token_value = 0xDEADBEEF;
  return concat({written(h), transaction_of(t, hex("68 65 6c 6c 6f"))});
}

TEST(Golden, uboe_ipv4_packet_is_written) {
  const Bytes frame = frame_of(template_v4(), write_hello());
  const Bytes want = concat({hex(kIpv4Udp), hex(kTransport), hex("98 70 a9 ca")});
  EXPECT_EQ(to_hex(std::span(frame).subspan(kEthSize)), to_hex(want));
  EXPECT_EQ(icrc_load(frame.data() + frame.size() - 4), 0xCAA97098u);
}

TEST(Golden, uboe_ipv4_packet_is_read) {
  const Exact frame(
      concat({hex("020000000002 020000000001 0800"), hex(kIpv4Udp), hex(kTransport), hex("98 70 a9 ca")}));
  NetHeader net;
  ASSERT_EQ(parse_network(frame.span(), net), Drop::kNone);
  EXPECT_EQ(net.src, kV4A);
  EXPECT_EQ(net.dst, kV4B);
  EXPECT_FALSE(net.v6);
  EXPECT_TRUE(icrc_matches(net));
  RtpHeader h;
  ASSERT_EQ(RtpHeader::read(net.tph, net.tp_size(), h), Drop::kNone);
  TaPacket t;
  ASSERT_EQ(parse_transaction(net.tph + RtpHeader::kSize, net.end, h.padding, true, t), Drop::kNone);
  EXPECT_FALSE(t.is_response);
  EXPECT_EQ(t.req.opcode, TaOpcode::kWrite);
  EXPECT_EQ(t.ma, (Maetah{0x1122334455667788, 0x54321, 5}));
  EXPECT_TRUE(t.tv);
  EXPECT_EQ(t.token_value, 0xDEADBEEFu);
  EXPECT_EQ(t.payload_len, 5u);
  EXPECT_EQ(std::memcmp(t.payload, "hello", 5), 0);
}

// The same bytes as an unreliable SEND: to queue 12345 with a token, by uasid 123412B8.
TEST(Golden, unreliable_send) {
  constexpr char kBytes[] =
      "00 30 00 00 00 00 00 00 00 00 00 00 00 00 00 00 | 00 19 12 34 08 1a bc de | 12 34 12 b8 | 00 11 23 45 |"
      "00 00 00 00 | de ad be ef | 68 65 6c 6c 6f 00 00 00";
  TaPacket t{};
  t.req = {.opcode = TaOpcode::kSend, .tassn = Tassn(0x1234), .rc_id = 0xABCDE};
  t.has_ud = t.has_mt = t.has_ofst = t.tv = true;
  t.ud = 0x123412B8;
  t.mt = {0, kTcTypeQueue, 0x12345};
  t.token_value = 0xDEADBEEF;
  const UtpHeader utp{.padding = 3, .nlp = kNlpTransaction};
  EXPECT_EQ(to_hex(concat({written(utp), transaction_of(t, hex("68 65 6c 6c 6f"))})), to_hex(hex(kBytes)));
  EXPECT_EQ(request_header_size(TaOpcode::kSend, {.ud = true, .tv = true}), 8u + 4 + 4 + 4 + 4);

  const Exact wire(hex(kBytes));
  UtpHeader back;
  ASSERT_EQ(UtpHeader::read(wire.begin(), wire.size(), back), Drop::kNone);
  EXPECT_EQ(back, utp);
  TaPacket u;
  ASSERT_EQ(parse_transaction(wire.begin() + UtpHeader::kSize, wire.begin() + wire.size(), back.padding, false, u),
            Drop::kNone);
  EXPECT_EQ(u.req.opcode, TaOpcode::kSend);
  EXPECT_EQ(u.req.rc_id, 0xABCDEu);
  EXPECT_TRUE(u.has_ud && u.has_mt && u.has_ofst && u.tv && !u.has_imm);
  EXPECT_EQ(u.ud, 0x123412B8u);
  EXPECT_EQ(u.mt, (Mtetah{0, kTcTypeQueue, 0x12345}));
  EXPECT_EQ(u.payload_len, 5u);
}

TEST(Golden, uboe_ipv6_icrc) {
  const Bytes frame = frame_of(template_v6(), write_hello());
  EXPECT_EQ(to_hex(std::span(frame).last(4)), "e7 b3 7b a2 ");
  NetHeader net;
  ASSERT_EQ(parse_network(frame, net), Drop::kNone);
  EXPECT_TRUE(net.v6);
  EXPECT_TRUE(icrc_matches(net));
}

TEST(Golden, nth24_icrc) {
  const Bytes packet = concat({hex("00 01 02 a0 b0 c0 05 20 5a 32"), write_hello()});
  Bytes icrc(4);
  icrc_store(icrc.data(), icrc_compute_nth24(packet.data(), packet.size()));
  EXPECT_EQ(to_hex(icrc), "9e c3 1b 73 ");
}

TEST(Golden, size_of_a_write_with_token) {
  EXPECT_EQ(request_header_size(TaOpcode::kWrite, {.tv = true}), 8u + 16 + 4);
}

}  // namespace
}  // namespace ub::wire
