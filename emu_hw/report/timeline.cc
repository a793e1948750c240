// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/report/timeline.h"

#include <algorithm>
#include <map>

#include "emu_hw/report/ledger_drawing.h"
#include "emu_hw/report/number_text.h"
#include "emu_hw/report/scale.h"

namespace ub::emu {
namespace {

constexpr double kWidth = 980, kLeft = 172, kRight = kWidth - 30, kTop = 74;
constexpr double kLane = 15, kBox = 10, kHeader = 24, kBetween = 14, kBelow = 52;

// From the initiator's CPU outwards, and inwards at the target: {rank, host, kind}.
struct Lane {
  int rank;
  uint32_t host;
  PartKind kind;
  auto operator<=>(const Lane&) const = default;

  std::string text() const {
    const std::string kind_text(name_of(kind));
    return kind == PartKind::kLink ? kind_text : "host " + std::to_string(host) + "  " + kind_text;
  }
};

int rank_of(PartKind kind, bool is_initiator) {
  constexpr PartKind kInwards[] = {PartKind::kCpu,   PartKind::kMemory, PartKind::kBus,
                                   PartKind::kOther, PartKind::kNic,    PartKind::kLink};
  const int depth = static_cast<int>(std::find(std::begin(kInwards), std::end(kInwards), kind) - std::begin(kInwards));
  const int link = static_cast<int>(std::size(kInwards)) - 1;
  return is_initiator || kind == PartKind::kLink ? depth : 2 * link - depth;
}

Lane lane_of(const LedgerOfStack& ledger, const Ledger::Line& line) {
  const PartKind kind = kind_of(line.name.part);
  const uint32_t initiator = ledger.lines.front().name.host;
  const uint32_t host = kind == PartKind::kLink ? 0 : line.name.host;  // both directions in one lane
  return {rank_of(kind, host == initiator), host, kind};
}

std::map<Lane, size_t> lanes_of(const LedgerOfStack& ledger) {
  std::map<Lane, size_t> lanes;
  for (const Ledger::Line& line : ledger.lines) lanes[lane_of(ledger, line)] = 0;
  size_t next = 0;
  for (auto& [lane, place] : lanes) place = next++;
  return lanes;
}

double height_of(const LedgerOfStack& ledger) {
  return kHeader + static_cast<double>(lanes_of(ledger).size()) * kLane + kBetween;
}

class Panel {
 public:
  Panel(Svg& svg, const Scale& scale, const LedgerOfStack& ledger, double top)
      : svg_(svg), scale_(scale), ledger_(ledger), lanes_(lanes_of(ledger)), top_(top + kHeader) {}

  void draw() {
    svg_.text({14, top_ - 8}, ledger_.stack + ": " + ledger_.title + ", " + readable(ledger_.sum().ns()) + " ns",
              "ink strong");
    for (const auto& [lane, place] : lanes_) {
      const double y = y_of(place);
      svg_.line({kLeft, y}, {kRight, y}, "grid");
      svg_.text({kLeft - 10, y + 4}, lane.text(), "pale small", Svg::Anchor::kEnd);
    }
    for (size_t i = 0; i < ledger_.lines.size(); ++i) draw_line(i);
  }

 private:
  double x_of(Time time) const { return kLeft + scale_.part_of((time - ledger_.begin).ns()) * (kRight - kLeft); }
  double y_of(size_t place) const { return top_ + (static_cast<double>(place) + 0.5) * kLane; }
  double y_of_line(size_t i) const { return y_of(lanes_.at(lane_of(ledger_, ledger_.lines[i]))); }
  void draw_line(size_t i) {
    const double from = x_of(ledger_.begin_of(i)), until = x_of(ledger_.lines[i].until), y = y_of_line(i);
    if (i > 0 && y_of_line(i - 1) != y) svg_.line({from, y_of_line(i - 1)}, {from, y}, "axis");
    svg_.rectangle({from, y - kBox / 2}, until - from, kBox,
                   "bar cut mark " + colour_of(kind_of(ledger_.lines[i].name.part)), tip_of(ledger_, i));
  }

  Svg& svg_;
  const Scale& scale_;
  const LedgerOfStack& ledger_;
  const std::map<Lane, size_t> lanes_;
  const double top_;  // of its lanes
};

}  // namespace

Svg drawn_timeline(const std::vector<LedgerOfStack>& ledgers) {
  double bottom = kTop;
  for (const LedgerOfStack& ledger : ledgers) bottom += height_of(ledger);
  Svg svg(kWidth, bottom + kBelow, "One read through both hosts", "which part works on it when");
  const Scale scale = Scale::linear({longest_ns(ledgers)});
  svg.text({14, 20}, "One read of 64 bytes through both hosts", "title ink");
  draw_kinds(svg, kinds_of(ledgers), {14, 34});
  svg.rectangle({kLeft, kTop}, kRight - kLeft, bottom - kTop, "area");
  for (const Tick& tick : scale.ticks()) {
    const double x = kLeft + scale.part_of(tick.value) * (kRight - kLeft);
    svg.line({x, kTop}, {x, bottom}, "grid");
    svg.text({x, bottom + 18}, tick.text, "pale small tick", Svg::Anchor::kMiddle);
  }
  svg.begin_group("data");
  double top = kTop;
  for (const LedgerOfStack& ledger : ledgers) {
    Panel(svg, scale, ledger, top).draw();
    top += height_of(ledger);
  }
  svg.end_group();
  svg.text({(kLeft + kRight) / 2, bottom + 40}, "time since the issue, ns", "ink axis-title", Svg::Anchor::kMiddle);
  svg.text({kLeft - 10, kTop - 4}, "part of which host", "ink axis-title", Svg::Anchor::kEnd);
  return svg;
}

}  // namespace ub::emu
