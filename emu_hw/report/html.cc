// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/report/html.h"

#include "emu_hw/report/svg.h"

namespace ub::emu {
namespace {

std::string class_attribute(const std::string& classes) { return classes.empty() ? "" : " class=\"" + classes + "\""; }

const char* colour_class(Verdict verdict) {
  switch (verdict) {
    case Verdict::kInClass:
      return "good";
    case Verdict::kExplained:
      return "soso";
    case Verdict::kOutOfClass:
    case Verdict::kInvalid:
      return "bad";
    case Verdict::kNoData:
    case Verdict::kBeside:
    case Verdict::kNotReproducible:
      return "calm";
  }
  return "calm";
}

}  // namespace

std::string element(const std::string& tag, const std::string& content, const std::string& classes) {
  return "<" + tag + class_attribute(classes) + ">" + content + "</" + tag + ">\n";
}

std::string paragraph(std::string_view text, const std::string& classes) {
  return element("p", escaped(text), classes);
}

std::string link(const std::string& to, std::string_view text) {
  return "<a href=\"" + escaped(to) + "\">" + escaped(text) + "</a>";
}

std::string list_of(const std::vector<std::string>& items) {
  std::string html;
  for (const std::string& item : items) html += "<li>" + item + "</li>\n";
  return "<ul>\n" + html + "</ul>\n";
}

Table::Table(const std::vector<std::string>& columns) {
  for (const std::string& column : columns) {
    is_number_.push_back(column.starts_with('#'));
    head_ += "<th" + class_attribute(is_number_.back() ? "n" : "") + ">" +
             escaped(is_number_.back() ? column.substr(1) : column) + "</th>";
  }
}

void Table::add_row(const std::vector<std::string>& cells) {
  rows_ += "<tr>";
  for (size_t i = 0; i < cells.size(); ++i)
    rows_ += "<td" + class_attribute(is_number_[i] ? "n" : "") + ">" + cells[i] + "</td>";
  rows_ += "</tr>\n";
}

std::string Table::html() const {
  return "<div class=\"scroll\"><table>\n<thead><tr>" + head_ + "</tr></thead>\n<tbody>\n" + rows_ +
         "</tbody></table></div>\n";
}

std::string verdict_html(Verdict verdict) {
  return "<span class=\"verdict " + std::string(colour_class(verdict)) + "\">" + std::string(name_of(verdict)) +
         "</span>";
}

}  // namespace ub::emu
