// SPDX-License-Identifier: Apache-2.0
//
// Loads and stores at the NIC that asks: calls go in, frames come out, the test answers them, time passes. The state is
// plain, with one channel that the test has set up by hand.
#include "lib/transport/bypass/requester.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <numeric>
#include <vector>

#include "tests/unit/transport/small_tables.h"
#include "tests/unit/transport/zeroed_memory.h"

namespace ub::bypass {
namespace {

using wire::BypassPacket;
using wire::TaOpcode;
using Bytes = std::vector<std::byte>;

constexpr uint32_t kToken = 0x70CE4;
constexpr uint32_t kTokenId = 77;
constexpr uint64_t kPlace = 0x7000'0040;

struct FrameHost {
  std::byte* tx_begin(uint32_t, size_t bytes) {
    if (full) return nullptr;
    open.resize(bytes);
    return open.data();
  }
  void tx_commit(uint32_t, std::byte*, size_t bytes) {
    open.resize(bytes);
    frames.push_back(open);
  }
  Bytes open;
  std::deque<Bytes> frames;
  bool full = false;
};

struct Tables {
  Tables() {
    s->config = small_tables();
    Arena measured(nullptr);
    auto other = std::make_unique<CoreState>();
    auto other_asked = std::make_unique<AskedState>();
    other->config = s->config;
    lay_out(*other, *other_asked, measured);
    memory = std::make_unique<ZeroedMemory>(measured.used_bytes());
    Arena arena(memory->get());
    lay_out(*s, *asked, arena);
    s->now = Instant{1'000'000'000'000};
  }
  static void lay_out(CoreState& s, AskedState& asked, Arena& arena) {
    lay_out_asked(s, asked, arena);
    lay_out_ub(s, arena);
    lay_out_shared(s, arena);
  }
  std::unique_ptr<CoreState> s = std::make_unique<CoreState>();
  std::unique_ptr<AskedState> asked = std::make_unique<AskedState>();
  std::unique_ptr<ZeroedMemory> memory;
};

class Asking : public testing::Test {
 protected:
  Asking() {
    link = s.links.alloc();
    s.links[link] = LinkRecord{.up = true, .config = {.mtu = 8192, .lossless = true}};
    const uint32_t peer = s.peers.alloc();
    s.peers[peer].in_use = true;
    s.peers[peer].path.link = link;
    channel = s.channels.alloc();
    s.peers[peer].lanes[kSmallLane].channels[0] = channel;
    tp::Channel& ch = s.channels[channel];
    ch.state = tp::ChannelState::kOpen;
    ch.link = link;
    ch.tpn = 5 << tp::kTpnIndexBits | channel;
    ch.peer_tpn = 9 << tp::kTpnIndexBits | 321;
    ch.peer = peer;
    ch.mtu = 8192;
    ch.record_flags = wire::kRecordBypass;
    config.target = s.targets.alloc();
    s.targets[config.target].in_use = true;
    s.targets[config.target].peer = peer;
    config.token_id = kTokenId;
    config.token = {true, kToken};
    asked.next_tassn = 0xFFF0;
    EXPECT_EQ(requester.open(s.now, config, &handle), Status::kOk);
    std::iota(reinterpret_cast<uint8_t*>(bytes.data()), reinterpret_cast<uint8_t*>(bytes.data() + bytes.size()), 3);
  }

  // The oldest frame that was sent, decoded.
  BypassPacket sent() {
    BypassPacket p;
    EXPECT_FALSE(host.frames.empty());
    if (host.frames.empty()) return p;
    last = host.frames.front();
    host.frames.pop_front();
    EXPECT_EQ(wire::parse_bypass(last, p), wire::Drop::kNone);
    EXPECT_FALSE(p.is_response);
    EXPECT_EQ(p.route.scna, channel);
    EXPECT_EQ(p.route.dcna, 321);
    EXPECT_EQ(p.ma.token_id, kTokenId);
    EXPECT_TRUE(p.tv || p.opcode == TaOpcode::kPrefetch);
    return p;
  }
  // The answer to a request. `change` may spoil it.
  void answer(const BypassPacket& request, TaOpcode opcode, uint8_t status = wire::AtahCompact::kOk,
              const std::function<void(BypassPacket&)>& change = {}) {
    BypassPacket p;
    p.route = request.route.back();
    p.is_response = true;
    p.opcode = opcode;
    p.status = status;
    p.tassn = request.tassn;
    p.payload = bytes.data();
    p.payload_len = opcode == TaOpcode::kReadResponse ? request.ma.length() : 0;
    if (change) change(p);
    requester.on_answer(link, p);
  }
  uint32_t load(uint8_t code = 0) {
    uint32_t ticket = 99;
    EXPECT_EQ(requester.load(s.now, handle, {kPlace, code}, to.data(), &ticket), Status::kOk);
    return ticket;
  }
  uint32_t store(const uint64_t* enables = nullptr, bool write_back = false) {
    uint32_t ticket = 99;
    EXPECT_EQ(requester.store(s.now, handle, {{kPlace, 0}, bytes.data(), enables, write_back}, &ticket), Status::kOk);
    return ticket;
  }
  // Time passes, timers fire.
  void pass(Duration d) {
    const Instant end = s.now + d;
    while (s.timers.earliest() <= end) {
      s.now = later(s.now, s.timers.earliest());
      uint32_t timer;
      while (s.timers.pop_due(s.now, &timer)) {
        if (asked.timers.contains(timer)) requester.on_timer(asked.timers.index_of(timer) + 1);
      }
    }
    s.now = end;
  }
  Outcome take(uint32_t ticket) { return requester.take(handle, ticket); }
  uint64_t dropped() const { return s.counters[Counter::kRxDropNoBypass]; }

  Tables tables;
  CoreState& s = *tables.s;
  AskedState& asked = *tables.asked;
  FrameHost host;
  Requester<FrameHost> requester{s, asked, host};
  OpenConfig config;
  uint32_t link = 0, channel = 0, handle = 0;
  std::array<std::byte, 8192> bytes{}, to{};
  Bytes last;
};

TEST_F(Asking, a_load_of_each_size_brings_the_bytes) {
  for (uint8_t code = 0; code <= 7; ++code) {
    to = {};
    const uint32_t ticket = load(code);
    const BypassPacket p = sent();
    EXPECT_EQ(p.opcode, TaOpcode::kRead);
    EXPECT_EQ(p.ma.address, kPlace);
    EXPECT_EQ(p.ma.length(), 64u << code);
    EXPECT_EQ(p.token_value, kToken);
    EXPECT_EQ(take(ticket), Outcome::kPending);
    answer(p, TaOpcode::kReadResponse);
    EXPECT_EQ(take(ticket), Outcome::kOk);
    EXPECT_EQ(std::memcmp(to.data(), bytes.data(), 64u << code), 0);
    if (code < 7) {
      EXPECT_EQ(to[64u << code], std::byte{0});
    }
  }
}

TEST_F(Asking, a_store_carries_bytes_and_enables) {
  const uint64_t enables = 0x8000'0000'0000'0F01;
  for (const bool write_back : {false, true}) {
    for (const uint64_t* e : {static_cast<const uint64_t*>(nullptr), &enables}) {
      const uint32_t ticket = store(e, write_back);
      const BypassPacket p = sent();
      const TaOpcode full = write_back ? TaOpcode::kWriteback : TaOpcode::kWrite;
      const TaOpcode some = write_back ? TaOpcode::kWritebackByteEnable : TaOpcode::kWriteByteEnable;
      EXPECT_EQ(p.opcode, e == nullptr ? full : some);
      ASSERT_EQ(p.payload_len, 64u);
      EXPECT_EQ(std::memcmp(p.payload, bytes.data(), 64), 0);
      if (e != nullptr) {
        EXPECT_EQ(p.be.word(0), enables);
      }
      answer(p, TaOpcode::kTaack);
      EXPECT_EQ(take(ticket), Outcome::kOk);
    }
  }
}

TEST_F(Asking, a_refusal_is_told) {
  const uint32_t first = load(), second = store();
  answer(sent(), TaOpcode::kTaack, wire::AtahCompact::kAuthenticationFailed);
  answer(sent(), TaOpcode::kTaack, wire::AtahCompact::kAuthenticationFailed);
  EXPECT_EQ(take(first), Outcome::kRefused);
  EXPECT_EQ(take(second), Outcome::kRefused);
  EXPECT_FALSE(requester.is_broken(handle));
}

TEST_F(Asking, poisoned_bytes_are_refused) {
  const uint32_t ticket = load();
  answer(sent(), TaOpcode::kReadResponse, wire::AtahCompact::kOk, [](BypassPacket& p) { p.poison = true; });
  EXPECT_EQ(take(ticket), Outcome::kRefused);
  EXPECT_EQ(to[0], std::byte{0});
}

TEST_F(Asking, what_is_answered_leaves_nothing_behind) {
  const uint32_t loaded = load(), stored = store();
  const BypassPacket p = sent(), q = sent();
  answer(p, TaOpcode::kReadResponse);
  answer(q, TaOpcode::kTaack);
  EXPECT_EQ(asked.by_tassn[p.tassn.value()], 0u);
  EXPECT_EQ(asked.by_tassn[q.tassn.value()], 0u);
  EXPECT_EQ(asked.handles[handle].under_way, 0u);
  EXPECT_EQ(take(loaded), Outcome::kOk);
  EXPECT_EQ(take(stored), Outcome::kOk);
  EXPECT_EQ(asked.handles[handle].free, ~uint64_t{0});
}

TEST_F(Asking, each_life_begins_with_another_tassn) {
  s.config.incarnation = 1;
  AskedState lives[2];
  for (AskedState& life : lives) {
    Arena measured(nullptr);
    const auto other = std::make_unique<CoreState>();
    other->config = s.config;
    lay_out_asked(*other, life, measured);
    ++s.config.incarnation;
  }
  EXPECT_NE(lives[0].next_tassn, lives[1].next_tassn);
}

TEST_F(Asking, a_hint_has_no_ticket) {
  EXPECT_EQ(requester.prefetch(s.now, handle, {kPlace, 3}), Status::kOk);
  EXPECT_EQ(sent().opcode, TaOpcode::kPrefetch);
  EXPECT_TRUE(s.timers.earliest().is_never());
}

TEST_F(Asking, answers_find_their_calls_in_any_order) {
  uint32_t tickets[3];
  std::array<std::byte, 64> places[3];
  BypassPacket requests[3];
  Bytes frames[3];
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(requester.load(s.now, handle, {kPlace, 0}, places[i].data(), &tickets[i]), Status::kOk);
    requests[i] = sent();
  }
  for (const int i : {1, 2, 0}) {
    bytes.fill(static_cast<std::byte>(0x30 + i));
    answer(requests[i], TaOpcode::kReadResponse);
    EXPECT_EQ(take(tickets[i]), Outcome::kOk);
    EXPECT_EQ(places[i][63], static_cast<std::byte>(0x30 + i));
  }
}

TEST_F(Asking, a_load_goes_again_under_another_tassn_and_the_late_answer_is_dropped) {
  const uint32_t ticket = load();
  const BypassPacket first = sent();
  pass(microseconds(99));
  EXPECT_TRUE(host.frames.empty());
  pass(microseconds(2));
  const BypassPacket second = sent();
  EXPECT_NE(second.tassn, first.tassn);
  EXPECT_EQ(second.ma, first.ma);
  answer(first, TaOpcode::kReadResponse);
  EXPECT_EQ(dropped(), 1u);
  EXPECT_EQ(take(ticket), Outcome::kPending);
  EXPECT_EQ(to[0], std::byte{0});
  answer(second, TaOpcode::kReadResponse);
  EXPECT_EQ(take(ticket), Outcome::kOk);
  answer(second, TaOpcode::kReadResponse);
  EXPECT_EQ(dropped(), 2u);
}

TEST_F(Asking, a_load_that_is_called_while_a_store_waits_goes_again_in_time) {
  store();
  load();
  host.frames.clear();
  pass(microseconds(101));
  EXPECT_EQ(host.frames.size(), 1u);
}

TEST_F(Asking, repeats_come_at_doubling_distances_until_the_timeout) {
  const uint32_t ticket = load();
  const Instant called = s.now;
  std::vector<int64_t> at;
  while (take(ticket) == Outcome::kPending && s.now - called < seconds(5)) {
    host.frames.clear();
    pass(microseconds(10));
    if (!host.frames.empty()) at.push_back((s.now - called).us());
  }
  EXPECT_GE((s.now - called).ns, seconds(4).ns);
  EXPECT_LE((s.now - called).ns, seconds(4).ns + 20'000);
  ASSERT_GE(at.size(), 70u);
  for (size_t i = 2; i < 9; ++i) {
    const double ratio = static_cast<double>(at[i] - at[i - 1]) / static_cast<double>(at[i - 1] - at[i - 2]);
    EXPECT_GT(ratio, 1.7) << i;
    EXPECT_LT(ratio, 2.3) << i;
  }
  for (size_t i = 11; i < at.size(); ++i) EXPECT_NEAR(static_cast<double>(at[i] - at[i - 1]), 50'000, 40) << i;
  EXPECT_TRUE(requester.is_broken(handle));
}

TEST_F(Asking, a_slow_peer_is_asked_three_times_more_at_least) {
  config.timeout = milliseconds(16);
  uint32_t slow;
  ASSERT_EQ(requester.open(s.now, config, &slow), Status::kOk);
  asked.handles[slow].round_trip = milliseconds(500);
  uint32_t ticket;
  ASSERT_EQ(requester.load(s.now, slow, {kPlace, 0}, to.data(), &ticket), Status::kOk);
  pass(milliseconds(20));
  EXPECT_GE(host.frames.size(), 4u);
  EXPECT_EQ(requester.take(slow, ticket), Outcome::kUnanswered);
}

TEST_F(Asking, patience_follows_the_round_trip) {
  for (int i = 0; i < 100; ++i) {
    const uint32_t ticket = load();
    const BypassPacket p = sent();
    pass(microseconds(40));
    answer(p, TaOpcode::kReadResponse);
    EXPECT_EQ(take(ticket), Outcome::kOk);
  }
  load();
  sent();
  pass(microseconds(315));
  EXPECT_TRUE(host.frames.empty());
  pass(microseconds(10));
  EXPECT_EQ(host.frames.size(), 1u);
}

TEST_F(Asking, what_went_again_tells_no_round_trip) {
  const uint32_t ticket = load();
  sent();
  pass(microseconds(150));
  answer(sent(), TaOpcode::kReadResponse);
  EXPECT_EQ(take(ticket), Outcome::kOk);
  EXPECT_EQ(asked.handles[handle].round_trip, Duration{});
}

TEST_F(Asking, a_store_never_goes_again_and_breaks_the_handle) {
  const uint32_t stored = store();
  const BypassPacket p = sent();
  pass(milliseconds(3999));
  EXPECT_TRUE(host.frames.empty());
  EXPECT_EQ(take(stored), Outcome::kPending);
  pass(milliseconds(2));
  EXPECT_EQ(take(stored), Outcome::kUnanswered);
  EXPECT_TRUE(requester.is_broken(handle));
  uint32_t ticket;
  EXPECT_EQ(requester.load(s.now, handle, {kPlace, 0}, to.data(), &ticket), Status::kGone);
  EXPECT_EQ(requester.prefetch(s.now, handle, {kPlace, 0}), Status::kGone);
  EXPECT_TRUE(host.frames.empty());
  answer(p, TaOpcode::kTaack);
  EXPECT_EQ(dropped(), 1u);
}

TEST_F(Asking, the_tassn_of_a_load_that_was_given_up_rests) {
  load();
  const uint16_t rested = static_cast<uint16_t>(sent().tassn.value());
  pass(microseconds(101));
  const BypassPacket second = sent();
  answer(second, TaOpcode::kReadResponse);
  for (const bool over : {false, true}) {
    pass(over ? kTassnRest : kTassnRest - milliseconds(1));
    asked.next_tassn = rested;
    const uint32_t ticket = store();
    const BypassPacket p = sent();
    EXPECT_EQ(p.tassn.value() == rested, over);
    answer(p, TaOpcode::kTaack);
    EXPECT_EQ(take(ticket), Outcome::kOk);
  }
}

TEST_F(Asking, where_all_rest_a_call_waits) {
  for (uint32_t t = 0; t <= UINT16_MAX; ++t) rest_tassn(asked, s.now, static_cast<uint16_t>(t));
  uint32_t ticket;
  EXPECT_EQ(requester.load(s.now, handle, {kPlace, 0}, to.data(), &ticket), Status::kBusy);
  pass(kTassnRest);
  EXPECT_EQ(requester.load(s.now, handle, {kPlace, 0}, to.data(), &ticket), Status::kOk);
}

TEST_F(Asking, what_a_closed_handle_asked_is_written_nowhere) {
  load();
  const BypassPacket p = sent();
  requester.close(s.now, handle);
  EXPECT_EQ(requester.open(s.now, config, &handle), Status::kOk);
  asked.next_tassn = static_cast<uint16_t>(p.tassn.value());
  const uint32_t ticket = load();
  EXPECT_NE(sent().tassn, p.tassn);
  answer(p, TaOpcode::kReadResponse);
  EXPECT_EQ(to[0], std::byte{0});
  EXPECT_EQ(take(ticket), Outcome::kPending);
  EXPECT_EQ(dropped(), 1u);
}

TEST_F(Asking, what_no_request_asked_for_is_no_answer) {
  const uint32_t loaded = load(1);
  const BypassPacket p = sent();
  const auto spoil = [&](TaOpcode opcode, const std::function<void(BypassPacket&)>& change) {
    const uint64_t before = dropped();
    answer(p, opcode, wire::AtahCompact::kOk, change);
    EXPECT_EQ(dropped(), before + 1);
    EXPECT_EQ(take(loaded), Outcome::kPending);
  };
  spoil(TaOpcode::kReadResponse, [](BypassPacket& a) { a.payload_len = 64; });
  spoil(TaOpcode::kReadResponse, [](BypassPacket& a) { a.route.scna ^= 1; });
  spoil(TaOpcode::kReadResponse, [](BypassPacket& a) { a.route.dcna ^= 1; });
  spoil(TaOpcode::kReadResponse, [](BypassPacket& a) { a.tassn = a.tassn + 1; });
  spoil(TaOpcode::kTaack, {});
  const uint32_t stored = store();
  const BypassPacket q = sent();
  answer(q, TaOpcode::kReadResponse);
  EXPECT_EQ(take(stored), Outcome::kPending);
  answer(p, TaOpcode::kReadResponse);
  EXPECT_EQ(take(loaded), Outcome::kOk);
}

TEST_F(Asking, sixty_four_calls_and_no_more_wait) {
  std::vector<uint32_t> tickets;
  for (int i = 0; i < 64; ++i) tickets.push_back(load());
  uint32_t ticket;
  EXPECT_EQ(requester.load(s.now, handle, {kPlace, 0}, to.data(), &ticket), Status::kBusy);
  answer(sent(), TaOpcode::kReadResponse);
  EXPECT_EQ(requester.load(s.now, handle, {kPlace, 0}, to.data(), &ticket), Status::kBusy);
  EXPECT_EQ(take(tickets[0]), Outcome::kOk);
  EXPECT_EQ(load(), tickets[0]);
}

TEST_F(Asking, a_full_port_takes_no_call_and_a_repeat_waits_for_it) {
  host.full = true;
  uint32_t ticket;
  EXPECT_EQ(requester.load(s.now, handle, {kPlace, 0}, to.data(), &ticket), Status::kBusy);
  EXPECT_EQ(requester.store(s.now, handle, {{kPlace, 0}, bytes.data()}, &ticket), Status::kBusy);
  EXPECT_EQ(asked.handles[handle].under_way, 0u);
  host.full = false;
  ticket = load();
  const BypassPacket first = sent();
  host.full = true;
  pass(milliseconds(1));
  answer(first, TaOpcode::kReadResponse);  // it was not given up meanwhile
  EXPECT_EQ(take(ticket), Outcome::kOk);
}

TEST_F(Asking, the_death_of_the_channel_breaks_the_handle) {
  const uint32_t ticket = store();
  sent();
  s.channels[channel].tpn += 1 << tp::kTpnIndexBits;  // its record lives again, for somebody else
  uint32_t other;
  EXPECT_EQ(requester.load(s.now, handle, {kPlace, 0}, to.data(), &other), Status::kGone);
  EXPECT_EQ(take(ticket), Outcome::kUnanswered);
}

TEST_F(Asking, blocks_that_no_packet_has_room_for_are_refused) {
  s.channels[channel].mtu = 4096;
  ASSERT_EQ(requester.open(s.now, config, &handle), Status::kOk);
  EXPECT_EQ(requester.most_bytes(handle), 4096u);
  uint32_t ticket;
  EXPECT_EQ(requester.load(s.now, handle, {kPlace, 7}, to.data(), &ticket), Status::kInvalid);
  EXPECT_EQ(requester.load(s.now, handle, {kPlace + 8, 0}, to.data(), &ticket), Status::kInvalid);
  EXPECT_EQ(requester.load(s.now, handle, {kPlace, 6}, to.data(), &ticket), Status::kOk);
}

TEST_F(Asking, a_peer_whose_wire_does_not_carry_them_is_asked_for_nothing) {
  s.channels[channel].record_flags = 0;
  uint32_t other;
  EXPECT_EQ(requester.open(s.now, config, &other), Status::kInvalid);
}

TEST_F(Asking, a_channel_that_is_not_up_or_too_young_is_waited_for) {
  s.channels[channel].state = tp::ChannelState::kReqSent;
  uint32_t other;
  EXPECT_EQ(requester.open(s.now, config, &other), Status::kBusy);
  s.channels[channel].state = tp::ChannelState::kOpen;
  s.channels[channel].created_at = s.now;
  while (s.channels.alloc() != 0) {
  }
  EXPECT_EQ(requester.open(s.now, config, &other), Status::kBusy);
  pass(kFrameLife);
  EXPECT_EQ(requester.open(s.now, config, &other), Status::kOk);
}

}  // namespace
}  // namespace ub::bypass
