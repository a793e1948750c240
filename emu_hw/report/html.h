// SPDX-License-Identifier: Apache-2.0
//
// Pieces of an HTML page.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "emu_hw/experiment/verdict.h"

namespace ub::emu {

// `content` is HTML already.
std::string element(const std::string& tag, const std::string& content, const std::string& classes = "");
// `text` is not.
std::string paragraph(std::string_view text, const std::string& classes = "");
std::string link(const std::string& to, std::string_view text);
std::string list_of(const std::vector<std::string>& items);

class Table {
 public:
  // Columns whose name begins with '#' have numbers.
  explicit Table(const std::vector<std::string>& columns);
  // Cells are HTML already.
  void add_row(const std::vector<std::string>& cells);
  std::string html() const;

 private:
  std::vector<bool> is_number_;
  std::string head_, rows_;
};

// Its name, in its colour.
std::string verdict_html(Verdict verdict);

}  // namespace ub::emu
