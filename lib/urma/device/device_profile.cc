// SPDX-License-Identifier: Apache-2.0
#include "lib/urma/device/device_profile.h"

#include <algorithm>
#include <iterator>

namespace ub::urma {
namespace {

// Bits of urma_device_feature_t, by name. URMA API 0.9, section 4.
constexpr const char* kFeatures[] = {
    "oor",
    "jfc_per_wr",
    "stride_op",
    "load_store_op",
    "non_pin",
    "pmem",
    "jfc_inline",
    "spray_en",
    "selective_retrans",
    "live_migrate",
    "dca",
    "jetty_grp",
    "error_suspend",
    "outorder_comp",
    "mn",
    "clan",
    "muti_seg_per_token_id",
    "ipourma_en",
    "ctp_en",
    "uboe",
};
constexpr const char* kPortStates[] = {"nop", "down", "init", "armed", "active", "active_defer"};
constexpr const char* kSpeeds[] = {"10M", "100M", "1G",  "2.5G", "5G",   "10G",  "14G",
                                   "25G", "40G",  "50G", "100G", "200G", "400G", "800G"};

// The configuration was checked: it is there.
template <size_t N>
uint32_t index_of(const char* const (&names)[N], const std::string& name) {
  return static_cast<uint32_t>(std::find(std::begin(names), std::end(names), name) - std::begin(names));
}

uint32_t feature_bit(const std::string& name) { return 1u << index_of(kFeatures, name); }

}  // namespace

bool read_profile(const Config& all, DeviceSettings* settings, std::string* error) {
  const DeviceConfig& config = all.device;
  settings->name = config.name;
  settings->ports = config.ports;
  settings->port_state = static_cast<urma_port_state_t>(index_of(kPortStates, config.port_state));
  settings->port_speed = static_cast<urma_speed_t>(index_of(kSpeeds, config.port_speed));
  settings->port_width = static_cast<urma_link_width_t>(config.port_width);
  settings->features = 0;
  for (const std::string& feature : config.features) settings->features |= feature_bit(feature);
  if (all.transport.retransmission != "selective") settings->features &= ~feature_bit("selective_retrans");
  settings->rtp_priorities = config.rtp_priorities;
  settings->ctp_priorities = config.ctp_priorities;
  if (config.rtp_priorities + config.ctp_priorities <= URMA_MAX_PRIORITY_CNT) return true;
  *error = "device.rtp_priorities and device.ctp_priorities are " + std::to_string(config.rtp_priorities) + " and " +
           std::to_string(config.ctp_priorities) + "; there are " + std::to_string(URMA_MAX_PRIORITY_CNT) + " in all";
  return false;
}

}  // namespace ub::urma
