// SPDX-License-Identifier: Apache-2.0
#include "lib/base/assert.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace ub {
namespace {

LastWords last_words = nullptr;

}  // namespace

void set_last_words(LastWords words) { last_words = words; }

void assert_failed(const char* expr, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: assertion failed: %s\n", file, line, expr);
  // If a check fails in there, the function is not called again.
  if (const LastWords words = std::exchange(last_words, nullptr)) words();
  std::abort();
}

}  // namespace ub
