// SPDX-License-Identifier: Apache-2.0
#include "lib/urma/placement.h"

#include "dataplane/config.h"

namespace ub::urma {

Placement place_nic(uint32_t wanted_uasid) {
  Placement placement;
  ConfigResult loaded = load_config();
  if (!loaded.config) {
    placement.error = loaded.error;
    return placement;
  }
  const Config& config = *loaded.config;
  DeviceSettings& settings = placement.settings;
  settings.name = config.device.name;
  settings.max_jfc = config.limits.max_jfc;
  settings.max_jfs = config.limits.max_jfs;
  settings.max_jfr = config.limits.max_jfr;
  settings.max_jetty = config.limits.max_jetty;
  settings.max_jfc_depth = config.limits.jfc_depth;
  settings.max_jfs_depth = config.limits.jfs_depth;
  settings.max_jfr_depth = config.limits.jfr_depth;
  settings.window_packets = config.transport.window_packets;
  if (config.placement.mode != "embedded") {
    placement.error = "placement.mode = " + config.placement.mode + ": only 'embedded' is available in this build";
    return placement;
  }
  placement.backend = start_embedded_backend(wanted_uasid, &placement.error);
  return placement;
}

}  // namespace ub::urma
