// SPDX-License-Identifier: Apache-2.0
//
// Two hosts that are joined by a link, which carries TP bypass if it loses nothing.
#pragma once

#include "emu_hw/node/emulated_host.h"

namespace ub::emu {

struct TwoHosts {
  explicit TwoHosts(const Parameters& p = {}, Fidelity f = kTwoNode)
      : parameters(p), here(kernel, parameters, f, 1), there(kernel, parameters, f, 2) {
    Node::join(here.node, there.node, link_config(parameters));
  }
  Kernel kernel;
  Parameters parameters;
  EmulatedHost here, there;
};

}  // namespace ub::emu
