// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/transport/cc/member.h"

namespace ub::cc {

struct Swift : Member {};

}  // namespace ub::cc
