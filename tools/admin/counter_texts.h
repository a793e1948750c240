// SPDX-License-Identifier: Apache-2.0
//
// What the counters of a statistics page mean. A page has only their names; the texts are those of the lists in which
// counters are declared.
#pragma once

#include <string>
#include <string_view>

namespace ub::tools {

// Empty: no list has it, so that the instance is of another build.
std::string counter_text(std::string_view name);

// Does a port count it, beside the Core?
bool is_port_counter(std::string_view name);

// Does it count what was lost, dropped or refused?
bool counts_losses(std::string_view name);

}  // namespace ub::tools
