// SPDX-License-Identifier: Apache-2.0
// crc32.h - CRC-32 with the polynomial of Ethernet and zlib (0x04C11DB7, reflected): the sum behind the ICRC of UB Base
// Specification Rev 2.0, 5.3.7. The state is raw: start with crc32_init(), feed any number of pieces, end with
// crc32_final(). Check value: "123456789" gives 0xCBF43926. The first call picks the fastest engine that the CPU has;
// all engines give the same result.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ub {

constexpr uint32_t crc32_init() { return 0xFFFFFFFF; }
constexpr uint32_t crc32_final(uint32_t state) { return ~state; }

[[nodiscard]] uint32_t crc32_update(uint32_t state, const std::byte* data, size_t size_bytes);

/// Copies src to dst (they must not overlap) and sums the very bytes that were written. Each source byte is read only
/// once, so the sum fits the copy even if another thread changes the source meanwhile.
[[nodiscard]] uint32_t crc32_copy_update(uint32_t state, std::byte* dst, const std::byte* src, size_t size_bytes);

/// The state before `zero_bytes` zero bytes (less than 64 KiB) were fed, which made it `state`.
[[nodiscard]] uint32_t crc32_rewind(uint32_t state, size_t zero_bytes);

// For tests and benchmarks, which call the engines one by one.
enum class Crc32Engine { kTable, kPclmul, kVpclmul };
bool crc32_engine_supported(Crc32Engine engine);
const char* crc32_engine_name(Crc32Engine engine);
Crc32Engine crc32_engine_chosen();
uint32_t crc32_update_with(Crc32Engine engine, uint32_t state, const std::byte* data, size_t size_bytes);
uint32_t crc32_copy_update_with(Crc32Engine engine, uint32_t state, std::byte* dst, const std::byte* src,
                                size_t size_bytes);

}  // namespace ub
