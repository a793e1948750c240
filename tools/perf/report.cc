// SPDX-License-Identifier: Apache-2.0
#include "tools/perf/report.h"

#include <fmt/format.h>

#include <cstdio>
#include <utility>

namespace ub::tools {
namespace {

constexpr double kGbitsPerMib = 8.0 * (1 << 20) / 1e9;

}  // namespace

void print_table_head(const Options& o) {
  if (!o.bandwidth) {
    fmt::print(" {:<10} {:<12} {:>12} {:>12} {:>15} {:>12} {:>14} {:>14} {:>16} {:>17} {:>18}\n", "#bytes",
               "#iterations", "t_min[usec]", "t_max[usec]", "t_typical[usec]", "t_avg[usec]", "t_stdev[usec]",
               "99%[usec]", "99.9%[usec]", "99.99%[usec]", "99.999%[usec]");
  } else {
    const char* unit = o.report_gbits ? "Gb/sec" : "MB/sec";
    fmt::print(" {:<10} {:<14} {:>18} {:>21} {:>16}\n", "#bytes", "#iterations", fmt::format("BW peak[{}]", unit),
               fmt::format("BW average[{}]", unit), "MsgRate[Mpps]");
  }
  std::fflush(stdout);
}

void print_row(const Options& o, const Json& row) {
  auto number = [&](const char* key) { return row.value(key, 0.0); };
  const uint64_t bytes = row.value("bytes", uint64_t{0}), iterations = row.value("iterations", uint64_t{0});
  if (!o.bandwidth) {
    fmt::print(
        " {:<10} {:<12} {:>12.3f} {:>12.3f} {:>15.3f} {:>12.3f} {:>14.3f} {:>14.3f} {:>16.3f} {:>17.3f} "
        "{:>18.3f}\n",
        bytes, iterations, number("t_min_us"), number("t_max_us"), number("t_typical_us"), number("t_avg_us"),
        number("t_stdev_us"), number("p99_us"), number("p99_9_us"), number("p99_99_us"), number("p99_999_us"));
  } else {
    const double unit = o.report_gbits ? kGbitsPerMib : 1;
    fmt::print(" {:<10} {:<14} {:>18.2f} {:>21.2f} {:>16.6f}\n", bytes, iterations, number("bw_peak_mib_s") * unit,
               number("bw_average_mib_s") * unit, number("msg_rate_mpps"));
  }
  std::fflush(stdout);
}

std::string describe_probe(const C2cProbe& p) {
  if (!p.valid) return "unknown (one CPU only)";
  return fmt::format("{:.0f} ns ({}; best {:.0f} ns)", p.median_ns, p.mode(), p.min_ns);
}

Json probe_json(const C2cProbe& p) {
  return {{"valid", p.valid}, {"median_ns", p.median_ns}, {"min_ns", p.min_ns}, {"mode", p.mode()}};
}

std::string transport_between(const softub_transports_t& before, const softub_transports_t& after) {
  // A channel that was made anew counts from 0.
  auto since = [](uint64_t then, uint64_t now) { return now >= then ? now - then : now; };
  std::pair<uint64_t, const char*> most{0, "none"};
  for (const auto& [packets, name] : {std::pair{since(before.rtp, after.rtp), "rtp"},
                                      std::pair{since(before.ctp, after.ctp), "ctp"},
                                      std::pair{since(before.ctp_repeats, after.ctp_repeats), "ctp with repeats"}}) {
    if (packets > most.first) most = {packets, name};
  }
  return most.second;
}

std::string describe_transports(const Json& rows) {
  std::string text;
  for (size_t first = 0, next = 0; first < rows.size(); first = next) {
    const std::string transport = rows[first].value("transport", "none");
    for (next = first + 1; next < rows.size() && rows[next].value("transport", "none") == transport;) ++next;
    if (next - first == rows.size()) return transport;
    text += fmt::format("{}{} ({} to {} bytes)", text.empty() ? "" : ", ", transport,
                        rows[first].value("bytes", uint64_t{0}), rows[next - 1].value("bytes", uint64_t{0}));
  }
  return text;
}

Json sum_of_rows(const Json& a, const Json& b) {
  Json sum = a;
  for (const char* key : {"bw_peak_mib_s", "bw_average_mib_s", "msg_rate_mpps"})
    sum[key] = a.value(key, 0.0) + b.value(key, 0.0);
  sum["iterations"] = a.value("iterations", uint64_t{0}) + b.value("iterations", uint64_t{0});
  return sum;
}

}  // namespace ub::tools
