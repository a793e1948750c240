// SPDX-License-Identifier: Apache-2.0
//
// Environment variables SOFTUB_<SECTION>_<KEY>.
#pragma once

#include <string>
#include <vector>

#include "dataplane/config.h"

namespace ub::configuration {

// Overlays `config` with what the variables say. Mistakes are added to `errors`; what they are about stays as it was.
void load_variables(const Environment& environment, LoadedConfig* config, std::vector<std::string>* errors);

}  // namespace ub::configuration
