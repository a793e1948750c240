// SPDX-License-Identifier: Apache-2.0
#include "apps/kv_store/heap.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace ub::kv {

namespace {

constexpr size_t kQuickLooks = 8;

size_t class_of(uint32_t units) { return static_cast<size_t>(std::bit_width(units)) - 1; }

}  // namespace

Heap::Heap(uint64_t units) : units_(units) { add({0, static_cast<uint32_t>(units)}); }

void Heap::add(Extent hole) {
  if (hole.units == 0) return;
  holes_[class_of(hole.units)].push_back(hole);
  free_ += hole.units;
}

std::optional<Extent> Heap::search(Holes& holes, uint32_t units, size_t looks) {
  for (size_t i = holes.size(); i > 0 && looks > 0; --i, --looks) {
    if (holes[i - 1].units < units) continue;
    const Extent found = holes[i - 1];
    holes[i - 1] = holes.back();
    holes.pop_back();
    return found;
  }
  return std::nullopt;
}

// Holes of the same class come first, so that large ones are left whole. Only some of these are looked at before
// larger ones, all of which fit.
std::optional<Extent> Heap::take_hole(uint32_t units) {
  const size_t own = class_of(units);
  std::optional<Extent> hole = search(holes_[own], units, kQuickLooks);
  for (size_t i = own + 1; !hole && i < holes_.size(); ++i) hole = search(holes_[i], units, 1);
  if (!hole) hole = search(holes_[own], units, std::numeric_limits<size_t>::max());
  if (hole) free_ -= hole->units;
  return hole;
}

std::optional<Extent> Heap::take(uint32_t units, uint32_t most) {
  const auto hole = take_hole(units);
  if (!hole) return std::nullopt;
  const Extent taken = {hole->unit, std::min(hole->units, most)};
  add({taken.unit + taken.units, hole->units - taken.units});
  return taken;
}

void Heap::begin_sweep() {
  ++epoch_;
  kept_.assign((units_ + 63) / 64, 0);
}

void Heap::keep(Extent extent) {
  for (uint64_t unit = extent.unit, end = unit + extent.units; unit < end;) {
    const uint64_t bits = std::min<uint64_t>(64 - unit % 64, end - unit);
    kept_[unit / 64] |= (bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1) << unit % 64;
    unit += bits;
  }
}

void Heap::end_sweep() {
  for (Holes& holes : holes_) holes.clear();
  free_ = 0;
  if (units_ % 64 != 0) kept_.back() |= ~uint64_t{0} << units_ % 64;
  uint64_t begin = 0;  // of the hole that grows
  for (uint64_t at = 0; at < kept_.size() * 64;) {
    const uint64_t word = kept_[at / 64] >> at % 64;
    if (word == 0) {
      at = (at / 64 + 1) * 64;  // all the rest of this word is free
      continue;
    }
    at += static_cast<uint64_t>(std::countr_zero(word));
    add({static_cast<uint32_t>(begin), static_cast<uint32_t>(at - begin)});
    at += static_cast<uint64_t>(std::countr_one(kept_[at / 64] >> at % 64));
    begin = at;
  }
  if (begin < units_) add({static_cast<uint32_t>(begin), static_cast<uint32_t>(units_ - begin)});
}

}  // namespace ub::kv
