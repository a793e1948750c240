// SPDX-License-Identifier: Apache-2.0
//
// What the rules of nft or iptables say about one UDP port. No evaluation of rules: a hint about those that name the
// port, and about chains that drop what no rule names.
#pragma once

#include <cstdint>

#include "tools/admin/doctor.h"

namespace ub::tools {

Finding judge_firewall(const FirewallFacts&, uint16_t port);

}  // namespace ub::tools
