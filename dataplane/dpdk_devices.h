// SPDX-License-Identifier: Apache-2.0
//
// The section dpdk of the configuration, device by device. dpdk.device holds one or more, separated by semicolons;
// "10.2.0.1/24@net_memif1" in dpdk.addresses is an address of the device of that name, without one of the first.
// Gateways and neighbours belong to the device in whose networks they are.
//
// Thread: any.
#pragma once

#include <string>
#include <vector>

#include "dataplane/config.h"
#include "dataplane/plugin_port.h"

namespace ub {

// Devargs, one element per device.
std::vector<std::string> dpdk_devices(const DpdkConfig&);
// "net_memif0,role=client" names net_memif0.
std::string dpdk_device_name(const std::string& devargs);

// What each port is to be opened with, as far as the configuration says it. Empty and `*error`: no device, one without
// an address, an address of no device.
std::vector<PluginPortOptions> dpdk_ports(const DpdkConfig&, std::string* error);

}  // namespace ub
