// SPDX-License-Identifier: Apache-2.0
// memory.h - the memory that a test sends from and that its peer reaches, of the kind that the options ask for.
#pragma once

#include <cstdint>

#include "tools/perf/options.h"

namespace ub::tools {

// Zeroed, from a page on. After urma_init. ToolError: there is none.
uint8_t* take_memory(const Options& options, uint64_t bytes);
void give_memory(const Options& options, uint8_t* memory);

}  // namespace ub::tools
