// SPDX-License-Identifier: Apache-2.0
//
// How fast two instances are over a link with a rate, a delay and faults, in virtual time: the same figures on any
// machine, at each run. No congestion control heeds the losses, unless that is asked for.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/sim/requests.h"

namespace ub::sim {

constexpr uint32_t kLinkMtu = 4096;
constexpr uint32_t kLinkWindow = 2048;  // packets

struct LinkSpec {
  double gigabits_per_second = 100;
  uint64_t round_trip_ns = 10'000;
  uint64_t port_ns = 1000;       // for so long the port takes packets ahead of the link, in whose queue they wait
  double loss = 0;               // of each packet, in both directions
  uint32_t reorder_packets = 0;  // every second packet is overtaken by up to so many
  bool go_back_n = false;        // both ends
  bool loss_window = false;      // losses halve the window
};

struct LoadSpec {
  WrOp op = WrOp::kWrite;
  uint32_t bytes = 64;
  uint32_t depth = 1;  // requests that are always under way, of all queues together
  uint32_t requests = 10'000;
  uint32_t queues = 1;
};

struct LinkResult {
  double bytes_per_second = 0;  // of payload
  double link_share = 0;        // of the time in which the link was busy in the direction of the payload
  double packet_ns = 0;         // how long the link was busy for each data packet, with what else leaves beside it
  uint64_t packets = 0;  // with payload, each counted once
  uint64_t sent_again = 0, probes = 0, timeouts = 0, needless = 0;  // of both directions
  std::vector<uint64_t> latencies_ns;  // of each request, sorted

  uint64_t latency_ns(double share) const;  // so large a share of them is not longer
};

LinkResult run_over(const LinkSpec&, const LoadSpec&, uint64_t seed = 1);

// Two queues of one node share the link for 2 ms, and each has its `depth` of requests under way all the time. Returns
// the first one's share of the payload.
double share_of_first(const LinkSpec&, const LoadSpec& first, const LoadSpec& second, uint64_t seed = 1);

}  // namespace ub::sim
