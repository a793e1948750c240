// SPDX-License-Identifier: Apache-2.0
//
// Time of the emulation, in picoseconds: cycles of any clock and bits of any link can be told apart, and 213 days fit.
// Nothing here rounds; clock_domain.h does.
#pragma once

#include <compare>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace ub::emu {

// How long something takes.
struct Span {
  uint64_t ps = 0;

  constexpr auto operator<=>(const Span&) const = default;
  constexpr Span operator+(Span s) const;
  Span operator*(uint64_t n) const;
  constexpr Span& operator+=(Span s) { return *this = *this + s; }
  constexpr double ns() const { return static_cast<double>(ps) / 1000; }
};

constexpr Span picoseconds(uint64_t n) { return {n}; }
constexpr Span whole_nanoseconds(uint64_t n) { return {n * 1000}; }

// A point of time. 0 is when the first operation is issued.
struct Time {
  uint64_t ps = 0;

  constexpr auto operator<=>(const Time&) const = default;
  constexpr Span operator-(Time earlier) const { return {ps - earlier.ps}; }
  constexpr uint64_t whole_ns() const { return ps / 1000; }
};

// Beyond the end of virtual time. The text names who asked.
class TimeOverflow : public std::overflow_error {
 public:
  explicit TimeOverflow(const std::string& who)
      : std::overflow_error(who + ": later than the 213 days of virtual time; is a delay mistaken?") {}
};

constexpr Span Span::operator+(Span s) const {
  if (s.ps > UINT64_MAX - ps) throw TimeOverflow("a sum of delays");
  return {ps + s.ps};
}

// What a random number or a rate comes to, cut; `who` asks for it.
inline Span cut_to_picoseconds(double ps, const char* who) {
  if (!(ps < 0x1p64)) throw TimeOverflow(who);
  return {static_cast<uint64_t>(ps)};
}

inline Span Span::operator*(uint64_t n) const {
  if (n != 0 && ps > UINT64_MAX / n) throw TimeOverflow("so many times a delay");
  return {ps * n};
}

// `who` asks for what comes so much later.
constexpr Time after(Time now, Span span, const char* who) {
  if (span.ps > UINT64_MAX - now.ps) throw TimeOverflow(who);
  return {now.ps + span.ps};
}

}  // namespace ub::emu
