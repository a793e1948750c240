// SPDX-License-Identifier: Apache-2.0
//
// Configurations that tests begin with.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <vector>

#include "tools/common/tool_error.h"
#include "tools/fabric/config.h"

namespace ub::fabric {

inline Config over_udp(const std::vector<std::string>& names = {"a", "b"}) {
  Draft draft;
  for (const std::string& name : names) draft.nics.push_back({name, "udp", "test"});
  return finish(std::move(draft));
}

// Does the text have all these parts?
inline testing::AssertionResult has(const std::string& text, std::initializer_list<std::string> parts) {
  for (const std::string& part : parts) {
    if (text.find(part) == text.npos) return testing::AssertionFailure() << "\"" << part << "\" is not in: " << text;
  }
  return testing::AssertionSuccess();
}

// What the call says is wrong; empty: nothing.
template <class Call>
std::string complaint(Call&& call) {
  try {
    call();
  } catch (const tools::ToolError& error) {
    return error.what();
  }
  return {};
}

}  // namespace ub::fabric
