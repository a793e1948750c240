// SPDX-License-Identifier: Apache-2.0
//
// What the records of this project's Core take, as a pair of Cores with one of each holds them.
#pragma once

#include <cstdint>

#include "emu_hw/profiles/parameters.h"

namespace ub::emu {

struct CoreBytes {
  uint64_t jetty;       // with its send queue
  uint64_t segment;
  uint64_t import;      // of a remote jetty
  uint64_t peer;        // with its channels
  uint64_t connection;  // a RoCE queue pair that serves one READ at a time
};

CoreBytes core_bytes(const Parameters&);

}  // namespace ub::emu
