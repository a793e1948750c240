// SPDX-License-Identifier: Apache-2.0
//
// Results of points as JSON, and back without a loss.
#pragma once

#include "emu_hw/models/model.h"
#include "emu_hw/running/json.h"

namespace ub::emu {

Json json_of(const PointResult&);
// Throws nlohmann::json::exception and BadFile.
PointResult point_of(const Json&);

}  // namespace ub::emu
