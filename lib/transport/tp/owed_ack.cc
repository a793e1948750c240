// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/tp/owed_ack.h"

#include <algorithm>
#include <cstring>

namespace ub::tp {

namespace {

constexpr uint32_t kMostAckBits = 8 * sizeof(AckContent::bitmap);

constexpr uint64_t low_ones(uint32_t count) { return count >= 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1; }

// Which of the 64 packets from `from` on lie in the reorder block.
uint64_t received_beyond_gap(State& s, const Channel& ch, Psn from) {
  const uint64_t* bits = s.received_bits(ch.reorder);
  const uint32_t slot = slot_of(s, from), next = slot_of(s, from + 64) / 64, skip = slot % 64;
  return bits[slot / 64] >> skip | (skip == 0 ? 0 : bits[next] << (64 - skip));
}

}  // namespace

void begin_to_owe(State& s, uint32_t channel, Instant now, Duration delay) {
  Channel& ch = s.channels[channel];
  ch.ack_due = now + delay;
  s.acks_due = earlier(s.acks_due, ch.ack_due);
  owe_ack(s, channel);
}

void owe_sooner(State& s, uint32_t channel, Instant now, Duration delay) {
  const Channel& ch = s.channels[channel];
  if (!ch.on_ack_list || ch.ack_due > now + delay) begin_to_owe(s, channel, now, delay);
}

void fill_bitmap(State& s, const Channel& ch, AckContent* ack) {
  if (ch.go_back_n) {
    ack->selective = false;  // what lies beyond was accepted in order, and waits to be executed (ROL)
    return;
  }
  uint32_t bits = std::min(s.config.window_packets, kMostAckBits);
  while ((64u << ack->size_code) < bits) ++ack->size_code;
  uint32_t span = ch.highest_seen.distance(ack->cumulative);
  std::memset(ack->bitmap, 0, sizeof ack->bitmap);
  const uint32_t before_gap = ch.expected.distance(ack->cumulative);  // these bits are ones, and not in the block
  for (uint32_t bit = 0; bit < bits && bit <= span; bit += 64) {
    const uint64_t in_order = low_ones(before_gap > bit ? before_gap - bit : 0);
    ack->bitmap[bit / 64] = in_order | received_beyond_gap(s, ch, ack->cumulative + bit);
  }
}

AckContent make_ack(State& s, const Channel& ch) {
  AckContent ack;
  describe_received(s, ch, ch.expected - 1, &ack);
  UB_DCHECK(!ack.selective || ch.reorder != 0);
  return ack;
}

void ack_sent(Channel& ch) {
  ch.unacknowledged = 0;
  ch.ack_wanted = false;
  ch.peer_asked = false;
}

}  // namespace ub::tp
