// SPDX-License-Identifier: Apache-2.0
#include "tools/ycsb/report.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <ctime>

namespace ub::ycsb {
namespace {

using Json = nlohmann::json;

double us(uint64_t ns) { return static_cast<double>(ns) / 1000; }
double us(double ns) { return ns / 1000; }

double throughput(const PhaseResult& result) {
  return result.seconds > 0 ? static_cast<double>(result.operations) / result.seconds : 0;
}

// "1st", "95th", "99.9th".
std::string ordinal(double number) {
  const std::string digits = fmt::format("{}", number);
  const auto whole = static_cast<int>(number);
  const bool teen = whole % 100 / 10 == 1;
  const char* ending = "th";
  if (!teen && static_cast<double>(whole) == number) {
    ending = whole % 10 == 1 ? "st" : whole % 10 == 2 ? "nd" : whole % 10 == 3 ? "rd" : "th";
  }
  return digits + ending;
}

uint64_t count_of(const Latencies& latencies, Operation operation, Status status) {
  const LatencyHistogram* histogram = latencies.get(operation, status, Clocked::kOperation);
  return histogram == nullptr ? 0 : histogram->count();
}

// fn(operation, status, count) for all that happened.
template <class Fn>
void for_each_return(const Latencies& latencies, Fn fn) {
  for (size_t i = 0; i < kOperations; ++i) {
    for (size_t j = 0; j < kStatuses; ++j) {
      const auto operation = static_cast<Operation>(i);
      const auto status = static_cast<Status>(j);
      if (const uint64_t count = count_of(latencies, operation, status); count > 0) fn(operation, status, count);
    }
  }
}

void print_latencies(const std::string& name, const LatencyHistogram& histogram, const Settings& settings) {
  fmt::print("[{}], Operations, {}\n", name, histogram.count());
  fmt::print("[{}], AverageLatency(us), {:.3f}\n", name, us(histogram.mean()));
  fmt::print("[{}], MinLatency(us), {:.3f}\n", name, us(histogram.min()));
  fmt::print("[{}], MaxLatency(us), {:.3f}\n", name, us(histogram.max()));
  for (const double percent : settings.percentiles) {
    fmt::print("[{}], {}PercentileLatency(us), {:.3f}\n", name, ordinal(percent), us(histogram.percentile(percent)));
  }
}

}  // namespace

void print_status(const Moment& moment, const Latencies& interval, const Settings& settings) {
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  const double rate = moment.interval_s > 0 ? static_cast<double>(moment.of_interval) / moment.interval_s : 0;
  std::string line =
      fmt::format("{:%Y-%m-%d %H:%M:%S} {:.1f} sec: {} operations; {:.1f} current ops/sec;",
                  fmt::gmtime(std::chrono::system_clock::to_time_t(now)), moment.elapsed_s, moment.operations, rate);
  if (moment.total != UINT64_MAX && moment.operations > 0) {
    const double left = static_cast<double>(moment.total - moment.operations);
    const double average = static_cast<double>(moment.operations) / moment.elapsed_s;
    line += fmt::format(" est completion in {:.0f} seconds", left / average);
  }
  for_each_told(interval, settings, [&](const std::string& name, const LatencyHistogram& histogram) {
    line += fmt::format(" [{}: Count={} Max={:.2f} Min={:.2f} Avg={:.2f}", name, histogram.count(), us(histogram.max()),
                        us(histogram.min()), us(histogram.mean()));
    for (const double percent : {90.0, 99.0, 99.9, 99.99}) {
      line += fmt::format(" {}={:.2f}", percent, us(histogram.percentile(percent)));
    }
    line += ']';
  });
  fmt::print(stderr, "{}\n", line);
}

void print_result(const PhaseResult& result, const Settings& settings) {
  fmt::print("[OVERALL], RunTime(ms), {:.3f}\n", result.seconds * 1000);
  fmt::print("[OVERALL], Throughput(ops/sec), {:.3f}\n", throughput(result));
  fmt::print("[GENERATOR], MedianCost(ns), {}\n", result.draw_ns->percentile(50));
  for_each_told(*result.latencies, settings, [&](const std::string& name, const LatencyHistogram& histogram) {
    print_latencies(name, histogram, settings);
  });
  for_each_return(*result.latencies, [](Operation operation, Status status, uint64_t count) {
    fmt::print("[{}], Return={}, {}\n", operation_name(operation), status_name(status), count);
  });
  if (result.checked > 0) {
    fmt::print("[VERIFY], Operations, {}\n", result.checked);
    fmt::print("[VERIFY], Return=OK, {}\n", result.checked - result.wrong);
    if (result.wrong > 0) fmt::print("[VERIFY], Return=UNEXPECTED_STATE, {}\n", result.wrong);
  }
  std::fflush(stdout);
}

Json result_json(const PhaseResult& result, const Settings& settings) {
  Json latencies = Json::object(), returns = Json::object();
  for_each_told(*result.latencies, settings, [&](const std::string& name, const LatencyHistogram& histogram) {
    Json percentiles = Json::object();
    for (const double percent : settings.percentiles) {
      percentiles[fmt::format("{}", percent)] = us(histogram.percentile(percent));
    }
    latencies[name] = {{"operations", histogram.count()},
                       {"average_us", us(histogram.mean())},
                       {"min_us", us(histogram.min())},
                       {"max_us", us(histogram.max())},
                       {"percentiles_us", percentiles}};
  });
  for_each_return(*result.latencies, [&](Operation operation, Status status, uint64_t count) {
    returns[operation_name(operation)][status_name(status)] = count;
  });
  return {{"phase", result.load ? "load" : "run"},
          {"seconds", result.seconds},
          {"operations", result.operations},
          {"throughput", throughput(result)},
          {"generator_median_ns", result.draw_ns->percentile(50)},
          {"latencies", latencies},
          {"returns", returns},
          {"verified", result.checked},
          {"wrong", result.wrong}};
}

}  // namespace ub::ycsb
