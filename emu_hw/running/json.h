// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

#include "emu_hw/profiles/toml_file.h"

namespace ub::emu {

using Json = nlohmann::ordered_json;  // keys stay in the order in which they were written

// The library would also take -1 or 0.5, and make another number of it. Throws BadFile.
inline uint64_t whole_number(const Json& json) {
  if (!json.is_number_unsigned()) throw BadFile("is damaged: " + json.dump() + " is no whole number");
  return json.get<uint64_t>();
}

}  // namespace ub::emu
