// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/report/frame.h"

#include <algorithm>
#include <sstream>

namespace ub::emu {
namespace {

constexpr double kWidth = 680, kPlotHeight = 260;
constexpr double kMargin = 14, kTitleHeight = 30, kLegendLine = 20, kBelowPlot = 50;
constexpr double kTickFont = 11, kFont = 12, kTitleFont = 14.5;  // the title is bold, hence wider
constexpr double kTitleLine = 17;
constexpr double kBetweenLabels = 10;

double width_of_labels(const Scale& scale) {
  double width = 0;
  for (const Tick& tick : scale.ticks()) width = std::max(width, width_of(tick.text, kTickFont));
  return width;
}

std::vector<std::string> names_of(const std::vector<LegendEntry>& entries) {
  std::vector<std::string> names;
  for (const LegendEntry& entry : entries) names.push_back(entry.name);
  return names;
}

double legend_height(const std::vector<LegendEntry>& entries) {
  double height = 0;
  legend_places(names_of(entries), kWidth - 2 * kMargin, &height);
  return height;
}

// Lines of words that fit into the picture.
std::vector<std::string> lines_of(const std::string& title) {
  std::vector<std::string> lines(1);
  std::istringstream words(title);
  for (std::string word; words >> word;) {
    const std::string longer = lines.back().empty() ? word : lines.back() + " " + word;
    if (lines.back().empty() || width_of(longer, kTitleFont) <= kWidth - 2 * kMargin)
      lines.back() = longer;
    else
      lines.push_back(word);
  }
  return lines;
}

double title_height(const std::string& title) {
  return kTitleHeight + static_cast<double>(lines_of(title).size() - 1) * kTitleLine;
}

}  // namespace

std::vector<Svg::Point> legend_places(const std::vector<std::string>& names, double width, double* height) {
  std::vector<Svg::Point> places;
  Svg::Point next{0, 0};
  for (const std::string& name : names) {
    const double entry = kSampleWidth + 8 + width_of(name, kFont) + 18;
    if (next.x > 0 && next.x + entry > width) next = {0, next.y + kLegendLine};
    places.push_back(next);
    next.x += entry;
  }
  *height = names.empty() ? 0 : next.y + kLegendLine;
  return places;
}

Frame::Frame(const Texts& texts, const std::vector<LegendEntry>& legend, Scale x, Scale y)
    : x_(std::move(x)),
      y_(std::move(y)),
      svg_(kWidth, title_height(texts.title) + legend_height(legend) + 8 + kPlotHeight + kBelowPlot, texts.title,
           texts.y + " by " + texts.x) {
  left_ = kMargin + 18 + width_of_labels(y_) + 8;
  right_ = kWidth - kMargin - 6;
  const double title_end = title_height(texts.title);
  top_ = title_end + legend_height(legend) + 8;
  bottom_ = top_ + kPlotHeight;
  double baseline = 19;
  for (const std::string& line : lines_of(texts.title)) {
    svg_.text({kMargin, baseline}, line, "title ink");
    baseline += kTitleLine;
  }
  draw_legend(legend, title_end);
  svg_.rectangle({left_, top_}, right_ - left_, bottom_ - top_, "area");
  draw_y_axis(texts.y);
  draw_x_axis(texts.x);
}

void Frame::draw_legend(const std::vector<LegendEntry>& entries, double y) {
  double height = 0;
  const std::vector<Svg::Point> places = legend_places(names_of(entries), kWidth - 2 * kMargin, &height);
  svg_.begin_group("legend");
  for (size_t i = 0; i < entries.size(); ++i) {
    const Svg::Point middle{kMargin + places[i].x + kSampleWidth / 2, y + places[i].y + 8};
    svg_.begin_group(entries[i].classes);
    entries[i].sample(svg_, middle);
    svg_.end_group();
    svg_.text({middle.x + kSampleWidth / 2 + 8, middle.y + 4}, entries[i].name, "ink");
  }
  svg_.end_group();
}

void Frame::draw_y_axis(const std::string& title) {
  for (const Tick& tick : y_.ticks()) {
    const double y = y_of(tick.value);
    svg_.line({left_, y}, {right_, y}, "grid");
    svg_.text({left_ - 8, y + 4}, tick.text, "pale small tick", Svg::Anchor::kEnd);
  }
  svg_.upright_text({kMargin + 4, (top_ + bottom_) / 2}, title, "ink axis-title");
}

// Labels that would touch their neighbours are left out; the last one is kept.
void Frame::draw_x_axis(const std::string& title) {
  svg_.line({left_, bottom_}, {right_, bottom_}, "axis");
  struct Label {
    double middle, half;
    const Tick* tick;
  };
  std::vector<Label> labels;
  for (const Tick& tick : x_.ticks()) {
    const Label label{x_of(tick.value), width_of(tick.text, kTickFont) / 2, &tick};
    const auto touches = [&](const Label& other) {
      return label.middle - label.half < other.middle + other.half + kBetweenLabels;
    };
    const bool is_last = &tick == &x_.ticks().back();
    while (is_last && labels.size() > 1 && touches(labels.back())) labels.pop_back();
    if (labels.empty() || !touches(labels.back())) labels.push_back(label);
    if (x_.kind() != Scale::Kind::kInSteps) svg_.line({label.middle, bottom_}, {label.middle, bottom_ + 4}, "axis");
  }
  for (const Label& label : labels)
    svg_.text({label.middle, bottom_ + 18}, label.tick->text, "pale small tick", Svg::Anchor::kMiddle);
  svg_.text({(left_ + right_) / 2, bottom_ + 38}, title, "ink axis-title", Svg::Anchor::kMiddle);
}

}  // namespace ub::emu
