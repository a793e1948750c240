// SPDX-License-Identifier: Apache-2.0
// prng.h - a small deterministic random source (xoshiro256** by Blackman and Vigna, seeded through splitmix64). The
// same seed gives the same numbers on every machine and with every compiler, so simulations and tests are replayed by
// their seed. It is not for secrets.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ub {

class Prng {
 public:
  explicit Prng(uint64_t seed) {
    for (uint64_t& s : s_) s = splitmix(seed);
  }

  uint64_t next_u64() {
    const uint64_t result = std::rotl(s_[1] * 5, 7) * 9;
    const uint64_t t = s_[1] << 17;
    s_[2] ^= s_[0];
    s_[3] ^= s_[1];
    s_[1] ^= s_[2];
    s_[0] ^= s_[3];
    s_[2] ^= t;
    s_[3] = std::rotl(s_[3], 45);
    return result;
  }
  uint32_t next_u32() { return static_cast<uint32_t>(next_u64() >> 32); }

  /// Uniform in [0, n); 0 if n is 0. The bias of the multiplication is below n / 2^64.
  uint64_t below(uint64_t n) {
    __extension__ using Wide = unsigned __int128;
    return static_cast<uint64_t>((Wide{next_u64()} * n) >> 64);
  }

  /// Uniform in [lo, hi], where both ends are included.
  uint64_t between(uint64_t lo, uint64_t hi) { return lo + below(hi - lo + 1); }

  /// True with probability p. It takes one number from the source for any p, so a change of p does not shift the rest.
  bool chance(double p) { return static_cast<double>(next_u64() >> 11) * 0x1.0p-53 < p; }

  void fill(std::byte* dst, size_t size_bytes) {
    while (size_bytes > 0) {
      const uint64_t v = next_u64();
      const size_t n = size_bytes < sizeof v ? size_bytes : sizeof v;
      std::memcpy(dst, &v, n);
      dst += n;
      size_bytes -= n;
    }
  }

 private:
  static uint64_t splitmix(uint64_t& x) {
    uint64_t z = (x += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  uint64_t s_[4];
};

}  // namespace ub
