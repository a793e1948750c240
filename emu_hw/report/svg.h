// SPDX-License-Identifier: Apache-2.0
//
// A picture as SVG, element by element. What an element looks like, its classes say (palette.h), so that a picture is
// readable on light and on dark pages.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ub::emu {

// For text and for attributes of XML and HTML.
std::string escaped(std::string_view text);

class Svg {
 public:
  struct Point {
    double x, y;
  };
  enum class Anchor { kStart, kMiddle, kEnd };

  // `title` and `description` are for those who cannot see it.
  Svg(double width, double height, std::string title, std::string description);

  void line(Point from, Point to, std::string_view classes);
  void polyline(const std::vector<Point>& points, std::string_view classes);
  // `tip`: shown when a pointer rests on it; may be empty.
  void polygon(const std::vector<Point>& points, std::string_view classes, std::string_view tip = "");
  void circle(Point center, double radius, std::string_view classes, std::string_view tip = "");
  void rectangle(Point corner, double width, double height, std::string_view classes, std::string_view tip = "");
  void text(Point at, std::string_view text, std::string_view classes, Anchor anchor = Anchor::kStart);
  // From below upwards, with its middle there.
  void upright_text(Point at, std::string_view text, std::string_view classes);
  // Elements up to end_group() belong together.
  void begin_group(std::string_view classes);
  void end_group() { body_ += "</g>\n"; }

  double width() const { return width_; }
  double height() const { return height_; }
  // An element for an HTML page.
  std::string element() const;
  // A file of its own, with the styles in it.
  std::string file() const;

 private:
  std::string opening(std::string_view more) const;
  void add(const std::string& tag, const std::string& attributes, std::string_view classes, std::string_view tip);

  const double width_, height_;
  const std::string title_, description_;
  std::string body_;
};

// About so wide is a text in a font of that many pixels.
double width_of(std::string_view text, double font_size);

}  // namespace ub::emu
