// SPDX-License-Identifier: Apache-2.0
#include "apps/kv_store/store.h"

#include <algorithm>

namespace ub::kv {

namespace {

// A grant is a part of the heap that a few hundred records of usual size fill, so that clients ask seldom.
constexpr uint64_t kGrantUnits = (4 << 20) / kUnit;
constexpr uint64_t kGrantsInHeap = 256;
constexpr uint32_t kGoodExtents = 16;  // of how many a grant should consist, at most

}  // namespace

Store::Store(std::byte* memory, const Geometry& geometry)
    : memory_(memory), geometry_(geometry), index_(memory_, geometry_), heap_(geometry.heap_units) {}

Status Store::check(std::string_view key, std::string_view value) const {
  const bool fits = !key.empty() && key.size() <= geometry_.most_key && value.size() <= geometry_.most_value;
  return fits ? Status::kOk : Status::kTooLarge;
}

bool Store::lies_in_heap(Word word) const {
  return word.units() != 0 && uint64_t{word.unit()} + word.units() <= geometry_.heap_units;
}

std::optional<uint64_t> Store::slot_of(const KeyHash& hash, std::string_view key) const {
  return index_.find(hash, [&](Word word) {
    if (!lies_in_heap(word)) return false;
    const std::byte* at = record(word);
    RecordHead head;
    std::memcpy(&head, at, sizeof head);
    return head.key_bytes == key.size() && units_of_record(head.key_bytes, 0) <= word.units() &&
           std::memcmp(at + sizeof head, key.data(), key.size()) == 0;
  });
}

Store::Result Store::find(std::string_view key) const {
  const auto slot = slot_of(KeyHash::of(key, geometry_.seed), key);
  if (!slot) return {Status::kNotFound, 0, Word()};
  return {Status::kOk, *slot, Word(index_.word(*slot).load())};
}

Store::Result Store::put(std::string_view key, std::string_view value, Instant now) {
  if (const Status bad = check(key, value); bad != Status::kOk) return {bad, 0, Word()};
  const KeyHash hash = KeyHash::of(key, geometry_.seed);
  const auto slot = slot_of(hash, key);
  return slot ? replace(*slot, hash, key, value, now) : add(hash, key, value, now);
}

Store::Result Store::insert(std::string_view key, std::string_view value, Instant now) {
  if (const Status bad = check(key, value); bad != Status::kOk) return {bad, 0, Word()};
  const KeyHash hash = KeyHash::of(key, geometry_.seed);
  if (slot_of(hash, key)) return {Status::kExists, 0, Word()};
  return add(hash, key, value, now);
}

Store::Result Store::remove(std::string_view key) {
  const auto slot = slot_of(KeyHash::of(key, geometry_.seed), key);
  if (!slot) return {Status::kNotFound, 0, Word()};
  exchange(*slot, Word());
  keys_.erase(keys_.find(key));
  return {Status::kOk, *slot, Word()};
}

Store::Result Store::replace(uint64_t slot, const KeyHash& hash, std::string_view key, std::string_view value,
                             Instant now) {
  const Word word = write(hash, key, value, now);
  if (!word) return {Status::kFull, 0, Word()};
  exchange(slot, word);
  return {Status::kOk, slot, word};
}

Store::Result Store::add(const KeyHash& hash, std::string_view key, std::string_view value, Instant now) {
  const Word word = write(hash, key, value, now);
  if (!word) return {Status::kFull, 0, Word()};
  const auto slot = index_.place(hash, word);
  if (!slot) {
    garbage_ = true;
    return {Status::kFull, 0, Word()};
  }
  keys_.emplace(key, *slot);
  return {Status::kOk, *slot, word};
}

// Marks what the slot names, then puts another word there. Clients may exchange the slot in between.
Word Store::exchange(uint64_t slot, Word to) {
  auto word = index_.word(slot);
  uint64_t old = word.load();
  do {
    if (lies_in_heap(Word(old))) shared_word(record(Word(old))).fetch_or(Word::kStale);
  } while (!word.compare_exchange_strong(old, to.bits()));
  garbage_ = true;
  return Word(old);
}

// Nothing: the heap is full.
Word Store::write(const KeyHash& hash, std::string_view key, std::string_view value, Instant now) {
  const uint32_t units = units_of_record(key.size(), value.size());
  const auto place = take(units, now);
  if (!place) return Word();
  const Word word(place->unit, units, heap_.epoch(), hash.tag());
  write_record(record(word), word, key, value);
  return word;
}

std::optional<Extent> Store::take(uint32_t units, Instant now) {
  const auto place = heap_.take(units, units);
  return place || !sweep_if_useful(now) ? place : heap_.take(units, units);
}

bool Store::sweep_if_useful(Instant now) {
  if (!garbage_ && now - swept_ < kBetweenSweeps) return false;
  sweep(now);
  return true;
}

// A place is named by one slot at most, once, and only after it was granted or taken. So what no slot names now, and
// nobody may write to, is named never again: slots may be looked at one after the other while clients exchange them.
void Store::sweep(Instant now) {
  heap_.begin_sweep();
  for (const Grant& grant : grants_) {
    for (Extent extent : grant.extents) heap_.keep(extent);
  }
  index_.each([this](Word word) {
    if (lies_in_heap(word)) heap_.keep({word.unit(), word.units()});
  });
  heap_.end_sweep();
  garbage_ = false;
  swept_ = now;
  ++sweeps_;
}

// Large pieces come first: the number of pieces of a grant is limited, and its client asks again when it is used up.
std::optional<Extent> Store::take_for_grant(uint32_t units, uint32_t wanted) {
  const uint32_t most = std::max(units, wanted);
  for (uint32_t least = most / kGoodExtents; least > units; least /= 2) {
    if (const auto extent = heap_.take(least, most)) return extent;
  }
  return heap_.take(units, most);
}

const Store::Grant* Store::grant(uint32_t owner, uint32_t units, Instant now) {
  if (units == 0 || units > Word::kMostUnits) return nullptr;
  const auto wanted =
      static_cast<uint32_t>(std::max<uint64_t>(units, std::min(kGrantUnits, geometry_.heap_units / kGrantsInHeap)));
  Grant made = {++grants_made_, owner, 0, {}};
  uint32_t got = 0;
  while (got < wanted && made.extents.size() < kMostExtents) {
    auto extent = take_for_grant(units, wanted - got);
    // Only the first place is worth a sweep, which would begin another epoch.
    if (!extent && made.extents.empty() && sweep_if_useful(now)) extent = take_for_grant(units, wanted - got);
    if (!extent) break;
    made.extents.push_back(*extent);
    got += extent->units;
  }
  if (made.extents.empty()) return nullptr;
  made.epoch = heap_.epoch();
  return &grants_.emplace_back(std::move(made));
}

bool Store::release(uint32_t owner, uint64_t number) {
  garbage_ = true;
  return std::erase_if(grants_, [=](const Grant& g) { return g.owner == owner && g.number == number; }) != 0;
}

void Store::forget(uint32_t owner) {
  garbage_ = true;
  std::erase_if(grants_, [owner](const Grant& g) { return g.owner == owner; });
}

Store::Stat Store::stat() const {
  Stat s = {keys_.size(), geometry_.heap_units, heap_.free_units(), 0, sweeps_};
  for (const Grant& grant : grants_) {
    for (Extent extent : grant.extents) s.granted_units += extent.units;
  }
  return s;
}

}  // namespace ub::kv
