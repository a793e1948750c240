// SPDX-License-Identifier: Apache-2.0
//
// Command line of urma_ycsb: that of YCSB-cpp, with its words that begin with one dash.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/ycsb/properties.h"

namespace ub::ycsb {

struct Options {
  bool load = false, run = false;
  std::optional<uint16_t> serve_tcp;  // be the server of -db tcp, on this port
  bool serve_busy = false;
  std::string store;
  bool status = false;
  std::string json_file;
  Properties properties;  // those of -P in their order, then -p, then what flags say
};

// Nothing: the program is done (help, version, mistake), with `*exit_code`.
// ToolError: a file of -P cannot be read, or -p is wrong.
std::optional<Options> parse_options(int argc, char** argv, int* exit_code);

}  // namespace ub::ycsb
