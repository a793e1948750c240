// SPDX-License-Identifier: Apache-2.0
//
// Families of metrics in the making: each has its name, type and help text once, and a sample for each set of labels.
#pragma once

#include <prometheus/metric_family.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace ub::tools {

using Labels = std::vector<prometheus::ClientMetric::Label>;

class MetricFamilies {
 public:
  void gauge(const std::string& name, const std::string& help, const Labels& labels, double value) {
    sample(name, help, prometheus::MetricType::Gauge, labels).gauge.value = value;
  }
  void counter(const std::string& name, const std::string& help, const Labels& labels, double value) {
    sample(name, help, prometheus::MetricType::Counter, labels).counter.value = value;
  }
  // In the order in which they were begun. Nothing is left here.
  std::vector<prometheus::MetricFamily> take() { return std::exchange(families_, {}); }

 private:
  prometheus::ClientMetric& sample(const std::string& name, const std::string& help, prometheus::MetricType type,
                                   const Labels& labels) {
    const auto [at, is_new] = index_.try_emplace(name, families_.size());
    if (is_new) families_.push_back({name, help, type, {}});
    prometheus::ClientMetric& made = families_[at->second].metric.emplace_back();
    made.label = labels;
    return made;
  }

  std::vector<prometheus::MetricFamily> families_;
  std::map<std::string, size_t> index_;  // by name
};

}  // namespace ub::tools
