// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>
#include <cmath>

#include "emu_hw/experiment/comparison.h"
#include "emu_hw/report/html.h"
#include "emu_hw/report/number_text.h"
#include "emu_hw/report/page_parts.h"

namespace ub::emu {
namespace {

const char* meaning_of(Class judged_as) {
  switch (judged_as) {
    case Class::kExact:
      return "class X: within 1 % or 3 ns";
    case Class::kRandom:
      return "class R: within 6 %";
    case Class::kShape:
      return "class S: within 15 %";
    case Class::kFormula:
      return "class F: equal";
  }
  return "";
}

std::string invalid_reason(const Experiment& e, const SeriesResult& result) {
  for (size_t i = 0; i < result.points.size(); ++i)
    if (!result.points[i].invalid.empty()) return "at " + readable(e.values[i]) + ": " + result.points[i].invalid;
  return "";
}

// How far the series is off, at most.
std::string difference_text(const Experiment& e, const Series& series, const SeriesResult& result) {
  if (result.judgement.verdict == Verdict::kInvalid) return invalid_reason(e, result);
  if (series.expected.empty()) return "–";
  const Furthest furthest = furthest_of(e, series, result);
  if (furthest.measured == furthest.expected) return "equal";
  if (furthest.expected == 0) return readable(furthest.measured) + ", not 0, at " + readable(furthest.at);
  return percent_text(furthest.percent()) + " at " + readable(furthest.at) + ": " + readable(furthest.measured) +
         ", not " + readable(furthest.expected);
}

std::string verdicts_html(const Experiment& e, const ExperimentResult& result) {
  Table table({"series", "verdict", "furthest off"});
  for (size_t s = 0; s < e.series.size(); ++s) {
    const Series& series = e.series[s];
    std::string difference = escaped(difference_text(e, series, result.series[s]));
    if (!series.beside.empty()) difference += " <span class=\"why\">beside " + escaped(series.beside) + "</span>";
    if (!series.decided_by.empty()) difference += " <span class=\"why\">by " + escaped(series.decided_by) + "</span>";
    table.add_row({"<span class=\"name\">" + escaped(series.name) + "</span>",
                   verdict_html(result.series[s].judgement.verdict), difference});
  }
  return table.html();
}

// Of series that are out of class or beside others; those that have the same one are named together.
std::string explanations_html(const Experiment& e) {
  std::vector<std::pair<std::string, std::string>> names_of;  // by explanation
  for (const Series& series : e.series) {
    if (series.explanation.empty()) continue;
    const auto is_same = [&](const auto& each) { return each.first == series.explanation; };
    const auto found = std::find_if(names_of.begin(), names_of.end(), is_same);
    if (found == names_of.end())
      names_of.emplace_back(series.explanation, series.name);
    else
      found->second += ", " + series.name;
  }
  std::vector<std::string> items;
  for (const auto& [explanation, names] : names_of)
    items.push_back("<b>" + escaped(names) + "</b>: " + escaped(explanation));
  return items.empty() ? "" : "<div class=\"notes\">" + list_of(items) + "</div>\n";
}

std::string value_text(const Experiment& e, const PointResult& point) {
  return point.invalid.empty() ? readable(measured(e, point)) : "<span class=\"bad\">invalid</span>";
}

std::string values_html(const Experiment& e, const ExperimentResult& result) {
  std::vector<std::string> columns = {"#" + e.sweep};
  for (const Series& series : e.series) {
    columns.push_back("#" + series.name);
    if (!series.expected.empty()) columns.push_back("#published");
  }
  Table table(columns);
  for (size_t i = 0; i < e.values.size(); ++i) {
    std::vector<std::string> cells = {readable(e.values[i])};
    for (size_t s = 0; s < e.series.size(); ++s) {
      cells.push_back(value_text(e, result.series[s].points[i]));
      if (!e.series[s].expected.empty()) cells.push_back(readable(e.series[s].expected[i]));
    }
    table.add_row(cells);
  }
  return "<details><summary>All values, " + escaped(title_of_measure(e.measure)) + "</summary>\n" + table.html() +
         "</details>\n";
}

}  // namespace

std::string anchor_of(const Experiment& e) {
  std::string anchor = "x-";
  for (const char each : e.id) anchor += std::isalnum(static_cast<unsigned char>(each)) != 0 ? each : '-';
  return anchor;
}

std::string experiment_part(const Report& report, size_t experiment) {
  const Experiment& e = report.experiments[experiment];
  std::string html = "<section id=\"" + anchor_of(e) + "\">\n";
  if (!e.not_reproducible.empty())
    return html + element("h3", escaped(e.id + ": " + e.title)) + paragraph("Not here: " + e.not_reproducible, "note") +
           "</section>\n";
  const std::vector<Figure>& figures = report.figures[experiment];
  html += "<div class=\"figure\">\n<div>\n";
  for (const Figure& figure : figures)
    html += "<figure data-figure=\"" + escaped(figure.name) + "\">\n" + figure.svg.element() + "</figure>\n";
  html += "</div>\n<div>\n" + element("h3", escaped(e.id)) + paragraph(meaning_of(e.judged_as), "note");
  if (!e.paper.empty()) html += paragraph(e.paper, "note");
  const ExperimentResult& result = report.results[experiment];
  return html + verdicts_html(e, result) + values_html(e, result) + "</div>\n</div>\n" + explanations_html(e) +
         "</section>\n";
}

}  // namespace ub::emu
