// SPDX-License-Identifier: Apache-2.0
// fuzz_canary.cc - has a bug on purpose, which the fuzzer must find: it reads one byte behind a record that begins
// right. To get there takes guidance by coverage, to see it takes the sanitizer. The nightly run fails if this target
// does not.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static constexpr uint8_t kBegin[] = {'U', 'B', 'C', '1', 0x0b};
  if (size < sizeof kBegin) return 0;
  std::unique_ptr<uint8_t[]> exact(new uint8_t[size]);
  std::memcpy(exact.get(), data, size);
  for (size_t i = 0; i < sizeof kBegin; ++i) {
    if (exact[i] != kBegin[i]) return 0;
  }
  volatile uint8_t behind = exact[size];
  (void)behind;
  return 0;
}
