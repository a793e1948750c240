// SPDX-License-Identifier: Apache-2.0
//
// A run ends after so much virtual time, as in the reference (rule.runtime_cap). Operations that are under way then do
// not count. So long runs hold fewer operations than were asked for; what is measured of one operation stays the same.
#pragma once

#include <cstdint>

#include "emu_hw/parts/link.h"
#include "emu_hw/profiles/parameters.h"

namespace ub::emu {

inline Time runtime_cap(const Parameters& p, uint64_t operations) {
  if (p.runtime_cap == RuntimeCap::kOff) return {UINT64_MAX};
  const Span serialization = cut_to_nanoseconds(time_of_bytes(p, static_cast<uint32_t>(p.payload)));
  const Span each = whole_nanoseconds(5'000) + p.link_delay * 2 + serialization * 4;
  return {(each * operations + whole_nanoseconds(100'000)).ps};
}

}  // namespace ub::emu
