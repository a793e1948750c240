// SPDX-License-Identifier: Apache-2.0
//
// What the programs of this directory have in common: the command line, who is server and who is client, exit codes.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <softub_far.hpp>
#include <string>

#include "apps/aperture/memory.h"

namespace ub::apps {

// What a client works on.
struct Client {
  Device& device;
  ImportedMemory& memory;
  Place place;
};

struct Program {
  std::string name, purpose, footer;
  uint16_t port = 0;
  uint64_t bytes = 0;                          // that a server offers, unless it is told otherwise
  std::function<void(CLI::App&)> add_options;  // of the client
  std::function<void(const Client&)> run;
};

// The main function: NAME serves, NAME HOST is a client of it, NAME --loopback is both in one process.
int run_program(const Program&, int argc, char** argv);

// An access to the window that cannot be served ends the program with a sentence and an exit code.
void end_on_fault(softub::far_window&);

}  // namespace ub::apps
