// SPDX-License-Identifier: Apache-2.0
//
// Why a window could not be made.
#pragma once

#include <string>

#include "lib/urma/include/ub/umdk/urma/urma_opcode.h"

namespace ub::aperture {

struct WindowError {
  // URMA_EINVAL: the options make no sense. URMA_ENOPERM: the kernel refuses what a window needs. URMA_ENOMEM.
  urma_status_t status = URMA_SUCCESS;
  std::string why;  // a sentence
};

}  // namespace ub::aperture
