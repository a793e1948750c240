// SPDX-License-Identifier: Apache-2.0
//
// The configuration of a host's Core.
#pragma once

#include <string>

#include "emu_hw/profiles/parameters.h"
#include "lib/transport/core_types.h"

namespace ub::emu {

CoreConfig core_config(const Parameters&, uint32_t number);

// Why a Core cannot have these values; "": it can.
std::string refusal_of_core_config(const Parameters&);

}  // namespace ub::emu
