// SPDX-License-Identifier: Apache-2.0
//
// Loads and stores between two Cores over a wire that carries frames of TP bypass: the channel whose ends SCNA and DCNA
// name, both engines, and what is lost, late or full on the way.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <numeric>

#include "lib/transport/wire/bypass_packet.h"
#include "lib/transport/wire/compact_packet.h"
#include "tests/unit/transport/core_pair.h"

namespace ub {
namespace {

using bypass::Outcome;
using Bytes = TestHost::Bytes;

constexpr uint64_t kBase = 0x7000'0000;

struct Node : CoreNode {
  explicit Node(uint8_t address, bool second_carries = true)
      : CoreNode(small_config(address),
                 {.mtu = 8192, .lossless = true, .bypass = address == 1 || second_carries}) {}
  bypass::Engine<TestHost>& engine() { return core->engine<bypass::Engine<TestHost>>(); }
  bypass::Requester<TestHost>& requester() { return engine().requester(); }
};

class Frames : public CorePair<Node> {
 protected:
  Frames() {
    std::iota(reinterpret_cast<uint8_t*>(memory.data()), reinterpret_cast<uint8_t*>(memory.data() + memory.size()), 0);
    SegmentConfig segment;
    segment.memory = memory.data();
    segment.address = segment.local_address = kBase;
    segment.length = memory.size();
    segment.access = kAccessRead | kAccessWrite;
    segment.direct = true;
    EXPECT_EQ(b.core->register_segment(segment, &registered), Status::kOk);
    TargetConfig target;
    target.instance = {{}, 2};
    target.path = {.link = a.link,
                   .local = {wire::IpAddress::from_v4(0x0A000001), wire::kUbUdpPort},
                   .remote = {wire::IpAddress::from_v4(0x0A000002), wire::kUbUdpPort}};
    EXPECT_EQ(a.core->add_target(now, target, &config.target), Status::kOk);
    config.token_id = registered.token_id;
    EXPECT_EQ(a.requester().open(now, config, &handle), Status::kBusy);
    exchange();
    EXPECT_EQ(a.requester().open(now, config, &handle), Status::kOk);
  }
  static bool is_bypass(const Bytes& frame) { return wire::has_link_header(frame) && wire::is_bypass(frame); }

  uint32_t load(uint64_t offset, uint8_t code = 0) {
    uint32_t ticket = 99;
    EXPECT_EQ(a.requester().load(now, handle, {kBase + offset, code}, to.data(), &ticket), Status::kOk);
    return ticket;
  }
  uint32_t store(uint64_t offset) {
    uint32_t ticket = 99;
    EXPECT_EQ(a.requester().store(now, handle, {{kBase + offset, 0}, from.data()}, &ticket), Status::kOk);
    return ticket;
  }
  Outcome take(uint32_t ticket) { return a.requester().take(handle, ticket); }

  alignas(64) std::array<std::byte, 16384> memory;
  std::array<std::byte, 8192> to{}, from{};
  RegisteredSegment registered;
  bypass::OpenConfig config;
  uint32_t handle = 0;
};

TEST_F(Frames, loads_and_stores_of_all_sizes) {
  from.fill(std::byte{0xEE});
  for (uint8_t code = 0; code <= 7; ++code) {
    const uint32_t loaded = load(64, code);
    exchange();
    EXPECT_EQ(take(loaded), Outcome::kOk);
    EXPECT_EQ(std::memcmp(to.data(), memory.data() + 64, 64u << code), 0);
    uint32_t stored = 0;
    ASSERT_EQ(a.requester().store(now, handle, {{kBase, code}, from.data()}, &stored), Status::kOk);
    exchange();
    EXPECT_EQ(take(stored), Outcome::kOk);
    EXPECT_EQ(std::memcmp(memory.data(), from.data(), 64u << code), 0);
  }
}

TEST_F(Frames, what_may_not_be_accessed_is_refused) {
  const uint32_t beyond = load(memory.size());
  exchange();
  EXPECT_EQ(take(beyond), Outcome::kRefused);
  ASSERT_EQ(b.core->unregister_segment(now, registered.handle), Status::kOk);
  const uint32_t gone = store(0);
  exchange();
  EXPECT_EQ(take(gone), Outcome::kRefused);
  EXPECT_EQ(memory[0], std::byte{0});
}

// Of a port that has put the real addresses in: answers leave by the port, which looks for the next hop once more.
TEST_F(Frames, answers_have_the_addresses_that_stand_in) {
  int answers = 0;
  filter = [&](Node& node, Bytes& frame) {
    if (!is_bypass(frame)) return true;
    wire::BypassPacket p;
    EXPECT_EQ(wire::parse_bypass(frame, p), wire::Drop::kNone);
    const wire::MacAddress of_a = wire::stand_in_mac({wire::IpAddress::from_v4(0x0A000001), wire::kUbUdpPort});
    const wire::MacAddress of_b = wire::stand_in_mac({wire::IpAddress::from_v4(0x0A000002), wire::kUbUdpPort});
    EXPECT_EQ(p.route.to, &node == &a ? of_b : of_a);
    EXPECT_EQ(p.route.from, &node == &a ? of_a : of_b);
    answers += p.is_response ? 1 : 0;
    for (size_t i = 0; i < 12; ++i) frame[i] = static_cast<std::byte>(0x50 + i);
    return true;
  };
  const uint32_t loaded = load(64);
  const uint32_t stored = store(128);
  b.host.full = true;
  exchange();
  b.host.full = false;
  settle(milliseconds(1));
  EXPECT_EQ(take(loaded), Outcome::kOk);
  EXPECT_EQ(take(stored), Outcome::kOk);
  EXPECT_GE(answers, 2);
}

TEST_F(Frames, a_hint_is_counted_and_not_answered) {
  EXPECT_EQ(a.requester().prefetch(now, handle, {kBase, 0}), Status::kOk);
  exchange();
  EXPECT_EQ(count(b, Counter::kBypassRxPrefetch), 1u);
}

TEST_F(Frames, a_load_that_is_lost_goes_again_and_a_store_does_not) {
  int lost = 0;
  filter = [&](Node& node, Bytes& frame) { return &node != &a || !is_bypass(frame) || ++lost > 2; };
  const uint32_t loaded = load(128);
  settle(milliseconds(100));
  EXPECT_EQ(take(loaded), Outcome::kOk);
  EXPECT_EQ(std::memcmp(to.data(), memory.data() + 128, 64), 0);
  EXPECT_EQ(lost, 3);
  lost = 2;
  filter = [&](Node& node, Bytes& frame) { return &node != &b || !is_bypass(frame); };  // answers are lost
  from.fill(std::byte{0x77});
  const uint32_t stored = store(0);
  settle(seconds(6));
  EXPECT_EQ(take(stored), Outcome::kUnanswered);
  EXPECT_EQ(count(b, Counter::kBypassRxStore), 1u);
  EXPECT_EQ(memory[0], std::byte{0x77});
  EXPECT_TRUE(a.requester().is_broken(handle));
}

TEST_F(Frames, the_answer_to_a_store_waits_for_room) {
  from.fill(std::byte{0x77});
  const uint32_t stored = store(0);
  b.host.full = true;
  exchange();
  EXPECT_EQ(memory[0], std::byte{0x77});
  EXPECT_EQ(take(stored), Outcome::kPending);
  EXPECT_TRUE(b.core->has_packets());
  b.host.full = false;
  exchange();
  EXPECT_EQ(take(stored), Outcome::kOk);
  EXPECT_FALSE(b.core->has_packets());
}

// Else it could be taken for the answer to another store, which has the same TASSN after its rest.
TEST_F(Frames, an_answer_waits_for_room_no_longer_than_a_frame_may_be_under_way) {
  int answers = 0;
  filter = [&](Node& node, Bytes& frame) { return answers += &node == &b && is_bypass(frame), true; };
  for (const bool late : {false, true}) {
    store(0);
    b.host.full = true;
    exchange();
    now += bypass::kFrameLife + nanoseconds(late ? 1 : 0);
    b.host.full = false;
    exchange();
    EXPECT_EQ(count(b, Counter::kBypassAnswerLate), late ? 1u : 0u);
    EXPECT_EQ(answers, 1);
    EXPECT_FALSE(b.core->has_packets());
  }
  static_assert(bypass::kTassnRest >= bypass::kFrameLife * 3, "the way there, the wait, and the way back");
}

TEST_F(Frames, a_store_without_a_place_for_its_answer_does_not_run) {
  b.host.full = true;
  uint32_t handles[5];
  for (uint32_t& h : handles) {
    ASSERT_EQ(a.requester().open(now, config, &h), Status::kOk);
    for (uint32_t i = 0, ticket; i < 64; ++i) {
      ASSERT_EQ(a.requester().store(now, h, {{kBase, 0}, from.data()}, &ticket), Status::kOk);
    }
  }
  exchange();
  EXPECT_EQ(count(b, Counter::kBypassRxStore), 256u);
  EXPECT_EQ(count(b, Counter::kBypassNoRoom), 64u);
  b.host.full = false;
  exchange();
  for (uint32_t i = 0; i < 5; ++i) {
    for (uint32_t ticket = 0; ticket < 64; ++ticket)
      EXPECT_EQ(a.requester().take(handles[i], ticket), i < 4 ? Outcome::kOk : Outcome::kPending);
  }
}

TEST_F(Frames, a_frame_between_other_ends_is_dropped) {
  bool dcna = false;
  filter = [&](Node& node, Bytes& frame) {
    if (&node != &a || !is_bypass(frame)) return true;
    wire::BypassPacket p;
    EXPECT_EQ(wire::parse_bypass(frame, p), wire::Drop::kNone);
    (dcna ? p.route.dcna : p.route.scna) += 1;
    p.opcode = wire::TaOpcode::kWrite;
    wire::write_bypass_headers(p, frame.data());
    return true;
  };
  for (int i = 0; i < 2; ++i, dcna = true) {
    from.fill(std::byte{0x77});
    store(0);
    exchange();
    EXPECT_EQ(count(b, Counter::kRxDropNoBypass), static_cast<uint64_t>(i + 1));
    EXPECT_EQ(memory[0], std::byte{0});
  }
}

TEST_F(Frames, a_link_that_goes_down_breaks_its_handles) {
  const uint32_t loaded = load(0);
  a.core->link_down(now, a.link);
  EXPECT_EQ(take(loaded), Outcome::kUnanswered);
  uint32_t ticket;
  EXPECT_EQ(a.requester().load(now, handle, {kBase, 0}, to.data(), &ticket), Status::kGone);
}

TEST_F(Frames, the_end_of_the_peer_breaks_handles) {
  b.core->close(now);
  exchange();
  uint32_t ticket;
  EXPECT_EQ(a.requester().load(now, handle, {kBase, 0}, to.data(), &ticket), Status::kGone);
}

TEST_F(Frames, a_core_that_closes_waits_for_nothing) {
  const uint32_t loaded = load(0);
  a.core->close(now);
  EXPECT_EQ(take(loaded), Outcome::kUnanswered);
}

TEST_F(Frames, an_owner_that_ends_takes_its_handles_along) {
  config.owner = 3;
  uint32_t other = 0;
  ASSERT_EQ(a.requester().open(now, config, &other), Status::kOk);
  a.core->close_owner(now, 3);
  EXPECT_EQ(a.engine().state().asked.handles.in_use(), 1u);
  EXPECT_FALSE(a.engine().state().asked.handles[other].in_use);
}

TEST(Owed, what_is_owed_to_another_link_stays) {
  bypass::OwedAnswers owed;
  for (uint32_t link : {1, 2, 1, 3}) owed.push({.link = link, .route = {}, .tassn = {}, .status = 0, .since = {}});
  owed.drop(1);
  ASSERT_EQ(owed.size(), 2u);
  EXPECT_EQ(owed.pop().link, 2u);
  EXPECT_EQ(owed.pop().link, 3u);
}

// The wire of the peer is impaired, say, and ours is not.
class FramesOfOneEnd : public CorePair<Node> {
 protected:
  FramesOfOneEnd() : CorePair(false) {}
};

TEST_F(FramesOfOneEnd, are_neither_sent_nor_taken) {
  TargetConfig target;
  target.instance = {{}, 2};
  target.path = {.link = a.link,
                 .local = {wire::IpAddress::from_v4(0x0A000001), wire::kUbUdpPort},
                 .remote = {wire::IpAddress::from_v4(0x0A000002), wire::kUbUdpPort}};
  bypass::OpenConfig config;
  ASSERT_EQ(a.core->add_target(now, target, &config.target), Status::kOk);
  exchange();
  uint32_t handle;
  EXPECT_EQ(a.requester().open(now, config, &handle), Status::kInvalid);
  ChannelInfo channel;
  ASSERT_TRUE(a.core->channel_info(1, &channel));
  for (Node* receiver : {&a, &b}) {
    wire::BypassPacket p;
    p.opcode = wire::TaOpcode::kRead;
    p.ma = {kBase, 0, false, 0, 1};
    p.route.dcna = bypass::cna_of(receiver == &a ? channel.tpn : channel.peer_tpn);
    p.route.scna = bypass::cna_of(receiver == &a ? channel.peer_tpn : channel.tpn);
    Bytes frame(wire::bypass_header_size(p));
    wire::write_bypass_headers(p, frame.data());
    receiver->core->on_packet(now, receiver->link, frame);
    EXPECT_EQ(count(*receiver, Counter::kRxDropNoBypass), 1u);
  }
}

TEST_F(Frames, a_link_that_does_not_carry_them_drops_them) {
  Node other(3);
  wire::BypassPacket p;
  p.opcode = wire::TaOpcode::kRead;
  p.ma = {kBase, 0, false, 0, registered.token_id};
  p.route.dcna = p.route.scna = 1;
  Bytes frame(wire::bypass_header_size(p));
  wire::write_bypass_headers(p, frame.data());
  other.core->on_packet(now, other.link, frame);
  EXPECT_EQ(count(other, Counter::kRxDropNoBypass), 1u);
}

}  // namespace
}  // namespace ub
