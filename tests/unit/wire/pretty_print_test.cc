// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/wire/pretty_print.h"

#include <gtest/gtest.h>

#include <string>

#include "lib/transport/wire/control_record.h"
#include "lib/transport/wire/link_header.h"
#include "lib/transport/wire/response_status.h"
#include "lib/transport/wire/sack.h"
#include "lib/transport/wire/utp_header.h"
#include "tests/unit/wire/wire_test_util.h"

namespace ub::wire {
namespace {

std::string print(const Bytes& frame) {
  const Exact exact(frame);
  char line[1024];
  const size_t n = format_packet(exact.span(), line, sizeof line);
  EXPECT_EQ(n, std::strlen(line));
  return line;
}

RtpHeader data_header() {
  return {.last = true, .ack_req = true, .src_tpn = 0x123456, .dst_tpn = 0xABCDEF, .psn = Psn(10), .tpmsn = Tpmsn(7)};
}

Bytes write_packet() {
  RtpHeader h = data_header();
  h.padding = 3;
  TaPacket t{};
  t.req = {.opcode = TaOpcode::kWrite, .tassn = Tassn(0x1234), .odr = kOdrRelaxed, .rc_id = 0xABCDE};
  t.has_ma = t.tv = true;
  t.ma = {0x1122334455667788, 0x54321, 5};
  t.token_value = 0xDEADBEEF;
  return concat({written(h), transaction_of(t, hex("68 65 6c 6c 6f"))});
}

TEST(PrettyPrint, write) {
  EXPECT_EQ(print(frame_of(template_v4(), write_packet())),
            "10.0.0.1:49152 > 10.0.0.2:4792 data L A tpn 123456>abcdef psn 10 msn 7 WRITE tassn 4660 ro rc abcde "
            "addr 1122334455667788 id 54321 len 5 tv deadbeef | 5 B pad 3 icrc ok");
}

TEST(PrettyPrint, ipv6_addresses_are_short) {
  const std::string s = print(frame_of(template_v6(), write_packet()));
  EXPECT_EQ(s.substr(0, 38), "[fd00::1]:49152 > [fd00::2]:4792 data ");
}

TEST(PrettyPrint, acknowledgements) {
  RtpHeader h{.opcode = TpOpcode::kAck, .src_tpn = 1, .dst_tpn = 2, .psn = Psn(11), .tpmsn = Tpmsn(7)};
  EXPECT_NE(print(frame_of(template_v4(), written(h))).find(" tpack tpn 000001>000002 psn 11 msn 7 icrc ok"),
            std::string::npos);
  h.rspst = kRspError;
  EXPECT_NE(print(frame_of(template_v4(), written(h))).find(" tpnak "), std::string::npos);
  h = {.opcode = TpOpcode::kSack, .psn = Psn(0xFFFFFF), .tpmsn = Tpmsn(7)};
  Bytes sack(sack_size(0));
  const uint64_t bits = 0b11101;
  write_sack(sack.data(), 0, Psn(3), &bits);
  EXPECT_NE(print(frame_of(template_v4(), concat({written(h), sack}))).find(" max 3 got 16777215 1-3 icrc ok"),
            std::string::npos);
}

TEST(PrettyPrint, control_record) {
  ControlRecord r;
  r.type = RecordType::kRej;
  r.reason = RecordReason::kParameter;
  r.attempt = 0x11223344;
  Bytes record(kControlRecordSize);
  write_control_record(r, record.data());
  TaPacket t{};
  t.has_mt = t.has_ofst = true;
  t.mt = {0, 1, 0};
  t.ofst = {0};
  const Bytes f = frame_of(template_v4(), concat({written(UtpHeader{}), transaction_of(t, record)}));
  EXPECT_NE(print(f).find(" utp SEND tassn 0 no rc 00000 tc 00000 ofst 0K REJ attempt 11223344 (parameter)"),
            std::string::npos)
      << print(f);
}

TEST(PrettyPrint, damage_is_named) {
  Bytes f = frame_of(template_v4(), write_packet());
  f[60] ^= std::byte{1};
  EXPECT_NE(print(f).find("icrc BAD"), std::string::npos);
  store_le32(f.data() + f.size() - 4, 0);
  EXPECT_NE(print(f).find("icrc off"), std::string::npos);
  store_be16(&f[12], 0x0806);
  EXPECT_EQ(print(f).substr(0, 32), "drop not_ip ethertype 0806, 98 B");
  EXPECT_EQ(print({}), "drop too_short, 0 B");
}

TEST(PrettyPrint, nth24) {
  Bytes f = concat({Bytes(12), hex("88 b5"), written(LinkHeader{.vl = 1, .cfg = kCfgCna24}),
                    written(Nth24{.scna = 0x000102, .dcna = 0xA0B0C0}), write_packet(), Bytes(4)});
  std::byte* icrc = f.data() + f.size() - 4;
  const std::byte* nth = f.data() + 18;
  icrc_store(icrc, icrc_compute_nth24(nth, static_cast<size_t>(icrc - nth)));
  const std::string s = print(f);
  EXPECT_EQ(s.substr(0, 40), "lph cfg 7 vl 1 cna 000102 > a0b0c0 data ");
  EXPECT_NE(s.find("icrc ok"), std::string::npos);
}

TEST(PrettyPrint, what_the_network_says) {
  const auto print_with = [](const Nth24& nth) {
    Bytes f = concat({Bytes(12), hex("88 b5"), written(LinkHeader{.cfg = kCfgCna24}), written(nth), write_packet(),
                      Bytes(4)});
    const std::string s = print(f);
    const size_t from = s.find("> 000000") + 8;
    return s.substr(from, s.find(" data ") - from);
  };
  const auto with = [&](const Cci& cci) { return print_with({.cci = cci.pack()}); };
  EXPECT_EQ(print_with({}), "");
  EXPECT_EQ(print_with({.sl = 3}), " sl 3");
  EXPECT_EQ(with({.enable = true}), " c-aqm");
  EXPECT_EQ(with({.enable = true, .increase = true, .hint = 9}), " c-aqm asks 288 B");
  EXPECT_EQ(with({.loc = true, .enable = true, .congested = true}), " c-aqm congested at the last hop");
  EXPECT_EQ(with({.increase = true}), " c-aqm off asks 0 B");
  EXPECT_EQ(with({.mode = CciMode::kFecn, .fecn = 3}), " fecn 3");
  EXPECT_EQ(with({.mode = CciMode::kFecnRtt, .fecn = 2, .timestamp = 77}), " fecn 2 time 77");
  EXPECT_EQ(print_with({.cci = 0x2000}), " cci 2000");
}

TEST(PrettyPrint, loads_and_stores) {
  const Bytes prefix = concat({Bytes(12), hex("88 b5 | 20 09 00 00 | 01 02 a0 b0 00 00 00 10")});
  EXPECT_EQ(print(concat({prefix, hex("06 10 00 42 11 22 33 44 55 66 77 88 00 05 43 21")})),
            "lph cfg 9 vl 0 cna 0102 > a0b0 READ tassn 66 so addr 1122334455667780 id 54321 len 64 | 0 B");
  EXPECT_EQ(
      print(concat({prefix, hex("14 1c 00 43 11 22 33 44 55 66 77 80 00 05 43 21 de ad be ef"), Bytes(8 + 64)})),
      "lph cfg 9 vl 0 cna 0102 > a0b0 WRITE_BE tassn 67 ro addr 1122334455667780 id 54321 len 64 poison tv deadbeef "
      "be 64 | 64 B");
  EXPECT_EQ(print(concat({prefix, hex("12 00 00 42"), Bytes(128)})),
            "lph cfg 9 vl 0 cna 0102 > a0b0 READ_RESP tassn 66 status 0 | 128 B");
  EXPECT_EQ(print(concat({prefix, hex("0b 10 00 42 11 22 33 44 55 66 77 80 00 05 43 21")})),
            "lph cfg 9 vl 0 cna 0102 > a0b0 ta 0b drop not_load_store");
  EXPECT_EQ(print(concat({prefix, hex("06 10")})), "lph cfg 9 vl 0 cna 0102 > a0b0 drop too_short");
}

TEST(PrettyPrint, every_opcode_names_itself_cut_or_whole) {
  Prng rng(51);
  for (TaOpcode op : kAllOpcodes) {
    TaPacket t = random_packet(op, true, true, true, rng);
    const Bytes enables(8);
    if ((ta_shape(op) & kShapeBe) != 0) {
      t.has_be = true;
      t.ma.length = 64;
      t.be = {enables.data(), 64};
    }
    const Bytes tp = concat({written(data_header()), transaction_of(t, Bytes(t.has_be ? 64 : 0))});
    const std::string s = print(frame_of(template_v4(), tp));
    EXPECT_NE(s.find(std::string(" ") + ta_opcode_name(op) + " "), std::string::npos) << s;
    for (size_t n = 0; n < tp.size(); ++n)
      print(frame_of(template_v4(), Bytes(tp.begin(), tp.begin() + static_cast<ptrdiff_t>(n))));
  }
}

TEST(PrettyPrint, output_never_exceeds_its_buffer) {
  const Bytes f = frame_of(template_v6(), write_packet());
  const std::string whole = print(f);
  for (size_t cap = 0; cap <= whole.size() + 1; ++cap) {
    std::unique_ptr<char[]> out(new char[cap]);
    const size_t n = format_packet(f, out.get(), cap);
    ASSERT_LE(n, cap == 0 ? 0 : cap - 1);
    if (cap > 0) {
      ASSERT_EQ(std::string(out.get()), whole.substr(0, cap - 1));
    }
  }
}

}  // namespace
}  // namespace ub::wire
