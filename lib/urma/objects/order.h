// SPDX-License-Identifier: Apache-2.0
// order.h - which transport modes, order types and channel types go together (URMA API 0.9, 6.1).
#pragma once

#include <iterator>

#include "lib/urma/backends/backend.h"
#include "lib/urma/include/ub/umdk/urma/urma_types.h"

namespace ub::urma {

inline bool valid_mode(urma_transport_mode_t mode) {
  return mode == URMA_TM_RM || mode == URMA_TM_RC || mode == URMA_TM_UM;
}
inline Mode core_mode(urma_transport_mode_t mode) { return static_cast<Mode>(mode); }

inline uint32_t default_order(urma_transport_mode_t mode) {
  return mode == URMA_TM_RM ? URMA_OI : mode == URMA_TM_RC ? URMA_OL : URMA_NO;
}

// Order types as create_jfs, create_jetty and import_jetty accept them. NO passes for RC, as it does in the
// reference library.
inline bool order_fits(urma_transport_mode_t mode, uint32_t order) {
  switch (order) {
    case URMA_OT:
    case URMA_OL:
      return mode == URMA_TM_RC;
    case URMA_OI:
      return mode == URMA_TM_RM;
    case URMA_NO:
      return mode != URMA_TM_RM;
    default:
      return false;
  }
}

inline bool tp_type_fits(urma_transport_mode_t mode, urma_tp_type_t type) {
  switch (type) {
    case URMA_RTP:
      return mode != URMA_TM_UM;
    case URMA_UTP:
      return mode == URMA_TM_UM;
    case URMA_CTP:
      return true;
    default:
      return false;
  }
}

// For messages of the log.
inline const char* mode_name(urma_transport_mode_t mode) {
  return mode == URMA_TM_RM ? "RM" : mode == URMA_TM_RC ? "RC" : mode == URMA_TM_UM ? "UM" : "none";
}
inline const char* order_name(uint32_t order) {
  static constexpr const char* kNames[] = {"default", "OT", "OI", "OL", "NO"};
  return order < std::size(kNames) ? kNames[order] : "none";
}

// Lower-layer order is kept by one lane.
inline bool pinned_to_lane(urma_transport_mode_t mode, uint32_t order) {
  return mode == URMA_TM_RC && order == URMA_OL;
}
inline bool ordered_by_target(urma_transport_mode_t mode, uint32_t order) {
  return mode == URMA_TM_RC && order == URMA_OT;
}

}  // namespace ub::urma
