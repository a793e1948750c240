// SPDX-License-Identifier: Apache-2.0
#include "tools/admin/metric_names.h"

#include <fmt/format.h>

#include <algorithm>

#include "tools/admin/counter_texts.h"

namespace ub::tools {
namespace {

struct TimeUnit {
  std::string_view suffix, word;
  double seconds;
};
constexpr TimeUnit kTimeUnits[] = {
    {"_ns", "nanoseconds", 1e-9}, {"_us", "microseconds", 1e-6}, {"_ms", "milliseconds", 1e-3}};

bool is_legal(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

}  // namespace

CounterMetric counter_metric(std::string_view counter) {
  CounterMetric m;
  std::string stem(counter), text = counter_text(counter);
  if (text.empty()) text = "a counter that this build of urma_admin does not know";
  for (const TimeUnit& unit : kTimeUnits) {
    if (!stem.ends_with(unit.suffix)) continue;
    stem.replace(stem.size() - unit.suffix.size(), unit.suffix.size(), "_seconds");
    if (const size_t at = text.find(unit.word); at != std::string::npos) text.replace(at, unit.word.size(), "seconds");
    m.unit = unit.seconds;
  }
  std::replace_if(
      stem.begin(), stem.end(), [](char c) { return !is_legal(c); }, '_');
  m.name = fmt::format("softub_{}_total", stem);
  m.help = fmt::format("{} ({})", text, counter);
  return m;
}

}  // namespace ub::tools
