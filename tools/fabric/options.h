// SPDX-License-Identifier: Apache-2.0
//
// The command line of ub_fabric.
#pragma once

#include <string>
#include <vector>

#include "tools/fabric/config.h"

namespace ub::fabric {

struct Options {
  Config config;
  bool reads_commands = false;  // from the standard input
  bool quiet = false;           // prints no report at the end
  std::string json;             // file of the report; empty: none
  std::string environment_of;   // a NIC, whose environment is all that is wanted
  std::string tell;             // the socket of a running fabric, which is only told the following
  std::vector<std::string> commands;
};

// Ends the program where the command line asks for help or is wrong. Throws ToolError.
Options parse_options(int argc, char** argv);

}  // namespace ub::fabric
