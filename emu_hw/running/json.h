// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

namespace ub::emu {

using Json = nlohmann::ordered_json;  // keys stay in the order in which they were written

}  // namespace ub::emu
