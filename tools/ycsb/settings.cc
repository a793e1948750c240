// SPDX-License-Identifier: Apache-2.0
#include "tools/ycsb/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "tools/common/tool_error.h"

namespace ub::ycsb {
namespace {

std::vector<double> read_percentiles(const Properties& p) {
  const std::string list = p.text("hdrhistogram.percentiles", "50,95,99,99.9");
  std::vector<double> percentiles;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t comma = std::min(list.find(',', begin), list.size());
    const size_t first = list.find_first_not_of(' ', begin);
    double percent = 0;
    const char* end = list.data() + comma;
    const auto [stop, error] = std::from_chars(list.data() + std::min(first, comma), end, percent);
    const bool whole = error == std::errc() && std::all_of(stop, end, [](char c) { return c == ' '; });
    if (!whole || !(percent > 0 && percent <= 100)) {
      throw tools::ToolError(tools::kExitUsage, fmt::format("{}: it must be numbers above 0 and up to 100, with commas",
                                                            p.describe("hdrhistogram.percentiles")));
    }
    percentiles.push_back(percent);
    begin = comma + 1;
  }
  std::sort(percentiles.begin(), percentiles.end());
  return percentiles;
}

}  // namespace

Settings read_settings(const Properties& p) {
  Settings s;
  s.threads = static_cast<uint32_t>(p.number("threadcount", 1, 1, 1024));
  s.window = static_cast<uint32_t>(p.number("window", 16, 1, 4096));
  s.target = p.real("target", 0, 0, 1e9);
  s.max_seconds = p.number("maxexecutiontime", 0, 0, 1'000'000);
  // Both names stand for the histograms that are here.
  p.choice("measurementtype", "hdrhistogram", {"hdrhistogram", "histogram"});
  const std::string interval =
      p.choice("measurement.interval", s.target > 0 ? "both" : "op", {"op", "intended", "both"});
  s.operation_latency = interval != "intended";
  s.intended_latency = interval != "op";
  s.percentiles = read_percentiles(p);
  s.status_interval_s = p.real("status.interval", 10, 0.1, 86400);
  s.write_logs = p.flag("hdrhistogram.fileoutput", false);
  s.log_path = p.text("hdrhistogram.output.path", "");
  return s;
}

}  // namespace ub::ycsb
