// SPDX-License-Identifier: Apache-2.0
#include "apps/aperture/table.h"

#include <fmt/format.h>

#include <algorithm>

#include "apps/aperture/patience.h"
#include "tools/common/tool_error.h"

namespace ub::apps {

using tools::ToolError;

namespace {

uint64_t mixed(uint64_t key) {
  key ^= key >> 33;
  key *= 0xff51afd7ed558ccd;
  key ^= key >> 33;
  key *= 0xc4ceb9fe1a85ec53;
  return key ^ key >> 33;
}

}  // namespace

Table::Table(urma_target_seg_t* memory) : handle_(memory), slots_(handle_), count_(memory->seg.len / sizeof(Slot)) {
  if (count_ < 2) throw ToolError("the server's memory is too small for a table");
}

template <class Visit>
bool Table::probe(uint64_t key, Visit visit) {
  if (key == 0) throw ToolError("keys are numbers from 1 on");
  const uint64_t slots = count_ - 1, first = mixed(key) % slots;
  for (uint64_t i = 0; i < slots; ++i) {
    const SlotPtr slot = slots_ + static_cast<std::ptrdiff_t>(1 + (first + i) % slots);
    if (visit(slot, slot.member(&Slot::key).load())) return true;
  }
  return false;
}

std::optional<Table::SlotPtr> Table::find(uint64_t key) {
  std::optional<SlotPtr> found;
  probe(key, [&](SlotPtr slot, uint64_t there) {
    if (there == key) found = slot;
    return there == key || there == 0;
  });
  return found;
}

Table::SlotPtr Table::find_or_claim(uint64_t key) {
  SlotPtr found;
  const auto claim = [&](SlotPtr slot, uint64_t there) {
    if (there == 0 && slot.member(&Slot::key).compare_exchange(there, key)) there = key;
    found = slot;
    return there == key;
  };
  if (!probe(key, claim)) throw ToolError(fmt::format("the table is full: {} keys", count_ - 1));
  return found;
}

// Returns the version that the slot had.
uint64_t Table::lock(SlotPtr slot) {
  const auto version = slot.member(&Slot::version);
  for (Patience patience("another client has locked a slot and does not unlock it: did it die?");; patience.wait()) {
    uint64_t before = version.load();
    if (before % 2 == 0 && version.compare_exchange(before, before + 1)) return before;
  }
}

void Table::put(uint64_t key, const std::string& text) {
  if (text.size() > kMostText) throw ToolError(fmt::format("a value has at most {} bytes", kMostText));
  const SlotPtr slot = find_or_claim(key);
  const uint64_t before = lock(slot);
  std::array<char, kMostText + 1> bytes = {};
  std::copy(text.begin(), text.end(), bytes.begin());
  slot.member(&Slot::text).store(bytes);
  handle_.fence();  // others see the value before they see the version
  slot.member(&Slot::version).store(before + 2);
  handle_.fence();
}

std::optional<std::string> Table::get(uint64_t key) {
  const auto slot = find(key);
  if (!slot) return std::nullopt;
  const auto version = slot->member(&Slot::version);
  for (Patience patience("another client writes a value and does not end: did it die?");; patience.wait()) {
    const uint64_t before = version.load();
    if (before == 0) return std::nullopt;
    const auto text = slot->member(&Slot::text).load();
    if (before % 2 == 0 && version.load() == before) return std::string(text.data());
  }
}

uint64_t Table::new_client() { return slots_.as<uint64_t>().fetch_add(1) + 1; }

}  // namespace ub::apps
