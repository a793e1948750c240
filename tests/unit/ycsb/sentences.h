// SPDX-License-Identifier: Apache-2.0
//
// Errors of users: the exit code of wrong usage, and a sentence with all that it must name.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>

#include "tools/common/tool_error.h"

namespace ub::ycsb {

template <class Action>
void expect_sentence(Action action, std::initializer_list<const char*> parts) {
  try {
    action();
    ADD_FAILURE() << "no error";
  } catch (const tools::ToolError& error) {
    EXPECT_EQ(error.code(), tools::kExitUsage) << error.what();
    for (const char* part : parts) EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

}  // namespace ub::ycsb
