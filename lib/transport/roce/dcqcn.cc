// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/roce/dcqcn.h"

#include <algorithm>

namespace ub::roce {
namespace {

constexpr uint32_t kWeightShift = 8;  // g is 1/256
constexpr uint8_t kFastSteps = 5;
constexpr uint32_t kBytesPerStep = 10'000'000;
constexpr Duration kStep = microseconds(55);
constexpr uint32_t kLeastRate = 1'250;  // KB/s: 10 Mbit/s
constexpr uint32_t kAdd = 5'000;        // KB/s: 40 Mbit/s
constexpr uint32_t kAddMuch = 50'000;   // KB/s: 400 Mbit/s

void decay(RateState& s) { s.alpha = static_cast<uint16_t>(s.alpha - (s.alpha >> kWeightShift)); }

/// One step up, of either kind.
void recover(RateState& s, uint32_t line) {
  if (std::min(s.time_steps, s.byte_steps) > kFastSteps) {
    s.target += kAddMuch;
  } else if (std::max(s.time_steps, s.byte_steps) > kFastSteps) {
    s.target += kAdd;
  }
  s.target = std::min(s.target, line);
  s.rate += (s.target - s.rate + 1) / 2;
  if (s.rate >= line) s.rate = 0;
}

}  // namespace

void on_cnp(RateState& s, Instant now, uint32_t line) {
  if (s.rate == 0) {
    s.rate = line;
    s.alpha = kAlphaOne;
    s.next_packet = now;
  }
  s.target = s.rate;
  const uint64_t cut = uint64_t{s.rate} * s.alpha / (2 * kAlphaOne);
  s.rate = std::max(kLeastRate, s.rate - static_cast<uint32_t>(cut));
  decay(s);
  s.alpha = static_cast<uint16_t>(std::min<uint32_t>(kAlphaOne, s.alpha + (kAlphaOne >> kWeightShift)));
  s.time_steps = s.byte_steps = 0;
  s.bytes_to_step = kBytesPerStep;
  s.next_step = now + kStep;
}

void on_rate_timer(RateState& s, Instant now, uint32_t line) {
  if (s.rate == 0 || now < s.next_step) return;
  decay(s);
  s.next_step = now + kStep;
  s.time_steps = static_cast<uint8_t>(std::min(s.time_steps + 1, 255));
  recover(s, line);
}

void on_paced(RateState& s, Instant now, uint32_t bytes, uint32_t line) {
  if (s.rate == 0) return;
  s.next_packet = later(s.next_packet, now) + nanoseconds(int64_t{bytes} * 1'000'000 / s.rate);
  if (bytes < s.bytes_to_step) {
    s.bytes_to_step -= bytes;
    return;
  }
  s.bytes_to_step = kBytesPerStep;
  s.byte_steps = static_cast<uint8_t>(std::min(s.byte_steps + 1, 255));
  recover(s, line);
}

}  // namespace ub::roce
