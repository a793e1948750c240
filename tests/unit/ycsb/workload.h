// SPDX-License-Identifier: Apache-2.0
//
// A workload out of the lines of a property file.
#pragma once

#include <string>

#include "tools/ycsb/spec.h"

namespace ub::ycsb {

inline Spec workload(const std::string& text) {
  Properties properties;
  properties.read_text(text, "file");
  return read_spec(properties);
}

}  // namespace ub::ycsb
