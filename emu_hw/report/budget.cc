// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/report/budget.h"

#include <algorithm>
#include <string>

#include "emu_hw/report/ledger_drawing.h"
#include "emu_hw/report/number_text.h"
#include "emu_hw/report/scale.h"

namespace ub::emu {
namespace {

constexpr double kWidth = 980, kLeft = 76, kRight = kWidth - 76, kTop = 66;
constexpr double kBar = 34, kBetween = 18, kBelow = 52;

// Of a part with what follows its dot: "post_lib" of "cpu.post_lib".
std::string short_name(std::string_view part) {
  const size_t dot = part.find('.');
  std::string name(dot == part.npos ? part : part.substr(dot + 1));
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

}  // namespace

Svg drawn_budget(const std::vector<LedgerOfStack>& ledgers) {
  const double bottom = kTop + static_cast<double>(ledgers.size()) * (kBar + kBetween);
  Svg svg(kWidth, bottom + kBelow, "Budget of a read of 64 bytes", "what each stack is charged for, in its order");
  const Scale scale = Scale::linear({longest_ns(ledgers)});
  const auto x_of = [&](double ns) { return kLeft + scale.part_of(ns) * (kRight - kLeft); };
  svg.text({14, 20}, "Budget of a read of 64 bytes, step by step", "title ink");
  draw_kinds(svg, kinds_of(ledgers), {14, 34});
  svg.rectangle({kLeft, kTop}, kRight - kLeft, bottom - kTop, "area");
  for (const Tick& tick : scale.ticks()) {
    svg.line({x_of(tick.value), kTop}, {x_of(tick.value), bottom}, "grid");
    svg.text({x_of(tick.value), bottom + 18}, tick.text, "pale small tick", Svg::Anchor::kMiddle);
  }
  svg.begin_group("data");
  double y = kTop + kBetween / 2;
  for (const LedgerOfStack& ledger : ledgers) {
    svg.text({kLeft - 10, y + kBar / 2 + 4}, ledger.stack, "ink", Svg::Anchor::kEnd);
    for (size_t i = 0; i < ledger.lines.size(); ++i) {
      const double from = x_of((ledger.begin_of(i) - ledger.begin).ns());
      const double width = x_of((ledger.lines[i].until - ledger.begin).ns()) - from;
      const std::string name = short_name(ledger.lines[i].name.part);
      svg.rectangle({from, y}, width, kBar, "bar cut mark " + colour_of(kind_of(ledger.lines[i].name.part)),
                    tip_of(ledger, i));
      if (width_of(name, 11) + 6 <= width)
        svg.text({from + width / 2, y + kBar / 2 + 4}, name, "within small", Svg::Anchor::kMiddle);
    }
    svg.text({x_of(ledger.sum().ns()) + 8, y + kBar / 2 + 4}, readable(ledger.sum().ns()) + " ns", "ink total");
    y += kBar + kBetween;
  }
  svg.end_group();
  svg.text({(kLeft + kRight) / 2, bottom + 40}, "time since the issue, ns", "ink axis-title", Svg::Anchor::kMiddle);
  svg.upright_text({18, (kTop + bottom) / 2}, "stack", "ink axis-title");
  return svg;
}

std::vector<BudgetRow> budget_of(const std::vector<LedgerOfStack>& ledgers) {
  std::vector<BudgetRow> rows;
  for (size_t stack = 0; stack < ledgers.size(); ++stack)
    for (size_t i = 0; i < ledgers[stack].lines.size(); ++i) {
      const std::string_view part = ledgers[stack].lines[i].name.part;
      auto row = std::find_if(rows.begin(), rows.end(), [&](const BudgetRow& each) { return each.part == part; });
      if (row == rows.end()) row = rows.insert(rows.end(), {std::string(part), {}});
      row->cells.resize(ledgers.size());
      ++row->cells[stack].count;
      row->cells[stack].sum += ledgers[stack].span_of(i);
    }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const BudgetRow& a, const BudgetRow& b) { return kind_of(a.part) < kind_of(b.part); });
  return rows;
}

}  // namespace ub::emu
