// SPDX-License-Identifier: Apache-2.0
#include "lib/base/assert.h"

#include <cstdio>
#include <cstdlib>

namespace ub {

void assert_failed(const char* expr, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: assertion failed: %s\n", file, line, expr);
  std::abort();
}

}  // namespace ub
