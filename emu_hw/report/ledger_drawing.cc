// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/report/ledger_drawing.h"

#include <algorithm>

#include "emu_hw/report/frame.h"
#include "emu_hw/report/number_text.h"

namespace ub::emu {

std::vector<PartKind> kinds_of(const std::vector<LedgerOfStack>& ledgers) {
  std::vector<PartKind> kinds;
  for (const PartKind kind : kPartKinds)
    for (const LedgerOfStack& ledger : ledgers) {
      const bool has_it = std::any_of(ledger.lines.begin(), ledger.lines.end(),
                                      [kind](const Ledger::Line& line) { return kind_of(line.name.part) == kind; });
      if (has_it && (kinds.empty() || kinds.back() != kind)) kinds.push_back(kind);
    }
  return kinds;
}

std::string colour_of(PartKind kind) { return "c" + std::to_string(static_cast<size_t>(kind)); }

void draw_kinds(Svg& svg, const std::vector<PartKind>& kinds, Svg::Point at) {
  std::vector<std::string> names;
  for (const PartKind kind : kinds) names.emplace_back(name_of(kind));
  double height = 0;
  const std::vector<Svg::Point> places = legend_places(names, svg.width(), &height);
  svg.begin_group("legend");
  for (size_t i = 0; i < kinds.size(); ++i) {
    const Svg::Point corner{at.x + places[i].x, at.y + places[i].y};
    svg.rectangle(corner, 16, 12, "bar " + colour_of(kinds[i]));
    svg.text({corner.x + 24, corner.y + 10}, names[i], "ink");
  }
  svg.end_group();
}

std::string tip_of(const LedgerOfStack& ledger, size_t line) {
  const Ledger::Name& name = ledger.lines[line].name;
  return std::string(name.part) + ", host " + std::to_string(name.host) + ": " + readable(ledger.span_of(line).ns()) +
         " ns, from " + readable((ledger.begin_of(line) - ledger.begin).ns()) + " ns";
}

double longest_ns(const std::vector<LedgerOfStack>& ledgers) {
  double most = 0;
  for (const LedgerOfStack& ledger : ledgers) most = std::max(most, ledger.sum().ns());
  return most;
}

}  // namespace ub::emu
