// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/held_frames.h"

#include <algorithm>

#include "lib/base/assert.h"

namespace ub {

namespace {

constexpr uint32_t kNumberMask = (1u << (kCopyPrefixShift - 32)) - 1;  // the bits of a tag between prefix and use

}  // namespace

void HeldFrames::lay_out(Arena& arena, uint32_t most_bytes) {
  more_.lay_out(numbers, arena, kMoreHeld);
  UB_ASSERT(numbers.end() <= kNumberMask);
  most_bytes_ = most_bytes;
  records_ = arena.take<HeldFrame>(numbers.end());
  bytes_ = arena.take<std::byte>(size_t{numbers.end()} * most_bytes);
  orphans_ = arena.take<uint32_t>(numbers.end());
}

uint32_t HeldFrames::in_use_count() const {
  const uint32_t count = records_ == nullptr ? 0 : numbers.end();
  return static_cast<uint32_t>(
      std::count_if(records_, records_ + count, [](const HeldFrame& h) { return h.home != 0; }));
}

HeldFrame& HeldFrames::take_number(uint32_t number, uint32_t home) {
  UB_DCHECK(number != 0 && home != 0 && !in_use(number));
  HeldFrame& h = records_[number];
  const uint32_t use = h.use + 1;
  h = {};
  h.home = home;
  h.use = use;
  return h;
}

void HeldFrames::free(HeldFrame& h) {
  const uint32_t number = number_of(h);
  h.home = 0;
  if (more_.numbers.contains(number)) more_.give_back(number);
}

uint32_t HeldFrames::on_gather_done(CopyTag tag, bool ok) {
  const auto number = static_cast<uint32_t>(tag >> 32) & kNumberMask;
  if (number >= numbers.end() || records_ == nullptr) return 0;
  HeldFrame& h = records_[number];
  if (h.home == 0 || h.use != static_cast<uint32_t>(tag) || h.pending == 0) return 0;
  h.failed |= !ok;
  return --h.pending == 0 ? number : 0;
}

void HeldFrames::append(HeldLine& line, HeldFrame& h) {
  line.frames.push_back<&HeldFrame::in_line>(records_, number_of(h));
  ++line.count;
}

void HeldFrames::drop_first(HeldLine& line) {
  UB_DCHECK(line.count != 0);
  free(records_[line.frames.pop_front<&HeldFrame::in_line>(records_)]);
  --line.count;
}

void HeldFrames::give_up_first(HeldLine& line) {
  orphan(first(line));
  drop_first(line);
}

void HeldFrames::give_up_all(HeldLine& line) {
  while (!line.empty()) give_up_first(line);
}

bool HeldFrames::is_orphan(uint32_t number) const {
  return std::find(orphans_, orphans_ + orphan_count_, number) != orphans_ + orphan_count_;
}

}  // namespace ub
