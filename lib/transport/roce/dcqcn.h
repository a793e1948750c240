// SPDX-License-Identifier: Apache-2.0
// dcqcn.h - the rate of a queue pair on a network that marks packets instead of dropping them, and when the sender of
// marked packets is told. After DCQCN (Zhu et al., SIGCOMM 2015) with its constants; the packets are those of the
// InfiniBand Architecture Specification, annex A17. Integers alone, so that a run can be repeated.
//
// A notification (CNP) cuts the rate; it comes back by time and by bytes sent: at first half of the way to the rate
// before the cut, five times, then in steps beyond it. At line rate nothing is counted any more.
#pragma once

#include <cstdint>

#include "lib/base/time.h"

namespace ub::roce {

struct RateState {
  uint32_t rate = 0;           ///< KB/s; 0: no limit
  uint32_t target = 0;         ///< KB/s
  uint16_t alpha = 0;          ///< how congested, of kAlphaOne
  uint8_t time_steps = 0;      ///< since the cut
  uint8_t byte_steps = 0;      ///< since the cut
  uint32_t bytes_to_step = 0;  ///< until the next one
  Instant next_packet{};       ///< not before
  Instant next_step{};         ///< by time
};
static_assert(sizeof(RateState) == 32);

inline constexpr uint16_t kAlphaOne = 1 << 15;
inline constexpr Duration kCnpPause = microseconds(50);  ///< of the receiver, between two of one queue pair

/// A CNP came. `line`: KB/s, as fast as it may ever go.
void on_cnp(RateState& s, Instant now, uint32_t line);
/// `next_step` has come; early calls do nothing.
void on_rate_timer(RateState& s, Instant now, uint32_t line);
/// A packet of so many bytes left.
void on_paced(RateState& s, Instant now, uint32_t bytes, uint32_t line);

/// May one leave?
constexpr bool may_leave(const RateState& s, Instant now) { return s.rate == 0 || s.next_packet <= now; }
/// When it is to be looked at again.
constexpr Instant rate_deadline(const RateState& s, Instant now) {
  if (s.rate == 0) return Instant::never();
  return s.next_packet > now ? earlier(s.next_packet, s.next_step) : s.next_step;
}

}  // namespace ub::roce
