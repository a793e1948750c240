// SPDX-License-Identifier: Apache-2.0
// eid.h - EIDs as the API has them and as the NIC has them: the same 16 bytes.
#pragma once

#include <cstring>

#include "lib/urma/backends/backend.h"
#include "lib/urma/include/ub/umdk/urma/urma_types.h"

namespace ub::urma {

inline Eid eid_of(const urma_eid_t& eid) {
  Eid out;
  static_assert(sizeof eid.raw == sizeof out.bytes);
  std::memcpy(out.bytes.data(), eid.raw, sizeof eid.raw);
  return out;
}
inline urma_eid_t eid_of(const Eid& eid) {
  urma_eid_t out;
  std::memcpy(&out, eid.bytes.data(), sizeof out);
  return out;
}

}  // namespace ub::urma
