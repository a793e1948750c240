// SPDX-License-Identifier: Apache-2.0
// Every opcode with every combination of optional headers: round trip, sizes, truncation, padding, refusals.
#include "lib/transport/wire/transaction_packet.h"

#include <gtest/gtest.h>

#include <functional>

#include "tests/unit/wire/wire_test_util.h"

namespace ub::wire {
namespace {

Drop parse(const Bytes& b, uint8_t padding, bool read_meta, TaPacket& out) {
  const Exact exact(b);
  return parse_transaction(exact.begin(), exact.end(), padding, read_meta, out);
}

Drop parse(const Bytes& b, uint8_t padding = 0, bool read_meta = true) {
  TaPacket t;
  return parse(b, padding, read_meta, t);
}

struct Form {
  TaPacket packet;
  bool read_meta;
  size_t header_size;
  Bytes byte_enables;  // packet.be points here
};

size_t payload_size(TaOpcode op, size_t wanted) { return ta_has_payload(op) ? wanted : 0; }

/// Calls `f` with every opcode x UDETAH x TVETAH x read-meta, byte-enable ones with each size.
void for_every_form(const std::function<void(Form&)>& f) {
  Prng rng(31);
  for (TaOpcode op : kAllOpcodes) {
    for (int bits = 0; bits < 8; ++bits) {
      const bool ud = (bits & 1) != 0, tv = (bits & 2) != 0, meta = (bits & 4) != 0;
      const bool be = (ta_shape(op) & kShapeBe) != 0;
      for (uint32_t n = be ? 64 : 1; n <= (be ? 1024u : 1u); n *= 2) {
        Form form{random_packet(op, ud, tv, meta, rng), meta, 0, Bytes(be ? n / 8 : 0)};
        TaPacket& t = form.packet;
        if (be) {
          rng.fill(form.byte_enables.data(), form.byte_enables.size());
          t.has_be = true;
          t.ma.length = n;
          t.be = {form.byte_enables.data(), n};
        }
        form.header_size =
            t.is_response
                ? response_header_size(op, meta)
                : request_header_size(op, {.ud = t.has_ud, .tv = t.tv, .read_meta = meta, .enables = be ? n : 0});
        f(form);
      }
    }
  }
}

void expect_equal(const TaPacket& a, const TaPacket& b) {
  EXPECT_EQ(a.is_response, b.is_response);
  EXPECT_EQ(a.has_ud, b.has_ud);
  EXPECT_EQ(a.has_mt, b.has_mt);
  EXPECT_EQ(a.has_taid, b.has_taid);
  EXPECT_EQ(a.has_ofst, b.has_ofst);
  EXPECT_EQ(a.has_ma, b.has_ma);
  EXPECT_EQ(a.has_imm, b.has_imm);
  EXPECT_EQ(a.has_ntf, b.has_ntf);
  EXPECT_EQ(a.has_mgmt, b.has_mgmt);
  EXPECT_EQ(a.tv, b.tv);
  EXPECT_EQ(a.has_be, b.has_be);
  if (a.is_response) {
    EXPECT_EQ(a.rsp, b.rsp);
  } else {
    EXPECT_EQ(a.req, b.req);
  }
  EXPECT_TRUE(!a.has_ud || a.ud == b.ud);
  EXPECT_TRUE(!a.has_mt || a.mt == b.mt);
  EXPECT_TRUE(!a.has_taid || a.taid == b.taid);
  EXPECT_TRUE(!a.has_ofst || a.ofst == b.ofst);
  EXPECT_TRUE(!a.has_ma || a.ma == b.ma);
  EXPECT_TRUE(!a.has_imm || a.imm == b.imm);
  EXPECT_TRUE(!a.has_ntf || a.ntf == b.ntf);
  EXPECT_TRUE(!a.has_mgmt || a.mgmt == b.mgmt);
  EXPECT_TRUE(!a.tv || a.token_value == b.token_value);
}

TEST(Transaction, every_form_round_trips) {
  for_every_form([](Form& form) {
    const TaOpcode op = form.packet.opcode();
    SCOPED_TRACE(ta_opcode_name(op));
    for (size_t want : {size_t{0}, size_t{1}, size_t{2}, size_t{3}, size_t{64}}) {
      const size_t n = form.packet.has_be ? form.packet.be.enables : payload_size(op, want);
      Bytes payload(n);
      Prng(n).fill(payload.data(), n);
      const Bytes b = transaction_of(form.packet, payload);
      const uint8_t padding = padding_for(n);
      ASSERT_EQ(b.size(), form.header_size + n + padding);
      const Exact wire(b);
      TaPacket t;
      ASSERT_EQ(parse_transaction(wire.begin(), wire.end(), padding, form.read_meta, t), Drop::kNone);
      expect_equal(form.packet, t);
      ASSERT_EQ(t.payload_len, n);
      EXPECT_EQ(Bytes(t.payload, t.payload + n), payload);
      if (t.has_be) {
        ASSERT_EQ(t.be.enables, n);
        EXPECT_EQ(Bytes(t.be.bits, t.be.bits + t.be.size()), form.byte_enables);
      }
    }
  });
}

TEST(Transaction, headers_lie_in_the_order_of_the_tables) {
  // One Write with immediate and everything optional, by hand.
  TaPacket t{};
  t.req = {.opcode = TaOpcode::kWriteImmediate, .tassn = Tassn(1), .rc_id = 2};
  t.has_ud = t.has_mt = t.has_ma = t.has_imm = t.tv = true;
  t.ud = 0xAAAAAAAA;
  t.mt = {0, 1, 3};
  t.ma = {0x1000, 4, 5};
  t.imm = {6, 7, 8};
  t.token_value = 0xBBBBBBBB;
  EXPECT_EQ(to_hex(transaction_of(t)), to_hex(hex("04 19 00 01 08 10 00 02 | aa aa aa aa | 00 10 00 03 |"
                                                  "00 00 00 00 00 00 10 00 00 00 04 00 00 00 00 05 |"
                                                  "00 00 00 00 00 00 00 06 00 00 00 07 00 00 00 08 | bb bb bb bb")));
  TaPacket r{};
  r.req = {.opcode = TaOpcode::kRead, .tassn = Tassn(1), .rc_id = 2};
  r.has_taid = r.has_ofst = r.has_ma = true;
  r.taid = 9;
  r.ofst = {10};
  r.ma = {0x1000, 4, 5};
  EXPECT_EQ(to_hex(transaction_of(r)), to_hex(hex("06 10 00 01 00 10 00 02 | 00 00 00 09 | 00 00 00 0a |"
                                                  "00 00 00 00 00 00 10 00 00 00 04 00 00 00 00 05")));
  TaPacket s{};
  s.req = {.opcode = TaOpcode::kSendInvalidate, .tassn = Tassn(1), .rc_id = 2};
  s.has_mt = s.has_ofst = s.has_imm = s.tv = true;
  s.mt = {0, 1, 3};
  s.ofst = {0};
  s.imm = {0x0000000400000005, 0, 0};
  s.token_value = 0xBBBBBBBB;
  EXPECT_EQ(to_hex(transaction_of(s)), to_hex(hex("02 18 00 01 08 10 00 02 | 00 10 00 03 | 00 00 00 00 |"
                                                  "00 00 00 04 00 00 00 05 00 00 00 00 00 00 00 00 | bb bb bb bb")));
}

TEST(Transaction, truncation_at_every_length_never_reads_beyond) {
  for_every_form([](Form& form) {
    SCOPED_TRACE(ta_opcode_name(form.packet.opcode()));
    const Bytes b = transaction_of(form.packet);
    ASSERT_EQ(b.size(), form.header_size);
    for (size_t n = 0; n < b.size(); ++n) {
      for (uint8_t padding = 0; padding < 4; ++padding) {
        const Drop d = parse(Bytes(b.begin(), b.begin() + static_cast<ptrdiff_t>(n)), padding, form.read_meta);
        ASSERT_TRUE(d == Drop::kTruncatedHeader || d == Drop::kBadPadding) << n << ' ' << drop_name(d);
      }
    }
  });
}

TEST(Transaction, any_bytes_are_safe_under_any_cut) {
  Prng rng(32);
  for (int i = 0; i < 200000; ++i) {
    Bytes b(rng.below(200));
    rng.fill(b.data(), b.size());
    if (!b.empty() && rng.chance(0.9)) store_u8(b.data(), static_cast<uint8_t>(rng.below(0x1A)));
    if (b.size() > 1) b[1] &= std::byte{0x3F};
    const Exact wire(b);
    TaPacket t;
    if (parse_transaction(wire.begin(), wire.end(), static_cast<uint8_t>(rng.below(4)), rng.chance(0.5), t) !=
        Drop::kNone)
      continue;
    ASSERT_GE(t.payload, wire.begin());
    ASSERT_LE(t.payload + t.payload_len, wire.end());
  }
}

TaPacket simple_write() {
  TaPacket t{};
  t.req = {.opcode = TaOpcode::kWrite, .tassn = Tassn(77), .rc_id = 5};
  t.has_ma = true;
  t.ma = {0x1000, 1, 3};
  return t;
}

TEST(Transaction, padding_must_fit_and_align) {
  Bytes b = transaction_of(simple_write());  // no payload: 24 bytes
  EXPECT_EQ(parse(b, 0), Drop::kNone);
  for (uint8_t padding = 1; padding < 4; ++padding) EXPECT_EQ(parse(b, padding), Drop::kBadPadding);
  b.resize(b.size() + 4);
  for (uint8_t padding = 0; padding < 4; ++padding) {
    TaPacket t;
    ASSERT_EQ(parse(b, padding, true, t), Drop::kNone);
    EXPECT_EQ(t.payload_len, 4u - padding);
  }
  for (size_t extra = 1; extra < 4; ++extra) {
    Bytes odd = b;
    odd.resize(b.size() + extra);
    EXPECT_EQ(parse(odd, 0), Drop::kBadPadding);
  }
}

TEST(Transaction, padding_content_is_ignored) {
  Bytes b = transaction_of(simple_write(), hex("01 02 03"));
  b.back() = std::byte{0xFF};
  TaPacket t;
  ASSERT_EQ(parse(b, 1, true, t), Drop::kNone);
  EXPECT_EQ(t.payload_len, 3u);
}

TEST(Transaction, reserved_opcodes_are_named_with_the_request_readable) {
  Bytes b = transaction_of(simple_write());
  for (uint32_t code = 0; code < 256; ++code) {
    if (ta_is_known(static_cast<uint8_t>(code))) continue;
    store_u8(b.data(), static_cast<uint8_t>(code));
    TaPacket t;
    const Drop d = parse(b, 0, true, t);
    ASSERT_EQ(d, Drop::kUnknownOpcode) << code;
    EXPECT_TRUE(drop_is_unsupported_request(d));
    EXPECT_FALSE(t.is_response);
    EXPECT_EQ(t.req.tassn, Tassn(77));
    EXPECT_EQ(t.req.rc_id, 5u);
  }
}

TEST(Transaction, versions_other_than_zero_are_refused) {
  for (const TaOpcode op : {TaOpcode::kWrite, TaOpcode::kTaack}) {
    Prng rng(1);
    Bytes b = transaction_of(random_packet(op, false, false, false, rng));
    for (uint8_t version = 1; version < 4; ++version) {
      Bytes c = b;
      c[1] = (c[1] & std::byte{0x3F}) | static_cast<std::byte>(version << 6);
      EXPECT_EQ(parse(c), Drop::kBadTaVersion);
    }
  }
}

TEST(Transaction, flags_that_do_not_fit_the_operation_are_refused) {
  Prng rng(33);
  for (TaOpcode op : kAllOpcodes) {
    if (!ta_is_request(op) || (ta_shape(op) & kShapeBe) != 0) continue;
    SCOPED_TRACE(ta_opcode_name(op));
    Bytes b = transaction_of(random_packet(op, false, false, true, rng));
    b.resize(b.size() + 64);
    Bytes mt = b;
    mt[4] ^= std::byte{0x08};
    EXPECT_EQ(parse(mt), Drop::kBadHeaderFlags);
    Bytes tv = b;
    tv[1] ^= std::byte{0x08};
    const bool admitted = (ta_shape(op) & kShapeTv) != 0;
    EXPECT_EQ(parse(tv) == Drop::kBadHeaderFlags, !admitted);
  }
}

TEST(Transaction, payload_where_none_belongs_is_refused) {
  Prng rng(34);
  for (TaOpcode op : kAllOpcodes) {
    if ((ta_shape(op) & kShapeBe) != 0) continue;
    const Bytes b = transaction_of(random_packet(op, true, true, true, rng), Bytes(8));
    EXPECT_EQ(parse(b), ta_has_payload(op) ? Drop::kNone : Drop::kUnexpectedPayload) << ta_opcode_name(op);
  }
}

TEST(Transaction, failed_responses_have_no_payload) {
  Prng rng(35);
  for (const TaOpcode op : {TaOpcode::kReadResponse, TaOpcode::kAtomicResponse}) {
    TaPacket r = random_packet(op, false, false, true, rng);
    for (uint8_t status = 0; status < 8; ++status) {
      r.rsp.rspst = status;
      EXPECT_EQ(parse(transaction_of(r)), Drop::kNone);
      const bool may_have_data = status == 0 || status == 5;
      EXPECT_EQ(parse(transaction_of(r, Bytes(8))), may_have_data ? Drop::kNone : Drop::kUnexpectedPayload);
    }
  }
}

TEST(Transaction, byte_enables_need_a_length_that_exists_and_a_payload_that_fits) {
  Prng rng(36);
  TaPacket t = random_packet(TaOpcode::kWriteByteEnable, false, false, false, rng);
  const Bytes enables(128);
  for (uint32_t length : {0u, 1u, 32u, 63u, 65u, 96u, 2048u, 0xFFFFFFFFu}) {
    t.ma.length = length;
    EXPECT_EQ(parse(transaction_of(t, Bytes(512))), Drop::kBadByteEnable) << length;
  }
  t.ma.length = 64;
  t.has_be = true;
  t.be = {enables.data(), 64};
  EXPECT_EQ(parse(transaction_of(t, Bytes(64))), Drop::kNone);
  EXPECT_EQ(parse(transaction_of(t, Bytes(60))), Drop::kBadByteEnable);
  EXPECT_EQ(parse(transaction_of(t, Bytes(68))), Drop::kBadByteEnable);
}

TEST(Transaction, a_payload_of_more_than_1024_bytes_has_1024_byte_enables) {
  Prng rng(36);
  TaPacket t = random_packet(TaOpcode::kWriteByteEnable, false, false, false, rng);
  const Bytes enables(128);
  t.has_be = true;
  t.be = {enables.data(), 1024};
  for (uint32_t length : {1025u, 1500u, 2048u, 8192u}) {
    t.ma.length = length;
    const uint8_t padding = padding_for(length);
    const Bytes packet = transaction_of(t, Bytes(length + padding));
    TaPacket out;
    ASSERT_EQ(parse(packet, padding, false, out), Drop::kNone) << length;
    EXPECT_EQ(out.be.enables, 1024u);
    EXPECT_EQ(out.payload_len, length);
    EXPECT_EQ(parse(transaction_of(t, Bytes(length + padding + 4)), padding), Drop::kBadByteEnable);
  }
}

TEST(Transaction, read_meta_is_the_channels_word) {
  Prng rng(37);
  TaPacket with = random_packet(TaOpcode::kRead, false, false, true, rng);
  TaPacket without = random_packet(TaOpcode::kRead, false, false, false, rng);
  EXPECT_EQ(parse(transaction_of(with), 0, false), Drop::kUnexpectedPayload);
  EXPECT_EQ(parse(transaction_of(without), 0, true), Drop::kTruncatedHeader);
  // Atomics never have them.
  const Bytes atomic = transaction_of(random_packet(TaOpcode::kAtomicFetchAdd, false, false, true, rng), Bytes(16));
  TaPacket t;
  ASSERT_EQ(parse(atomic, 0, true, t), Drop::kNone);
  EXPECT_FALSE(t.has_taid);
  EXPECT_EQ(t.payload_len, 16u);
}

TEST(Transaction, largest_header_is_as_declared) {
  EXPECT_EQ(
      request_header_size(TaOpcode::kWriteByteEnable, {.ud = true, .tv = true, .enables = BeetahView::kMaxEnables}),
      kMaxTransactionHeaderSize);
}

}  // namespace
}  // namespace ub::wire
