// SPDX-License-Identifier: Apache-2.0
//
// What statistics pages say, as families of metrics for Prometheus. All have the labels `instance`, `pid` and `program`
// of the instance; channels, paths and applications have some more (docs/tools.md).
#pragma once

#include <prometheus/metric_family.h>

#include <vector>

#include "tools/admin/instance_pages.h"

namespace ub::tools {

// Of an instance that is dead there is nothing but that.
// `most_channels`: of each instance. Those beyond are counted by softub_channels_unlisted.
std::vector<prometheus::MetricFamily> metrics_of(const std::vector<Instance>&, size_t unreadable_pages,
                                                 size_t most_channels);

}  // namespace ub::tools
