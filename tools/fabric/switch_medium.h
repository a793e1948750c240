// SPDX-License-Identifier: Apache-2.0
//
// An Ethernet switch that learns MAC addresses, and so carries whatever its NICs send.
#pragma once

#include <memory>
#include <vector>

#include "tools/fabric/medium.h"
#include "tools/fabric/switch_port.h"

namespace ub::fabric {

// Port N is that of NIC N.
std::unique_ptr<Medium> make_switch(std::vector<std::unique_ptr<SwitchPort>> ports);

}  // namespace ub::fabric
