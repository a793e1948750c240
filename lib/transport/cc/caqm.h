// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/transport/cc/member.h"

namespace ub::cc {

struct Caqm : Member {};

}  // namespace ub::cc
