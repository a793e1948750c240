// SPDX-License-Identifier: Apache-2.0
#include "lib/urma/backends/placement.h"

#include "dataplane/config.h"
#include "dataplane/daemon_socket.h"
#include "dataplane/eid.h"
#include "lib/urma/backends/daemon/daemon_backend.h"
#include "lib/urma/device/device_profile.h"
#include "lib/urma/log.h"

namespace ub::urma {
namespace {

std::unique_ptr<Backend> start_daemon(const Config& config, std::string* error) {
  DaemonOptions options;
  options.socket = daemon_socket_to_connect(config.daemon.socket);
  options.helper_spin = config.progress.helper_spin;
  options.away_least = config.progress.helper_backoff_min;
  options.away_most = config.progress.helper_backoff_max;
  return start_daemon_backend(options, error);
}

std::unique_ptr<Backend> start_backend(const Config& config, uint32_t wanted_uasid, std::string* error) {
  const std::string& mode = config.placement.mode;
  if (mode == "embedded") return start_embedded_backend(wanted_uasid, error);
  std::unique_ptr<Backend> backend = start_daemon(config, error);
  if (mode == "daemon") return backend;
  URMA_LOG_INFO("placement.mode = auto: the NIC is %s%s", backend != nullptr ? "the daemon's" : "embedded, since ",
                backend != nullptr ? "" : error->c_str());
  return backend != nullptr ? std::move(backend) : start_embedded_backend(wanted_uasid, error);
}

}  // namespace

Placement place_nic(uint32_t wanted_uasid) {
  Placement placement;
  ConfigResult loaded = load_config();
  if (!loaded.config) {
    placement.error = loaded.error;
    return placement;
  }
  const Config& config = *loaded.config;
  DeviceSettings& settings = placement.settings;
  if (!read_profile(config, &settings, &placement.error)) return placement;
  settings.max_jfc = config.limits.max_jfc;
  settings.max_jfs = config.limits.max_jfs;
  settings.max_jfr = config.limits.max_jfr;
  settings.max_jetty = config.limits.max_jetty;
  settings.max_jfc_depth = config.limits.jfc_depth;
  settings.max_jfs_depth = config.limits.jfs_depth;
  settings.max_jfr_depth = config.limits.jfr_depth;
  settings.window_packets = config.transport.window_packets;
  settings.faults = config.fault.inject;
  for (const std::string& entry : config.device.eid_map) {
    if (auto mapping = parse_eid_mapping(entry)) settings.eid_map.push_back({mapping->first, mapping->second});
  }
  placement.backend = start_backend(config, wanted_uasid, &placement.error);
  return placement;
}

}  // namespace ub::urma
