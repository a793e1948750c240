// SPDX-License-Identifier: Apache-2.0
// lossy.h - the sending half of a channel on a wire that may lose packets, in the hands of a test.
#pragma once

#include "lib/transport/tp/retransmission_timeout.h"
#include "tests/unit/tp/sender.h"

namespace ub::tp {

// Its round trip is known.
struct Lossy : Sender {
  static constexpr Duration kRoundTrip = microseconds(80);

  explicit Lossy(uint32_t first_psn = 100, uint32_t tolerance = 4, const CoreConfig& config = small_tables())
      : Sender(first_psn, config) {
    ch().asks_soon = true;
    ch().give_up_after = seconds(4);
    ch().tolerance.begin(tolerance);
    for (int i = 0; i < 40; ++i) add_sample(ch().round_trip, kRoundTrip, now);
    ch().patience = first_patience(ch());
  }
  // The channel's timer fires when it is due.
  void timer() {
    now = s->timers.earliest();
    s->timers.cancel(s->timer_of_channel(channel));
    EXPECT_EQ(on_timer(*s, channel, now), TimerVerdict::kGoesOn);
  }
};

}  // namespace ub::tp
