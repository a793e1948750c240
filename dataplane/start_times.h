// SPDX-License-Identifier: Apache-2.0
//
// When things began whose ends are awaited: a table of a fixed size. A thing is named by its owner (a queue, a channel)
// and its number there; numbers of one owner that follow each other never push each other out while they are fewer than
// a quarter of the table.
//
// Each number has one place in each of four banks. If all four are taken, the start that is oldest gives way: its end
// will find nothing.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace ub {

struct StartKey {
  uint32_t owner = 0;
  uint32_t number = 0;
  bool operator==(const StartKey&) const = default;
};

struct Start {
  uint64_t ns = 0;
  uint32_t what = 0;  // the caller's
};

class StartTimes {
 public:
  // `places`: a power of two, 4 at least. May throw std::bad_alloc.
  explicit StartTimes(size_t places) : places_(std::bit_ceil(places)), bank_(places_.size() / kBanks) {}

  // Something begins. One of the same key that has not ended is replaced. False: another start gave way.
  bool put(StartKey key, const Start& start) {
    Place* oldest = nullptr;
    for (size_t bank = 0; bank < kBanks; ++bank) {
      Place& place = at(bank, key);
      if (place.used && place.key == key) {
        place.start = start;
        return true;
      }
      if (oldest == nullptr || (oldest->used && (!place.used || place.start.ns < oldest->start.ns))) oldest = &place;
    }
    const bool was_free = !oldest->used;
    *oldest = {key, true, start};
    return was_free;
  }

  // When it began; nothing: that is not known.
  std::optional<Start> find(StartKey key) const {
    for (size_t bank = 0; bank < kBanks; ++bank) {
      const Place& place = places_[index(bank, key)];
      if (place.used && place.key == key) return place.start;
    }
    return std::nullopt;
  }
  // The same, and forgets it.
  std::optional<Start> take(StartKey key) {
    for (size_t bank = 0; bank < kBanks; ++bank) {
      Place& place = at(bank, key);
      if (!place.used || place.key != key) continue;
      place.used = false;
      return place.start;
    }
    return std::nullopt;
  }

 private:
  static constexpr size_t kBanks = 4;
  static constexpr std::array<uint64_t, kBanks> kMultipliers = {0x9e3779b97f4a7c15, 0xc2b2ae3d27d4eb4f,
                                                                0x165667b19e3779f9, 0xd6e8feb86659fd93};
  struct Place {
    StartKey key;
    bool used = false;
    Start start;
  };
  // Owners begin at places that differ from bank to bank, so that two of them do not meet in all.
  size_t index(size_t bank, StartKey key) const {
    const size_t begin = static_cast<size_t>(key.owner * kMultipliers[bank] >> 32);
    return bank * bank_ + ((begin + key.number) & (bank_ - 1));
  }
  Place& at(size_t bank, StartKey key) { return places_[index(bank, key)]; }

  std::vector<Place> places_;
  size_t bank_;
};

}  // namespace ub
