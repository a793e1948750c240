// SPDX-License-Identifier: Apache-2.0
//
// The windows of this process, as others ask about them (softub_map makes them). Thread: any.
#pragma once

#include <cstdint>

namespace ub::aperture {

// Does a window have one of these bytes? A NIC cannot serve them as memory: an access may have to be fetched first.
bool overlaps_window(uint64_t start, uint64_t bytes);

}  // namespace ub::aperture
