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

AckContent make_ack(State& s, const Channel& ch) {
  AckContent ack;  // the bitmap is only filled if it travels
  ack.size_code = 0;
  ack.cumulative = ch.expected - 1;
  ack.highest = ch.highest_seen;
  ack.selective = ch.highest_seen.after(ack.cumulative);
  if (!ack.selective) return ack;
  UB_DCHECK(ch.reorder != 0);
  uint32_t bits = std::min(s.config.window_packets, kMostAckBits);
  while ((64u << ack.size_code) < bits) ++ack.size_code;
  const uint64_t* received = s.received_bits(ch.reorder);
  uint32_t span = ch.highest_seen.distance(ack.cumulative);
  std::memset(ack.bitmap, 0, sizeof ack.bitmap);
  ack.bitmap[0] = 1;
  for (uint32_t bit = 1; bit < bits && bit <= span; ++bit) {
    UB_DCHECK(bit < kMostAckBits);
    if (test_bit(received, slot_of(s, ack.cumulative + bit))) set_bit(ack.bitmap, bit);
  }
  return ack;
}

void ack_sent(Channel& ch) {
  ch.unacknowledged = 0;
  ch.ack_wanted = false;
}

}  // namespace ub::tp
