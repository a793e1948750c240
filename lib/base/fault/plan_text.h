// SPDX-License-Identifier: Apache-2.0
// plan_text.h - reads the text that says what is to go wrong (docs/fault-injection.md): clauses, separated by
// semicolons or line ends, each a kind of fault and words KEY=VALUE.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lib/base/fault/plan.h"

namespace ub::fault {

struct ParsedPlan {
  std::optional<Plan> plan;
  std::string error;  // if there is no plan: a sentence that names the clause
};

ParsedPlan parse_plan(std::string_view text);

}  // namespace ub::fault
