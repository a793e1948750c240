// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/tp/send_ack.h"

#include <algorithm>
#include <cstring>

namespace ub::tp {

namespace {

constexpr uint32_t kMostAckBits = 8 * sizeof(AckContent::bitmap);

}  // namespace

void begin_to_owe(State& s, uint32_t channel, Instant now) {
  Channel& ch = s.channels[channel];
  ch.ack_due = now + kAckDelay;
  s.acks_due = earlier(s.acks_due, ch.ack_due);
  owe_ack(s, channel);
}

void fill_bitmap(State& s, const Channel& ch, AckContent* ack) {
  uint32_t bits = std::min(s.config.window_packets, kMostAckBits);
  while ((64u << ack->size_code) < bits) ++ack->size_code;
  uint32_t span = ch.highest_seen.distance(ack->cumulative);
  std::memset(ack->bitmap, 0, sizeof ack->bitmap);
  ack->bitmap[0] = 1;
  for (uint32_t bit = 1; bit < bits && bit <= span; ++bit) {
    UB_DCHECK(bit < kMostAckBits);
    const Psn psn = ack->cumulative + bit;
    const bool received = psn.before(ch.delivered) || test_bit(s.received_bits(ch.reorder), slot_of(s, psn));
    if (received) set_bit(ack->bitmap, bit);
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
}

}  // namespace ub::tp
