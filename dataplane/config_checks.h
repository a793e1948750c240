// SPDX-License-Identifier: Apache-2.0
//
// What values a configuration may have: each by itself, then those that depend on each other.
#pragma once

#include <string>
#include <vector>

#include "dataplane/config_key.h"

namespace ub::configuration {

// What is wrong with it, or nothing.
std::string check_value(const Key& key, const Value& value);
// Each is valid by itself. What is wrong is added to `errors`.
void check_together(const LoadedConfig& config, std::vector<std::string>* errors);
// Puts a value in force that was found at `source`, if it is one. What is wrong with it, or nothing.
std::string put_in_force(size_t key, Parsed&& found, std::string source, LoadedConfig* config);

}  // namespace ub::configuration
