// SPDX-License-Identifier: Apache-2.0
// placement.h - the choice of the NIC behind liburma, and what the user's configuration says about its
// device. The shared library brings placement.cc; tests bring a fake.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "lib/urma/backend.h"

namespace ub::urma {

// What the device calls itself and how large its tables may be.
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
};

struct Placement {
  std::unique_ptr<Backend> backend;  // null: failed
  DeviceSettings settings;
  std::string error;  // why
};

Placement place_nic(uint32_t wanted_uasid);

}  // namespace ub::urma
