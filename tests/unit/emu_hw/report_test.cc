// SPDX-License-Identifier: Apache-2.0
// Pictures, tables and files of the report: ticks, escapes, what is drawn of a result, CSV and the trace.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <regex>

#include "emu_hw/report/budget.h"
#include "emu_hw/report/chart.h"
#include "emu_hw/report/csv.h"
#include "emu_hw/report/figure.h"
#include "emu_hw/report/frame.h"
#include "emu_hw/report/number_text.h"
#include "emu_hw/report/page_parts.h"
#include "emu_hw/report/report.h"
#include "emu_hw/report/scale.h"
#include "emu_hw/report/svg.h"
#include "emu_hw/report/timeline.h"
#include "emu_hw/report/trace.h"
#include "emu_hw/running/json.h"

namespace ub::emu {
namespace {

const double kNone = std::nan("");

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

TEST(NumberText, is_short_and_exact) {
  EXPECT_EQ(readable(757), "757");
  EXPECT_EQ(readable(16253), "16\u202f253");
  EXPECT_EQ(readable(1000), "1000");
  EXPECT_EQ(readable(0.447027), "0.447027");
  EXPECT_EQ(readable(-12.5), "\u221212.5");
  EXPECT_EQ(readable(1339.6204, 4), "1340");
  EXPECT_EQ(readable(kNone), "–");
  EXPECT_EQ(tick_text(65536), "64 Ki");
  EXPECT_EQ(tick_text(1 << 20), "1 Mi");
  EXPECT_EQ(tick_text(2.5e6), "2.5 M");
  EXPECT_EQ(tick_text(1e10), "10 G");
  EXPECT_EQ(tick_text(1e-4), "1e\u22124");
  EXPECT_EQ(tick_text(0.005), "5e\u22123");
  EXPECT_EQ(tick_text(0), "0");
  EXPECT_EQ(percent_text(0), "equal");
  EXPECT_EQ(percent_text(0.001), "< 0.01 %");
  EXPECT_EQ(percent_text(-3.456), "\u22123.46 %");
  EXPECT_EQ(percent_text(12.34), "+12.3 %");
}

TEST(NumberText, names_quantities_with_their_units) {
  EXPECT_EQ(title_of_measure("mean_ns"), "mean latency, ns");
  EXPECT_EQ(title_of_measure("p99_ns"), "latency, 99th percentile, ns");
  EXPECT_EQ(title_of_measure("state_bytes"), "state, bytes");
  EXPECT_EQ(title_of_measure("events"), "events");
  EXPECT_EQ(title_of_parameter("payload"), "payload, bytes");
  EXPECT_EQ(title_of_parameter("active_connections"), "active connections");
}

TEST(Ticks, are_one_two_or_five_times_a_power_of_ten_apart) {
  EXPECT_EQ(linear_ticks(0, 10, 5), (std::vector<double>{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(linear_ticks(0, 3236, 6), (std::vector<double>{0, 1000, 2000, 3000}));
  EXPECT_EQ(linear_ticks(-1, 1, 4), (std::vector<double>{-1, -0.5, 0, 0.5, 1}));
  EXPECT_EQ(linear_ticks(7, 7, 4), (std::vector<double>{7}));
  EXPECT_LE(linear_ticks(1e17, 1e17 + 64, 4).size(), 9u);  // adding 1 to such a number changes nothing
  EXPECT_EQ(logarithmic_ticks(1, 100, 6), (std::vector<double>{1, 2, 5, 10, 20, 50, 100}));
  EXPECT_EQ(logarithmic_ticks(1, 1e4, 6), (std::vector<double>{1, 10, 100, 1000, 1e4}));
  EXPECT_EQ(logarithmic_ticks(1, 1e12, 4), (std::vector<double>{1, 1e3, 1e6, 1e9, 1e12}));
}

TEST(Scale, is_chosen_by_the_values) {
  EXPECT_EQ(Scale::sweep({64}).kind(), Scale::Kind::kInSteps);
  EXPECT_EQ(Scale::sweep({8, 64, 256}).kind(), Scale::Kind::kInSteps);
  EXPECT_EQ(Scale::sweep({8, 64, 256, 1024}).kind(), Scale::Kind::kLogarithmic);
  EXPECT_EQ(Scale::sweep({50, 100, 200, 500}).kind(), Scale::Kind::kLinear);
  EXPECT_EQ(Scale::sweep({0, 1e-4, 1e-3, 1e-2, 1e-1}).kind(), Scale::Kind::kInSteps);
  EXPECT_EQ(Scale::result({500, 3236}).kind(), Scale::Kind::kLinear);
  EXPECT_EQ(Scale::result({62.5, 16253}).kind(), Scale::Kind::kLogarithmic);
  EXPECT_EQ(Scale::result({0, 16253}).kind(), Scale::Kind::kLinear);
}

TEST(Scale, has_room_for_all_values) {
  for (const std::vector<double>& values : {std::vector<double>{500, 3236}, {62.5, 16253}, {0}, {-5, 5}, {1e-9}, {7}}) {
    const Scale scale = Scale::result(values);
    for (const double value : values) {
      EXPECT_GE(scale.part_of(value), 0) << value;
      EXPECT_LE(scale.part_of(value), 1) << value;
    }
    for (const Tick& tick : scale.ticks()) {
      EXPECT_GE(scale.part_of(tick.value), -1e-9) << tick.text;
      EXPECT_LE(scale.part_of(tick.value), 1 + 1e-9) << tick.text;
    }
  }
  EXPECT_EQ(Scale::linear({100}).part_of(0), 0);
  EXPECT_EQ(Scale::in_steps({8, 64}).part_of(8), 0.25);
  EXPECT_EQ(Scale::in_steps({8, 64}).part_of(64), 0.75);
}

TEST(Svg, escapes_what_would_be_markup) {
  EXPECT_EQ(escaped("a<b> & \"c\" 'd'"), "a&lt;b&gt; &amp; &quot;c&quot; &#39;d&#39;");
  Svg svg(100, 50, "<title>", "&");
  svg.text({1, 2}, "</svg><script>", "ink");
  svg.circle({1.005, 2.5}, 3, "mark", "\"tip\"");
  const std::string text = svg.element();
  EXPECT_EQ(text.find("<script>"), text.npos);
  EXPECT_NE(text.find("&lt;/svg&gt;&lt;script&gt;"), text.npos);
  EXPECT_NE(text.find("aria-label=\"&lt;title&gt;\""), text.npos);
  EXPECT_NE(text.find("<title>&quot;tip&quot;</title>"), text.npos);
  EXPECT_NE(text.find("cy=\"2.5\" r=\"3\""), text.npos);
  EXPECT_NE(svg.file().find("<style>"), std::string::npos);
}

TEST(Svg, has_no_coordinates_that_are_no_numbers) {
  Svg svg(100, 50, "", "");
  EXPECT_THROW(svg.circle({kNone, 1}, 1, ""), std::logic_error);
  EXPECT_THROW(svg.line({0, 0}, {std::numeric_limits<double>::infinity(), 1}, ""), std::logic_error);
}

Chart chart_with(std::vector<ChartPoint> points) {
  return {"a title", "payload, bytes", "mean latency, ns", {{"urma", 0, 0, std::move(points)}}};
}

TEST(Chart, has_a_mark_for_each_result_and_a_hollow_one_for_each_published_value) {
  const std::string svg =
      drawn(chart_with({{8, 750, 750}, {64, 757, kNone}, {256, 799, 850, true, "−6 %"}, {1024, 962, 962}})).element();
  EXPECT_EQ(count_of(svg, "class=\"mark\""), 4u + 1);  // with that of the legend
  EXPECT_EQ(count_of(svg, "class=\"hollow\""), 3u + 1);
  EXPECT_EQ(count_of(svg, "class=\"off\""), 1u);
  EXPECT_EQ(count_of(svg, "−6 %"), 1u);
  EXPECT_EQ(count_of(svg, "axis-title"), 2u);
  EXPECT_EQ(count_of(svg, "class=\"legend\""), 1u);
}

TEST(Chart, of_a_short_sweep_has_bars) {
  const std::string svg = drawn(chart_with({{8, 750, 750}, {64, 757, 757}})).element();
  EXPECT_EQ(count_of(svg, "class=\"bar\""), 2u + 1);
  EXPECT_EQ(count_of(svg, "polyline"), 0u);
}

// Everything that is drawn lies in the plot, and what was published does so, too, however far off it is.
TEST(Chart, has_room_for_results_and_for_published_values) {
  const auto number_of = [](const std::string& text, size_t at, const std::string& name) {
    return std::stod(text.substr(text.find(" " + name + "=\"", at) + name.size() + 3));
  };
  for (const double published : {50.0, 7500.0}) {
    const std::vector<ChartPoint> bars = {{8, 750, 750}, {64, 757, published}};
    const std::vector<ChartPoint> line = {{8, 750, 750}, {64, 757, kNone}, {256, 799, published}, {1024, 962, 962}};
    for (const std::vector<ChartPoint>& points : {bars, line}) {
      const std::string svg = drawn(chart_with(points)).element();
      const size_t area = svg.find("class=\"area\"");
      const double top = number_of(svg, area, "y"), bottom = top + number_of(svg, area, "height");
      size_t circles = 0;
      const std::string circle = "<circle class=\"";
      for (size_t at = svg.find(circle, area); at != svg.npos; at = svg.find(circle, at + 1), ++circles) {
        EXPECT_GE(number_of(svg, at, "cy"), top) << published;
        EXPECT_LE(number_of(svg, at, "cy"), bottom) << published;
      }
      EXPECT_GT(circles, 1u);
    }
  }
}

// The line is broken there, and a cross says why.
TEST(Chart, has_no_line_through_an_invalid_point) {
  const std::string svg =
      drawn(chart_with({{1, 5, kNone}, {2, 6, kNone}, {3, kNone, 7}, {4, 8, kNone}, {5, 9, kNone}})).element();
  EXPECT_EQ(count_of(svg, "<polyline"), 2u);
  EXPECT_EQ(count_of(svg, "class=\"cross\""), 2u + 2);
  EXPECT_EQ(count_of(svg, "nan"), 0u);
  EXPECT_NO_THROW(drawn(chart_with({{1, kNone, kNone}})));
  EXPECT_NO_THROW(drawn(chart_with({{1, kNone, kNone}, {2, kNone, kNone}, {3, kNone, kNone}, {4, kNone, kNone}})));
}

TEST(Legend, goes_on_in_the_next_line) {
  double height = 0;
  const auto places = legend_places(std::vector<std::string>(20, "a series"), 300, &height);
  for (size_t i = 1; i < places.size(); ++i) {
    const bool follows = places[i].y == places[i - 1].y && places[i].x > places[i - 1].x + width_of("a series", 12);
    EXPECT_TRUE(follows || (places[i].x == 0 && places[i].y > places[i - 1].y)) << i;
  }
  EXPECT_GT(height, places.back().y);
}

Experiment an_experiment() {
  Experiment e;
  e.id = "F99";
  e.title = "a, \"quoted\" title";
  e.measure = "mean_ns";
  e.sweep = "payload";
  e.values = {8, 64};
  e.series.resize(2);
  e.series[0].name = e.series[0].stack = "urma";
  e.series[0].expected = {750, kNone};
  e.series[1].name = "core, alone";
  return e;
}

ExperimentResult a_result(const Experiment& e) {
  ExperimentResult result;
  result.series.resize(2);
  for (SeriesResult& series : result.series) {
    series.points.resize(2);
    for (PointResult& point : series.points) point.values = {{"mean_ns", 750}, {"mops", 1.5}};
  }
  PointResult& bad = result.series[1].points[1];
  bad.values.clear();
  bad.invalid = "a, b";
  result.series[0].points[0].curves = {{"window", "time, us", "packets", {{0, 1}, {1, 2}}}};
  for (size_t s = 0; s < 2; ++s) result.series[s].judgement = judge(e, e.series[s], measured(e, result.series[s]));
  return result;
}

TEST(Csv, has_a_line_for_each_value) {
  const Experiment e = an_experiment();
  EXPECT_EQ(csv_of_values({e}, {a_result(e)}),
            "experiment,series,stack,class,sweep,x,measure,result,expected,verdict,invalid\n"
            "F99,urma,urma,X,payload,8,mean_ns,750,750,in class,\n"
            "F99,urma,urma,X,payload,8,mops,1.5,,,\n"
            "F99,urma,urma,X,payload,64,mean_ns,750,,in class,\n"
            "F99,urma,urma,X,payload,64,mops,1.5,,,\n"
            "F99,\"core, alone\",,X,payload,8,mean_ns,750,,INVALID,\n"
            "F99,\"core, alone\",,X,payload,8,mops,1.5,,,\n"
            "F99,\"core, alone\",,X,payload,64,mean_ns,,,INVALID,\"a, b\"\n");
  EXPECT_EQ(csv_of_curves({e}, {a_result(e)}),
            "experiment,series,sweep,value,curve,x_title,y_title,x,y\n"
            "F99,urma,payload,8,window,\"time, us\",packets,0,1\n"
            "F99,urma,payload,8,window,\"time, us\",packets,1,2\n");
  EXPECT_EQ(csv_cell("a\"b"), "\"a\"\"b\"");
}

TEST(Figures, are_those_of_the_values_and_of_each_curve) {
  const Experiment e = an_experiment();
  const std::vector<Figure> figures = figures_of(e, a_result(e));
  ASSERT_EQ(figures.size(), 2u);
  EXPECT_EQ(figures[0].name, "f99");
  EXPECT_EQ(figures[1].name, "f99-window");
  EXPECT_EQ(count_of(figures[1].svg.element(), "<polyline"), 1u);
  Experiment none;
  none.not_reproducible = "software has no area";
  EXPECT_TRUE(figures_of(none, {}).empty());
}

// So many series with a curve at each value of the sweep; how many curves are drawn.
size_t curves_drawn(size_t series, size_t values) {
  Experiment e = an_experiment();
  ExperimentResult result;
  e.series.assign(series, {});
  e.values.resize(values);
  for (size_t i = 0; i < values; ++i) e.values[i] = static_cast<double>(i + 1);
  PointResult point;
  point.values = {{"mean_ns", 750}};
  point.curves = {{"window", "time, us", "packets", {{0, 1}, {1, 2}}}};
  result.series.resize(series);
  for (SeriesResult& each : result.series) each.points.assign(values, point);
  return count_of(figures_of(e, result)[1].svg.element(), "<polyline");
}

TEST(Figures, have_curves_of_the_first_and_the_last_value_where_those_of_all_would_be_a_tangle) {
  EXPECT_EQ(curves_drawn(2, 3), 6u);
  EXPECT_EQ(curves_drawn(1, 7), 2u);
  EXPECT_EQ(curves_drawn(2, 4), 4u);
  EXPECT_EQ(curves_drawn(4, 2), 8u);
}

// Colour and dashes of the line of each series, in the order of the series.
std::vector<std::string> looks_of(const std::vector<std::string>& names) {
  Experiment e = an_experiment();
  e.values = {1, 2, 3, 4, 5, 6, 7, 8};
  e.series.assign(names.size(), {});
  for (size_t i = 0; i < names.size(); ++i) e.series[i].name = names[i];
  ExperimentResult result;
  PointResult point;
  point.values = {{"mean_ns", 750}};
  result.series.resize(names.size());
  for (SeriesResult& each : result.series) each.points.assign(e.values.size(), point);
  const std::string svg = figures_of(e, result)[0].svg.element();
  const std::regex line("<g class=\"(c[0-9])\">\\s*<polyline[^>]*class=\"trace([^\"]*)\"");
  std::vector<std::string> looks;
  for (std::sregex_iterator each(svg.begin(), svg.end(), line), end; each != end; ++each)
    looks.push_back((*each)[1].str() + (*each)[2].str());
  return looks;
}

TEST(Figures, have_one_colour_for_a_stack_and_what_is_called_after_it) {
  EXPECT_EQ(looks_of({"ldst", "dma", "dma-off"}), (std::vector<std::string>{"c0", "c1", "c1 v1"}));
}

TEST(Figures, have_one_colour_for_names_that_begin_alike_and_others_for_the_rest) {
  EXPECT_EQ(looks_of({"wb-0", "wb-25", "wt-0", "wt-25", "uc-0", "alone-0"}),
            (std::vector<std::string>{"c0", "c0 v1", "c1", "c1 v1", "c2", "c3"}));
  EXPECT_EQ(looks_of({"other", "ldst"}), (std::vector<std::string>{"c1", "c0"}));
}

// Four values, of which two are out of class.
Experiment one_that_is_off() {
  Experiment e;
  e.id = "F98";
  e.measure = "mean_ns";
  e.sweep = "payload";
  e.values = {8, 64, 256, 1024};
  e.series.resize(2);
  e.series[0].name = "good";
  e.series[1].name = "bad";
  for (Series& series : e.series) series.expected = {500, 500, 500, 500};
  return e;
}
ExperimentResult result_that_is_off(const Experiment& e) {
  ExperimentResult result;
  result.series.resize(2);
  for (size_t s = 0; s < 2; ++s) {
    for (const double ns : s == 0 ? std::vector<double>{500, 500, 500, 500} : std::vector<double>{500, 600, 520, 500})
      result.series[s].points.emplace_back().values = {{"mean_ns", ns}};
    result.series[s].judgement = judge(e, e.series[s], measured(e, result.series[s]));
  }
  return result;
}

TEST(Figures, say_how_far_the_worst_point_is_off) {
  const Experiment e = one_that_is_off();
  const std::string svg = figures_of(e, result_that_is_off(e))[0].svg.element();
  EXPECT_EQ(count_of(svg, "class=\"off\""), 2u);
  EXPECT_EQ(count_of(svg, "+20.0 %"), 1u);
  EXPECT_EQ(count_of(svg, "+4.00 %"), 0u);
}

TEST(Page, names_the_series_that_are_exceptions) {
  const Experiment e = one_that_is_off();
  const std::string page = first_screen({{}, {e}, {result_that_is_off(e)}, {{}}, {}});
  EXPECT_EQ(count_of(page, "bad (+20.0 %)"), 1u);
  EXPECT_EQ(count_of(page, "good"), 0u);
}

const Profiles kProfiles = {{"urma", {"", "UB, work requests", "urma", {}}},
                            {"dma", {"", "RoCE", "roce", {{"inline_limit", "0"}}}}};

TEST(RoundTrip, is_that_of_a_read_of_64_bytes) {
  const std::vector<LedgerOfStack> ledgers = ledgers_of_a_read(kProfiles, {});
  ASSERT_EQ(ledgers.size(), 2u);
  EXPECT_EQ(ledgers[0].sum().ns(), 757);
  EXPECT_EQ(ledgers[1].sum().ns(), 2236);
  EXPECT_EQ(ledgers_of_a_read(kProfiles, {{"link_delay", "200"}})[0].sum().ns(), 957);
}

TEST(RoundTrip, is_not_there_for_a_stack_that_other_values_make_impossible) {
  const Profiles both = {{"ldst", {"", "loads", "ldst", {}}}, {"urma", {"", "UB", "urma", {}}}};
  const std::vector<LedgerOfStack> ledgers = ledgers_of_a_read(both, {{"loss", "link"}});
  ASSERT_EQ(ledgers.size(), 1u);
  EXPECT_EQ(ledgers[0].stack, "urma");
}

TEST(Page, escapes_what_a_file_of_results_says) {
  Report report;
  report.provenance = {"<script>", "<script>", {{"<script>", "<script>"}}, {{"<script>", "<script>"}}};
  report.experiments.resize(1);
  Experiment& e = report.experiments[0];
  e.id = e.title = e.paper = e.sweep = e.measure = "<script>";
  e.values = {1};
  e.series.resize(1);
  e.series[0].name = e.series[0].decided_by = e.series[0].beside = e.series[0].explanation = "<script>";
  report.results.resize(1);
  report.results[0].series.resize(1);
  SeriesResult& series = report.results[0].series[0];
  series.judgement.verdict = Verdict::kInvalid;
  series.points.resize(1);
  series.points[0].invalid = "<script>";
  series.points[0].curves = {{"<script>", "<script>", "<script>", {{1, 2}, {3, 4}}}};
  report.figures.push_back(figures_of(e, report.results[0]));
  report.ledgers = {{"<script>", "<script>", {}, {{{"<script>", 1}, Time{1000}}}}};
  EXPECT_EQ(page_of(report).find("<script"), std::string::npos);
}

TEST(RoundTrip, adds_up_in_its_budget) {
  const std::vector<LedgerOfStack> ledgers = ledgers_of_a_read(kProfiles, {});
  double urma = 0, dma = 0;
  for (const BudgetRow& row : budget_of(ledgers)) {
    urma += row.cells[0].sum.ns();
    dma += row.cells[1].sum.ns();
    if (row.part == "link" || row.part == "nic.pipe") {
      EXPECT_EQ(row.cells[0].count, row.part == "link" ? 2u : 4u);
    }
  }
  EXPECT_EQ(urma, 757);
  EXPECT_EQ(dma, 2236);
}

TEST(RoundTrip, has_all_its_lines_in_the_pictures_and_in_the_trace) {
  const std::vector<LedgerOfStack> ledgers = ledgers_of_a_read(kProfiles, {});
  const size_t lines = ledgers[0].lines.size() + ledgers[1].lines.size();
  EXPECT_EQ(count_of(drawn_budget(ledgers).element(), "bar cut mark"), lines);
  EXPECT_EQ(count_of(drawn_timeline(ledgers).element(), "bar cut mark"), lines);
  const Json trace = Json::parse(trace_of(ledgers));
  size_t events = 0;
  double us = 0;
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    ++events;
    us += event.at("dur").get<double>();
  }
  EXPECT_EQ(events, lines);
  EXPECT_NEAR(us, 2.993, 1e-9);
}

}  // namespace
}  // namespace ub::emu
