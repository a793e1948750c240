// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/memory_model.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>

namespace ub::sim {
namespace {

std::string writer_name(const Candidate& c) {
  char buf[48];
  if (c.writer & kReleased) return "released memory";
  if (c.writer & kUntouched) return "initial contents";
  std::snprintf(buf, sizeof buf, "wr %" PRIu64, c.writer);
  return buf;
}

// Does every byte come from one of the candidates that pass the filter?
template <class Filter>
size_t first_bad(const std::byte* p, uint64_t offset, size_t bytes, const std::vector<Candidate>& a,
                 const std::vector<Candidate>* b, Filter allowed) {
  size_t best = 0;
  for (const auto* list : {&a, b}) {
    if (list == nullptr) continue;
    for (const Candidate& c : *list) {
      if (c.literal || !allowed(c)) continue;
      size_t at = pattern_mismatch(p, c.writer, offset - c.base, bytes);
      if (at == bytes) return bytes;
      best = std::max(best, at);
    }
  }
  for (size_t i = 0; i < bytes; ++i) {  // a mix of several
    bool found = false;
    for (const auto* list : {&a, b}) {
      if (list == nullptr) continue;
      for (const Candidate& c : *list)
        found = found || (allowed(c) && static_cast<uint8_t>(p[i]) == c.byte_at(offset + i));
    }
    if (!found) return i;
  }
  return bytes;
}

}  // namespace

MemoryModel::MemoryModel(const Region& region) : region_(region) {
  cells_[0] = {region.length, {{.writer = kUntouched | region.uid, .base = 0}}, {}};
}

MemoryModel::Cells::iterator MemoryModel::split(uint64_t at) {
  auto it = std::prev(cells_.upper_bound(at));
  if (it->first == at || at >= it->second.end) return at >= it->second.end ? cells_.end() : it;
  Cell right = it->second;
  it->second.end = at;
  return cells_.emplace_hint(std::next(it), at, std::move(right));
}

void MemoryModel::add(const Candidate& c, uint64_t offset, uint64_t bytes) {
  if (bytes == 0) return;
  auto it = split(offset);
  split(offset + bytes);
  for (; it != cells_.end() && it->first < offset + bytes; ++it) it->second.now.push_back(c);
}

void MemoryModel::succeed(WriterId writer, uint64_t offset, uint64_t bytes, uint64_t tick, bool remember,
                          const std::function<bool(const Candidate&)>& overwritten) {
  if (bytes == 0) return;
  auto it = split(offset);
  split(offset + bytes);
  for (; it != cells_.end() && it->first < offset + bytes; ++it) {
    auto& now = it->second.now;
    auto gone = std::stable_partition(now.begin(), now.end(),
                                      [&](const Candidate& c) { return c.writer == writer || !overwritten(c); });
    for (auto g = gone; remember && g != now.end(); ++g) {
      g->removed_at = tick;
      it->second.history.push_back(*g);
      any_history_ = true;
    }
    now.erase(gone, now.end());
  }
}

std::string MemoryModel::describe(uint64_t offset, uint8_t found, const Cell& cell) const {
  char buf[128];
  std::snprintf(buf, sizeof buf, "region %u (node %u) offset %" PRIu64 ": 0x%02x, allowed", region_.uid, region_.node,
                offset, found);
  std::string s = buf;
  for (const Candidate& c : cell.now) {
    std::snprintf(buf, sizeof buf, " 0x%02x of %s byte %" PRIu64 ";", c.byte_at(offset), writer_name(c).c_str(),
                  offset - c.base);
    s += buf;
  }
  return s;
}

bool MemoryModel::check(uint64_t offset, uint64_t bytes, std::string* why) const {
  return check_as_if_succeeded(
      0, offset, bytes, [](const Candidate&) { return false; }, why);
}

bool MemoryModel::check_as_if_succeeded(WriterId writer, uint64_t offset, uint64_t bytes,
                                        const std::function<bool(const Candidate&)>& overwritten,
                                        std::string* why) const {
  uint64_t end = offset + bytes;
  for (auto it = std::prev(cells_.upper_bound(offset)); it != cells_.end() && it->first < end; ++it) {
    uint64_t from = std::max(offset, it->first), to = std::min(end, it->second.end);
    if (from >= to) continue;
    const std::byte* p = region_.memory() + from;
    auto allowed = [&](const Candidate& c) { return c.writer == writer || !overwritten(c); };
    size_t bad = first_bad(p, from, to - from, it->second.now, nullptr, allowed);
    if (bad == to - from) continue;
    *why = describe(from + bad, static_cast<uint8_t>(p[bad]), it->second);
    return false;
  }
  return true;
}

bool MemoryModel::readable(uint64_t offset, const std::byte* data, uint64_t bytes, uint64_t since,
                           std::string* why) const {
  uint64_t end = offset + bytes;
  for (auto it = std::prev(cells_.upper_bound(offset)); it != cells_.end() && it->first < end; ++it) {
    uint64_t from = std::max(offset, it->first), to = std::min(end, it->second.end);
    if (from >= to) continue;
    const std::byte* p = data + (from - offset);
    auto allowed = [&](const Candidate& c) { return c.removed_at >= since; };
    size_t bad = first_bad(p, from, to - from, it->second.now, &it->second.history, allowed);
    if (bad == to - from) continue;
    *why = describe(from + bad, static_cast<uint8_t>(p[bad]), it->second);
    return false;
  }
  return true;
}

bool MemoryModel::sole_writer(WriterId writer, uint64_t offset, uint64_t bytes,
                              const std::function<bool(const Candidate&)>& overwritten) const {
  uint64_t end = offset + bytes;
  for (auto it = std::prev(cells_.upper_bound(offset)); it != cells_.end() && it->first < end; ++it) {
    if (std::max(offset, it->first) >= std::min(end, it->second.end)) continue;
    for (const Candidate& c : it->second.now)
      if (c.writer != writer && !overwritten(c)) return false;
  }
  return true;
}

void MemoryModel::forget_history(uint64_t before_tick) {
  if (!any_history_) return;
  any_history_ = false;
  for (auto& [offset, cell] : cells_) {
    std::erase_if(cell.history, [&](const Candidate& c) { return c.removed_at < before_tick; });
    any_history_ = any_history_ || !cell.history.empty();
  }
}

}  // namespace ub::sim
