// SPDX-License-Identifier: Apache-2.0
#include "tools/ycsb/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace ub::ycsb {
namespace {

// Six random bits for each byte, from the blank to the underscore.
void write_random(Prng& random, char* to, size_t length) {
  while (length > 0) {
    const uint64_t eight = (random.next_u64() & 0x3f3f3f3f3f3f3f3f) + 0x2020202020202020;
    const size_t n = std::min(length, sizeof eight);
    std::memcpy(to, &eight, n);
    to += n;
    length -= n;
  }
}

// Text of a fixed length, what is behind it is cut off, and the hash that String.hashCode() of Java has of it.
class HashedText {
 public:
  HashedText(char* to, size_t length) : to_(to), left_(length) {}

  void append(std::string_view text) {
    text = text.substr(0, left_);
    std::memcpy(to_, text.data(), text.size());
    to_ += text.size();
    left_ -= text.size();
    for (const char c : text) hash_ = hash_ * 31 + static_cast<uint8_t>(c);
  }
  bool full() const { return left_ == 0; }
  int32_t hash() const { return static_cast<int32_t>(hash_); }

 private:
  char* to_;
  size_t left_;
  uint32_t hash_ = 0;
};

}  // namespace

Values::Values(const Spec& spec) : spec_(spec), format_(spec.field_count) {
  for (uint32_t i = 0; i < spec.field_count; ++i) field_names_.push_back(fmt::format("{}{}", spec.field_prefix, i));
  expected_.resize(spec.field_length->most());
}

// Key, colon, field, and then again and again a colon and the hash of all that stands there.
void Values::write_derived(std::string_view key, uint32_t field, char* to, size_t length) const {
  HashedText text(to, length);
  text.append(key);
  text.append(":");
  text.append(field_names_[field]);
  while (!text.full()) {
    text.append(":");
    text.append(fmt::format_int(text.hash()).c_str());
  }
}

void Values::append_one(std::string* record, std::string_view key, uint32_t field, Prng& random) {
  const auto length = static_cast<uint32_t>(spec_.field_length->next(random));
  char* to = format_.append(record, field, length);
  if (spec_.data_integrity) return write_derived(key, field, to, length);
  write_random(random, to, length);
}

void Values::append(std::string* record, std::string_view key, int32_t field, Prng& random) {
  if (field != RecordFormat::kAllFields) return append_one(record, key, static_cast<uint32_t>(field), random);
  for (uint32_t i = 0; i < spec_.field_count; ++i) append_one(record, key, i, random);
}

bool Values::check(std::string_view record, std::string_view key, int32_t field) {
  uint32_t right = 0, seen = 0;
  const bool is_record = format_.for_each(record, [&](uint32_t number, std::string_view value) {
    ++seen;
    if (number >= spec_.field_count || (field != RecordFormat::kAllFields && number != static_cast<uint32_t>(field))) {
      return;
    }
    write_derived(key, number, expected_.data(), expected_.size());
    right += value == expected_;
  });
  const uint32_t wanted = field == RecordFormat::kAllFields ? spec_.field_count : 1;
  return is_record && right == wanted && seen == wanted;
}

}  // namespace ub::ycsb
