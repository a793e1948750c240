// SPDX-License-Identifier: Apache-2.0
// Ports whose wires are impaired, or which a fault took down, or both: what becomes of their frames in each direction,
// and of the places that the frames had in their port.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "dataplane/port_set.h"
#include "lib/impair/text.h"
#include "tests/unit/dataplane/host/test_port.h"

namespace ub {
namespace {

constexpr Instant kBegin{1'000'000'000};

struct Ports {
  static constexpr uint32_t kLink = 3;

  explicit Ports(std::string_view send, std::string_view receive = "") {
    auto own = std::make_unique<TestPort>();
    port = own.get();
    set.plugins.push_back(std::move(own));
    set.impair(std::make_unique<ImpairedWires>(impair::parse(send).script.value(),
                                               impair::parse(receive).script.value(), 1, kBegin));
    set.set_plugin(kLink, 0);
  }
  // The Core sends a frame with that first byte. False: it has to wait.
  bool send(uint8_t number, size_t bytes = 64) {
    std::byte* frame = set.tx_begin(kLink, bytes);
    if (frame == nullptr) return false;
    frame[0] = std::byte{number};
    set.tx_commit(kLink, frame, bytes);
    return true;
  }
  // What the Core gets.
  std::vector<uint8_t> receive(Instant now) {
    RxFrame in[kBurst];
    const size_t n = set.rx_burst(now, in, kBurst);
    std::vector<uint8_t> all;
    for (size_t i = 0; i < n; ++i) {
      EXPECT_EQ(in[i].link, kLink);
      all.push_back(static_cast<uint8_t>(in[i].data[0]));
    }
    set.rx_release();
    return all;
  }

  PortSet set;
  TestPort* port;
};

using Numbers = std::vector<uint8_t>;

TEST(HinderedPorts, a_frame_leaves_its_port_when_it_is_due_and_is_under_way_until_then) {
  Ports p("delay=5us");
  ASSERT_TRUE(p.send(1));
  p.set.tx_flush(kBegin);
  EXPECT_TRUE(p.port->left.empty());
  EXPECT_EQ(p.port->open_frames(), 0u);
  EXPECT_TRUE(p.set.is_sending());
  EXPECT_EQ(p.set.next_deadline(), kBegin + microseconds(5));
  p.set.tx_flush(kBegin + microseconds(5));
  EXPECT_EQ(p.port->left, Numbers{1});
  EXPECT_FALSE(p.set.is_sending());
  EXPECT_TRUE(p.set.next_deadline().is_never());
}

// A NIC that ends waits for it.
TEST(HinderedPorts, a_frame_that_finds_its_port_full_is_under_way_until_there_is_room) {
  Ports p("");
  ASSERT_TRUE(p.send(1));
  p.port->full = true;
  p.set.tx_flush(kBegin);
  EXPECT_TRUE(p.set.is_sending());
  EXPECT_FALSE(p.send(2)) << "there is no room for another one, either";
  p.port->full = false;
  p.set.tx_flush(kBegin + microseconds(1));
  EXPECT_EQ(p.port->left, Numbers{1});
  EXPECT_FALSE(p.set.is_sending());
}

TEST(HinderedPorts, a_sender_waits_for_a_slow_line_although_its_port_has_room) {
  Ports p("rate=8M");
  EXPECT_TRUE(p.send(1, 1000));
  EXPECT_TRUE(p.send(2, 1000));
  EXPECT_FALSE(p.send(3, 1000)) << "two milliseconds are taken";
  EXPECT_EQ(p.port->open_frames(), 2u);
}

TEST(HinderedPorts, frames_to_itself_are_not_impaired) {
  Ports p("loss=100%", "loss=100%");
  constexpr uint32_t kOwn = 5;
  p.set.loopback.set_link(kOwn);
  p.set.set_kind(kOwn, LinkKind::kLoopback);
  std::byte* frame = p.set.tx_begin(kOwn, 64);
  ASSERT_NE(frame, nullptr);
  p.set.tx_commit(kOwn, frame, 64);
  p.set.tx_flush(kBegin);
  RxFrame in[kBurst];
  EXPECT_EQ(p.set.rx_burst(kBegin, in, kBurst), 1u);
  p.set.rx_release();
}

TEST(HinderedPorts, what_is_under_way_when_the_port_goes_down_leaves_when_it_is_up) {
  Ports p("delay=5us");
  ASSERT_TRUE(p.send(1));
  p.set.tx_flush(kBegin);
  p.set.set_down(true);
  p.set.tx_flush(kBegin + microseconds(5));
  EXPECT_TRUE(p.port->left.empty());
  EXPECT_TRUE(p.set.next_deadline().is_never()) << "nothing happens by itself while it is down";
  p.set.set_down(false);
  p.set.tx_flush(kBegin + microseconds(6));
  EXPECT_EQ(p.port->left, Numbers{1});
}

// The fault comes between the frame and the end of its turn.
TEST(HinderedPorts, a_frame_gives_its_place_back_even_if_the_port_goes_down_meanwhile) {
  Ports p("");
  ASSERT_TRUE(p.send(1));
  p.set.set_down(true);
  p.set.tx_flush(kBegin);
  EXPECT_EQ(p.port->open_frames(), 0u);
  EXPECT_TRUE(p.port->left.empty());
}

TEST(HinderedPorts, what_is_sent_while_the_port_is_down_is_lost_and_counted) {
  Ports p("");
  p.set.set_down(true);
  ASSERT_TRUE(p.send(1)) << "only rings of this host hold frames";
  EXPECT_EQ(p.port->open_frames(), 0u);
  p.set.set_down(false);
  p.set.tx_flush(kBegin);
  EXPECT_TRUE(p.port->left.empty());
  EXPECT_EQ(p.set.take_lost(), 1u);
}

TEST(HinderedPorts, a_frame_whose_link_is_gone_is_lost_and_holds_up_nobody) {
  Ports p("delay=5us");
  ASSERT_TRUE(p.send(1));
  p.set.tx_flush(kBegin);
  p.set.set_kind(Ports::kLink, LinkKind::kNone);
  p.set.tx_flush(kBegin + microseconds(5));
  EXPECT_TRUE(p.port->left.empty());
  EXPECT_FALSE(p.set.is_sending());
}

TEST(HinderedPorts, what_comes_is_handed_on_when_it_is_due_although_its_port_has_its_place_again) {
  Ports p("", "delay=5us");
  p.port->arriving = {1, 2};
  EXPECT_TRUE(p.receive(kBegin).empty());
  EXPECT_EQ(p.set.next_deadline(), kBegin + microseconds(5));
  EXPECT_EQ(p.receive(kBegin + microseconds(5)), (Numbers{1, 2}));
  EXPECT_TRUE(p.set.next_deadline().is_never());
}

TEST(HinderedPorts, what_comes_while_the_port_is_down_is_lost_and_what_came_before_is_not) {
  Ports p("", "delay=5us");
  p.port->arriving = {1};
  EXPECT_TRUE(p.receive(kBegin).empty());
  p.set.set_down(true);
  p.port->arriving = {2};
  EXPECT_TRUE(p.receive(kBegin + microseconds(5)).empty());
  EXPECT_EQ(p.set.take_lost(), 1u);
  p.set.set_down(false);
  EXPECT_EQ(p.receive(kBegin + microseconds(6)), Numbers{1});
}

// More comes than the Core takes at once.
TEST(HinderedPorts, what_the_core_has_no_room_for_waits) {
  Ports p("", "");
  for (uint8_t i = 0; i < 2 * kBurst; ++i) p.port->arriving.push_back(i);
  RxFrame in[4];
  EXPECT_EQ(p.set.rx_burst(kBegin, in, 4), 4u);
  p.set.rx_release();
  Numbers rest;
  for (int i = 0; i < 3; ++i) {
    for (const uint8_t number : p.receive(kBegin)) rest.push_back(number);
  }
  ASSERT_EQ(rest.size(), 2 * kBurst - 4);
  EXPECT_EQ(rest.front(), 4);
  EXPECT_EQ(rest.back(), 2 * kBurst - 1);
}

}  // namespace
}  // namespace ub
