// SPDX-License-Identifier: Apache-2.0
//
// The key of record number n, as YCSB writes it: "user" and decimal digits, of n itself (insertorder=ordered) or of n
// scattered, so that neighbours lie apart. Thread: one.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "tools/ycsb/spec.h"

namespace ub::ycsb {

class KeyName {
 public:
  void set(const Spec& spec, uint64_t number) {
    if (!spec.ordered_keys) number = scattered(number);
    const fmt::format_int digits(number);
    const size_t zeros = spec.zero_padding > digits.size() ? spec.zero_padding - digits.size() : 0;
    char* end = std::fill_n(text_.data() + kPrefix.size(), zeros, '0');
    std::memcpy(end, digits.data(), digits.size());
    length_ = kPrefix.size() + zeros + digits.size();
  }
  std::string_view view() const { return {text_.data(), length_}; }

 private:
  static constexpr std::string_view kPrefix = "user";

  std::array<char, 224> text_{'u', 's', 'e', 'r'};
  size_t length_ = 0;
};

}  // namespace ub::ycsb
