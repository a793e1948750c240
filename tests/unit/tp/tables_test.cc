// SPDX-License-Identifier: Apache-2.0
//
// The tables of the transport layer: as large as the configuration asks for, and no byte larger.
#include <gtest/gtest.h>

#include "tests/unit/tp/channels.h"

namespace ub::tp {
namespace {

// So many that a missing word of a block is not hidden by alignment.
constexpr uint32_t kChannels = 15, kWindow = 256, kKeptPackets = 3, kKeptSmallPackets = 5, kFrameBytes = 2048;

// The tables in memory of their own, without what is laid out behind them.
struct Tables {
  Tables() : memory_(1 << 22), arena(memory_.get()) {
    s.config.max_channels = kChannels;
    s.config.window_packets = kWindow;
    s.config.kept_packets = kKeptPackets;
    s.config.kept_small_packets = kKeptSmallPackets;
    s.config.max_frame_bytes = kFrameBytes;
    lay_out_channels(s, arena);
  }
  // From the begin of a table to the begin of the next one.
  template <class Table, class Next>
  static size_t bytes(const Table* table, const Next* next) {
    return static_cast<size_t>(reinterpret_cast<const std::byte*>(next) - reinterpret_cast<const std::byte*>(table));
  }
  const std::byte* end() const { return memory_.get() + arena.used_bytes(); }

  State s;

 private:
  ZeroedMemory memory_;

 public:
  Arena arena;
};

TEST(Tables, there_is_a_record_of_each_kind_for_every_channel) {
  Tables t;
  EXPECT_EQ(t.s.channels.capacity(), kChannels);
  EXPECT_EQ(t.s.recovery.capacity(), kChannels);
  EXPECT_EQ(t.s.reorder.capacity(), kChannels);
  EXPECT_EQ(t.s.kept.large().capacity(), kKeptPackets);
  EXPECT_EQ(t.s.kept.small().capacity(), kKeptSmallPackets);
}

TEST(Tables, who_does_not_listen_has_no_memory_for_round_trips) {
  Tables t;
  EXPECT_EQ(t.s.send_times.blocks().capacity(), 0u);
}

// A full window of one-packet messages begins in the midst of a chunk, so that it takes one more.
TEST(Tables, every_channel_may_have_a_full_window_of_messages) {
  Tables t;
  const uint32_t full_window = (kWindow + kMessagesPerChunk - 1) / kMessagesPerChunk;
  EXPECT_EQ(t.s.messages.capacity(), kChannels * (full_window + 1));
}

TEST(Tables, answers_have_chunks_of_their_own_one_for_each_read_among_them) {
  Tables t;
  EXPECT_EQ(t.s.answers.capacity(), kChannels * 2 + t.s.config.read_jobs + 256);
}

// Numbers count from channel 0, which is none.
TEST(Tables, every_channel_has_a_timer_and_a_home_for_a_held_frame_and_none_is_left_over) {
  Tables t;
  EXPECT_EQ(t.s.timer_numbers.end(), t.s.timer_of_channel(kChannels) + 1);
  EXPECT_EQ(t.s.held.numbers.end(), t.s.home_of_channel(kChannels) + 1);
  EXPECT_TRUE(t.s.channel_timers.contains(t.s.timer_of_channel(kChannels)));
  EXPECT_TRUE(t.s.held_homes.contains(t.s.home_of_channel(kChannels)));
}

TEST(Tables, every_block_has_a_bit_for_each_packet_of_the_window) {
  Tables t;
  EXPECT_EQ(t.bytes(t.s.reorder_bits, &t.s.kept[0]), (kChannels + 1) * kWindow / 8);
  EXPECT_EQ(t.s.received_bits(kChannels) + kWindow / 64, static_cast<void*>(&t.s.kept[0]));
}

// The lists of the index, as many as the next power of two has, and an entry for each packet.
constexpr size_t kIndexBytes = 64 + 12 * (kKeptPackets + kKeptSmallPackets + 1);

TEST(Tables, every_kept_packet_has_the_bytes_of_a_whole_frame) {
  Tables t;
  const uint32_t last_small = kKeptSmallPackets, last = kKeptSmallPackets + kKeptPackets;
  EXPECT_EQ(t.bytes(t.s.kept.data(last) + kFrameBytes, t.end()), kIndexBytes);
  EXPECT_EQ(t.bytes(t.s.kept.data(last_small), t.s.kept.data(last_small + 1)),
            KeptPackets::kSmallBytes + kFrameBytes) << "index 0 of each size is none";
}

}  // namespace
}  // namespace ub::tp
