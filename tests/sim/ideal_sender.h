// SPDX-License-Identifier: Apache-2.0
//
// A sender that selective repeat cannot beat, to compare ours with. It learns what became of each packet exactly one
// round trip after the packet has left, sends what is lost again before anything new, and is held up by its window
// alone, which counts from the oldest packet on that has not arrived. None of its acknowledgements is lost or takes
// room.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

#include "lib/base/prng.h"
#include "tests/sim/lossy_link.h"

namespace ub::sim {

struct IdealSpec {
  double packet_ns = 0;  // how long a packet takes to leave
  double round_trip_ns = 0;
  double loss = 0;  // of each packet
  uint32_t window = 0;
  uint32_t packets = 0;  // to be transferred
};

// Packets in a second that arrive for the first time.
inline double ideal_rate(const IdealSpec& spec, uint64_t seed = 1) {
  struct Fate {
    double known_at;
    uint32_t packet;
    bool lost;
  };
  Prng random(seed);
  std::deque<Fate> under_way;
  std::deque<uint32_t> again;
  std::vector<bool> arrived(spec.packets);
  uint32_t oldest = 0, next = 0;
  double now = 0;
  const auto hear = [&](const Fate& fate) {
    if (fate.lost) return again.push_back(fate.packet);
    arrived[fate.packet] = true;
    while (oldest != spec.packets && arrived[oldest]) ++oldest;
  };
  const auto choose = [&](uint32_t* packet) {
    if (!again.empty()) {
      *packet = again.front();
      again.pop_front();
      return true;
    }
    if (next == spec.packets || next - oldest == spec.window) return false;
    *packet = next++;
    return true;
  };
  while (oldest != spec.packets) {
    for (; !under_way.empty() && under_way.front().known_at <= now; under_way.pop_front()) hear(under_way.front());
    uint32_t packet;
    if (choose(&packet)) {
      now += spec.packet_ns;
      under_way.push_back({now + spec.round_trip_ns, packet, random.chance(spec.loss)});
    } else if (!under_way.empty()) {
      now = under_way.front().known_at;
    }
  }
  return spec.packets / now * 1e9;
}

// What it would reach with a load, and with the windows of all its channels together. `without`: what we reach with the
// same load if nothing is lost, which tells how long a packet takes to leave.
inline double ideal_bytes_per_second(const LinkSpec& link, const LoadSpec& load, const LinkResult& without) {
  const uint32_t packets_each = (load.bytes + kLinkMtu - 1) / kLinkMtu;
  return ideal_rate({.packet_ns = without.packet_ns,
                     .round_trip_ns = static_cast<double>(link.round_trip_ns),
                     .loss = link.loss,
                     .window = std::min(load.depth * packets_each, load.queues * kLinkWindow),
                     .packets = load.requests * packets_each}) *
         load.bytes / packets_each;
}

}  // namespace ub::sim
