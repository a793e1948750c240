// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/setup/compact_life.h"

#include "lib/transport/setup/channel_life.h"
#include "lib/transport/setup/send_record.h"
#include "lib/transport/ta/repeated_requests.h"

namespace ub::setup {

namespace {

bool awaits_answers(const CoreState& s, const tp::Channel& ch) {
  return ch.carries_requests && s.peers[ch.peer].lanes[ch.lane].unanswered != 0;
}

Instant silent_since(const tp::Channel& ch) { return later(ch.heard_at, ch.progress_at); }

void arm(CoreState& s, uint32_t channel, Instant at) {
  s.channels[channel].rto_at = at;
  s.timers.arm(s.timer_of_channel(channel), earlier(at, ta::next_look(s, s.channels[channel])));
}

}  // namespace

void await_answers(CoreState& s, uint32_t channel) {
  tp::Channel& ch = s.channels[channel];
  ch.progress_at = s.now;
  const Instant ask_at = s.now + ch.give_up_after / 2;
  if (ask_at < ch.rto_at) arm(s, channel, ask_at);
}

bool is_silent_compact(const CoreState& s, const tp::Channel& ch, Duration limit) {
  return awaits_answers(s, ch) && s.now - silent_since(ch) >= limit;
}

void on_compact_timer(CoreState& s, uint32_t channel) {
  tp::Channel& ch = s.channels[channel];
  if (!ta::look_for_repeats(s, channel)) return;
  const Duration patience = awaits_answers(s, ch) ? Duration{} : s.config.keepalive_idle;
  const Instant begin = silent_since(ch) + patience;
  const Instant ask_at = begin + ch.give_up_after / 2, end_at = begin + ch.give_up_after;
  if (s.now >= end_at) {
    send_about(s, ch, wire::RecordType::kClose);  // it may live, and wait for us
    return kill_silent(s, channel);
  }
  if (s.now < ask_at) return arm(s, channel, ask_at);
  if (s.now < ch.rto_at) return arm(s, channel, ch.rto_at);  // the timer was for repeats
  ping(s, ch);
  arm(s, channel, earlier(end_at, s.now + ch.give_up_after / 8));
}

}  // namespace ub::setup
