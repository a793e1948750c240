// SPDX-License-Identifier: Apache-2.0
//
// The tests, each in both roles. They throw ToolError where the other tool, the wire or the data is not as it must be.
#pragma once

#include "tools/roce_peer/endpoint.h"
#include "tools/roce_peer/options.h"

namespace ub::roce_peer {

// What a person reads at the end.
std::string run_rc_pingpong(const Options&);
std::string run_uc_pingpong(const Options&);
std::string run_ud_pingpong(const Options&);
std::string run_perftest(const Options&);
std::string run_rping(const Options&);

}  // namespace ub::roce_peer
