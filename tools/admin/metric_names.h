// SPDX-License-Identifier: Apache-2.0
//
// Counters of a statistics page as metrics of Prometheus: their names, their units and their help texts.
#pragma once

#include <string>
#include <string_view>

namespace ub::tools {

struct CounterMetric {
  std::string name;  // "softub_rx_drop_bad_icrc_total" of "rx.drop.bad_icrc"
  std::string help;
  double unit =
      1;  // a value of the counter in the unit of the metric: 1e-6 for microseconds, since metrics have seconds
};
CounterMetric counter_metric(std::string_view counter);

}  // namespace ub::tools
