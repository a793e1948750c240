// SPDX-License-Identifier: Apache-2.0
// tp.h - what stands behind the handles of urma_get_tp_list. A channel belongs to a pair of instances and is found by
// them, so a handle only names (context, peer EID, transport mode, kind of channel): the same four, the same handle.
// Handles last as long as their context.
// Thread: any.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <mutex>

#include "lib/urma/backends/backend.h"
#include "lib/urma/include/ub/umdk/urma/urma_types.h"

namespace ub::urma {

class TpTable {
 public:
  struct Key {
    decltype(Eid::bytes) peer;
    urma_transport_mode_t mode;
    urma_tp_type_t kind;
    auto operator<=>(const Key&) const = default;
  };

  uint64_t handle_of(const Key& key);  // may throw std::bad_alloc
  // Was it given out for this peer and mode?
  bool leads_to(uint64_t handle, const Eid& peer, urma_transport_mode_t mode);
  // Attributes are kept for whoever reads them back; false: unknown handle.
  bool set(uint64_t handle, uint32_t bitmap, const urma_tp_attr_value_t& values);
  bool get(uint64_t handle, uint32_t* bitmap, urma_tp_attr_value_t* values);
  void clear();

 private:
  struct Tp {
    Key key;
    uint32_t set = 0;  // bit n: the n-th attribute was set
    urma_tp_attr_value_t values{};
  };

  std::mutex mutex_;
  std::map<Key, uint64_t> handles_;
  std::map<uint64_t, Tp> tps_;  // by handle
};

}  // namespace ub::urma
