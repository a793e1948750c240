// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/report/csv.h"

#include <cmath>

namespace ub::emu {
namespace {

std::string line_of(const std::vector<std::string>& cells) {
  std::string line;
  for (size_t i = 0; i < cells.size(); ++i) line += (i == 0 ? "" : ",") + csv_cell(cells[i]);
  return line + "\n";
}

// For each point of each experiment, in their order.
template <class Function>
void for_each_point(const std::vector<Experiment>& experiments, const std::vector<ExperimentResult>& results,
                    const Function& function) {
  for (size_t e = 0; e < experiments.size(); ++e)
    for (size_t s = 0; s < experiments[e].series.size(); ++s)
      for (size_t i = 0; i < experiments[e].values.size(); ++i)
        function(experiments[e], experiments[e].series[s], results[e].series[s], i);
}

std::string expected_text(const Series& series, size_t i) {
  return series.expected.empty() || std::isnan(series.expected[i]) ? "" : text_of(series.expected[i]);
}

}  // namespace

std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == text.npos) return text;
  std::string cell = "\"";
  for (const char each : text) cell += each == '"' ? std::string("\"\"") : std::string(1, each);
  return cell + "\"";
}

std::string csv_of_values(const std::vector<Experiment>& experiments, const std::vector<ExperimentResult>& results) {
  std::string csv = line_of(
      {"experiment", "series", "stack", "class", "sweep", "x", "measure", "result", "expected", "verdict", "invalid"});
  for_each_point(experiments, results, [&](const Experiment& e, const Series& s, const SeriesResult& result, size_t i) {
    const PointResult& point = result.points[i];
    const auto add = [&](const std::string& measure, const std::string& value) {
      const bool is_compared = measure == e.measure;
      csv += line_of({e.id, s.name, s.stack, std::string(1, static_cast<char>(e.judged_as)), e.sweep,
                      text_of(e.values[i]), measure, value, is_compared ? expected_text(s, i) : "",
                      is_compared ? std::string(name_of(result.judgement.verdict)) : "", point.invalid});
    };
    if (!point.invalid.empty()) add(e.measure, "");
    for (const auto& [measure, value] : point.values) add(measure, text_of(value));
  });
  return csv;
}

std::string csv_of_curves(const std::vector<Experiment>& experiments, const std::vector<ExperimentResult>& results) {
  std::string csv = line_of({"experiment", "series", "sweep", "value", "curve", "x_title", "y_title", "x", "y"});
  for_each_point(experiments, results, [&](const Experiment& e, const Series& s, const SeriesResult& result, size_t i) {
    for (const Curve& curve : result.points[i].curves)
      for (const auto& [x, y] : curve.points)
        csv += line_of(
            {e.id, s.name, e.sweep, text_of(e.values[i]), curve.name, curve.x, curve.y, text_of(x), text_of(y)});
  });
  return csv;
}

}  // namespace ub::emu
