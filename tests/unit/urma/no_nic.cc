// SPDX-License-Identifier: Apache-2.0
//
// For tests of parts of the library: it finds no NIC, so it never comes up.
#include "lib/urma/backends/placement.h"

namespace ub::urma {

Placement place_nic(uint32_t) { return {}; }

}  // namespace ub::urma
