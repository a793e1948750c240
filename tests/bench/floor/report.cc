// SPDX-License-Identifier: Apache-2.0
//
// A table for people, a JSON object for programs. Round trips in ns.
#include <cstdio>
#include <cstring>

#include "tests/bench/floor/floor.h"
#include "tools/common/percents.h"

namespace ub::floor {
namespace {

struct Percentile {
  const char* name;
  double percent;
};
constexpr Percentile kPercentiles[] = {
    {"p50", 50}, {"p99", 99}, {"p99.9", 99.9}, {"p99.99", 99.99}, {"p99.999", 99.999}};

void print_probe(const char* when, const tools::C2cProbe& probe) {
  if (!probe.valid) {
    printf("core to core %s: not measured\n", when);
    return;
  }
  printf("core to core %s: %.0f ns (best window), %.0f ns (median): %s\n", when, probe.min_ns, probe.median_ns,
         probe.mode());
}

void json_probe(const char* when, const tools::C2cProbe& probe) {
  printf(",\"c2c_%s\":{\"min_ns\":%.1f,\"median_ns\":%.1f,\"mode\":\"%s\"}", when, probe.min_ns, probe.median_ns,
         probe.mode());
}

}  // namespace

void print_table(const Report& report) {
  printf("%s", report.bench.c_str());
  if (report.size_bytes != 0) printf(", %zu bytes", report.size_bytes);
  printf("\n");
  print_probe("before", report.before);
  if (!report.latency.empty()) {
    printf("%-44s %10s %8s", "round trip [ns]", "count", "min");
    for (const Percentile& percentile : kPercentiles) printf(" %8s", percentile.name);
    printf("\n");
  }
  for (const LatencyRow& row : report.latency) {
    const Histogram& histogram = row.round_trip_ns;
    printf("%-44s %10llu %8llu", row.name.c_str(), static_cast<unsigned long long>(histogram.count()),
           static_cast<unsigned long long>(histogram.min()));
    for (const Percentile& percentile : kPercentiles) {
      printf(" %8llu", static_cast<unsigned long long>(histogram.percentile(percentile.percent)));
    }
    printf("\n");
  }
  if (!report.rate.empty()) printf("%-44s %10s %10s %8s\n", "one way", "Gb/s", "Mmsg/s", "lost %");
  for (const RateRow& row : report.rate) {
    printf("%-44s %10.2f %10.3f %8.2f\n", row.name.c_str(), row.gbit_per_s, row.msgs_per_s / 1e6, row.lost_percent);
  }
  print_probe("after ", report.after);
  if (strcmp(report.before.mode(), report.after.mode()) != 0) {
    printf("The distance of the cores changed during the run: compare nothing with these numbers.\n");
  }
}

// The names of rows contain nothing that JSON would have to escape.
void print_json(const Report& report) {
  printf("{\"bench\":\"%s\",\"size_bytes\":%zu", report.bench.c_str(), report.size_bytes);
  json_probe("before", report.before);
  json_probe("after", report.after);
  printf(",\"latency\":[");
  const char* separator = "";
  for (const LatencyRow& row : report.latency) {
    const Histogram& histogram = row.round_trip_ns;
    printf("%s{\"name\":\"%s\",\"count\":%llu,\"min_ns\":%llu,\"mean_ns\":%.1f", separator, row.name.c_str(),
           static_cast<unsigned long long>(histogram.count()), static_cast<unsigned long long>(histogram.min()),
           histogram.mean());
    for (const Percentile& percentile : kPercentiles) {
      printf(",\"%s_ns\":%llu", percentile.name,
             static_cast<unsigned long long>(histogram.percentile(percentile.percent)));
    }
    printf(",\"max_ns\":%llu,\"percentiles_ns\":[", static_cast<unsigned long long>(histogram.max()));
    const char* comma = "";
    for (const double percent : tools::kDrawnPercents) {
      printf("%s[%g,%llu]", comma, percent, static_cast<unsigned long long>(histogram.percentile(percent)));
      comma = ",";
    }
    printf("]}");
    separator = ",";
  }
  printf("],\"rate\":[");
  separator = "";
  for (const RateRow& row : report.rate) {
    printf("%s{\"name\":\"%s\",\"gbit_per_s\":%.3f,\"msgs_per_s\":%.0f,\"lost_percent\":%.3f}", separator,
           row.name.c_str(), row.gbit_per_s, row.msgs_per_s, row.lost_percent);
    separator = ",";
  }
  printf("]}\n");
}

}  // namespace ub::floor
