// SPDX-License-Identifier: Apache-2.0
//
// The server of -db tcp: a map in memory, and a thread for each connection.
#pragma once

#include <cstdint>

#include "tools/ycsb/stores/byte_stream.h"

namespace ub::ycsb {

// Serves until somebody stops the program. ToolError if the port cannot be had; 0: any free one.
void serve_tcp(uint16_t port, Wait wait);

}  // namespace ub::ycsb
