// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/report/ledgers.h"

#include "emu_hw/profiles/toml_file.h"

namespace ub::emu {
namespace {

constexpr const char* kStacks[] = {"ldst", "urma", "bf", "dma"};

Parameters parameters_of(const Profile& profile, const Settings& overrides) {
  Parameters p;
  p.operations = 1;
  for (const Settings* settings : {&profile.set, &overrides})
    for (const auto& [name, text] : *settings)
      if (const std::string wrong = set_parameter(p, name, text); !wrong.empty()) throw BadFile("--set " + wrong);
  return p;
}

// Nothing, if other values make no sense for that stack.
PointResult run(const Point& point) try {
  return run_two_node(point);
} catch (const BadPoint&) {
  return {};
}

}  // namespace

std::string_view name_of(PartKind kind) {
  switch (kind) {
    case PartKind::kCpu:
      return "CPU";
    case PartKind::kBus:
      return "bus, PCIe";
    case PartKind::kNic:
      return "NIC";
    case PartKind::kLink:
      return "link";
    case PartKind::kMemory:
      return "memory, caches";
    case PartKind::kOther:
      return "rules, others";
  }
  return "?";
}

PartKind kind_of(std::string_view part) {
  const std::string_view stem = part.substr(0, part.find('.'));
  if (stem == "cpu") return PartKind::kCpu;
  if (stem == "bus" || stem == "pcie") return PartKind::kBus;
  if (stem == "nic" || stem == "order" || stem == "psn" || stem == "contexts") return PartKind::kNic;
  if (stem == "link") return PartKind::kLink;
  if (stem == "dram" || stem == "cache") return PartKind::kMemory;
  return PartKind::kOther;
}

std::vector<LedgerOfStack> ledgers_of_a_read(const Profiles& profiles, const Settings& overrides) {
  std::vector<LedgerOfStack> all;
  for (const char* stack : kStacks) {
    const auto profile = profiles.find(stack);
    if (profile == profiles.end()) continue;
    const Point point{profile->second.stack, "bulk_read", parameters_of(profile->second, overrides)};
    const PointResult result = run(point);
    if (!result.ledger.empty()) all.push_back({stack, profile->second.title, result.begin, result.ledger});
  }
  return all;
}

}  // namespace ub::emu
