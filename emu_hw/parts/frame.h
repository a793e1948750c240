// SPDX-License-Identifier: Apache-2.0
//
// Frames of the Core, as parts see them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ub::emu {

struct Frame {
  uint32_t link;  // of the node that sends it
  std::vector<std::byte> bytes;
};

// Frames that pass all parts together, in their order.
using Train = std::vector<Frame>;

}  // namespace ub::emu
