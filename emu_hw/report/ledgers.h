// SPDX-License-Identifier: Apache-2.0
//
// One read of 64 bytes by each stack of the paper, line by line, for the budget of a round trip and its course.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "emu_hw/models/model.h"
#include "emu_hw/profiles/profile.h"

namespace ub::emu {

// What kind of part a line of a ledger belongs to.
enum class PartKind { kCpu, kBus, kNic, kLink, kMemory, kOther };
constexpr PartKind kPartKinds[] = {PartKind::kCpu,  PartKind::kBus,    PartKind::kNic,
                                   PartKind::kLink, PartKind::kMemory, PartKind::kOther};
std::string_view name_of(PartKind kind);
// By the name of the part: "cpu.build" is of a CPU.
PartKind kind_of(std::string_view part);

struct LedgerOfStack {
  std::string stack;  // the profile
  std::string title;
  Time begin;
  std::vector<Ledger::Line> lines;

  Span span_of(size_t line) const { return lines[line].until - begin_of(line); }
  Time begin_of(size_t line) const { return line == 0 ? begin : lines[line - 1].until; }
  Span sum() const { return lines.back().until - begin; }
};

// Runs those of the stacks that have a profile: ldst, urma, bf, dma. Throws BadFile.
std::vector<LedgerOfStack> ledgers_of_a_read(const Profiles&, const Settings& overrides);

}  // namespace ub::emu
