// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/report/chart.h"

#include <algorithm>
#include <cmath>

#include "emu_hw/report/frame.h"
#include "emu_hw/report/marks.h"
#include "emu_hw/report/number_text.h"
#include "emu_hw/report/palette.h"

namespace ub::emu {
namespace {

constexpr double kMark = 3.2, kHollow = 5.6;  // radii
constexpr size_t kFewValues = 3;              // of a sweep: bars
constexpr size_t kVariants = 3;               // of lines, and of bars, that have one colour
constexpr double kTallest = 200;              // bars that are more often as tall as another cannot be read

std::vector<double> values_of_x(const Chart& chart) {
  std::vector<double> values;
  for (const ChartSeries& series : chart.series)
    for (const ChartPoint& point : series.points)
      if (std::find(values.begin(), values.end(), point.x) == values.end()) values.push_back(point.x);
  return values;
}

std::vector<double> values_of_y(const Chart& chart) {
  std::vector<double> values;
  for (const ChartSeries& series : chart.series)
    for (const ChartPoint& point : series.points)
      for (const double value : {point.y, point.published})
        if (!std::isnan(value)) values.push_back(value);
  if (values.empty()) values.push_back(0);  // all are invalid
  return values;
}

bool has(const Chart& chart, bool (*is)(const ChartPoint&)) {
  return std::any_of(chart.series.begin(), chart.series.end(), [is](const ChartSeries& series) {
    return std::any_of(series.points.begin(), series.points.end(), is);
  });
}

std::string colour_class(const ChartSeries& series) { return "c" + std::to_string(series.colour % kColours); }
std::string variant_class(const std::string& of, const ChartSeries& series) {
  return series.dash == 0 ? of : of + " v" + std::to_string(std::min(series.dash, kVariants));
}
std::string trace_class(const ChartSeries& series) { return variant_class("trace", series); }
std::string bar_class(const ChartSeries& series) { return variant_class("bar", series); }

void add_common_entries(const Chart& chart, std::vector<LegendEntry>& entries) {
  if (has(chart, [](const ChartPoint& point) { return !std::isnan(point.published); }))
    entries.push_back(
        {"hollow: published", "c6", [](Svg& svg, Svg::Point middle) { svg.circle(middle, kHollow, "hollow"); }});
  if (has(chart, [](const ChartPoint& point) { return std::isnan(point.y); }))
    entries.push_back({"invalid", "c6", [](Svg& svg, Svg::Point middle) { draw_cross(svg, middle, 4); }});
}

// What is written beside points, and how far they are from what was published.
class Differences {
 public:
  explicit Differences(Frame& frame) : frame_(frame) {}

  void draw(double x, const ChartPoint& point) {
    if (!point.is_off) return;
    const double y = frame_.y_of(point.y), published = frame_.y_of(point.published);
    frame_.svg().line({x, y}, {x, published}, "off");
    if (!point.note.empty()) write({x + 8, (y + published) / 2 + 4}, point.note);
  }

 private:
  static constexpr double kLine = 13;

  // Where it does not lie on another one.
  void write(Svg::Point at, const std::string& note) {
    const double width = width_of(note, 11);
    if (at.x + width > frame_.x_end()) at.x -= 16 + width;
    const auto is_under = [&](const Svg::Point& other) {
      return std::abs(other.x - at.x) < width + 4 && std::abs(other.y - at.y) < kLine;
    };
    while (std::any_of(notes_.begin(), notes_.end(), is_under)) at.y -= kLine;
    notes_.push_back(at);
    frame_.svg().text(at, note, "ink small");
  }

  Frame& frame_;
  std::vector<Svg::Point> notes_;
};

void draw_invalid(Frame& frame, double x) { draw_cross(frame.svg(), {x, frame.bottom() - 6}, 4); }

// ---- lines --------------------------------------------------------------------------------------------------------
class Lines {
 public:
  explicit Lines(const Chart& chart)
      : chart_(chart),
        frame_({chart.title, chart.x, chart.y}, legend(), Scale::sweep(values_of_x(chart)),
               Scale::result(values_of_y(chart))) {}

  Svg draw() {
    frame_.svg().begin_group("data");
    for (const ChartSeries& series : chart_.series) draw_trace(series);
    for (size_t i = 0; i < chart_.series.size(); ++i) draw_marks(chart_.series[i], shape_of(i));
    frame_.svg().end_group();
    return frame_.svg();
  }

 private:
  std::vector<LegendEntry> legend() const {
    std::vector<LegendEntry> entries;
    for (size_t i = 0; i < chart_.series.size(); ++i) {
      const std::string trace = trace_class(chart_.series[i]);
      const auto draw_sample = [i, trace](Svg& svg, Svg::Point middle) {
        svg.line({middle.x - kSampleWidth / 2, middle.y}, {middle.x + kSampleWidth / 2, middle.y}, trace);
        draw_mark(svg, shape_of(i), middle, kMark, "mark");
      };
      entries.push_back({chart_.series[i].name, colour_class(chart_.series[i]), draw_sample});
    }
    add_common_entries(chart_, entries);
    return entries;
  }
  // It is broken where a point is invalid.
  void draw_trace(const ChartSeries& series) {
    std::vector<Svg::Point> run;
    const auto end_run = [&] {
      if (run.size() > 1) frame_.svg().polyline(run, trace_class(series));
      run.clear();
    };
    frame_.svg().begin_group(colour_class(series));
    for (const ChartPoint& point : series.points) {
      if (std::isnan(point.y))
        end_run();
      else
        run.push_back(frame_.at(point.x, point.y));
    }
    end_run();
    frame_.svg().end_group();
  }
  void draw_marks(const ChartSeries& series, Shape shape) {
    frame_.svg().begin_group(colour_class(series));
    for (const ChartPoint& point : series.points) {
      const double x = frame_.x_of(point.x);
      if (!std::isnan(point.published))
        draw_mark(frame_.svg(), shape, frame_.at(point.x, point.published), kHollow, "hollow");
      if (std::isnan(point.y)) {
        draw_invalid(frame_, x);
        continue;
      }
      differences_.draw(x, point);
      draw_mark(frame_.svg(), shape, frame_.at(point.x, point.y), kMark, "mark", point.tip);
    }
    frame_.svg().end_group();
  }

  const Chart& chart_;
  Frame frame_;
  Differences differences_{frame_};
};

// ---- bars ---------------------------------------------------------------------------------------------------------
class Bars {
 public:
  explicit Bars(const Chart& chart)
      : chart_(chart),
        frame_({chart.title, chart.x, chart.y}, legend(), Scale::in_steps(values_of_x(chart)),
               Scale::linear(values_of_y(chart))),
        step_(std::min(kWidest, 0.8 * frame_.width() / static_cast<double>(values_of_x(chart).size()) /
                                    static_cast<double>(chart.series.size()))) {}

  Svg draw() {
    frame_.svg().begin_group("data");
    for (size_t i = 0; i < chart_.series.size(); ++i) {
      frame_.svg().begin_group(colour_class(chart_.series[i]));
      for (const ChartPoint& point : chart_.series[i].points) draw_bar(i, point);
      frame_.svg().end_group();
    }
    frame_.svg().end_group();
    return frame_.svg();
  }

 private:
  static constexpr double kWidest = 64;

  std::vector<LegendEntry> legend() const {
    std::vector<LegendEntry> entries;
    for (const ChartSeries& series : chart_.series)
      entries.push_back({series.name, colour_class(series), [bar = bar_class(series)](Svg& svg, Svg::Point middle) {
                           svg.rectangle({middle.x - 8, middle.y - 6}, 16, 12, bar);
                         }});
    add_common_entries(chart_, entries);
    return entries;
  }
  void draw_bar(size_t series, const ChartPoint& point) {
    Svg& svg = frame_.svg();
    const double all = step_ * static_cast<double>(chart_.series.size());
    const double left = frame_.x_of(point.x) - all / 2 + step_ * static_cast<double>(series);
    const double middle = left + step_ / 2, zero = frame_.y_of(0);
    if (std::isnan(point.y)) return draw_invalid(frame_, middle);
    const double y = frame_.y_of(point.y);
    svg.rectangle({left + 1.5, std::min(y, zero)}, step_ - 3, std::abs(zero - y), bar_class(chart_.series[series]),
                  point.tip);
    double top = std::min(y, zero);
    if (!std::isnan(point.published)) {
      const double published = frame_.y_of(point.published);
      top = std::min(top, published - kHollow);
      svg.circle({middle, published}, kHollow, "hollow over");
    }
    differences_.draw(middle, point);
    for (const int digits : {4, 3}) {  // as many as there is room for
      const std::string value = readable(point.y, digits);
      if (width_of(value, 11) > step_ + 4) continue;
      return svg.text({middle, top - 5}, value, "ink small value", Svg::Anchor::kMiddle);
    }
  }

  const Chart& chart_;
  Frame frame_;
  Differences differences_{frame_};
  const double step_;  // from one bar to the next
};

bool can_have_bars(const Chart& chart) {
  if (values_of_x(chart).size() > kFewValues) return false;
  const std::vector<double> values = values_of_y(chart);
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  return *least <= 0 || *most <= kTallest * *least;
}

}  // namespace

Svg drawn(const Chart& chart) { return can_have_bars(chart) ? Bars(chart).draw() : Lines(chart).draw(); }

Svg drawn_as_curves(const Chart& chart) {
  std::vector<LegendEntry> legend;
  for (const ChartSeries& series : chart.series)
    legend.push_back(
        {series.name, colour_class(series), [trace = trace_class(series)](Svg& svg, Svg::Point middle) {
           svg.line({middle.x - kSampleWidth / 2, middle.y}, {middle.x + kSampleWidth / 2, middle.y}, trace);
         }});
  Frame frame({chart.title, chart.x, chart.y}, legend, Scale::course(values_of_x(chart)),
              Scale::result(values_of_y(chart)));
  frame.svg().begin_group("data");
  for (const ChartSeries& series : chart.series) {
    std::vector<Svg::Point> points;
    for (const ChartPoint& point : series.points) points.push_back(frame.at(point.x, point.y));
    frame.svg().begin_group(colour_class(series));
    frame.svg().polyline(points, trace_class(series) + " thin");
    frame.svg().end_group();
  }
  frame.svg().end_group();
  return frame.svg();
}

}  // namespace ub::emu
