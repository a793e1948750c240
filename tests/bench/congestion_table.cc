// SPDX-License-Identifier: Apache-2.0
//
// Prints what each congestion control of the Core makes of a queue that too many fill (congestion_scenarios.h), in
// virtual time: the same figures on any machine, at each run.
//
//   congestion_table [--json] [--only NAME]... [--plot-data FILE] [--senders N] [--seed N]
//
// NAME is that of a scenario, `incast`, `short` or `small`, or that of an algorithm. FILE gets curves of the incast as
// CSV.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "tests/bench/congestion_scenarios.h"

namespace {

using namespace ub;
using namespace ub::bench;

struct Options {
  std::vector<std::string> only;
  std::string plot_data;
  uint64_t seed = 1;
  uint32_t senders = 16;
  bool json = false;
};

bool is_scenario(const std::string& name) { return name == "incast" || name == "short" || name == "small"; }

bool is_wanted(const Options& o, const std::string& name) {
  const auto of_its_kind = [&](const std::string& n) { return is_scenario(n) == is_scenario(name); };
  return std::none_of(o.only.begin(), o.only.end(), of_its_kind) ||
         std::find(o.only.begin(), o.only.end(), name) != o.only.end();
}

double gigabits(double bits_per_second) { return bits_per_second * 1e-9; }
unsigned long number(uint64_t n) { return static_cast<unsigned long>(n); }

/// Objects of an array, with commas between them.
class Json {
 public:
  explicit Json(bool on) : on_(on) {}
  void object(const char* scenario, const char* algorithm, const Traffic& t) {
    std::printf("%s\n  {\"scenario\": \"%s\", \"algorithm\": \"%s\", ", first_ ? "[" : ",", scenario, algorithm);
    std::printf("\"utilisation\": %.4f, \"goodput_gbps\": %.3f, ", t.utilisation, gigabits(t.goodput));
    std::printf("\"drops\": %lu, \"marks\": %lu, \"again\": %lu, \"needless\": %lu, \"timeouts\": %lu, ",
                number(t.drops), number(t.marks), number(t.again), number(t.needless), number(t.timeouts));
    first_ = false;
  }
  void end() const {
    if (on_) std::printf("%s\n]\n", first_ ? "[" : "");
  }

 private:
  bool on_, first_ = true;
};

// ---- incast -----------------------------------------------------------------------------------------------------

void print_incast_title(uint32_t senders) {
  std::printf("incast: %u senders of 25 Gb/s, 8 WRITEs of 64 KiB under way each, into 100 Gb/s; the last 10 of 20 ms\n",
              senders);
  std::printf(
      "%-10s  busy  goodput  queue mean   p99 KB  fairness  least..most share   drops (before)   marks   again"
      " needless timeouts\n",
      "");
}

void print_incast(const Algorithm& a, const IncastResult& r) {
  const auto [least, most] = std::minmax_element(r.shares.begin(), r.shares.end());
  std::printf("%-10s %5.1f%% %6.2f Gb/s %8.1f %8.1f %9.4f %10.2f..%-6.2f %8lu (%6lu) %7lu %7lu %8lu %8lu\n", a.name,
              100 * r.utilisation, gigabits(r.goodput), r.mean_queue / 1000, r.p99_queue / 1000, r.fairness, *least,
              *most, number(r.drops), number(r.early_drops), number(r.marks), number(r.again), number(r.needless),
              number(r.timeouts));
}

void print_incast_json(Json& json, const Algorithm& a, const IncastResult& r) {
  json.object("incast", a.name, r);
  std::printf(
      "\"early_drops\": %lu, \"mean_queue_kb\": %.2f, \"p99_queue_kb\": %.2f, \"fairness\": %.4f, \"shares\": [",
      number(r.early_drops), r.mean_queue / 1000, r.p99_queue / 1000, r.fairness);
  for (size_t i = 0; i < r.shares.size(); ++i) std::printf("%s%.3f", i == 0 ? "" : ", ", r.shares[i]);
  std::printf("]}");
}

void write_curve(FILE* file, const Algorithm& a, const std::vector<IncastPoint>& curve) {
  for (const IncastPoint& p : curve) {
    std::fprintf(file, "%s,%.0f,%.2f,%.2f,%.3f,%.3f,%.3f,%.2f\n", a.name, p.us, p.window, p.in_flight,
                 gigabits(p.rate_limit), gigabits(p.passed), gigabits(p.first_sender), p.queue / 1000);
  }
}

void incast(const Options& o, const Algorithm& a, Json& json, FILE* plot) {
  if (!is_wanted(o, a.name)) return;
  std::vector<IncastPoint> curve;
  const IncastResult r = run_incast(a, {.senders = o.senders, .seed = o.seed}, plot == nullptr ? nullptr : &curve);
  o.json ? print_incast_json(json, a, r) : print_incast(a, r);
  if (plot != nullptr) write_curve(plot, a, curve);
  std::fflush(stdout);
}

void incast(const Options& o, Json& json, FILE* plot) {
  if (!o.json) print_incast_title(o.senders);
  for (const Algorithm& a : kAlgorithms) incast(o, a, json, plot);
  incast(o, kCaqmWithHints, json, plot);
}

// ---- short ------------------------------------------------------------------------------------------------------

void print_short_title(const ShortResult& alone) {
  std::printf("short: 1000 WRITEs of 16 KiB from 16 hosts, 30 %% of 100 Gb/s, among 4 long senders of 25 Gb/s\n");
  std::printf("%-10s      p50      p99 us    long ones   busy    drops   marks   again timeouts\n", "");
  std::printf("%-10s %8.1f %8.1f\n", "(alone)", alone.p50 / 1000, alone.p99 / 1000);
}

void print_short(const Algorithm& a, const ShortResult& r) {
  std::printf("%-10s %8.1f %8.1f    %6.2f Gb/s %5.1f%% %8lu %7lu %7lu %8lu\n", a.name, r.p50 / 1000, r.p99 / 1000,
              gigabits(r.long_goodput), 100 * r.utilisation, number(r.drops), number(r.marks), number(r.again),
              number(r.timeouts));
}

void print_short_json(Json& json, const char* name, const ShortResult& r) {
  json.object("short", name, r);
  std::printf("\"p50_us\": %.2f, \"p99_us\": %.2f, \"long_goodput_gbps\": %.3f}", r.p50 / 1000, r.p99 / 1000,
              gigabits(r.long_goodput));
}

void short_among_long(const Options& o, Json& json) {
  const ShortResult alone = run_short(kAlgorithms[0], {.long_senders = 0, .seed = o.seed});
  o.json ? print_short_json(json, "alone", alone) : print_short_title(alone);
  for (const Algorithm& a : kAlgorithms) {
    if (!is_wanted(o, a.name)) continue;
    const ShortResult r = run_short(a, {.seed = o.seed});
    o.json ? print_short_json(json, a.name, r) : print_short(a, r);
    std::fflush(stdout);
  }
}

// ---- small ------------------------------------------------------------------------------------------------------

constexpr struct {
  const char* name;
  SmallSpec spec;
} kNetworks[] = {
    {"alone", {.flood = false}}, {"one queue", {.by_class = false}}, {"by class", {.by_class = true}}};

void print_small_title() {
  std::printf("small: 1000 WRITEs of 1 KiB beside 8 of 64 KiB under way, from a host of 25 Gb/s to one of 10 Gb/s\n");
  std::printf("%-10s  alone: p50  p99 us    one queue: p50      p99 us  bulk     by class: p50  p99 us  bulk\n", "");
}

void small_beside_bulk(const Options& o, Json& json) {
  if (!o.json) print_small_title();
  for (const Algorithm& a : kAlgorithms) {
    if (!is_wanted(o, a.name)) continue;
    if (!o.json) std::printf("%-10s", a.name);
    for (const auto& network : kNetworks) {
      SmallSpec spec = network.spec;
      spec.seed = o.seed;
      const ShortResult r = run_small(a, spec);
      if (o.json) {
        json.object("small", a.name, r);
        std::printf("\"network\": \"%s\", \"p50_us\": %.2f, \"p99_us\": %.2f, \"long_goodput_gbps\": %.3f}",
                    network.name, r.p50 / 1000, r.p99 / 1000, gigabits(r.long_goodput));
      } else {
        std::printf(" %10.1f %7.1f", r.p50 / 1000, r.p99 / 1000);
        if (spec.flood) std::printf(" %5.2f Gb/s ", gigabits(r.long_goodput));
      }
    }
    if (!o.json) std::printf("\n");
    std::fflush(stdout);
  }
}

void run(const Options& o, FILE* plot) {
  if (plot != nullptr) {
    std::fprintf(plot,
                 "algorithm,us,window_packets,in_flight_packets,rate_limit_gbps,passed_gbps,first_sender_gbps,"
                 "queue_kb\n");
  }
  Json json(o.json);
  if (is_wanted(o, "incast")) incast(o, json, plot);
  if (is_wanted(o, "short")) short_among_long(o, json);
  if (is_wanted(o, "small")) small_beside_bulk(o, json);
  json.end();
}

std::string fault_of_name(const std::string& name) {
  const bool known = is_scenario(name) || find_algorithm(name.c_str()) != nullptr;
  return known ? "" : "there is no scenario or algorithm " + name;
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  CLI::App app{"What congestion control makes of a queue that too many fill, in virtual time"};
  app.add_flag("--json", o.json, "JSON instead of a table");
  app.add_option("--only", o.only, "these scenarios (incast, short, small) or algorithms, and no others")
      ->check(fault_of_name);
  app.add_option("--plot-data", o.plot_data, "a file that gets curves of the incast: window, rate and queue as CSV");
  app.add_option("--senders", o.senders, "of the incast")->check(CLI::Range(1, 60));
  app.add_option("--seed", o.seed, "of all that is random");
  std::string algorithms = "Algorithms:\n";
  for (const Algorithm& a : kAlgorithms) algorithms += std::string("  ") + a.name + ": " + a.text + "\n";
  app.footer(algorithms + "  " + kCaqmWithHints.name + ": " + kCaqmWithHints.text + ", in the incast\n");
  CLI11_PARSE(app, argc, argv);

  FILE* plot = o.plot_data.empty() ? nullptr : std::fopen(o.plot_data.c_str(), "w");
  if (plot == nullptr && !o.plot_data.empty()) {
    std::perror(o.plot_data.c_str());
    return 1;
  }
  run(o, plot);
  if (plot != nullptr && std::fclose(plot) != 0) {
    std::perror(o.plot_data.c_str());
    return 1;
  }
}
