// SPDX-License-Identifier: Apache-2.0
//
// Prints what several paths of a channel make of a network that has them (path_scenarios.h), in virtual time: the same
// figures on any machine, at each run.
//
//   path_table [--json] [--paths N] [--window PACKETS] [--jitter NS] [--seed N] [--plot-data FILE]
//
// FILE gets the goodput over time as CSV, while a path is slow and later cut (path_curve()).
#include <CLI/CLI.hpp>

#include <cstdio>
#include <string>

#include "lib/transport/tp/path.h"
#include "tests/bench/path_scenarios.h"

namespace {

using namespace ub;
using namespace ub::bench;

double gigabits(double bits_per_second) { return bits_per_second * 1e-9; }
double us(Duration d) { return static_cast<double>(d.ns) / 1000; }
unsigned long number(uint64_t n) { return static_cast<unsigned long>(n); }

void print(const Algorithm& a, const PathResult& r, double ideal) {
  std::printf("%-10s %6.2f (%5.1f%%) %7.2f (%5.1f%%) %7.2f %7.2f (%5.1f%%) %7.2f %8.1f %7.1f %6.1f %6lu %6lu %6lu\n",
              a.name, gigabits(r.whole), 100 * r.whole / ideal, gigabits(r.degraded), 100 * r.degraded / r.whole,
              gigabits(r.degraded_healed), gigabits(r.cut), 100 * r.cut / r.whole, gigabits(r.cut_healed),
              us(r.round_trip), us(r.stall), us(r.stall) / us(r.round_trip), number(r.again), number(r.deaths),
              number(r.lives));
}

void print_json(const Algorithm& a, const PathResult& r, double ideal, bool first) {
  std::printf("%s\n  {\"algorithm\": \"%s\", \"gbps\": %.3f, \"of_one_path\": %.4f, \"degraded_gbps\": %.3f, ",
              first ? "[" : ",", a.name, gigabits(r.whole), r.whole / ideal, gigabits(r.degraded));
  std::printf("\"degraded_healed_gbps\": %.3f, \"cut_gbps\": %.3f, \"cut_healed_gbps\": %.3f, ",
              gigabits(r.degraded_healed), gigabits(r.cut), gigabits(r.cut_healed));
  std::printf("\"round_trip_us\": %.1f, \"stall_us\": %.1f, \"again\": %lu, \"deaths\": %lu, \"lives\": %lu}",
              us(r.round_trip), us(r.stall), number(r.again), number(r.deaths), number(r.lives));
}

void print_title(const PathSpec& spec) {
  std::printf("%u paths with 100 Gb/s together, WRITEs of 64 KiB, a window of %u packets; a path has %zu bytes,\n",
              spec.paths, spec.window, sizeof(tp::Path));
  std::printf("and a channel with several %zu besides. Of one path: the share of what one path of 100 Gb/s reaches.\n",
              sizeof(tp::PathBlock));
  std::printf("%-10s Gb/s (of one path) one at 1/10 (kept)  healed  one cut (kept)  healed  rtt, us   stall in rtts"
              "  again deaths  lives\n", "");
}

bool write_curves(const char* name, const PathSpec& spec) {
  FILE* file = std::fopen(name, "w");
  if (file == nullptr) return false;
  std::fprintf(file, "algorithm,us,gbps\n");
  for (const Algorithm& a : kAlgorithms) {
    for (const PathPoint& p : path_curve(a, spec))
      std::fprintf(file, "%s,%.0f,%.3f\n", a.name, us(p.at), gigabits(p.bits_per_second));
  }
  return std::fclose(file) == 0;
}

}  // namespace

int main(int argc, char** argv) {
  PathSpec spec;
  bool json = false;
  int64_t jitter_ns = 0;
  CLI::App app("What several paths of a channel make of a network that has them, in virtual time");
  app.add_flag("--json", json, "JSON instead of a table");
  app.add_option("--paths", spec.paths, "how many")->check(CLI::Range(1, 64));
  app.add_option("--window", spec.window, "packets in flight of the channel, at most")
      ->check(CLI::IsMember({128, 256, 512, 1024, 2048}));
  app.add_option("--jitter", jitter_ns, "ns by which each packet may be later, on each path for itself");
  app.add_option("--seed", spec.seed, "of all that is random");
  std::string plot_data;
  app.add_option("--plot-data", plot_data, "a file that gets the goodput over time as CSV, for 2 paths or more");
  CLI11_PARSE(app, argc, argv);
  spec.jitter = nanoseconds(jitter_ns);
  if (!plot_data.empty() && spec.paths > 1 && !write_curves(plot_data.c_str(), spec)) {
    std::perror(plot_data.c_str());
    return 1;
  }
  if (!json) print_title(spec);
  bool first = true;
  for (const Algorithm& a : kAlgorithms) {
    PathSpec one = spec;
    one.paths = 1;
    one.jitter = {};
    const double ideal = run_paths(a, one).whole;
    const PathResult r = run_paths(a, spec);
    json ? print_json(a, r, ideal, first) : print(a, r, ideal);
    first = false;
  }
  if (json) std::printf("\n]\n");
  return 0;
}
