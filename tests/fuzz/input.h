// SPDX-License-Identifier: Apache-2.0
// input.h - the input of a fuzz target: a script, read from the front, with zeros when it is used up; or a frame.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>

namespace ub {

// A copy of the input without a byte to spare, so that the sanitizer sees any read beyond it.
class ExactCopy {
 public:
  ExactCopy(const uint8_t* data, size_t size) : bytes_(new std::byte[size]), size_(size) {
    if (size != 0) std::memcpy(bytes_.get(), data, size);
  }
  std::span<const std::byte> bytes() const { return {bytes_.get(), size_}; }

 private:
  std::unique_ptr<std::byte[]> bytes_;
  size_t size_;
};

class Input {
 public:
  Input(const uint8_t* data, size_t bytes) : data_(data), left_(bytes) {}
  bool empty() const { return left_ == 0; }
  void take(void* to, size_t bytes) {
    const size_t n = bytes < left_ ? bytes : left_;
    std::memset(to, 0, bytes);
    if (n != 0) std::memcpy(to, data_, n);
    data_ += n;
    left_ -= n;
  }
  template <class T>
  T take() {
    T value;
    take(&value, sizeof value);
    return value;
  }
  uint32_t below(uint32_t n) { return take<uint8_t>() % n; }

 private:
  const uint8_t* data_;
  size_t left_;
};

}  // namespace ub
