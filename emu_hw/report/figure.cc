// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/report/figure.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "emu_hw/experiment/comparison.h"
#include "emu_hw/experiment/figure_name.h"
#include "emu_hw/report/chart.h"
#include "emu_hw/report/number_text.h"
#include "emu_hw/report/palette.h"

namespace ub::emu {
namespace {

// What is before the first dash of a name.
std::string beginning_of(const std::string& name) { return name.substr(0, name.find('-')); }

// The stacks of the paper have the same colours in all figures; other names take those that are left. "dma-off" has the
// colour of "dma", and "wb-25" that of "wb-50".
class Colours {
 public:
  explicit Colours(const std::vector<Series>& series) {
    for (const Series& each : series) ++beginnings_[beginning_of(each.name)];
    for (const Series& each : series) {
      const auto found = kFixed.find(stem_of(each.name));
      if (found != kFixed.end()) taken_[found->first] = found->second;
    }
    for (const Series& each : series) add(stem_of(each.name));
  }
  size_t of(const std::string& name) const { return taken_.at(stem_of(name)); }

 private:
  // The beginning of a name, if several have it or a stack is called so.
  std::string stem_of(const std::string& name) const {
    const std::string beginning = beginning_of(name);
    return beginnings_.at(beginning) > 1 || kFixed.contains(beginning) ? beginning : name;
  }
  void add(const std::string& stem) {
    if (taken_.contains(stem)) return;
    size_t colour = 0;
    while (colour + 1 < kColours && is_taken(colour)) ++colour;
    taken_[stem] = colour;
  }
  bool is_taken(size_t colour) const {
    return std::any_of(taken_.begin(), taken_.end(), [colour](const auto& each) { return each.second == colour; });
  }

  static inline const std::map<std::string, size_t> kFixed = {{"ldst", 0},  {"urma", 2},  {"bf", 3}, {"dma", 1},
                                                              {"iswap", 4}, {"fswap", 5}, {"ub", 0}, {"roce", 1}};
  std::map<std::string, size_t> beginnings_;  // and how many names have them
  std::map<std::string, size_t> taken_;
};

std::string tip_of(const Experiment& e, const Series& series, const ChartPoint& point) {
  std::string tip = series.name + ", " + e.sweep + " " + readable(point.x) + ": " + readable(point.y);
  if (!std::isnan(point.published)) tip += "; published " + readable(point.published);
  return tip;
}

ChartPoint point_of(const Experiment& e, const Series& series, const SeriesResult& result, size_t i) {
  const double published = series.expected.empty() ? std::nan("") : series.expected[i];
  ChartPoint point{e.values[i], measured(e, result.points[i]), published};
  point.tip = tip_of(e, series, point);
  point.is_off = !std::isnan(point.y) && part_of_allowed(e, series, point.y, point.published) > 1;
  return point;
}

// How far the point is off that is furthest.
void note_worst(const Experiment& e, const Series& series, const SeriesResult& result, ChartSeries& drawn) {
  if (result.judgement.verdict != Verdict::kOutOfClass && result.judgement.verdict != Verdict::kExplained) return;
  const Furthest furthest = furthest_of(e, series, result);
  for (ChartPoint& point : drawn.points)
    if (point.x == furthest.at) point.note = percent_text(furthest.percent());
}

Chart chart_of(const Experiment& e, const ExperimentResult& result) {
  Chart chart{e.id + ": " + e.title, title_of_parameter(e.sweep), title_of_measure(e.measure), {}};
  const Colours colours(e.series);
  std::vector<size_t> used;
  for (size_t s = 0; s < e.series.size(); ++s) {
    const Series& series = e.series[s];
    ChartSeries drawn{series.name, colours.of(series.name), 0, {}};
    drawn.dash = static_cast<size_t>(std::count(used.begin(), used.end(), drawn.colour));
    used.push_back(drawn.colour);
    for (size_t i = 0; i < e.values.size(); ++i) drawn.points.push_back(point_of(e, series, result.series[s], i));
    note_worst(e, series, result.series[s], drawn);
    chart.series.push_back(std::move(drawn));
  }
  return chart;
}

// Of which points of each series curves are drawn. More than six in one plot are a tangle: then of the first and the
// last value of the sweep.
std::vector<size_t> points_with_curves(const Experiment& e) {
  constexpr size_t kMostCurves = 6;
  std::vector<size_t> all;
  for (size_t i = 0; i < e.values.size(); ++i) all.push_back(i);
  if (e.series.size() * all.size() <= kMostCurves || all.size() <= 2) return all;
  return {all.front(), all.back()};
}

// Curves of one name, one for each series and value of the sweep.
void add_curves(const Experiment& e, const ExperimentResult& result, std::map<std::string, Chart>& charts) {
  const std::vector<size_t> points = points_with_curves(e);
  for (size_t s = 0; s < e.series.size(); ++s)
    for (const size_t i : points)
      for (const Curve& curve : result.series[s].points[i].curves) {
        Chart& chart = charts[curve.name];
        chart.title = e.id + ": " + curve.name;
        chart.x = curve.x;
        chart.y = curve.y;
        ChartSeries drawn{e.series[s].name, chart.series.size() % kColours, chart.series.size() / kColours, {}};
        if (e.values.size() > 1) drawn.name += ", " + e.sweep + " " + readable(e.values[i]);
        for (const auto& [x, y] : curve.points) drawn.points.push_back({x, y, std::nan("")});
        if (!drawn.points.empty()) chart.series.push_back(std::move(drawn));
      }
}

}  // namespace

std::vector<Figure> figures_of(const Experiment& e, const ExperimentResult& result) {
  std::vector<Figure> figures;
  if (!e.not_reproducible.empty()) return figures;
  figures.push_back({figure_name_of(e.id), drawn(chart_of(e, result))});
  std::map<std::string, Chart> charts;
  add_curves(e, result, charts);
  for (const auto& [name, chart] : charts)
    if (!chart.series.empty()) figures.push_back({figure_name_of(e.id + " " + name), drawn_as_curves(chart)});
  return figures;
}

}  // namespace ub::emu
