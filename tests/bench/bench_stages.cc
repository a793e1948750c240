// SPDX-License-Identifier: Apache-2.0
//
// bench_stages: where the cycles of an operation go, stage by stage (lib/transport/looking/stages.def). The Hosts of
// two Cores look closely and read the CPU's counter at each note; what passed since the note before, on either side, is
// what that stage cost.
//
//   bench_stages [--operation "WRITE 64"] [--window 64] [--icrc] [--count 4096]
//
// No stage overlaps the next one here, as it does without a look. Figures are means without the largest tenth; what
// reading the counter costs is subtracted. Looking is not free, so the sum is above what bench_core prints: compare
// stages with each other.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <numeric>
#include <string>
#include <vector>

#include "tests/bench/exchange.h"
#include "tools/common/probe.h"

namespace ub::bench {
namespace {

using tools::Ticks;

// A stage ends when its instructions are done: else a processor reads its counter before them.
uint64_t ticks_in_order() {
#ifdef __x86_64__
  __builtin_ia32_lfence();
#endif
  return Ticks::now();
}

enum Side { kInitiator, kTarget, kSides };
constexpr const char* kSideNames[kSides] = {"initiator", "target"};

class StagedExchange : public Exchange {
 public:
  using Exchange::Exchange;

  // Cycles from the note before to each one, by side and stage, of so many operations.
  using Samples = std::array<std::vector<uint32_t>, kStageCount>;
  std::array<Samples, kSides> samples;

  void measure(uint64_t ops) {
    listen(pair_.a_node, &initiator_);
    listen(pair_.b_node, &target_);
    last_ = ticks_in_order();
    run(ops);
    pair_.a_node.core.look(false);
    pair_.b_node.core.look(false);
  }

 private:
  struct Ear {
    StagedExchange* exchange;
    Side side;
  };

  void listen(Node& node, Ear* ear) {
    node.host.set_listener([](void* who, const Note& n) { hear(*static_cast<Ear*>(who), n); }, ear);
    node.core.look(true);
  }
  static void hear(const Ear& ear, const Note& note) {
    StagedExchange& e = *ear.exchange;
    const uint64_t now = ticks_in_order();
    e.samples[ear.side][static_cast<uint32_t>(note.stage)].push_back(static_cast<uint32_t>(now - e.last_));
    e.last_ = ticks_in_order();
  }

  Ear initiator_{this, kInitiator}, target_{this, kTarget};
  uint64_t last_ = 0;
};

// The mean of nine tenths, without those in which something else ran: counters may move in steps larger than a stage.
double usual(std::vector<uint32_t>& v) {
  std::sort(v.begin(), v.end());
  const size_t n = (v.size() * 9 + 9) / 10;
  return std::accumulate(v.begin(), v.begin() + static_cast<ptrdiff_t>(n), 0.0) / static_cast<double>(n);
}

double clock_ticks() {
  std::vector<uint32_t> v(10'000);
  for (uint32_t& x : v) {
    const uint64_t start = ticks_in_order();
    x = static_cast<uint32_t>(ticks_in_order() - start);
  }
  return usual(v);
}

void print(StagedExchange& exchange, uint64_t ops) {
  const double clock = clock_ticks();
  const double ns = Ticks::ns_per_tick();
  std::printf("%s, window %u, ICRC %s; %.2f cycles a ns\n", exchange.operation().name, exchange.window(),
              exchange.icrc() ? "on" : "off", 1 / ns);
  std::printf("  %-10s %-24s %10s %10s %10s\n", "side", "until", "notes/op", "cycles", "ns");
  for (uint32_t side = 0; side < kSides; ++side) {
    for (uint32_t stage = 0; stage < kStageCount; ++stage) {
      std::vector<uint32_t>& v = exchange.samples[side][stage];
      if (v.empty()) continue;
      const double cycles = std::max(usual(v) - clock, 0.0);
      std::printf("  %-10s %-24s %10.2f %10.0f %10.1f\n", kSideNames[side], kStageNames[stage] + 1,
                  static_cast<double>(v.size()) / static_cast<double>(ops), cycles, cycles * ns);
    }
  }
}

int measure(const std::string& name, uint32_t window, bool icrc, uint64_t count) {
  const Operation* operation = find_operation(name);
  if (operation == nullptr) {
    std::fprintf(stderr, "bench_stages: no operation \"%s\"\n", name.c_str());
    return 1;
  }
  const uint64_t ops = (count + window - 1) / window * window;
  StagedExchange exchange(*operation, window, icrc);
  exchange.run(2 * window);
  exchange.measure(ops);
  exchange.check();
  print(exchange, ops);
  return 0;
}

}  // namespace
}  // namespace ub::bench

int main(int argc, char** argv) {
  CLI::App app{"What each stage of an operation costs between two Cores, without IO"};
  std::string operation;
  uint32_t window = 64;
  uint64_t count = 4096;
  bool icrc = false;
  app.add_option("--operation", operation,
                 "\"WRITE 64\", ..., \"WRITE 64 SO\", ..., \"RoCE READ 64\"; without: WRITE, READ and SEND");
  app.add_option("--window", window, "operations posted together, at most 64")->check(CLI::Range(1, 64));
  app.add_option("--count", count, "operations")->check(CLI::PositiveNumber);
  app.add_flag("--icrc", icrc, "write and check the ICRC");
  CLI11_PARSE(app, argc, argv);
  if (!operation.empty()) return ub::bench::measure(operation, window, icrc, count);
  for (const char* name : {"WRITE 64", "READ 64", "SEND 64"}) {
    if (const int failed = ub::bench::measure(name, window, icrc, count)) return failed;
  }
  return 0;
}
