// SPDX-License-Identifier: Apache-2.0
//
// What tests/bench/instructions runs under callgrind: one operation over and over between two Cores, nothing else.
//
//   count_core --operation "WRITE 64" --window 64 --icrc off --count 256
//   count_core --facts       the compiler, and bytes of a Core's records for each channel, jetty and queue pair
//
// Collect measured_section() alone; what it calls are the stages (exchange.h). Set-up and two windows are over then.
// How many packets both sides sent in it is printed.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <string>

#include "emu_hw/node/state_rows.h"
#include "tests/bench/exchange.h"

namespace ub::bench {

using emu::Per;
using emu::roce_state_of;
using emu::state_of;
using emu::StateRow;

namespace {

// A call of its own, found by name.
[[gnu::noinline]] void measured_section(Exchange& exchange, uint64_t count) { exchange.run(count); }

uint64_t bytes_each(const std::vector<StateRow>& rows, Per per) {
  uint64_t sum = 0;
  for (const StateRow& row : rows) sum += row.per == per ? row.bytes_each : 0;
  return sum;
}

// Of the compiler its version by whole numbers: what comes behind the point mends bugs.
#ifdef __clang__
constexpr const char* kCompiler = "clang";
constexpr int kCompilerVersion = __clang_major__;
#else
constexpr const char* kCompiler = "gcc";
constexpr int kCompilerVersion = __GNUC__;
#endif

int print_facts() {
  const Exchange exchange(kRoceOperations[0], 1, true);
  const CoreState& s = exchange.state();
  uint64_t channel = 0;
  for (const StateRow& row : state_of(s)) channel += row.name == std::string("channels") ? row.bytes_each : 0;
  std::printf("compiler: %s %d\n", kCompiler, kCompilerVersion);
  std::printf("channel: %llu\n", static_cast<unsigned long long>(channel));
  std::printf("jetty: %llu\n", static_cast<unsigned long long>(bytes_each(state_of(s), Per::kJetty)));
  std::printf("queue pair: %llu\n",
              static_cast<unsigned long long>(bytes_each(roce_state_of(exchange.roce_state(), 1), Per::kConnection)));
  return 0;
}

int run(const std::string& name, uint32_t window, bool icrc, uint64_t count) {
  const Operation* operation = find_operation(name);
  if (operation == nullptr || count % window != 0) {
    std::fprintf(stderr, "count_core: no operation \"%s\", or %llu is no multiple of the window\n", name.c_str(),
                 static_cast<unsigned long long>(count));
    return 1;
  }
  Exchange exchange(*operation, window, icrc);
  exchange.run(2 * window);
  const uint64_t before = exchange.packets();
  measured_section(exchange, count);
  std::printf("packets: %llu\n", static_cast<unsigned long long>(exchange.packets() - before));
  exchange.check();
  return 0;
}

}  // namespace
}  // namespace ub::bench

int main(int argc, char** argv) {
  CLI::App app{"One operation between two Cores, for a profiler"};
  std::string operation, icrc = "off";
  uint32_t window = 1;
  uint64_t count = 256;
  bool facts = false;
  app.add_option("--operation", operation,
                 "\"WRITE 64\", ..., \"WRITE 64 SO\", ..., \"RoCE READ 64\"; exchange.h has them all");
  app.add_option("--window", window, "operations posted together")->check(CLI::Range(1, 64));
  app.add_option("--icrc", icrc, "on or off")->check(CLI::IsMember({"on", "off"}));
  app.add_option("--count", count, "operations, a multiple of the window");
  app.add_flag("--facts", facts, "print the compiler and the sizes of records instead");
  CLI11_PARSE(app, argc, argv);
  if (facts) return ub::bench::print_facts();
  return ub::bench::run(operation, window, icrc == "on", count);
}
