// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "emu_hw/models/model.h"
#include "emu_hw/rules/marking_loop.h"
#include "emu_hw/rules/window.h"

namespace ub::emu {
namespace {

constexpr double kMostWindow = 1'000'000;  // each packet of which is drawn for

// Of the windows that were seen from time to time.
class Samples {
 public:
  void take(uint64_t step, const WindowRule& rule) {
    windows_.points.emplace_back(static_cast<double>(step), rule.window());
    utilizations_.push_back(rule.utilization());
  }

  PointResult result(const Parameters& p) const {
    PointResult result;
    if (utilizations_.empty()) {
      result.invalid = "no sample was taken; give more operations, or a smaller window_sample";
      return result;
    }
    const auto skipped = static_cast<size_t>(static_cast<double>(utilizations_.size()) * (1 - p.measured_part / 100));
    const size_t first = std::min(skipped, utilizations_.size() - 1);
    double sum = 0;
    for (size_t i = first; i < utilizations_.size(); ++i) sum += utilizations_[i];
    const auto by_window = [](const auto& a, const auto& b) { return a.second < b.second; };
    const auto [least, most] = std::minmax_element(windows_.points.begin(), windows_.points.end(), by_window);
    result.values = {{"utilization_percent", sum / static_cast<double>(utilizations_.size() - first) * 100},
                     {"least_packets", least->second},
                     {"most_packets", most->second}};
    result.curves.push_back(windows_);
    return result;
  }

 private:
  Curve windows_{"window", "packets sent, or round trips", "window, packets", {}};
  std::vector<double> utilizations_;
};

PointResult by_packet(const Parameters& p) {
  WindowRule rule(p);
  Samples samples;
  for (uint64_t packet = 1; packet <= p.operations; ++packet) {
    rule.packet();
    if (packet % p.window_sample == 0) samples.take(packet, rule);
  }
  return samples.result(p);
}

PointResult by_round_trip(const Parameters& p) {
  WindowRule rule(p);
  Samples samples;
  for (uint64_t trip = 0; trip < p.operations; ++trip) {
    if (rule.window() > kMostWindow)
      throw BadPoint("the window grows beyond 1000000 packets; give a smaller window_add");
    samples.take(trip, rule);
    rule.round_trip();
  }
  return samples.result(p);
}

PointResult closed_loop(const Parameters& p) {
  MarkingLoop loop(p);
  for (uint64_t packet = 0; packet < p.operations; ++packet) loop.packet();
  PointResult result;
  result.values = {{"marked_packets", static_cast<double>(loop.marked())},
                   {"window_bytes", static_cast<double>(loop.window_bytes())}};
  return result;
}

}  // namespace

PointResult run_controller(const Point& point) {
  const Parameters& p = point.parameters;
  if (point.stack != "window") throw BadPoint("there is no stack or profile " + point.stack + " of controllers");
  if (p.mark_full < p.mark_from) throw BadPoint("mark_full: is less than mark_from; give at least as much");
  if (point.workload == "packets") return by_packet(p);
  if (point.workload == "round_trips") return by_round_trip(p);
  if (point.workload == "closed_loop") return closed_loop(p);
  throw BadPoint("workload: there is no \"" + point.workload +
                 "\" of controllers; there are packets, round_trips, closed_loop");
}

}  // namespace ub::emu
