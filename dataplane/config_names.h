// SPDX-License-Identifier: Apache-2.0
//
// Names that are nearly those of keys: what somebody may have meant who wrote one that is none.
#pragma once

#include <string>
#include <string_view>

#include "dataplane/config_key.h"

namespace ub::configuration {

// Letters to replace, to leave out or to add.
size_t edit_distance(std::string_view a, std::string_view b);
// The end of a sentence. `wrong` is "section.key" or "SOFTUB_SECTION_KEY"; `name_of` makes the same of a key.
std::string did_you_mean(std::string_view wrong, std::string (Key::*name_of)() const);
std::string did_you_mean_section(std::string_view wrong);

}  // namespace ub::configuration
