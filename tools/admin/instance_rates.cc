// SPDX-License-Identifier: Apache-2.0
#include "tools/admin/instance_rates.h"

#include <algorithm>
#include <utility>

namespace ub::tools {
namespace {

uint64_t value_of(const StatsReport& r, std::string_view name) {
  const auto found = std::find_if(r.counters.begin(), r.counters.end(), [&](const auto& c) { return c.first == name; });
  return found == r.counters.end() ? 0 : found->second;
}

bool is_same(const Instance& a, const Instance& b) {
  return a.name == b.name && a.report.pid == b.report.pid && a.report.started_ns == b.report.started_ns;
}

double seconds_between(uint64_t from_ns, uint64_t to_ns) {
  return to_ns > from_ns ? static_cast<double>(to_ns - from_ns) / 1e9 : 0;
}

InstanceChange next_change(const InstanceChange& last, Instance now, uint64_t at_ns, double patience_s) {
  InstanceChange next;
  const bool is_renewed = now.report.updates != last.now.report.updates;
  if (is_renewed) {
    next.before = last.now.report;
    const StatsReport& from = next.before;  // one that was never renewed says nothing of when
    next.seconds = seconds_between(std::max(from.updated_ns, from.started_ns), now.report.updated_ns);
  } else if (now.alive && seconds_between(now.report.updated_ns, at_ns) < patience_s) {
    next.before = last.before;
    next.seconds = last.seconds;
  } else {
    next.before = now.report;
    next.seconds = patience_s;
  }
  next.now = std::move(now);
  return next;
}

}  // namespace

double InstanceChange::counter_rate(std::string_view name) const {
  return rate(value_of(now.report, name), value_of(before, name));
}

StatsChannel InstanceChange::channel_before(uint32_t tpn) const {
  const auto found =
      std::find_if(before.channels.begin(), before.channels.end(), [&](const StatsChannel& c) { return c.tpn == tpn; });
  return found == before.channels.end() ? StatsChannel{} : *found;
}

void InstanceRates::take(std::vector<Instance> instances, uint64_t at_ns, double patience_s) {
  std::vector<InstanceChange> next;
  for (Instance& now : instances) {
    const auto last =
        std::find_if(changes_.begin(), changes_.end(), [&](const InstanceChange& c) { return is_same(c.now, now); });
    if (last == changes_.end()) {
      next.emplace_back().now = std::move(now);
    } else {
      next.push_back(next_change(*last, std::move(now), at_ns, patience_s));
    }
  }
  changes_ = std::move(next);
}

}  // namespace ub::tools
