// SPDX-License-Identifier: Apache-2.0
// Packets of TP bypass: golden bytes, every form there and back, refusals by name. UB Base Specification Rev 2.0, 7.2,
// 8.3 and appendix B.2.6.
#include "lib/transport/wire/bypass_packet.h"

#include <gtest/gtest.h>

#include <functional>
#include <optional>

#include "tests/unit/wire/wire_test_util.h"

namespace ub::wire {
namespace {

constexpr TaOpcode kRequests[] = {TaOpcode::kRead,      TaOpcode::kWrite,    TaOpcode::kWriteByteEnable,
                                  TaOpcode::kWriteback, TaOpcode::kPrefetch, TaOpcode::kWritebackByteEnable};

// Ethernet, LPH and NTH16 of the vectors; NTH16 has a CCI and an LBF, which a receiver ignores.
constexpr const char* kPrefix =
    "02 00 00 00 00 02 | 02 00 00 00 00 01 | 88 b5 | 00 09 00 00 | 01 02 a0 b0 80 02 5a 30 |";
constexpr BypassRoute kRoute{{2, 0, 0, 0, 0, 2}, {2, 0, 0, 0, 0, 1}, 0xA0B0, 0x0102, 3};
constexpr size_t kVlAndCfgByte = 15, kCciByte = 22, kLbfByte = 24, kNthLastByte = 25, kBaseByte = 26;

Bytes frame(const char* rest) { return concat({hex(kPrefix), hex(rest)}); }
Bytes line(size_t bytes = 64) { return Bytes(bytes, std::byte{0xA5}); }

Drop parse(const Bytes& bytes, BypassPacket& out) {
  static std::optional<Exact> exact;  // what `out` refers to: until the next is parsed
  exact.emplace(bytes);
  const Drop d = parse_bypass(exact->span(), out);
  if (d == Drop::kNone) {
    EXPECT_EQ(out.payload - exact->begin(), static_cast<ptrdiff_t>(bypass_header_size(out)));
  }
  return d;
}
Drop parse(const Bytes& bytes) {
  BypassPacket out;
  return parse(bytes, out);
}

/// Headers as write_bypass_headers() makes them, and a payload as long as they say.
Bytes whole(const BypassPacket& packet) {
  Bytes b(bypass_header_size(packet));
  EXPECT_EQ(write_bypass_headers(packet, b.data()), b.size());
  b.resize(b.size() + bypass_payload_size(packet), std::byte{0x5A});
  return b;
}

BypassPacket request(TaOpcode op) {
  BypassPacket p{};
  p.route = kRoute;
  p.opcode = op;
  p.tassn = Tassn(0x42);
  p.ma = {0x1122334455667780, 0, true, 0, 0x54321};
  return p;
}
BypassPacket response(TaOpcode op, uint32_t payload_len) {
  BypassPacket p{};
  p.route = kRoute;
  p.is_response = true;
  p.opcode = op;
  p.tassn = Tassn(0x42);
  p.payload_len = payload_len;
  return p;
}

/// What this side writes has no CCI, no LBF, and the virtual lane of its service level.
Bytes as_written(Bytes b) {
  store_be16(&b[kCciByte], 0);
  store_u8(&b[kLbfByte], 0);
  store_u8(&b[kVlAndCfgByte], 3 << 5 | kCfgLoadStore);
  return b;
}

// ---- golden bytes ----------------------------------------------------------------------------------------------

TEST(BypassPacket, load_of_a_line) {
  const Bytes wire = frame("06 10 00 42 | 11 22 33 44 55 66 77 88 00 05 43 21");
  EXPECT_EQ(wire.size(), 42u);
  BypassPacket p;
  ASSERT_EQ(parse(wire, p), Drop::kNone);
  EXPECT_EQ(p.route, kRoute);
  EXPECT_FALSE(p.is_response || p.poison || p.has_ud || p.tv || p.has_be);
  EXPECT_EQ(p.opcode, TaOpcode::kRead);
  EXPECT_EQ(p.tassn, Tassn(0x42));
  EXPECT_EQ(p.ma, (MaetahCompact{0x1122334455667780, 0, true, 0, 0x54321}));
  EXPECT_EQ(p.payload_len, 0u);
  EXPECT_EQ(to_hex(whole(request(TaOpcode::kRead))), to_hex(as_written(wire)));
}

TEST(BypassPacket, response_to_a_load) {
  const Bytes wire = concat({frame("12 00 00 42"), line()});
  EXPECT_EQ(wire.size(), 94u);
  BypassPacket p;
  ASSERT_EQ(parse(wire, p), Drop::kNone);
  EXPECT_TRUE(p.is_response);
  EXPECT_EQ(p.opcode, TaOpcode::kReadResponse);
  EXPECT_EQ(p.status, AtahCompact::kOk);
  EXPECT_EQ(p.tassn, Tassn(0x42));
  EXPECT_EQ(p.payload_len, 64u);
  Bytes headers(bypass_header_size(p));
  EXPECT_EQ(write_bypass_headers(response(TaOpcode::kReadResponse, 64), headers.data()), 30u);
  EXPECT_EQ(to_hex(headers), to_hex(as_written(frame("12 00 00 42"))));
}

TEST(BypassPacket, store_of_some_bytes_with_token) {
  const Bytes headers =
      frame("14 18 00 43 | 11 22 33 44 55 66 77 80 00 05 43 21 | de ad be ef | 00 00 00 00 00 00 00 ff");
  BypassPacket p;
  ASSERT_EQ(parse(concat({headers, line()}), p), Drop::kNone);
  EXPECT_EQ(p.opcode, TaOpcode::kWriteByteEnable);
  EXPECT_TRUE(p.tv && p.has_be);
  EXPECT_EQ(p.token_value, 0xDEADBEEFu);
  EXPECT_FALSE(p.ma.strong_order);
  EXPECT_EQ(p.be.enables, 64u);
  EXPECT_EQ(p.be.word(0), 0xFFu);
  EXPECT_EQ(p.payload_len, 64u);

  BypassPacket out = request(TaOpcode::kWriteByteEnable);
  const Bytes enables = hex("00 00 00 00 00 00 00 ff");
  out.tassn = Tassn(0x43);
  out.ma.strong_order = false;
  out.tv = out.has_be = true;
  out.token_value = 0xDEADBEEF;
  out.be = {enables.data(), 64};
  Bytes written(bypass_header_size(out));
  write_bypass_headers(out, written.data());
  EXPECT_EQ(to_hex(written), to_hex(as_written(headers)));
}

TEST(BypassPacket, acknowledgement_and_refusal) {
  BypassPacket p;
  ASSERT_EQ(parse(frame("11 00 00 42"), p), Drop::kNone);
  EXPECT_EQ(p.opcode, TaOpcode::kTaack);
  EXPECT_EQ(p.status, AtahCompact::kOk);
  ASSERT_EQ(parse(frame("12 10 00 42"), p), Drop::kNone);
  EXPECT_EQ(p.status, AtahCompact::kAuthenticationFailed);
  EXPECT_EQ(p.payload_len, 0u);
}

TEST(BypassPacket, the_answer_goes_back_where_the_request_came_from) {
  const BypassRoute back = kRoute.back();
  EXPECT_EQ(back, (BypassRoute{{2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 2}, 0x0102, 0xA0B0, 3}));
  EXPECT_EQ(back.back(), kRoute);
}

// ---- there and back --------------------------------------------------------------------------------------------

struct Form {
  BypassPacket packet;
  Bytes enables;  // packet.be points here
};

/// Every request with each length, with and without UDETAH, TVETAH, poison and strong order.
void for_every_request(const std::function<void(const BypassPacket&)>& f) {
  Prng rng(17);
  for (TaOpcode op : kRequests) {
    for (uint32_t bits = 0; bits < 16 * 8; ++bits) {
      Form form{request(op), {}};
      BypassPacket& p = form.packet;
      p.tassn = Tassn(rng.next_u32());
      p.has_ud = (bits & 1) != 0;
      p.ud = rng.next_u32();
      p.tv = (bits & 2) != 0 && (ta_shape(op) & kShapeTv) != 0;
      p.token_value = rng.next_u32();
      p.poison = (bits & 4) != 0;
      p.ma = {rng.next_u64() & ~uint64_t{63}, static_cast<uint8_t>(rng.below(4)), (bits & 8) != 0,
              static_cast<uint8_t>(bits >> 4), static_cast<uint32_t>(rng.below(1 << 20))};
      if ((ta_shape(op) & kShapeBe) != 0) {
        p.has_be = true;
        form.enables.resize(BeetahView::enables_of(p.ma.length()) / 8);
        rng.fill(form.enables.data(), form.enables.size());
        p.be = {form.enables.data(), BeetahView::enables_of(p.ma.length())};
      }
      f(p);
    }
  }
}

TEST(BypassPacket, every_request_is_read_as_it_was_written) {
  for_every_request([](const BypassPacket& sent) {
    BypassPacket p;
    ASSERT_EQ(parse(whole(sent), p), Drop::kNone);
    EXPECT_EQ(p.route, sent.route);
    EXPECT_FALSE(p.is_response);
    EXPECT_EQ(p.opcode, sent.opcode);
    EXPECT_EQ(p.tassn, sent.tassn);
    EXPECT_EQ(p.poison, sent.poison);
    EXPECT_EQ(p.has_ud, sent.has_ud);
    EXPECT_TRUE(!p.has_ud || p.ud == sent.ud);
    EXPECT_EQ(p.tv, sent.tv);
    EXPECT_TRUE(!p.tv || p.token_value == sent.token_value);
    EXPECT_EQ(p.ma, sent.ma);
    EXPECT_EQ(p.has_be, sent.has_be);
    EXPECT_EQ(p.payload_len, ta_has_payload(sent.opcode) ? sent.ma.length() : 0);
    EXPECT_LE(bypass_header_size(sent), kMaxBypassHeaderSize);
  });
}

TEST(BypassPacket, byte_enables_arrive_as_they_were_sent) {
  for_every_request([](const BypassPacket& sent) {
    if (!sent.has_be) return;
    const Exact wire(whole(sent));
    BypassPacket p;
    ASSERT_EQ(parse_bypass(wire.span(), p), Drop::kNone);
    ASSERT_EQ(p.be.enables, sent.be.enables);
    for (uint32_t i = 0; i < p.be.enables; i += 64) EXPECT_EQ(p.be.word(i / 64), sent.be.word(i / 64));
  });
}

TEST(BypassPacket, every_length_of_a_load_can_be_answered) {
  for (uint32_t bytes = kMinBypassPayload; bytes <= kMaxBypassPayload; bytes *= 2) {
    BypassPacket p;
    ASSERT_EQ(parse(whole(response(TaOpcode::kReadResponse, bytes)), p), Drop::kNone) << bytes;
    EXPECT_EQ(p.payload_len, bytes);
  }
}

// ---- refusals --------------------------------------------------------------------------------------------------

TEST(BypassPacket, what_ends_inside_its_headers_is_refused) {
  for_every_request([](const BypassPacket& sent) {
    const Bytes b = whole(sent);
    const size_t headers = bypass_header_size(sent);
    for (size_t n = 0; n < headers; ++n) {
      const Bytes cut(b.begin(), b.begin() + static_cast<ptrdiff_t>(n));
      const Drop wanted = n < kBypassPrefixSize + Btah::kCompactSize ? Drop::kTooShort : Drop::kTruncatedHeader;
      ASSERT_EQ(parse(cut), wanted) << n;
    }
  });
}

TEST(BypassPacket, a_store_has_as_many_bytes_as_its_length_says) {
  for (TaOpcode op : kRequests) {
    if (!ta_has_payload(op)) continue;
    BypassPacket p = request(op);
    const Bytes enables(8);
    p.has_be = (ta_shape(op) & kShapeBe) != 0;
    p.be = {enables.data(), 64};
    Bytes b = whole(p);
    b.push_back({});
    EXPECT_EQ(parse(b), Drop::kBadLength);
    b.pop_back();
    b.pop_back();
    EXPECT_EQ(parse(b), Drop::kBadLength);
  }
}

TEST(BypassPacket, a_load_is_answered_with_whole_lines) {
  for (const size_t bytes : {0u, 30u, 63u, 65u, 128u + 64u, 16384u})
    EXPECT_EQ(parse(concat({frame("12 00 00 42"), line(bytes)})), Drop::kBadLength) << bytes;
}

TEST(BypassPacket, ethernet_may_fill_a_frame_up_to_60_bytes) {
  for (const char* text : {"06 10 00 42 | 11 22 33 44 55 66 77 88 00 05 43 21",
                           "15 10 00 42 | 11 22 33 44 55 66 77 88 00 05 43 21", "11 00 00 42", "12 10 00 42"}) {
    Bytes b = frame(text);
    BypassPacket p;
    for (b.push_back(std::byte{0xFF}); b.size() <= kMinEthFrame; b.push_back(std::byte{0xFF})) {
      ASSERT_EQ(parse(b, p), Drop::kNone) << b.size();
      EXPECT_EQ(p.payload_len, 0u);
    }
    EXPECT_EQ(parse(b), Drop::kUnexpectedPayload) << text;
  }
}

// ---- plain loads -----------------------------------------------------------------------------------------------

BypassPacket plain(bool tv) {
  BypassPacket p = request(TaOpcode::kRead);
  p.route = {};
  p.tv = tv;
  p.token_value = 0x600DF00D;
  return p;
}

TEST(BypassPacket, a_plain_load_is_read_like_any_other) {
  for (const bool tv : {false, true}) {
    for (uint8_t code = 0; code <= 7; ++code) {
      BypassPacket p = plain(tv);
      p.ma.length_code = code;
      const Bytes frame = whole(p);
      PlainLoad load;
      ASSERT_TRUE(read_plain_load(frame, load));
      EXPECT_EQ(load.tassn, p.tassn);
      EXPECT_EQ(load.ma, p.ma);
      EXPECT_EQ(load.tv, tv);
      if (tv) {
        EXPECT_EQ(load.token_value, p.token_value);
      }
    }
  }
}

TEST(BypassPacket, its_answers_are_those_to_any_other) {
  for (const TaOpcode op : {TaOpcode::kReadResponse, TaOpcode::kTaack}) {
    for (const uint8_t status : {AtahCompact::kOk, AtahCompact::kAuthenticationFailed}) {
      BypassPacket p = response(op, 0);
      p.route = {};
      p.status = status;
      Bytes written(bypass_header_size(p)), as_plain(kBypassAnswerHeaderSize);
      write_bypass_headers(p, written.data());
      write_plain_answer(op, status, p.tassn, as_plain.data());
      EXPECT_EQ(written, as_plain);
    }
  }
}

// Each bit of the prefix and of the first header that is not the number makes it another one.
TEST(BypassPacket, whatever_else_a_frame_says_makes_it_no_plain_load) {
  for (const bool tv : {false, true}) {
    const Bytes frame = whole(plain(tv));
    PlainLoad load;
    for (size_t bit = 0; bit < 8 * (kBypassPrefixSize + 2); ++bit) {
      Bytes other = frame;
      other[bit / 8] ^= std::byte{1} << bit % 8;
      EXPECT_FALSE(read_plain_load(other, load)) << bit;
    }
    for (size_t bytes = 0; bytes <= 80; ++bytes) {
      Bytes other = frame;
      other.resize(bytes);
      if (bytes != frame.size()) {
        EXPECT_FALSE(read_plain_load(Exact(other).span(), load)) << bytes;
      }
    }
  }
}

TEST(BypassPacket, only_loads_and_stores_travel_without_transport) {
  uint32_t carried = 0;
  for (TaOpcode op : kAllOpcodes) {
    Bytes b = frame("00 10 00 42 | 11 22 33 44 55 66 77 88 00 05 43 21");
    store_u8(&b[kBaseByte], static_cast<uint8_t>(op));
    const bool may = (ta_shape(op) & kShapeBypass) != 0;
    carried += may ? 1 : 0;
    EXPECT_EQ(parse(b) == Drop::kNotLoadStore, !may) << ta_opcode_name(op);
    EXPECT_FALSE(may && (ta_is_atomic(op) || ta_has_target(op))) << ta_opcode_name(op);
  }
  EXPECT_EQ(carried, std::size(kRequests) + 2);
}

TEST(BypassPacket, headers_that_cannot_be_are_named) {
  const Bytes good = frame("06 10 00 42 | 11 22 33 44 55 66 77 88 00 05 43 21");
  const auto with = [&](size_t at, uint8_t byte) {
    Bytes b = good;
    store_u8(&b[at], byte);
    return parse(b);
  };
  EXPECT_EQ(with(kVlAndCfgByte, kCfgCna24), Drop::kBadLinkType);
  EXPECT_EQ(with(kNthLastByte, 0x31), Drop::kBadNlp);
  EXPECT_EQ(with(kNthLastByte, 0x32), Drop::kBadNlp);
  EXPECT_EQ(with(kNthLastByte, 0x38), Drop::kManagement);
  EXPECT_EQ(with(kBaseByte, 0x19), Drop::kUnknownOpcode);
  EXPECT_EQ(with(kBaseByte + 1, 0x50), Drop::kBadTaVersion);
  Bytes prefetch = frame("15 18 00 42 | 11 22 33 44 55 66 77 88 00 05 43 21 | de ad be ef");
  EXPECT_EQ(parse(prefetch), Drop::kBadHeaderFlags);
  Bytes answer = frame("11 40 00 42");
  EXPECT_EQ(parse(answer), Drop::kBadTaVersion);
}

TEST(BypassPacket, reserved_bits_are_ignored) {
  Bytes b = frame("06 10 00 42 | 11 22 33 44 55 66 77 88 00 05 43 21");
  BypassPacket p, q;
  ASSERT_EQ(parse(b, p), Drop::kNone);
  store_u8(&b[kBaseByte + 1], 0x32);  // both EE_bits, and the reserved bit behind Poison
  store_be32(&b[38], 0xFFF54321);     // above TokenID
  ASSERT_EQ(parse(b, q), Drop::kNone);
  EXPECT_EQ(to_hex(whole(p)), to_hex(whole(q)));
}

}  // namespace
}  // namespace ub::wire
