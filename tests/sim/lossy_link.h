// SPDX-License-Identifier: Apache-2.0
//
// How fast two instances are over a link with a rate, a delay and faults, in virtual time: the same figures on any
// machine, at each run.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/sim/options.h"
#include "tests/sim/requests.h"

namespace ub::sim {

struct LinkSpec {
  double gigabits_per_second = 100;
  uint64_t round_trip_ns = 10'000;
  double loss = 0;               // of each packet, in both directions
  uint32_t reorder_packets = 0;  // every second packet is late by up to so many packets of full size
  uint32_t mtu = 4096;
  bool lossless = false;  // the sender need not be careful (cc/flow.h)
};

struct LoadSpec {
  WrOp op = WrOp::kWrite;
  uint32_t bytes = 64;
  uint32_t depth = 1;  // requests that are always outstanding
  uint32_t requests = 10'000;
  uint32_t queues = 1;
};

struct LinkResult {
  double bytes_per_second = 0;  // of payload, between the first tenth of the requests and the last
  uint64_t packets = 0, sent_again_fast = 0, sent_again_late = 0, timeouts = 0, needless = 0;
  std::vector<uint64_t> latencies_ns;  // of each request, sorted
};

// The link's options, for a world of two nodes.
Options options_of(const LinkSpec&);
LinkResult run_over(const LinkSpec&, const LoadSpec&, uint64_t seed = 1);

}  // namespace ub::sim
