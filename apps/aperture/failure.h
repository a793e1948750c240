// SPDX-License-Identifier: Apache-2.0
//
// Calls of URMA that fail become ToolErrors.
#pragma once

#include <cerrno>
#include <cstring>
#include <string>

#include "tools/common/tool_error.h"

namespace ub::apps {

// `what` completes the sentence "cannot ...".
template <class T>
T* need(T* object, const std::string& what) {
  if (object == nullptr) throw tools::ToolError("cannot " + what + ": " + std::strerror(errno));
  return object;
}

}  // namespace ub::apps
