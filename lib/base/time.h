// SPDX-License-Identifier: Apache-2.0
// time.h - time as a value. Nothing here reads a clock. The driver of the protocol passes `now` in, which comes from a
// TSC, the cycles of an emulated NIC, or a simulation. The unit is a nanosecond, and the driver chooses the origin of
// Instant.
#pragma once

#include <compare>
#include <cstdint>

namespace ub {

struct Duration {
  int64_t ns = 0;

  constexpr auto operator<=>(const Duration&) const = default;
  constexpr Duration operator+(Duration d) const { return {ns + d.ns}; }
  constexpr Duration operator-(Duration d) const { return {ns - d.ns}; }
  constexpr Duration operator-() const { return {-ns}; }
  constexpr Duration operator*(int64_t n) const { return {ns * n}; }
  constexpr Duration operator/(int64_t n) const { return {ns / n}; }
  constexpr Duration& operator+=(Duration d) { return *this = *this + d; }
  constexpr Duration& operator-=(Duration d) { return *this = *this - d; }
  constexpr int64_t us() const { return ns / 1000; }
  constexpr int64_t ms() const { return ns / 1'000'000; }
};

constexpr Duration nanoseconds(int64_t n) { return {n}; }
constexpr Duration microseconds(int64_t n) { return {n * 1000}; }
constexpr Duration milliseconds(int64_t n) { return {n * 1'000'000}; }
constexpr Duration seconds(int64_t n) { return {n * 1'000'000'000}; }

struct Instant {
  uint64_t ns = 0;

  /// Later than every other instant. A duration added to it leaves it there, so an unset deadline stays unset.
  static constexpr Instant never() { return {UINT64_MAX}; }
  constexpr bool is_never() const { return ns == UINT64_MAX; }

  constexpr auto operator<=>(const Instant&) const = default;
  constexpr Instant operator+(Duration d) const {
    return is_never() ? never() : Instant{ns + static_cast<uint64_t>(d.ns)};
  }
  constexpr Instant operator-(Duration d) const { return *this + -d; }
  constexpr Duration operator-(Instant i) const { return {static_cast<int64_t>(ns - i.ns)}; }
  constexpr Instant& operator+=(Duration d) { return *this = *this + d; }
};

constexpr Instant earlier(Instant a, Instant b) { return a < b ? a : b; }
constexpr Instant later(Instant a, Instant b) { return a < b ? b : a; }

}  // namespace ub
