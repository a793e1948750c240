// SPDX-License-Identifier: Apache-2.0
// serial.h - sequence numbers that wrap: PSN, TPMSN (24 bit) and TASSN (16 bit). UB Base Specification Rev 2.0, 6.2.1
// and 7.2.1. `a` is after `b` if 0 < (a - b) mod 2^Bits < 2^(Bits-1). Invariant: the stored value is below 2^Bits.
// There is no operator< on purpose, because order on a circle depends on the reference: write `a.after(b)` or
// `a.distance(base) < b.distance(base)`.
#pragma once

#include <cstdint>
#include <type_traits>

namespace ub {

template <int Bits, class Tag>
class Serial {
  static_assert(Bits > 1 && Bits < 32);

 public:
  static constexpr int kBits = Bits;
  static constexpr uint32_t kMask = (uint32_t{1} << Bits) - 1;
  static constexpr uint32_t kHalf = uint32_t{1} << (Bits - 1);

  constexpr Serial() = default;
  constexpr explicit Serial(uint32_t v) : value_(static_cast<Storage>(v & kMask)) {}

  constexpr uint32_t value() const { return value_; }

  /// How many steps it takes to go forward from `from` to this one: (this - from) mod 2^Bits.
  constexpr uint32_t distance(Serial from) const { return (value() - from.value()) & kMask; }

  /// The same distance, as a number in [-2^(Bits-1), 2^(Bits-1)).
  constexpr int32_t signed_distance(Serial from) const {
    const uint32_t d = distance(from);
    return static_cast<int32_t>(d) - static_cast<int32_t>((d & kHalf) << 1);
  }

  constexpr bool after(Serial other) const {
    const uint32_t d = distance(other);
    return d != 0 && d < kHalf;
  }
  constexpr bool before(Serial other) const { return other.after(*this); }

  constexpr Serial operator+(int64_t n) const { return Serial(static_cast<uint32_t>(value() + n)); }
  constexpr Serial operator-(int64_t n) const { return Serial(static_cast<uint32_t>(value() - n)); }
  constexpr Serial& operator+=(int64_t n) { return *this = *this + n; }
  constexpr Serial& operator-=(int64_t n) { return *this = *this - n; }
  constexpr Serial& operator++() { return *this = *this + 1; }
  constexpr Serial operator++(int) {
    const Serial old = *this;
    ++*this;
    return old;
  }
  constexpr bool operator==(const Serial&) const = default;

 private:
  using Storage = std::conditional_t<(Bits <= 16), uint16_t, uint32_t>;
  Storage value_ = 0;
};

using Psn = Serial<24, struct PsnTag>;      ///< packet number of one direction of a TP channel or queue pair
using Tpmsn = Serial<24, struct TpmsnTag>;  ///< message number of one direction of a TP channel
using Tassn = Serial<16, struct TassnTag>;  ///< transaction segment number of one send queue

}  // namespace ub
