// SPDX-License-Identifier: Apache-2.0
//
// How a record stands in the value of a store that knows nothing of fields: each field is its number (16 bits), the
// length of its value (32 bits) and its value, in little-endian order. Of a workload with one field the record is the
// value alone.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace ub::ycsb {

class RecordFormat {
 public:
  explicit RecordFormat(uint32_t fields) : bare_(fields == 1) {}

  // Makes room for a value at the end of the record. The caller fills the `length` bytes that are returned.
  char* append(std::string* record, uint32_t field, uint32_t length) const {
    const size_t before = record->size();
    record->resize(before + header() + length);
    char* p = record->data() + before;
    if (bare_) return p;
    const auto number = static_cast<uint16_t>(field);
    std::memcpy(p, &number, sizeof number);
    std::memcpy(p + sizeof number, &length, sizeof length);
    return p + kHeader;
  }
  void append(std::string* record, uint32_t field, std::string_view value) const {
    std::memcpy(append(record, field, static_cast<uint32_t>(value.size())), value.data(), value.size());
  }

  // fn(field, value) for each field. False if the bytes are no record.
  template <class Fn>
  bool for_each(std::string_view record, Fn fn) const {
    if (bare_) {
      fn(uint32_t{0}, record);
      return true;
    }
    while (!record.empty()) {
      uint16_t field;
      uint32_t length;
      if (record.size() < kHeader) return false;
      std::memcpy(&field, record.data(), sizeof field);
      std::memcpy(&length, record.data() + sizeof field, sizeof length);
      if (record.size() - kHeader < length) return false;
      fn(uint32_t{field}, record.substr(kHeader, length));
      record.remove_prefix(kHeader + length);
    }
    return true;
  }

  // Replaces those fields of the record that `changes` has. What the record lacks is appended.
  void merge(std::string* record, std::string_view changes) const {
    if (bare_) {
      record->assign(changes);
      return;
    }
    for_each(changes, [&](uint32_t field, std::string_view value) {
      size_t at = 0;
      uint32_t old_length = 0;
      if (!find(*record, field, &at, &old_length)) return append(record, field, value);
      const auto length = static_cast<uint32_t>(value.size());
      record->replace(at, old_length, value);
      std::memcpy(record->data() + at - sizeof length, &length, sizeof length);
    });
  }

  // Appends to `part` the field of the record, or all of them, as a record of its own.
  static constexpr int32_t kAllFields = -1;
  void copy(std::string_view record, int32_t field, std::string* part) const {
    size_t at = 0;
    uint32_t length = 0;
    if (field == kAllFields || bare_) {
      part->append(record);
    } else if (find(record, static_cast<uint32_t>(field), &at, &length)) {
      part->append(record.substr(at - kHeader, kHeader + length));
    }
  }

 private:
  static constexpr size_t kHeader = sizeof(uint16_t) + sizeof(uint32_t);

  size_t header() const { return bare_ ? 0 : kHeader; }

  // Where the value of the field begins.
  bool find(std::string_view record, uint32_t wanted, size_t* at, uint32_t* length) const {
    bool found = false;
    for_each(record, [&](uint32_t field, std::string_view value) {
      if (field != wanted) return;
      *at = static_cast<size_t>(value.data() - record.data());
      *length = static_cast<uint32_t>(value.size());
      found = true;
    });
    return found;
  }

  bool bare_;
};

}  // namespace ub::ycsb
