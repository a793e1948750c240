// SPDX-License-Identifier: Apache-2.0
//
// Pointers to memory that only another process can see, which no process has: bit 63 set, then the number of the
// client, then the address in its process (docs/daemon.md, "Memory"). Code that copies nothing computes with them as
// with any other.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ub {

constexpr uint32_t kForeignClients = 1u << 15;
constexpr uint64_t kForeignAddressLimit = uint64_t{1} << 48;

inline bool is_foreign(const std::byte* p) { return reinterpret_cast<intptr_t>(p) < 0; }
inline std::byte* foreign_pointer(uint32_t client, uint64_t address) {
  return reinterpret_cast<std::byte*>(uint64_t{1} << 63 | uint64_t{client} << 48 | address);
}
inline uint32_t foreign_client(const std::byte* p) {
  return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(p) >> 48) & (kForeignClients - 1);
}
inline uint64_t foreign_address(const std::byte* p) {
  return reinterpret_cast<uintptr_t>(p) & (kForeignAddressLimit - 1);
}

}  // namespace ub
