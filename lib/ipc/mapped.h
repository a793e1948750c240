// SPDX-License-Identifier: Apache-2.0
// mapped.h - is a range of addresses memory of this process?
#pragma once

#include <cstdint>

namespace ub::ipc {

// Is all of [address, address + length) mapped and readable, and also writable if that is wanted? It reads
// /proc/self/maps, which takes some microseconds for each hundred mappings. If that cannot be read, the answer is yes.
bool is_mapped(uint64_t address, uint64_t length, bool writable);

}  // namespace ub::ipc
