// SPDX-License-Identifier: Apache-2.0
//
// The key of record number n, as YCSB writes it: "user" and decimal digits, of n itself (insertorder=ordered) or of n
// scattered, so that neighbours lie apart. Thread: one.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "tools/ycsb/spec.h"

namespace ub::ycsb {

class KeyName {
 public:
  void set(const Spec& spec, uint64_t number) {
    if (!spec.ordered_keys) number = scattered(number);
    char digits[20];
    const auto count = static_cast<size_t>(std::to_chars(digits, digits + sizeof digits, number).ptr - digits);
    const size_t zeros = spec.zero_padding > count ? spec.zero_padding - count : 0;
    std::memset(text_.data() + kPrefix.size(), '0', zeros);
    std::memcpy(text_.data() + kPrefix.size() + zeros, digits, count);
    length_ = kPrefix.size() + zeros + count;
  }
  std::string_view view() const { return {text_.data(), length_}; }

  static constexpr size_t kMost = 224;

 private:
  static constexpr std::string_view kPrefix = "user";

  std::array<char, kMost> text_{'u', 's', 'e', 'r'};
  size_t length_ = 0;
};

}  // namespace ub::ycsb
