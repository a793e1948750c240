// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace ub::roce_perf {

enum class Verb : uint8_t { kWrite, kRead, kSend };

struct Options {
  Verb verb = Verb::kWrite;
  bool bandwidth = false;
  bool to_completion = false;
  std::string name;    // of the test
  std::string server;  // empty: we serve
  uint16_t port = 18516;
  uint32_t size = 64, iterations = 10'000, depth = 64;
  uint32_t reads = 16;
  std::string json_file;

  bool client() const { return !server.empty(); }
  // Each side waits for the other's message, as opposed to for its own completion.
  bool ping_pong() const { return !bandwidth && verb != Verb::kRead && !to_completion; }
};

// Ends the program after --help, and with status 2 after a mistake.
Options parse_options(int argc, char** argv);

}  // namespace ub::roce_perf
