// SPDX-License-Identifier: Apache-2.0
//
// A part of a test's memory as a segment that the NIC reaches by itself.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/transport/core_types.h"

namespace ub {

// `memory`: its first byte, which peers name `base`.
inline SegmentConfig direct_segment(std::byte* memory, uint64_t base, uint64_t offset, uint64_t bytes, uint8_t access) {
  SegmentConfig config;
  config.memory = memory + offset;
  config.address = config.local_address = base + offset;
  config.length = bytes;
  config.access = access;
  config.direct = true;
  return config;
}

}  // namespace ub
