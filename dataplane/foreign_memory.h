// SPDX-License-Identifier: Apache-2.0
//
// Memory that only another process can see, named by pointers that no process has: bit 63 set, then the number of
// the client, then the address in its process. A Core computes with them as with any other; the port set sends
// accesses to whoever serves them. docs/daemon.md, "Memory".
//
// Thread: the owner of the Core.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/transport/host.h"

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

// The memory part of a Host (lib/transport/host.h).
class ForeignMemory {
 public:
  // `dst` lies in `frame`.
  virtual CopyResult gather(const std::byte* frame, std::byte* dst, const std::byte* src, size_t bytes, CopyTag) = 0;
  virtual CopyResult place(std::byte* dst, const std::byte* src, size_t bytes, bool final, CopyTag) = 0;
  virtual CopyResult atomic(const AtomicRequest&, uint128* old, CopyTag) = 0;
  // The frame was given back: what is still to be gathered into it goes nowhere, or to its copy at `held`.
  virtual void frame_aborted(const std::byte* frame) = 0;
  virtual void frame_held(const std::byte* frame, std::byte* held) = 0;

 protected:
  ~ForeignMemory() = default;
};

}  // namespace ub
