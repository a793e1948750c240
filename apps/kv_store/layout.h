// SPDX-License-Identifier: Apache-2.0
//
// What lies in the server's registered memory, for everybody who touches it: the server, and clients by READ, WRITE,
// compare-and-swap or loads. docs/kv-store.md draws it and says why it is right.
//
//   index    lines of 64 bytes: a reach, and seven slots of 8 bytes. A slot is 0, or a Word that names a record
//   heap     units of 64 bytes; a record takes a whole number of them, in a row
//
// A record is written before a slot names it, and never changes afterwards, but for the mark kStale in its first word.
// Its sum covers all that it is, its name included: a reader who gets bytes of two records notices.
#pragma once

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

namespace ub::kv {

constexpr uint32_t kUnit = 64;  // bytes; of the heap, and a line of the index
constexpr uint32_t kSlots = 7;  // of a line

// How the memory of one server is cut. Offsets are bytes from its first byte.
struct Geometry {
  uint64_t lines = 0;                     // homes of keys; kMostReach lines more follow
  uint64_t heap_units = 0;                // at most Word::kMostHeapUnits
  uint64_t seed = 0;                      // of the hash of keys
  uint32_t most_key = 0, most_value = 0;  // bytes

  static constexpr uint32_t kMostReach = 32;

  uint64_t line_at(uint64_t line) const { return line * kUnit; }
  uint64_t slot_at(uint64_t line, uint32_t slot) const { return line * kUnit + (1 + slot) * sizeof(uint64_t); }
  uint64_t heap_at() const { return (lines + kMostReach) * kUnit; }
  uint64_t unit_at(uint64_t unit) const { return heap_at() + unit * kUnit; }
  uint64_t bytes() const { return unit_at(heap_units); }
};

// The name of a record: where it lies, how long it is, when its place was given out, and some bits of its key's hash.
// The heap gives a place once in an epoch, so a name comes again only kEpochs epochs later.
class Word {
 public:
  static constexpr uint32_t kUnitBits = 28, kUnitsBits = 15, kEpochBits = 11, kTagBits = 9;
  static_assert(kUnitBits + kUnitsBits + kEpochBits + kTagBits == 63);
  static constexpr uint64_t kMostHeapUnits = uint64_t{1} << kUnitBits;
  static constexpr uint32_t kMostUnits = (1u << kUnitsBits) - 1;
  static constexpr uint32_t kEpochs = 1u << kEpochBits;
  static constexpr uint64_t kStale = uint64_t{1} << 63;  // in records alone: ask the slot whether this one still counts

  constexpr Word() = default;
  constexpr explicit Word(uint64_t bits) : bits_(bits) {}
  constexpr Word(uint32_t unit, uint32_t units, uint32_t epoch, uint32_t tag)
      : bits_(unit | uint64_t{units} << kUnitBits | uint64_t{epoch % kEpochs} << (kUnitBits + kUnitsBits) |
              uint64_t{tag} << (kUnitBits + kUnitsBits + kEpochBits)) {}

  constexpr uint64_t bits() const { return bits_; }
  constexpr explicit operator bool() const { return bits_ != 0; }  // false: it names nothing
  constexpr uint32_t unit() const { return static_cast<uint32_t>(bits_ & (kMostHeapUnits - 1)); }
  constexpr uint32_t units() const { return static_cast<uint32_t>(bits_ >> kUnitBits) & kMostUnits; }
  constexpr uint32_t tag() const { return static_cast<uint32_t>(bits_ >> (63 - kTagBits)) & ((1u << kTagBits) - 1); }
  constexpr bool operator==(const Word&) const = default;

 private:
  uint64_t bits_ = 0;
};

struct KeyHash {
  uint64_t low = 0, high = 0;

  static KeyHash of(std::string_view key, uint64_t seed) {
    const XXH128_hash_t hash = XXH3_128bits_withSeed(key.data(), key.size(), seed);
    return {hash.low64, hash.high64};
  }
  uint64_t home(uint64_t lines) const {
    return static_cast<uint64_t>(static_cast<unsigned __int128>(low) * lines >> 64);
  }
  uint32_t tag() const { return static_cast<uint32_t>(high >> (64 - Word::kTagBits)); }
  bool operator==(const KeyHash&) const = default;
};

struct alignas(kUnit) IndexLine {
  uint64_t reach;  // keys whose home this is are here, or in so many lines that follow
  uint64_t slots[kSlots];
};
static_assert(sizeof(IndexLine) == kUnit);

struct RecordHead {
  uint64_t word;  // its name, and perhaps kStale
  uint64_t sum;
  uint32_t value_bytes;
  uint16_t key_bytes;
  uint16_t unused;
};
static_assert(sizeof(RecordHead) == 24);  // key and value follow

constexpr uint32_t units_of_record(uint64_t key_bytes, uint64_t value_bytes) {
  return static_cast<uint32_t>((sizeof(RecordHead) + key_bytes + value_bytes + kUnit - 1) / kUnit);
}

namespace internal {

inline uint64_t sum_of(Word word, uint32_t key_bytes, const char* key_and_value, uint64_t bytes) {
  return XXH3_64bits_withSeed(key_and_value, bytes, word.bits() * 0x9e3779b97f4a7c15 + key_bytes);
}

}  // namespace internal

// Completes a record whose key and value already stand behind its head.
inline void seal_record(void* at, Word word, uint32_t key_bytes, uint32_t value_bytes) {
  const RecordHead head = {word.bits(),
                           internal::sum_of(word, key_bytes, static_cast<const char*>(at) + sizeof(RecordHead),
                                            uint64_t{key_bytes} + value_bytes),
                           value_bytes, static_cast<uint16_t>(key_bytes), 0};
  std::memcpy(at, &head, sizeof head);
}

inline void write_record(void* at, Word word, std::string_view key, std::string_view value) {
  char* body = static_cast<char*>(at) + sizeof(RecordHead);
  std::memcpy(body, key.data(), key.size());
  if (!value.empty()) std::memcpy(body + key.size(), value.data(), value.size());
  seal_record(at, word, static_cast<uint32_t>(key.size()), static_cast<uint32_t>(value.size()));
}

struct RecordView {
  std::string_view key, value;
  bool stale = false;  // whoever did not come from the slot must ask it
};

// The record of that name in a copy of its units. Nothing: there is another one, or some of another one.
inline std::optional<RecordView> open_record(const void* copy, Word word) {
  RecordHead head;
  std::memcpy(&head, copy, sizeof head);
  if ((head.word & ~Word::kStale) != word.bits()) return std::nullopt;
  if (units_of_record(head.key_bytes, head.value_bytes) != word.units()) return std::nullopt;
  const char* body = static_cast<const char*>(copy) + sizeof head;
  const uint64_t bytes = uint64_t{head.key_bytes} + head.value_bytes;
  if (head.sum != internal::sum_of(word, head.key_bytes, body, bytes)) return std::nullopt;
  return RecordView{{body, head.key_bytes}, {body + head.key_bytes, head.value_bytes}, (head.word & Word::kStale) != 0};
}

// A word of the memory that others change at the same time.
inline std::atomic_ref<uint64_t> shared_word(std::byte* at) {
  return std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(at));
}

}  // namespace ub::kv
