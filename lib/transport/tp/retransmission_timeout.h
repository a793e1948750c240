// SPDX-License-Identifier: Apache-2.0
//
// How long a sender waits for an acknowledgement (UB Base Specification Rev 2.0, 6.4.2.1): a pause of two round trips
// and four deviations, after which it asks, and a timeout, after which all is lost. The timeout is a multiple of the
// smoothed round trip within limits, doubled with each one.
#pragma once

#include <algorithm>
#include <cstdint>

#include "lib/base/time.h"

namespace ub::tp {

struct RtoLimits {
  uint32_t round_trips;  // length of the timeout, in smoothed round trips
  Duration min, max;
};

// What is known of the round trip; all zero: nothing.
struct RoundTrip {
  Duration smoothed, deviation;
  Duration least, former_least;  // of this second, and of the last one in which there was a sample
  Instant since;                 // when this second began; zero: there was no sample yet, and the rest is a guess
};

constexpr Duration kLeastRenewed = seconds(1);

constexpr Duration eighth_closer(Duration old, Duration sample) { return {old.ns + (sample.ns - old.ns) / 8}; }

constexpr void add_sample(RoundTrip& r, Duration sample, Instant now) {
  if (r.smoothed.ns == 0) {
    r = {sample, {sample.ns / 2}, sample, sample, now};
    return;
  }
  const int64_t apart = sample.ns - r.smoothed.ns;
  r.deviation = {r.deviation.ns + ((apart < 0 ? -apart : apart) - r.deviation.ns) / 4};
  r.smoothed = eighth_closer(r.smoothed, sample);
  if (r.since == Instant{} || now - r.since >= kLeastRenewed) {
    r.former_least = r.least;
    r.least = sample;
    r.since = now;
  }
  r.least = std::min(r.least, sample);
}

// After this time without news the sender asks with a probe. Where the path changes the order, a packet is lost so long
// after a later one was seen to arrive. Zero: nothing is known.
constexpr Duration pause_of(const RoundTrip& r) { return r.smoothed * 2 + r.deviation * 4; }
// When another that was sent later has arrived, on a path that keeps the order, it is lost after this time.
constexpr Duration margin_of(const RoundTrip& r) { return std::max(r.deviation * 4, r.smoothed / 8); }
// The least of late; zero: none was measured.
constexpr Duration least_round_trip(const RoundTrip& r) {
  return r.since == Instant{} ? Duration{} : std::min(r.least, r.former_least);
}
// What comes sooner after a packet was sent is no answer to it.
constexpr Duration least_answer_time(const RoundTrip& r) { return std::min(r.least, r.former_least) * 3 / 4; }

constexpr Duration rto_of(const RoundTrip& r, const RtoLimits& limits) {
  return std::clamp(r.smoothed * limits.round_trips, limits.min, limits.max);
}
// The timeout after another one has expired.
constexpr Duration backed_off(Duration rto, const RtoLimits& limits) { return std::min(rto * 2, limits.max); }

}  // namespace ub::tp
