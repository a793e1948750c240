// SPDX-License-Identifier: Apache-2.0
// receiver.h - the receiving half of a channel in the hands of a test: packets go in by their PSN.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "lib/transport/tp/gap_report.h"
#include "lib/transport/tp/owed_ack.h"
#include "lib/transport/wire/sack.h"
#include "tests/unit/tp/channels.h"

namespace ub::tp {

constexpr uint32_t kWindow = 128;

inline CoreConfig with_window(uint32_t packets) {
  CoreConfig c = small_tables();
  c.window_packets = packets;
  return c;
}

// What comes in order is delivered at once, unless delivery is stalled; what comes ahead waits.
struct Receiver : Channels {
  explicit Receiver(uint32_t first_psn = 100, const CoreConfig& config = with_window(kWindow)) : Channels(config) {
    channel = add_channel(first_psn);
  }
  uint32_t add_channel(uint32_t first_psn) {
    const uint32_t index = s->channels.alloc();
    Channel& c = s->channels[index];
    c = Channel{};
    c.state = ChannelState::kOpen;
    c.tpn = 1u << kTpnIndexBits | index;
    c.expected = c.delivered = Psn(first_psn);
    c.highest_seen = c.expected - 1;
    return index;
  }
  Channel& ch() { return s->channels[channel]; }

  RxVerdict receive(uint32_t psn, bool ack_req = false) {
    wire::RtpHeader rtp;
    rtp.psn = Psn(psn);
    rtp.ack_req = ack_req;
    const RxVerdict verdict = classify(*s, ch(), rtp.psn);
    if (verdict == RxVerdict::kBeyondWindow) return verdict;
    if (verdict == RxVerdict::kAhead && ch().go_back_n) {
      note_gap(*s, channel, now);
      return verdict;
    }
    if (verdict == RxVerdict::kAhead) accept_ahead(*s, ch(), rtp.psn);
    if (verdict == RxVerdict::kInOrder) take_in_order(rtp);
    note_for_ack(*s, channel, now, rtp, verdict);
    return verdict;
  }
  void receive_all(std::initializer_list<uint32_t> psns) {
    for (uint32_t psn : psns) receive(psn);
  }
  // Delivers what was accepted earlier.
  void deliver() {
    while (accepted_at_cursor(ch())) {
      const uint32_t kept = kept_at_cursor(*s, ch());
      delivered.push_back(kept == 0 ? ch().delivered.value() : s->kept[kept].rtp.psn.value());
      kept == 0 ? delivered_one(ch()) : delivered_kept(*s, ch(), kept);
    }
  }
  // The PSNs that an acknowledgement says have arrived ahead of a gap.
  std::vector<uint32_t> reported() {
    std::vector<uint32_t> all;
    const AckContent ack = make_ack(*s, ch());
    if (!ack.selective) return all;
    EXPECT_TRUE(test_bit(ack.bitmap, 0)) << "bit 0 stands for the cumulative PSN";
    for (uint32_t bit = 1; bit < wire::sack_bits(ack.size_code); ++bit) {
      if (test_bit(ack.bitmap, bit)) all.push_back((ack.cumulative + bit).value());
    }
    return all;
  }
  uint32_t cumulative() { return make_ack(*s, ch()).cumulative.value(); }

  uint32_t channel = 0;
  bool stalled = false;
  std::vector<uint32_t> delivered;

 private:
  void take_in_order(const wire::RtpHeader& rtp) {
    const bool waits = stalled || ch().delivered != ch().expected;
    accept_in_order(*s, ch());
    if (waits) return;
    delivered.push_back(rtp.psn.value());
    delivered_one(ch());
    deliver();
  }
};

using Psns = std::vector<uint32_t>;

}  // namespace ub::tp
