// SPDX-License-Identifier: Apache-2.0
//
// Two hosts that are joined by a link which loses nothing and carries TP bypass.
#pragma once

#include "emu_hw/node/emulated_host.h"

namespace ub::emu {

struct TwoHosts {
  explicit TwoHosts(const Parameters& p = {}, Fidelity f = kTwoNode)
      : parameters(p), here(kernel, parameters, f, 1), there(kernel, parameters, f, 2) {
    LinkConfig link;
    link.mtu = 4096;
    link.lossless = true;
    link.bypass = true;
    Node::join(here.node, there.node, link);
  }
  Kernel kernel;
  Parameters parameters;
  EmulatedHost here, there;
};

}  // namespace ub::emu
