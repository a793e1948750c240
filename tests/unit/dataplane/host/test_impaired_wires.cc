// SPDX-License-Identifier: Apache-2.0
// What belongs around an impaired link where frames are real: places in ports, senders that wait, ports without room.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "dataplane/impaired_wires.h"
#include "lib/impair/text.h"

namespace ub {
namespace {

constexpr Instant kBegin{1'000'000'000};

class Wires {
 public:
  explicit Wires(std::string_view send, std::string_view receive = "")
      : wires(impair::parse(send).script.value(), impair::parse(receive).script.value(), 1, kBegin) {}

  // A frame of the Core, with that first byte.
  void commit(uint8_t number, size_t bytes = 100) {
    frames.push_back(std::vector<std::byte>(bytes, std::byte{number}));
    ASSERT_TRUE(wires.stage({kLink, frames.back().data(), bytes}));
  }
  void end_of_turn(Instant now) {
    wires.enter(now, [this](const auto& staged) {
      std::memset(staged.frame, 0xff, staged.bytes);  // its port has the place again
      ++aborted;
    });
    wires.leave(now, [this](uint32_t link, std::span<const std::byte> frame) {
      EXPECT_EQ(link, kLink);
      if (port_has_room) left.push_back(static_cast<uint8_t>(frame[0]));
      return port_has_room;
    });
  }

  uint64_t counter(std::string_view name) const {
    const auto& names = ImpairedWires::kCounters;
    const auto at = std::find(names.begin(), names.end(), name);
    EXPECT_NE(at, names.end()) << name;
    return wires.counters()[static_cast<size_t>(at - names.begin())];
  }

  static constexpr uint32_t kLink = 3;
  ImpairedWires wires;
  std::vector<std::vector<std::byte>> frames;
  uint32_t aborted = 0;
  bool port_has_room = true;
  std::vector<uint8_t> left;
};

TEST(ImpairedWires, a_frame_gives_its_place_back_at_the_end_of_the_turn_and_leaves_whole_when_it_is_due) {
  Wires w("delay=5us");
  w.commit(7);
  w.end_of_turn(kBegin);
  EXPECT_EQ(w.aborted, 1u);
  EXPECT_TRUE(w.left.empty());
  EXPECT_EQ(w.wires.next_due(), kBegin + microseconds(5));
  w.end_of_turn(kBegin + microseconds(5));
  EXPECT_EQ(w.left, std::vector<uint8_t>{7});
  EXPECT_EQ(w.aborted, 1u);
}

TEST(ImpairedWires, times_of_a_script_begin_with_the_nic_and_anew_with_another_script) {
  Wires w("at 1s down");
  w.commit(1);
  w.end_of_turn(kBegin + milliseconds(999));
  w.commit(2);
  w.end_of_turn(kBegin + seconds(1));
  EXPECT_EQ(w.left, std::vector<uint8_t>{1});
  const impair::Script other = impair::parse("at 1s down").script.value();
  w.wires.set(kBegin + seconds(1), other, {});
  w.commit(3);
  w.end_of_turn(kBegin + milliseconds(1500));
  EXPECT_EQ(w.left, (std::vector<uint8_t>{1, 3}));
  EXPECT_EQ(w.counter("impaired.lost_down"), 1u);
}

TEST(ImpairedWires, a_sender_waits_while_more_than_a_millisecond_of_the_line_is_taken) {
  Wires w("rate=8M");  // 1000 bytes: 1 ms
  EXPECT_TRUE(w.wires.has_room());
  w.commit(1, 1000);
  EXPECT_TRUE(w.wires.has_room());  // what is staged counts: 1 ms
  w.commit(2, 1000);
  EXPECT_FALSE(w.wires.has_room());
  w.end_of_turn(kBegin);
  EXPECT_FALSE(w.wires.has_room());
  w.end_of_turn(kBegin + milliseconds(1));
  EXPECT_TRUE(w.wires.has_room());
}

TEST(ImpairedWires, where_the_queue_has_a_limit_no_sender_waits_and_frames_are_dropped) {
  Wires w("rate=8M queue=2");
  for (uint8_t i = 0; i < 5; ++i) {
    EXPECT_TRUE(w.wires.has_room());
    w.commit(i, 1000);
  }
  w.end_of_turn(kBegin);
  EXPECT_EQ(w.counter("impaired.lost_queue"), 3u);
  EXPECT_TRUE(w.wires.has_room());
}

TEST(ImpairedWires, a_frame_without_room_in_its_port_waits_for_a_millisecond_and_is_then_dropped) {
  Wires w("");
  w.port_has_room = false;
  w.commit(1);
  w.end_of_turn(kBegin);
  EXPECT_GT(w.wires.next_due(), kBegin);
  EXPECT_LT(w.wires.next_due(), kBegin + milliseconds(1));
  w.end_of_turn(kBegin + microseconds(999));
  EXPECT_EQ(w.counter("impaired.no_room"), 0u);
  w.commit(2);
  w.end_of_turn(kBegin + milliseconds(1));  // the first goes, the second waits in its turn
  EXPECT_EQ(w.counter("impaired.no_room"), 1u);
  w.port_has_room = true;
  w.end_of_turn(kBegin + milliseconds(1));
  EXPECT_EQ(w.left, std::vector<uint8_t>{2});
}

TEST(ImpairedWires, what_comes_goes_through_the_receiving_link_with_the_number_of_its_own) {
  Wires w("loss=100%", "delay=2us every=2");
  const std::vector<std::byte> bytes(64, std::byte{9});
  const RxFrame in[] = {{bytes.data(), 64, 5}, {bytes.data(), 64, 6}, {bytes.data(), 64, 7}};
  w.wires.receive(kBegin, in);
  RxFrame out[kBurst];
  EXPECT_EQ(w.wires.take_received(kBegin, out, kBurst), 0u);
  EXPECT_EQ(w.wires.next_due(), kBegin + microseconds(2));
  ASSERT_EQ(w.wires.take_received(kBegin + microseconds(2), out, 1), 1u) << "no more than there is room";
  EXPECT_EQ(out[0].link, 5u);
  EXPECT_EQ(out[0].bytes, 64u);
  EXPECT_EQ(out[0].data[63], std::byte{9});
  ASSERT_EQ(w.wires.take_received(kBegin + microseconds(2), out + 1, 1), 1u);
  EXPECT_EQ(out[1].link, 7u);
  w.wires.release_received();
  EXPECT_EQ(w.counter("impaired.lost_nth"), 1u);
  EXPECT_EQ(w.counter("impaired.delivered"), 2u);
  EXPECT_TRUE(w.wires.next_due().is_never());
}

}  // namespace
}  // namespace ub
