// SPDX-License-Identifier: Apache-2.0
//
// A third engine in the Core of the library: one line, and it gets its own of everything.
#include <gtest/gtest.h>

#include <vector>

#include "lib/transport/core_impl.h"
#include "tests/unit/transport/core_pair.h"
#include "tests/unit/transport/echo_engine.h"

namespace ub {
namespace {

using ThreeEngines = EngineList<  //
    EchoEngine,                   //
    roce::Engine,                 //
    UbEngine>;
using ThreeCore = Core<TestHost, ThreeEngines>;
using Bytes = TestHost::Bytes;

struct Node {
  Node() : memory(ThreeCore::arena_bytes(config())), core(std::make_unique<ThreeCore>(config(), memory.get(), host)) {
    link = core->add_link({.mtu = 1024});
  }
  static CoreConfig config() {
    CoreConfig c = CoreNode::small_config(1);
    c.roce.max_qps = 4;
    c.roce.max_connections = 4;
    c.roce.max_listeners = 2;
    return c;
  }
  EchoEngine<TestHost>& echo() { return core->engine<EchoEngine<TestHost>>(); }

  /// A packet of that many payload bytes to that port.
  Bytes packet(uint16_t port, size_t payload = kEchoBytes + 4) {
    wire::NetTemplate headers;
    headers.init({}, {}, {wire::IpAddress::from_v4(0x0A000002), 1234}, {wire::IpAddress::from_v4(0x0A000001), port}, 0);
    Bytes frame(headers.size + payload);
    headers.write(frame.data(), payload, wire::kEcnNotCapable);
    for (size_t i = 0; i < payload; ++i) frame[headers.size + i] = static_cast<std::byte>(0x10 + i);
    return frame;
  }
  void arrive(uint16_t port) { core->on_packet(now, link, packet(port)); }
  /// Echo has a packet to send, at once.
  void echo_is_ready() {
    arrive(kEchoPort);
    pass(kEchoDelay);
  }
  /// UB has one to send: a REQ to a peer that it does not know yet.
  void request_is_ready(uint32_t peer) {
    uint32_t target = 0;
    TargetConfig to;
    to.instance.uasid = peer;
    to.path = {.link = link,
               .local = {wire::IpAddress::from_v4(0x0A000001), wire::kUbUdpPort},
               .remote = {wire::IpAddress::from_v4(0x0A000003), wire::kUbUdpPort}};
    ASSERT_EQ(core->add_target(now, to, &target), Status::kOk);
  }
  void pass(Duration d) {
    now = now + d;
    core->on_timer(now);
  }

  TestHost host;
  ZeroedMemory memory;
  std::unique_ptr<ThreeCore> core;
  uint32_t link = 0;
  Instant now{1'000'000};
};

bool apart(const std::vector<NumberRange>& ranges, uint32_t end) {
  for (uint32_t number = 0; number < end; ++number) {
    uint32_t owners = 0;
    for (const NumberRange& r : ranges) owners += r.contains(number);
    if (owners != 1) return false;
  }
  return true;
}

TEST(Engines, what_is_handed_out_is_nobody_elses) {
  Node n;
  const CoreState& s = n.core->state();
  const roce::State& r = *n.core->roce_state();
  const auto& e = n.echo().state();
  EXPECT_TRUE(apart({e.timers, r.qp_timers, r.connection_timers, s.channel_timers, s.queue_timers, s.jfc_timers,
                     NumberRange{s.wake_up, 1}},
                    s.timer_numbers.end()));
  const NumberRange nobody{0, 1};
  EXPECT_TRUE(apart({nobody, e.held_homes, r.held_homes, s.held_homes, s.held_datagrams.numbers, s.held.more().numbers},
                    s.held.numbers.end()));
  EXPECT_TRUE(apart({e.waiters, r.waiters, s.queue_waiters, s.jfr_waiters}, s.waiter_numbers.end()));
  EXPECT_NE(e.copy_prefix, r.copy_prefix);
  EXPECT_NE(e.copy_prefix, 0u);
  EXPECT_NE(e.copy_prefix, kHeldCopyPrefix);
  EXPECT_LT(e.copy_prefix, kCopyPrefixes);
}

TEST(Engines, each_gets_the_packets_that_it_claims_and_the_last_one_the_rest) {
  Node n;
  n.arrive(kEchoPort);
  EXPECT_TRUE(n.echo().state().has_one);
  EXPECT_EQ(n.core->counters()[Counter::kRoceRxPackets], 0u);
  n.arrive(roce::kUdpPort);
  EXPECT_EQ(n.core->counters()[Counter::kRoceRxPackets], 1u);
  n.echo().state().has_one = false;
  const uint64_t dropped = n.core->counters()[Counter::kRxDropTooShort];
  n.arrive(wire::kUbUdpPort);
  EXPECT_EQ(n.core->counters()[Counter::kRxDropTooShort], dropped + 1) << "UB looked at it";
  EXPECT_FALSE(n.echo().state().has_one);
  EXPECT_EQ(n.core->counters()[Counter::kRoceRxPackets], 1u);
}

TEST(Engines, a_timer_goes_to_whose_range_it_is_in) {
  Node n;
  n.arrive(kEchoPort);
  EXPECT_EQ(n.core->next_deadline(), n.now + kEchoDelay);
  EXPECT_FALSE(n.core->has_packets());
  n.pass(kEchoDelay);
  EXPECT_TRUE(n.core->has_packets());
  ASSERT_EQ(n.core->poll_packets(n.now, 8), 1u);
  EXPECT_FALSE(n.core->has_packets());
  const Bytes frame = n.host.frames.front();
  wire::NetHeader net;
  ASSERT_EQ(wire::parse_network(frame, net), wire::Drop::kNone);
  EXPECT_EQ(net.dst.port, 1234);
  EXPECT_EQ(net.tph[0], std::byte{0x10});
  EXPECT_EQ(net.tph[kEchoBytes], std::byte{1}) << "the first byte of its own memory";
}

TEST(Engines, a_copy_goes_to_whose_prefix_its_tag_has) {
  Node n;
  n.core->on_copy_done(n.now, uint64_t{n.echo().state().copy_prefix} << kCopyPrefixShift | 42, true);
  EXPECT_EQ(n.echo().state().copies_done, 1u);
  n.core->on_copy_done(n.now, uint64_t{n.core->roce_state()->copy_prefix + 1} << kCopyPrefixShift, true);
  EXPECT_EQ(n.echo().state().copies_done, 1u);
}

TEST(Engines, a_frame_that_waits_is_its_engines_when_its_bytes_are_there) {
  Node n;
  n.host.slow = true;
  n.arrive(kEchoPort);
  n.pass(kEchoDelay);
  EXPECT_EQ(n.core->poll_packets(n.now, 8), 0u);
  EXPECT_EQ(n.echo().state().held.count, 1u);
  EXPECT_FALSE(n.core->has_packets()) << "memory is awaited";
  ASSERT_EQ(n.host.pending_copies(), 1u);
  n.host.finish_copy(*n.core, n.now);
  EXPECT_TRUE(n.core->has_packets());
  EXPECT_EQ(n.core->poll_packets(n.now, 8), 1u);
  ASSERT_EQ(n.host.frames.size(), 1u);
  EXPECT_EQ(n.host.frames.front().back(), std::byte{4});
  EXPECT_EQ(n.core->state().held.in_use_count(), 0u);
}

TEST(Engines, a_doorbell_goes_to_whose_object_it_is_and_a_full_jfc_is_waited_for) {
  Node n;
  std::vector<Cqe> cqes(2);
  QueueIndices indices{};
  JfcConfig config;
  config.slots = cqes.data();
  config.slot_count = config.depth = 2;
  config.indices = &indices;
  uint32_t jfc = 0, id = 0;
  ASSERT_EQ(n.core->create_jfc(config, &jfc), Status::kOk);
  ASSERT_EQ(n.echo().create(jfc, &id), Status::kOk);
  for (int i = 0; i < 3; ++i) n.core->on_posted(n.now, id);
  EXPECT_EQ(n.core->completions_produced(jfc), 2u) << "there is no room for the third";
  indices.consumed.store(1);
  n.core->on_completions_read(n.now, jfc);
  EXPECT_EQ(n.core->completions_produced(jfc), 3u);
}

TEST(Engines, all_hear_of_what_concerns_all) {
  Node n;
  n.core->link_down(n.now, n.link);
  n.core->close_owner(n.now, 3);
  n.core->close(n.now);
  const auto& e = n.echo().state();
  EXPECT_EQ(e.links_down, 1u);
  EXPECT_EQ(e.owners_gone, 1u);
  EXPECT_EQ(e.closed, 1u);
}

TEST(Engines, hear_once_of_a_link_that_went_down) {
  Node n;
  for (uint32_t none : {0u, n.link + 1, UINT32_MAX}) n.core->link_down(n.now, none);
  EXPECT_EQ(n.echo().state().links_down, 0u);
  for (int i = 0; i < 2; ++i) n.core->link_down(n.now, n.link);
  EXPECT_EQ(n.echo().state().links_down, 1u);
  EXPECT_EQ(n.core->state().links.in_use(), 0u);
  EXPECT_EQ(n.core->add_link({.mtu = 1024}), n.link) << "its number is free";
}

// With room for one frame in a poll, each has its turn.
TEST(Engines, with_packets_have_the_first_turn_by_turns) {
  Node n;
  n.echo_is_ready();
  n.request_is_ready(9);
  ASSERT_EQ(n.core->poll_packets(n.now, 1), 1u);
  EXPECT_EQ(n.echo().state().sent, 1u) << "it is the first one of the list";
  n.echo_is_ready();
  ASSERT_EQ(n.core->poll_packets(n.now, 1), 1u);
  EXPECT_EQ(n.echo().state().sent, 1u) << "others before it";
  ASSERT_EQ(n.core->poll_packets(n.now, 1), 1u);
  EXPECT_EQ(n.echo().state().sent, 2u);
}

// RoCE, between the two, has nothing to send: nobody inherits a turn from it.
TEST(Engines, without_packets_have_no_turn) {
  Node n;
  for (uint32_t peer = 9; peer < 12; ++peer) n.request_is_ready(peer);
  for (uint32_t poll = 0; poll < 6; ++poll) {
    n.echo_is_ready();
    ASSERT_EQ(n.core->poll_packets(n.now, 1), 1u);
    EXPECT_EQ(n.echo().state().sent, poll / 2 + 1) << poll;
  }
}

}  // namespace
}  // namespace ub
