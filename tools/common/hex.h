// SPDX-License-Identifier: Apache-2.0
//
// Plain values as text, for what two sides tell each other over TCP: two hexadecimal digits for each byte.
#pragma once

#include <fmt/format.h>

#include <charconv>
#include <cstring>
#include <string>
#include <type_traits>

#include "tools/common/tool_error.h"

namespace ub::tools {

template <class T>
std::string to_hex(const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  unsigned char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  std::string text;
  for (unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

// ToolError: the text is no such value.
template <class T>
T from_hex(const std::string& text) {
  static_assert(std::is_trivially_copyable_v<T>);
  unsigned char bytes[sizeof(T)];
  bool good = text.size() == 2 * sizeof bytes;
  for (size_t i = 0; good && i < sizeof bytes; ++i) {
    const char* digits = text.data() + 2 * i;
    good = std::from_chars(digits, digits + 2, bytes[i], 16).ptr == digits + 2;
  }
  if (!good) throw ToolError("what the peer says of itself is garbled: another version?");
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

}  // namespace ub::tools
