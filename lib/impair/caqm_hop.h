// SPDX-License-Identifier: Apache-2.0
//
// The rule of a hop that speaks C-AQM in its two-bit form, over the ECN code point of IP (UB Base Specification Rev
// 2.0, 5.3.5 and 6.6). A sender wants one packet more (01) or nothing (10). The hop has a credit: what may still come
// without making its queue longer than it should be. It grants what the credit covers. Of what it does not cover, the
// hop marks some (11) and refuses the rest (01 becomes 10). While its queue is too long, it marks all that comes.
//
// It reads no clock and sees no departures: what has left follows from what came and what is queued. The same seed and
// packets give the same results.
#pragma once

#include <cstdint>

#include "lib/base/prng.h"
#include "lib/base/time.h"
#include "lib/transport/wire/network_header.h"

namespace ub::impair {

struct CaqmHopConstants {
  uint64_t bits_per_second = 0;       ///< of the hop
  uint32_t packet_bytes = 4096 + 62;  ///< longest packet, with its headers: what a wish is for
  /// The part of what is missing that is granted. Source: the public ns-3 model of UB.
  double lambda = 0.5;
  /// Source: the public ns-3 model of UB.
  uint32_t target_queue_packets = 10;
  /// The credit is renewed so often. Source: the public ns-3 model of UB.
  Duration period = nanoseconds(500);
  /// Of a wish that the credit no longer covers. Source: the public ns-3 model of UB.
  double mark_chance = 0.1;
};

class CaqmHop {
 public:
  CaqmHop(const CaqmHopConstants& constants, uint64_t seed) : constants_(constants), prng_(seed) {
    set_credit(could_send(), 0);
  }

  /// A packet comes and finds so many bytes in front of it. Returns the code point that it leaves with.
  uint8_t pass(Instant now, uint32_t bytes, uint64_t queued_bytes, uint8_t ecn) {
    if (now >= renewed_at_ + constants_.period) renew(now, queued_bytes);
    came_bytes_ += bytes;
    return ecn == wire::kEcnNotCapable ? ecn : answer(ecn);
  }

  /// Bytes; negative: the queue is too long.
  int64_t credit() const { return credit_; }

 private:
  uint8_t answer(uint8_t ecn) {
    if (credit_ < 0) return wire::kEcnCe;
    if (ecn != wire::kEcnEct1) return ecn;
    if (credit_ < constants_.packet_bytes) return prng_.chance(constants_.mark_chance) ? wire::kEcnCe : wire::kEcnEct0;
    credit_ -= constants_.packet_bytes;
    granted_bytes_ += constants_.packet_bytes;
    return ecn;
  }

  /// If nothing came for longer than a period, what left in that time counts as spread evenly.
  void renew(Instant now, uint64_t queued_bytes) {
    const uint64_t left = came_bytes_ - queued_bytes;
    const auto periods = static_cast<double>((now - renewed_at_).ns) / static_cast<double>(constants_.period.ns);
    set_credit(could_send() - static_cast<double>(left - left_bytes_) / periods, queued_bytes);
    left_bytes_ = left;
    renewed_at_ = now;
    granted_bytes_ = 0;
  }

  /// `free_bytes`: what could have been sent in a period, and was not.
  void set_credit(double free_bytes, uint64_t queued_bytes) {
    const double target = static_cast<double>(constants_.target_queue_packets) * constants_.packet_bytes;
    const auto committed = static_cast<double>(queued_bytes + granted_bytes_);
    credit_ = static_cast<int64_t>(constants_.lambda * (free_bytes + target - committed));
  }

  /// In a period.
  double could_send() const {
    return static_cast<double>(constants_.bits_per_second) / 8e9 * static_cast<double>(constants_.period.ns);
  }

  CaqmHopConstants constants_;
  Prng prng_;
  Instant renewed_at_{};
  int64_t credit_ = 0;          ///< bytes
  uint64_t came_bytes_ = 0;     ///< in all
  uint64_t left_bytes_ = 0;     ///< in all, at the last renewal
  uint64_t granted_bytes_ = 0;  ///< since the last renewal
};

}  // namespace ub::impair
