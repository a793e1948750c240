// SPDX-License-Identifier: Apache-2.0
// placement.h - the choice of the NIC behind liburma, and what the user's configuration says about its
// device. The shared library brings placement.cc; tests bring a fake.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lib/urma/backends/backend.h"
#include "lib/urma/include/ub/umdk/urma/urma_types.h"

namespace ub::urma {

// An EID that is reached at another address than its own.
struct EidMapping {
  Eid eid;
  IpAddress ip;
};

// What the device says of itself, and how large its tables may be.
struct DeviceSettings {
  std::string name = "softub0";
  uint32_t max_jfc = 65536;
  uint32_t max_jfs = 65536;
  uint32_t max_jfr = 65536;
  uint32_t max_jetty = 65536;
  uint32_t max_jfc_depth = 65536;
  uint32_t max_jfs_depth = 16384;
  uint32_t max_jfr_depth = 32768;
  uint32_t window_packets = 512;
  uint32_t ports = 1;
  urma_port_state_t port_state = URMA_PORT_ACTIVE;
  urma_speed_t port_speed = URMA_SP_100G;
  urma_link_width_t port_width = URMA_LINK_X1;
  uint32_t features = 0;  // urma_device_feature_t::value
  // Priorities that stand for each type of channel, lowest first; the rest stands for UTP.
  uint32_t rtp_priorities = 8, ctp_priorities = 6;
  std::vector<EidMapping> eid_map;
  std::string faults;  // docs/fault-injection.md
};

struct Placement {
  std::unique_ptr<Backend> backend;  // null: failed
  DeviceSettings settings;
  std::string error;  // why
};

Placement place_nic(uint32_t wanted_uasid);

}  // namespace ub::urma
