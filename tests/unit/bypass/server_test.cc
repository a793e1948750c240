// SPDX-License-Identifier: Apache-2.0
//
// Loads and stores at their target: packets go in, answers come out, memory is looked at.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <numeric>
#include <vector>

#include "lib/transport/wire/bypass_packet.h"
#include "tests/unit/transport/core_pair.h"
#include "tests/unit/transport/direct_segment.h"

namespace ub {
namespace {

using wire::BypassPacket;
using wire::TaOpcode;
using Bytes = TestHost::Bytes;

constexpr uint64_t kBase = 0x7000'0000;  // how peers name the first byte of `memory`
constexpr uint32_t kToken = 0x5EC2E7;

class Serving : public testing::Test {
 protected:
  Serving() : node(CoreNode::small_config(1), {.mtu = 8192}) {
    std::iota(reinterpret_cast<uint8_t*>(memory.data()), reinterpret_cast<uint8_t*>(memory.data() + memory.size()), 0);
    before = memory;
    EXPECT_EQ(node.core->alloc_token_id(&token_id), Status::kOk);
  }

  SegmentConfig segment_at(uint64_t offset, uint64_t bytes, uint8_t access = kAccessRead | kAccessWrite) {
    return direct_segment(memory.data(), kBase, offset, bytes, access);
  }
  // All segments have one token id.
  uint32_t add(const SegmentConfig& config) {
    SegmentConfig with_id = config;
    with_id.token_id = token_id;
    RegisteredSegment segment;
    EXPECT_EQ(node.core->register_segment(with_id, &segment), Status::kOk);
    return segment.handle;
  }

  BypassPacket request(TaOpcode opcode, uint64_t offset, uint8_t length_code = 0) const {
    BypassPacket p;
    p.route = {.to = {1}, .from = {2}, .dcna = 77, .scna = 88};
    p.opcode = opcode;
    p.tassn = Tassn(0xABCD);
    p.ma = {kBase + offset, 0, false, length_code, token_id};
    return p;
  }
  // A frame arrives; the answer, or an empty frame if there is none.
  Bytes serve(const BypassPacket& p, const std::vector<std::byte>& payload = {}) {
    Bytes frame(wire::bypass_header_size(p) + payload.size());
    wire::write_bypass_headers(p, frame.data());
    std::copy(payload.begin(), payload.end(), frame.end() - static_cast<ptrdiff_t>(payload.size()));
    return serve_frame(frame);
  }
  Bytes serve_frame(const Bytes& frame) {
    node.core->on_lane_frame(now, node.link, frame);
    EXPECT_EQ(node.host.open_frames(), 0u);
    if (node.host.frames.empty()) return {};
    EXPECT_EQ(node.host.frames.size(), 1u);
    Bytes answer = std::move(node.host.frames.front());
    node.host.frames.pop_front();
    return answer;
  }
  // The answer that a frame contains; it is checked to be one to the requests above.
  static BypassPacket answer(const Bytes& frame) {
    BypassPacket p;
    EXPECT_EQ(wire::parse_bypass(frame, p), wire::Drop::kNone);
    EXPECT_TRUE(p.is_response);
    EXPECT_EQ(p.tassn.value(), 0xABCD);
    EXPECT_EQ(p.route.dcna, 88);
    EXPECT_EQ(p.route.scna, 77);
    return p;
  }
  void expect_refused(const Bytes& frame) {
    ASSERT_FALSE(frame.empty());
    const BypassPacket p = answer(frame);
    EXPECT_EQ(p.opcode, TaOpcode::kTaack);
    EXPECT_EQ(p.status, wire::AtahCompact::kAuthenticationFailed);
    EXPECT_EQ(p.payload_len, 0u);
  }
  void expect_stored(const Bytes& frame) {
    ASSERT_FALSE(frame.empty());
    const BypassPacket p = answer(frame);
    EXPECT_EQ(p.opcode, TaOpcode::kTaack);
    EXPECT_EQ(p.status, wire::AtahCompact::kOk);
  }
  // A store of one line of 0xEE bytes, of which some are enabled.
  Bytes store_line(uint64_t offset, uint64_t enables, TaOpcode opcode = TaOpcode::kWriteByteEnable) {
    std::array<std::byte, 8> bits;
    wire::BeetahView::store_word(bits.data(), 64, 0, enables);
    BypassPacket p = request(opcode, offset);
    p.has_be = true;
    p.be = {bits.data(), 64};
    return serve(p, std::vector<std::byte>(64, std::byte{0xEE}));
  }
  // What the memory has to be after that, if it was executed.
  void enable(uint64_t offset, uint64_t enables) {
    for (uint64_t i = 0; i < 64; ++i) {
      if ((enables >> i & 1) != 0) before[offset + i] = std::byte{0xEE};
    }
  }
  uint64_t counted(Counter c) const { return node.core->counters()[c]; }

  Instant now{1'000'000};
  CoreNode node;
  alignas(64) std::array<std::byte, 32768> memory;
  std::array<std::byte, 32768> before;
  uint32_t token_id = 0;
};

TEST_F(Serving, a_load_of_each_size_is_answered_with_the_bytes) {
  add(segment_at(0, memory.size()));
  for (uint8_t code = 0; code <= 7; ++code) {
    const Bytes frame = serve(request(TaOpcode::kRead, 4096 + 64, code));
    ASSERT_FALSE(frame.empty());
    const BypassPacket p = answer(frame);
    EXPECT_EQ(p.opcode, TaOpcode::kReadResponse);
    EXPECT_EQ(p.status, wire::AtahCompact::kOk);
    ASSERT_EQ(p.payload_len, 64u << code);
    EXPECT_EQ(std::memcmp(p.payload, memory.data() + 4096 + 64, p.payload_len), 0);
  }
  EXPECT_EQ(counted(Counter::kBypassRxLoad), 8u);
  EXPECT_EQ(memory, before);
}

TEST_F(Serving, a_plain_load_is_answered_plainly) {
  SegmentConfig config = segment_at(100, 4096);
  config.token = {true, kToken};
  add(config);
  for (uint64_t offset : {0u, 64u, 128u, 4160u, 8192u}) {
    for (const uint32_t token : {kToken, kToken + 1}) {
      BypassPacket p = request(TaOpcode::kRead, offset);
      p.tv = true;
      p.token_value = token;
      BypassPacket addressed = answer(serve(p));
      p.route = {};
      const Bytes frame = serve(p);
      BypassPacket plain;
      ASSERT_EQ(wire::parse_bypass(frame, plain), wire::Drop::kNone);
      EXPECT_EQ(plain.route, wire::BypassRoute{});
      EXPECT_EQ(plain.opcode, addressed.opcode);
      EXPECT_EQ(plain.status, addressed.status);
      EXPECT_EQ(plain.tassn, addressed.tassn);
      ASSERT_EQ(plain.payload_len, addressed.payload_len);
    }
  }
}

TEST_F(Serving, a_store_of_each_size_writes_the_bytes_and_no_others) {
  add(segment_at(0, memory.size()));
  for (uint8_t code = 0; code <= 7; ++code) {
    const std::vector<std::byte> bytes(64u << code, std::byte{static_cast<uint8_t>(0xA0 + code)});
    expect_stored(serve(request(code % 2 == 0 ? TaOpcode::kWrite : TaOpcode::kWriteback, 64, code), bytes));
    std::copy(bytes.begin(), bytes.end(), before.begin() + 64);
    EXPECT_EQ(memory, before);
  }
  EXPECT_EQ(counted(Counter::kBypassRxStore), 8u);
}

TEST_F(Serving, only_enabled_bytes_are_stored) {
  add(segment_at(0, memory.size()));
  const uint64_t patterns[] = {0,           1,          uint64_t{1} << 63, ~uint64_t{0},         0xAAAAAAAAAAAAAAAA,
                               0xFF00FF00F, 0xFFFFFFFE, 0x8000000000000001, 0x0123456789ABCDEF};
  uint64_t offset = 128;
  for (uint64_t enables : patterns) {
    for (TaOpcode opcode : {TaOpcode::kWriteByteEnable, TaOpcode::kWritebackByteEnable}) {
      expect_stored(store_line(offset, enables, opcode));
      enable(offset, enables);
      EXPECT_EQ(memory, before) << std::hex << enables;
      offset += 64;
    }
  }
}

TEST_F(Serving, of_a_long_store_the_bytes_behind_the_enables_are_all_written) {
  add(segment_at(0, memory.size()));
  std::vector<std::byte> bits(128, std::byte{0});
  wire::BeetahView::store_word(bits.data(), 1024, 1, 0xF0);
  BypassPacket p = request(TaOpcode::kWriteByteEnable, 0, 5);
  p.has_be = true;
  p.be = {bits.data(), 1024};
  expect_stored(serve(p, std::vector<std::byte>(2048, std::byte{0xEE})));
  enable(64, 0xF0);
  for (uint64_t offset = 1024; offset < 2048; offset += 64) enable(offset, ~uint64_t{0});
  EXPECT_EQ(memory, before);
}

TEST_F(Serving, a_prefetch_hint_has_no_answer) {
  add(segment_at(0, memory.size()));
  EXPECT_TRUE(serve(request(TaOpcode::kPrefetch, 0)).empty());
  EXPECT_EQ(counted(Counter::kBypassRxPrefetch), 1u);
}

TEST_F(Serving, the_ends_of_a_segment_read_zeros_outside_and_take_stores_inside) {
  add(segment_at(64 + 10, 100));  // bytes 74 to 173: 10 to 63 of the first line, 0 to 45 of the second
  const Bytes frame = serve(request(TaOpcode::kRead, 64, 1));
  const BypassPacket p = answer(frame);
  ASSERT_EQ(p.payload_len, 128u);
  for (uint32_t i = 0; i < 128; ++i) {
    const bool inside = i >= 10 && i < 110;
    ASSERT_EQ(p.payload[i], inside ? memory[64 + i] : std::byte{0}) << i;
  }
  const uint64_t first = ~uint64_t{0} << 10, second = (uint64_t{1} << 46) - 1;
  expect_stored(store_line(64, first));
  expect_stored(store_line(128, second));
  enable(64, first);
  enable(128, second);
  expect_refused(store_line(64, first | first >> 1));
  expect_refused(store_line(128, second | second << 1));
  expect_refused(serve(request(TaOpcode::kWrite, 64), std::vector<std::byte>(64)));
  expect_refused(serve(request(TaOpcode::kRead, 192)));
  expect_refused(serve(request(TaOpcode::kRead, 0)));
  expect_stored(store_line(192, 0));
  EXPECT_EQ(memory, before);
}

TEST_F(Serving, a_line_may_lie_in_several_segments_of_a_token_id) {
  add(segment_at(0, 10));
  add(segment_at(20, 30, kAccessRead));
  add(segment_at(50, 100));
  const Bytes frame = serve(request(TaOpcode::kRead, 0));
  const BypassPacket p = answer(frame);
  for (uint32_t i = 0; i < 64; ++i) ASSERT_EQ(p.payload[i], i >= 10 && i < 20 ? std::byte{0} : memory[i]) << i;
  const uint64_t writable = ((uint64_t{1} << 10) - 1) | ~uint64_t{0} << 50;
  expect_stored(store_line(0, writable));
  enable(0, writable);
  EXPECT_EQ(memory, before);
  expect_refused(store_line(0, writable | uint64_t{1} << 20));
  expect_refused(store_line(0, writable | uint64_t{1} << 49));
  expect_refused(store_line(0, writable | uint64_t{1} << 10));
  EXPECT_EQ(memory, before);
}

TEST_F(Serving, rights_are_those_of_the_segment) {
  add(segment_at(0, 4096, kAccessRead));
  add(segment_at(4096, 4096, kAccessLocalOnly));
  add(segment_at(8192, 4096, kAccessWrite));
  expect_refused(serve(request(TaOpcode::kWrite, 0), std::vector<std::byte>(64)));
  expect_refused(store_line(0, 1));
  expect_refused(serve(request(TaOpcode::kRead, 4096)));
  expect_refused(serve(request(TaOpcode::kWrite, 4096), std::vector<std::byte>(64)));
  expect_refused(serve(request(TaOpcode::kRead, 8192)));
  expect_stored(store_line(8192, 1));
  EXPECT_EQ(counted(Counter::kBypassRxRefused), 5u);
}

TEST_F(Serving, a_plain_load_has_the_same_rights) {
  add(segment_at(0, 4096, kAccessRead));
  add(segment_at(4096, 4096, kAccessWrite));
  for (const bool readable : {true, false}) {
    BypassPacket p = request(TaOpcode::kRead, readable ? 0 : 4096);
    p.route = {};
    const Bytes frame = serve(p);
    BypassPacket plain;
    ASSERT_EQ(wire::parse_bypass(frame, plain), wire::Drop::kNone);
    EXPECT_EQ(plain.status == wire::AtahCompact::kOk, readable);
  }
}

TEST_F(Serving, a_token_is_asked_for) {
  SegmentConfig config = segment_at(0, 4096);
  config.token = {true, kToken};
  const uint32_t handle = add(config);
  BypassPacket p = request(TaOpcode::kRead, 0);
  expect_refused(serve(p));
  p.tv = true;
  p.token_value = kToken + 1;
  expect_refused(serve(p));
  p.token_value = kToken;
  EXPECT_EQ(answer(serve(p)).opcode, TaOpcode::kReadResponse);
  ASSERT_EQ(node.core->set_segment_token(handle, kToken + 2, kToken + 2), Status::kOk);
  expect_refused(serve(p));
}

TEST_F(Serving, another_token_id_an_exclusive_and_an_unregistered_segment_are_refused) {
  const uint32_t handle = add(segment_at(0, 4096));
  BypassPacket p = request(TaOpcode::kRead, 0);
  p.ma.token_id = 0;
  expect_refused(serve(p));
  p.ma.token_id = token_id + 1;
  expect_refused(serve(p));
  ASSERT_EQ(node.core->set_segment_exclusive(handle, true), Status::kOk);
  expect_refused(serve(request(TaOpcode::kRead, 0)));
  ASSERT_EQ(node.core->set_segment_exclusive(handle, false), Status::kOk);
  EXPECT_EQ(answer(serve(request(TaOpcode::kRead, 0))).opcode, TaOpcode::kReadResponse);
  ASSERT_EQ(node.core->unregister_segment(now, handle), Status::kOk);
  expect_refused(serve(request(TaOpcode::kRead, 0)));
}

TEST_F(Serving, a_block_that_wraps_is_refused) {
  SegmentConfig config = segment_at(0, 4096);
  config.address = ~uint64_t{0} - 4096;
  add(config);
  BypassPacket p = request(TaOpcode::kRead, 0, 7);
  p.ma.address = ~uint64_t{0} & ~uint64_t{63};
  expect_refused(serve(p));
}

// The host could not answer at once.
TEST_F(Serving, memory_that_is_not_direct_is_refused) {
  SegmentConfig config = segment_at(0, 4096);
  config.direct = false;
  add(config);
  expect_refused(serve(request(TaOpcode::kRead, 0)));
  expect_refused(store_line(0, 1));
  EXPECT_EQ(memory, before);
}

TEST_F(Serving, poison_is_not_stored) {
  add(segment_at(0, 4096));
  BypassPacket p = request(TaOpcode::kWrite, 0);
  p.poison = true;
  expect_refused(serve(p, std::vector<std::byte>(64)));
  EXPECT_EQ(counted(Counter::kBypassRxPoison), 1u);
  EXPECT_EQ(memory, before);
}

TEST_F(Serving, what_finds_no_room_for_its_answer_does_not_run) {
  add(segment_at(0, 4096));
  node.host.full = true;
  EXPECT_TRUE(store_line(0, ~uint64_t{0}).empty());
  EXPECT_TRUE(serve(request(TaOpcode::kRead, 0)).empty());
  EXPECT_EQ(counted(Counter::kBypassNoRoom), 2u);
  EXPECT_EQ(memory, before);
}

TEST_F(Serving, answers_and_requests_that_came_by_a_wire_are_dropped) {
  add(segment_at(0, 4096));
  BypassPacket p;
  p.is_response = true;
  p.opcode = TaOpcode::kTaack;
  EXPECT_TRUE(serve(p).empty());
  EXPECT_EQ(counted(Counter::kRxDropNoBypass), 1u);
  p = request(TaOpcode::kRead, 0);
  Bytes frame(wire::bypass_header_size(p));
  wire::write_bypass_headers(p, frame.data());
  node.core->on_packet(now, node.link, frame);
  EXPECT_TRUE(node.host.frames.empty());
  EXPECT_EQ(counted(Counter::kRxDropNoBypass), 2u);
}

// Whoever has a lane may be a program that is not believed to be the peer that it says it is.
TEST_F(Serving, nothing_but_loads_and_stores_is_taken_from_a_lane) {
  wire::NetTemplate headers;
  const wire::Endpoint peer{wire::IpAddress::from_v4(0x0A000002), wire::kUbUdpPort};
  headers.init({}, {}, peer, {wire::IpAddress::from_v4(0x0A000001), wire::kUbUdpPort}, 0);
  Bytes frame(headers.size + 100);
  headers.write(frame.data(), 100, wire::kEcnNotCapable);
  EXPECT_TRUE(serve_frame(frame).empty());
  EXPECT_EQ(counted(Counter::kRxDropBadLinkType), 1u);
  frame[12] = std::byte{wire::kEtherTypeUb >> 8};
  frame[13] = std::byte{wire::kEtherTypeUb & 0xFF};
  frame[15] = std::byte{wire::kCfgCna24};
  EXPECT_TRUE(serve_frame(frame).empty());
  EXPECT_EQ(counted(Counter::kRxDropBadLinkType), 2u);
  for (size_t bytes = 0; bytes < 30; ++bytes) EXPECT_TRUE(serve_frame(Bytes(bytes)).empty());
  EXPECT_EQ(counted(Counter::kRxDropTooShort), 30u);
}

TEST_F(Serving, a_frame_that_cannot_be_read_is_a_named_drop) {
  add(segment_at(0, 4096));
  Bytes frame(wire::bypass_header_size(request(TaOpcode::kWrite, 0)) + 60);
  wire::write_bypass_headers(request(TaOpcode::kWrite, 0), frame.data());
  EXPECT_TRUE(serve_frame(frame).empty());
  EXPECT_EQ(counted(Counter::kRxDropBadLength), 1u);
}

}  // namespace
}  // namespace ub
