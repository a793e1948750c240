// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "emu_hw/experiment/paper_order.h"
#include "emu_hw/report/budget.h"
#include "emu_hw/report/html.h"
#include "emu_hw/report/number_text.h"
#include "emu_hw/report/page_parts.h"
#include "emu_hw/report/page_style.h"
#include "emu_hw/report/palette.h"
#include "emu_hw/report/timeline.h"

namespace ub::emu {
namespace {

// What belongs to one figure or table of the paper: "Figure 26" of F26 and F26-write.
std::string chapter_of(const Experiment& e) {
  if (!has_number_in_paper(e.id)) return "Without a number in the paper";
  std::string number;
  for (size_t i = 1; i < e.id.size() && std::isdigit(static_cast<unsigned char>(e.id[i])) != 0; ++i) number += e.id[i];
  return (e.id[0] == 'F' ? "Figure " : "Table ") + number;
}

std::string contents(const Report& report) {
  std::string html, former;
  for (const Experiment& e : report.experiments) {
    const std::string chapter = chapter_of(e);
    if (chapter != former) html += link("#" + anchor_of(e), chapter) + "\n";
    former = chapter;
  }
  return "<nav>\n" + (report.ledgers.empty() ? "" : link("#round-trip", "A round trip") + "\n") + html + "</nav>\n";
}

std::string chapters(const Report& report) {
  std::string html, former;
  for (size_t e = 0; e < report.experiments.size(); ++e) {
    const std::string chapter = chapter_of(report.experiments[e]);
    if (chapter != former) html += element("h2", chapter);
    former = chapter;
    html += experiment_part(report, e);
  }
  return html;
}

std::string budget_table(const std::vector<LedgerOfStack>& ledgers) {
  std::vector<std::string> columns = {"kind", "part"}, sums = {"", "<b>sum</b>"};
  for (const LedgerOfStack& ledger : ledgers) {
    columns.push_back("#" + ledger.stack + ", ns");
    sums.push_back("<b>" + readable(ledger.sum().ns()) + "</b>");
  }
  Table table(columns);
  for (const BudgetRow& row : budget_of(ledgers)) {
    std::vector<std::string> cells = {escaped(name_of(kind_of(row.part))), escaped(row.part)};
    for (const BudgetRow::Cell& cell : row.cells) {
      const std::string times = cell.count > 1 ? std::to_string(cell.count) + "×, " : "";
      cells.push_back(cell.count == 0 ? "" : times + readable(cell.sum.ns()));
    }
    table.add_row(cells);
  }
  table.add_row(sums);
  return table.html();
}

}  // namespace

std::string round_trip_part(const Report& report) {
  if (report.ledgers.empty()) return "";
  return "<section id=\"round-trip\">\n" + element("h2", "A round trip, step by step") +
         paragraph(
             "Each operation has a ledger: a chain of intervals without gaps, whose sum is its latency. This is "
             "the first read of 64 bytes by each stack; trace.json has the same for Perfetto.") +
         "<figure class=\"wide\" data-figure=\"budget\">\n" + drawn_budget(report.ledgers).element() + "</figure>\n" +
         budget_table(report.ledgers) + "<figure class=\"wide\" data-figure=\"timeline\">\n" +
         drawn_timeline(report.ledgers).element() + "</figure>\n</section>\n";
}

std::string page_of(const Report& report) {
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
         "<title>ub_emu: results beside the paper</title>\n<style>\n" +
         std::string(kPageStyle) + picture_style() + "\n</style>\n</head>\n<body>\n<main>\n" + first_screen(report) +
         contents(report) + round_trip_part(report) + chapters(report) +
         element("footer", "Beside this page: figures/*.svg, values.csv, curves.csv, results.json, trace.json.") +
         "</main>\n</body>\n</html>\n";
}

}  // namespace ub::emu
