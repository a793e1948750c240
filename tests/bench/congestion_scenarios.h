// SPDX-License-Identifier: Apache-2.0
//
// What congestion control is measured by: hosts of 25 Gb/s around a hop (virtual_fabric.h), whose queue to one receiver
// of 100 Gb/s all of them fill. The round trip of a packet of 4 KiB through empty queues is 10 us.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/base/time.h"
#include "lib/impair/spec.h"
#include "lib/transport/cc/constants.h"

namespace ub::bench {

/// An algorithm, and what the hop does for it.
struct Algorithm {
  const char* name;
  const char* text;
  cc::Control control;
  impair::Marking marks{};
  bool caqm_hop = false;
  bool cci = false;  ///< channels have UB's own network header, and so the whole indicator of congestion
};
/// The queue of LDCP marks from half of a round trip's bytes on. That of DCQCN is its paper's (Zhu et al., SIGCOMM
/// 2015), which is for 40 Gb/s, and the same for 100 Gb/s. Without control, losses halve the window.
inline constexpr Algorithm kAlgorithms[] = {
    {"none", "losses halve the window", cc::Control::kNone},
    {"caqm", "C-AQM, and a hop that speaks it", cc::Control::kCaqm, {}, true},
    {"ldcp", "LDCP, all are marked from 64 KB on", cc::Control::kLdcp, {64'000, 64'000, 1}},
    {"dcqcn", "DCQCN, RED 5 KB..200 KB 1 %", cc::Control::kDcqcn, {5'000, 200'000, 0.01}},
    {"dcqcn-2.5", "DCQCN, RED 12.5 KB..500 KB 1 %", cc::Control::kDcqcn, {12'500, 500'000, 0.01}},
    {"swift", "Swift, no marks", cc::Control::kSwift},
};
/// Of the incast alone. Such a channel has one path.
inline constexpr Algorithm kCaqmWithHints{"caqm-hints", "C-AQM with hints of CCI", cc::Control::kCaqm, {}, true, true};
/// nullptr: there is none of that name.
const Algorithm* find_algorithm(const char* name);

inline constexpr uint64_t kHostRate = 25'000'000'000, kBottleneckRate = 100'000'000'000;  // bits per second
inline constexpr Duration kRoundTrip = microseconds(10);
inline constexpr uint64_t kQueueLimit = 2'000'000;  // bytes

/// What a queue and those who fill it did.
struct Traffic {
  double utilisation = 0;  ///< share of the bottleneck's rate that payload frames have, 0..1
  double goodput = 0;      ///< of WRITEs that were answered; bits per second
  uint64_t drops = 0;
  uint64_t marks = 0;
  uint64_t again = 0;     ///< packets that were sent again
  uint64_t needless = 0;  ///< those of them that had arrived
  uint64_t timeouts = 0;
  bool operator==(const Traffic&) const = default;
};

// ---- incast -----------------------------------------------------------------------------------------------------

/// All senders write 64 KiB again and again. The second half of the time is measured.
struct IncastSpec {
  uint32_t senders = 16;
  Duration time = milliseconds(20);
  uint64_t seed = 1;
};
struct IncastResult : Traffic {
  double mean_queue = 0, p99_queue = 0;  ///< bytes
  double fairness = 0;                   ///< Jain's index of what the senders reached: 1 if it is the same
  std::vector<double> shares;            ///< of each sender, in parts of a fair one
  uint64_t early_drops = 0;              ///< in the first half
  bool operator==(const IncastResult&) const = default;
};
/// A point of a curve.
struct IncastPoint {
  double us = 0;
  double window = 0;        ///< packets; mean of the senders
  double in_flight = 0;     ///< packets; mean of the senders
  double rate_limit = 0;    ///< bits per second; mean of the senders, of whom those without one have that of the line
  double passed = 0;        ///< bits per second of payload frames, since the point before
  double first_sender = 0;  ///< bits per second that the first sender sent, since the point before
  double queue = 0;         ///< bytes
};
/// `curve`: gets a point every 20 us; nullptr: nobody wants them.
IncastResult run_incast(const Algorithm& algorithm, const IncastSpec& spec, std::vector<IncastPoint>* curve = nullptr);

// ---- short writes among long ones ---------------------------------------------------------------------------------

/// Some hosts write 64 KiB again and again. 5 ms later, single WRITEs of 16 KiB begin to come to 16 other hosts, at
/// random times. Each host does one after the other; the time that one waits for its turn counts.
struct ShortSpec {
  uint32_t long_senders = 4;
  uint32_t short_writes = 1000;
  double load = 0.3;  ///< of the short ones, in parts of the bottleneck's rate
  uint64_t seed = 1;
};
struct ShortResult : Traffic {
  double p50 = 0, p99 = 0;  ///< ns
  double long_goodput = 0;  ///< bits per second, while short ones came
  bool operator==(const ShortResult&) const = default;
};
ShortResult run_short(const Algorithm& algorithm, const ShortSpec& spec);

// ---- small ones beside bulk -----------------------------------------------------------------------------------------

/// A host of 25 Gb/s writes 64 KiB again and again to another one, behind a queue of 10 Gb/s. Two programs on these
/// hosts share the way: the other one writes 1 KiB at random times, every 100 us on average.
struct SmallSpec {
  bool flood = true;     ///< else the small ones are alone
  bool by_class = true;  ///< the hop serves small messages before bulk ones; else they share a queue
  uint64_t hop_rate = 10'000'000'000;  ///< bits per second
  uint32_t small_writes = 1000;
  uint64_t seed = 1;
};
/// Utilisation is that of `hop_rate`. The long ones are the flood.
ShortResult run_small(const Algorithm& algorithm, const SmallSpec& spec);

}  // namespace ub::bench
