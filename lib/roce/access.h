// SPDX-License-Identifier: Apache-2.0
//
// Who may do what to memory, in the bits of verbs and in those of the engine.
#pragma once

#include <cstdint>

#include "lib/transport/core_types.h"

namespace ub::verbs {

/// Bits of access, with the values of ibv_access_flags. Local writing is always possible.
enum Access : uint32_t {
  kLocalWrite = 1 << 0,
  kRemoteWrite = 1 << 1,
  kRemoteRead = 1 << 2,
  kRemoteAtomic = 1 << 3,
};
inline constexpr uint32_t kEveryAccess = kLocalWrite | kRemoteWrite | kRemoteRead | kRemoteAtomic;

/// Access bits as the engine has them.
constexpr uint8_t to_engine_access(uint32_t access) {
  uint8_t bits = 0;
  if ((access & kRemoteWrite) != 0) bits |= kAccessWrite;
  if ((access & kRemoteRead) != 0) bits |= kAccessRead;
  if ((access & kRemoteAtomic) != 0) bits |= kAccessAtomic;
  return bits;
}
constexpr uint8_t from_engine_access(uint8_t bits) {
  uint8_t access = 0;
  if ((bits & kAccessWrite) != 0) access |= kRemoteWrite;
  if ((bits & kAccessRead) != 0) access |= kRemoteRead;
  if ((bits & kAccessAtomic) != 0) access |= kRemoteAtomic;
  return access;
}

}  // namespace ub::verbs
