// SPDX-License-Identifier: Apache-2.0
// Single headers and codes, as bytes that were written down independently of the code.
#include <gtest/gtest.h>

#include "tests/unit/roce/roce_test_util.h"

namespace ub::roce {
namespace {

TEST(RoceOpcodes, transport_is_in_the_upper_bits) {
  EXPECT_EQ(transport_of(Opcode::kRcFetchAdd), Transport::kRc);
  EXPECT_EQ(transport_of(Opcode::kUcWriteOnly), Transport::kUc);
  EXPECT_EQ(transport_of(Opcode::kUdSendOnlyImm), Transport::kUd);
  EXPECT_EQ(transport_of(Opcode::kCnp), Transport::kCnp);
  EXPECT_EQ(transport_of(Opcode{0xA4}), Transport::kXrc);
}

TEST(RoceOpcodes, unknown_codes_have_no_shape_and_no_name) {
  for (const uint8_t code :
       {0x15, 0x18, 0x1C, 0x1D, 0x1F, 0x2C, 0x2D, 0x31, 0x33, 0x44, 0x60, 0x66, 0x80, 0x82, 0xA4}) {
    EXPECT_EQ(packet_shape(Opcode{code}), 0) << int{code};
    EXPECT_STREQ(opcode_name(Opcode{code}), "?");
  }
  EXPECT_STREQ(opcode_name(Opcode::kRcReadReplyMiddle), "RC_READ_RESPONSE_MIDDLE");
  EXPECT_EQ(std::size(kAllOpcodes), 38u);
}

TEST(RoceOpcodes, uc_is_rc_without_what_is_answered) {
  for (uint8_t code = 0; code <= 0x0B; ++code) {
    EXPECT_EQ(packet_shape(Opcode{code}), packet_shape(Opcode{static_cast<uint8_t>(0x20 | code)})) << int{code};
  }
}

TEST(Bth, golden) {
  const Bth h{.opcode = Opcode::kRcWriteOnlyImm,
              .solicited = true,
              .migrated = true,
              .padding = 3,
              .pkey = 0x8001,
              .fecn = false,
              .becn = true,
              .dest_qp = 0xABCDEF,
              .ack_req = true,
              .psn = Psn(0x123456)};
  const Exact wire(hex("0b f0 80 01 40 ab cd ef 80 12 34 56"));
  EXPECT_EQ(to_hex(wire::written(h)), to_hex(wire.span()));
  Bth back;
  ASSERT_EQ(Bth::read(wire.begin(), wire.size(), back), Drop::kNone);
  EXPECT_EQ(back, h);
}

TEST(Bth, reserved_bits_are_not_looked_at) {
  const Exact wire(hex("04 40 ff ff bf 00 00 11 ff 00 00 01"));
  Bth h;
  ASSERT_EQ(Bth::read(wire.begin(), wire.size(), h), Drop::kNone);
  EXPECT_EQ(h, (Bth{.fecn = true, .dest_qp = 17, .ack_req = true, .psn = Psn(1)}));
}

TEST(Bth, every_other_version_is_refused) {
  for (uint8_t version = 1; version < 16; ++version) {
    const Exact wire(wire::written(Bth{.version = version}));
    Bth h;
    EXPECT_EQ(Bth::read(wire.begin(), wire.size(), h), Drop::kBadBthVersion);
    EXPECT_EQ(h.version, version);
  }
}

TEST(ExtendedHeaders, golden) {
  EXPECT_EQ(to_hex(wire::written(Deth{0x80010000, 1})), to_hex(hex("80010000 00000001")));
  EXPECT_EQ(to_hex(wire::written(Reth{0x1122334455667788, 0xDEADBEEF, 4096})),
            to_hex(hex("1122334455667788 deadbeef 00001000")));
  EXPECT_EQ(to_hex(wire::written(AtomicEth{0x1122334455667788, 0xDEADBEEF, 2, 3})),
            to_hex(hex("1122334455667788 deadbeef 0000000000000002 0000000000000003")));
  EXPECT_EQ(to_hex(wire::written(Aeth{Syndrome::nak(NakCode::kRemoteAccess), Msn(0xABCDEF)})), to_hex(hex("62abcdef")));
}

TEST(Syndrome, kinds) {
  EXPECT_EQ(Syndrome::ack().code, 0x1F);
  EXPECT_EQ(Syndrome::ack().kind(), AckKind::kAck);
  EXPECT_EQ(Syndrome::rnr(12).code, 0x2C);
  EXPECT_EQ(Syndrome::rnr(12).kind(), AckKind::kRnr);
  EXPECT_EQ(Syndrome::rnr(12).value(), 12);
  EXPECT_EQ(Syndrome::nak(NakCode::kPsnSequence).code, 0x60);
  EXPECT_EQ(Syndrome{0x63}.kind(), AckKind::kNak);
  EXPECT_EQ(Syndrome{0x63}.nak_code(), NakCode::kRemoteOperation);
}

TEST(Syndrome, reserved) {
  int reserved = 0;
  for (int code = 0; code < 256; ++code) reserved += Syndrome{static_cast<uint8_t>(code)}.kind() == AckKind::kReserved;
  EXPECT_EQ(reserved, 256 - 32 - 32 - 4);
  for (const uint8_t code : {0x40, 0x64, 0x7F, 0x80, 0x9F, 0xE0}) {
    EXPECT_EQ(Syndrome{code}.kind(), AckKind::kReserved) << int{code};
  }
}

TEST(Syndrome, credits) {
  const uint32_t table[] = {0,    1,    2,    3,    4,    6,     8,     12,    16,   24,   32,
                            48,   64,   96,   128,  192,  256,   384,   512,   768,  1024, 1536,
                            2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768};
  for (uint8_t code = 0; code < kNoCredits; ++code) {
    EXPECT_EQ(credits_of(code), table[code]) << int{code};
    EXPECT_EQ(credit_code(table[code]), code);
  }
  EXPECT_EQ(credit_code(5), 4);
  EXPECT_EQ(credit_code(1'000'000), 30);
}

TEST(Syndrome, rnr_delays) {
  const int64_t table_us[] = {655360, 10,    20,    30,    40,    60,     80,     120,    160,    240,   320,
                              480,    640,   960,   1280,  1920,  2560,   3840,   5120,   7680,   10240, 15360,
                              20480,  30720, 40960, 61440, 81920, 122880, 163840, 245760, 327680, 491520};
  for (uint8_t code = 0; code < 32; ++code) EXPECT_EQ(rnr_delay(code), microseconds(table_us[code])) << int{code};
}

}  // namespace
}  // namespace ub::roce
