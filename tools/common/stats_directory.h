// SPDX-License-Identifier: Apache-2.0
//
// Where the instances of this user publish their statistics pages (dataplane/stats_page.h).
#pragma once

#include <optional>
#include <string>

namespace ub::tools {

// As the configuration of this process says. Nothing and `*error`: it is wrong.
std::optional<std::string> stats_directory(std::string* error);

}  // namespace ub::tools
