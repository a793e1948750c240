// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/report/svg.h"

#include <charconv>
#include <cmath>
#include <stdexcept>

#include "emu_hw/report/palette.h"

namespace ub::emu {
namespace {

// In hundredths of a pixel.
std::string number(double value) {
  if (!std::isfinite(value)) throw std::logic_error("a coordinate of a picture is no number");
  char text[64];
  const auto result = std::to_chars(text, text + sizeof text, value, std::chars_format::fixed, 2);
  std::string digits(text, result.ptr);
  digits.erase(digits.find_last_not_of('0') + 1);
  if (digits.back() == '.') digits.pop_back();
  return digits == "-0" ? "0" : digits;
}

std::string attribute(const char* name, double value) { return " " + std::string(name) + "=\"" + number(value) + "\""; }

std::string points_text(const std::vector<Svg::Point>& points) {
  std::string text;
  for (const Svg::Point& point : points) text += (text.empty() ? "" : " ") + number(point.x) + "," + number(point.y);
  return " points=\"" + text + "\"";
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string result;
  for (const char each : text) {
    switch (each) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default:
        result += each;
    }
  }
  return result;
}

Svg::Svg(double width, double height, std::string title, std::string description)
    : width_(width), height_(height), title_(std::move(title)), description_(std::move(description)) {}

void Svg::add(const std::string& tag, const std::string& attributes, std::string_view classes, std::string_view tip) {
  body_ += "<" + tag + " class=\"" + std::string(classes) + "\"" + attributes;
  if (tip.empty())
    body_ += "/>\n";
  else
    body_ += "><title>" + escaped(tip) + "</title></" + tag + ">\n";
}

void Svg::line(Point from, Point to, std::string_view classes) {
  add("line", attribute("x1", from.x) + attribute("y1", from.y) + attribute("x2", to.x) + attribute("y2", to.y),
      classes, "");
}

void Svg::polyline(const std::vector<Point>& points, std::string_view classes) {
  add("polyline", points_text(points), classes, "");
}

void Svg::polygon(const std::vector<Point>& points, std::string_view classes, std::string_view tip) {
  add("polygon", points_text(points), classes, tip);
}

void Svg::circle(Point center, double radius, std::string_view classes, std::string_view tip) {
  add("circle", attribute("cx", center.x) + attribute("cy", center.y) + attribute("r", radius), classes, tip);
}

void Svg::rectangle(Point corner, double width, double height, std::string_view classes, std::string_view tip) {
  add("rect",
      attribute("x", corner.x) + attribute("y", corner.y) + attribute("width", width) + attribute("height", height),
      classes, tip);
}

void Svg::text(Point at, std::string_view text, std::string_view classes, Anchor anchor) {
  constexpr const char* kAnchors[] = {"start", "middle", "end"};
  body_ += "<text class=\"" + std::string(classes) + "\"" + attribute("x", at.x) + attribute("y", at.y) +
           " text-anchor=\"" + kAnchors[static_cast<size_t>(anchor)] + "\">" + escaped(text) + "</text>\n";
}

void Svg::upright_text(Point at, std::string_view text, std::string_view classes) {
  body_ += "<text class=\"" + std::string(classes) + "\" text-anchor=\"middle\" transform=\"translate(" + number(at.x) +
           " " + number(at.y) + ") rotate(-90)\">" + escaped(text) + "</text>\n";
}

void Svg::begin_group(std::string_view classes) { body_ += "<g class=\"" + std::string(classes) + "\">\n"; }

std::string Svg::opening(std::string_view more) const {
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + number(width_) + " " + number(height_) +
         "\" width=\"" + number(width_) + "\" height=\"" + number(height_) + "\" role=\"img\" aria-label=\"" +
         escaped(title_) + "\">\n<desc>" + escaped(description_) + "</desc>\n" + std::string(more);
}

std::string Svg::element() const { return opening("") + body_ + "</svg>\n"; }

std::string Svg::file() const {
  return opening("<style>" + picture_style() + "</style>\n<rect class=\"page\" width=\"100%\" height=\"100%\"/>\n") +
         body_ + "</svg>\n";
}

double width_of(std::string_view text, double font_size) {
  size_t letters = 0;
  for (const char each : text) letters += (each & 0xc0) != 0x80;  // without the further bytes of UTF-8
  return static_cast<double>(letters) * font_size * 0.56;
}

}  // namespace ub::emu
