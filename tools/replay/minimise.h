// SPDX-License-Identifier: Apache-2.0
//
// Makes a recording smaller: what stays is what belongs to the channels and send queues that somebody names, and to
// those that share packets with them (docs/recording.md).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ub::tools {

struct Wanted {
  std::vector<uint32_t> channels;  // by number
  std::vector<uint32_t> queues;    // by the id of a jetty or JFS
};

// Reads the recording at `from` and writes another one at `to`, which must not exist; says what has stayed. The exit
// status of urma_replay: 0; 2 if it cannot be done, which is said.
int minimise(const std::string& from, const std::string& to, const Wanted&);

}  // namespace ub::tools
