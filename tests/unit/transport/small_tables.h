// SPDX-License-Identifier: Apache-2.0
// small_tables.h - a configuration with room for a handful of everything.
#pragma once

#include "lib/transport/core_types.h"

namespace ub {

inline CoreConfig small_tables() {
  CoreConfig c;
  c.self = {{}, 1};
  c.max_jfc = c.max_queues = c.max_groups = c.max_segments = c.max_targets = c.max_peers = 8;
  c.max_channels = c.max_links = c.read_jobs = c.kept_packets = 8;
  c.kept_small_packets = 0;  // small ones take large places
  c.first_tassn = 0;
  return c;
}

}  // namespace ub
