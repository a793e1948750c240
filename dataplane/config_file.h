// SPDX-License-Identifier: Apache-2.0
//
// A configuration file: TOML, a section for each section of the keys.
#pragma once

#include <string>
#include <vector>

#include "dataplane/config.h"

namespace ub::configuration {

// Overlays `config` with what the file says. Mistakes are added to `errors` in the order of its lines; what they are
// about stays as it was.
void load_file(const std::string& path, const Environment::File& file, LoadedConfig* config,
               std::vector<std::string>* errors);

}  // namespace ub::configuration
