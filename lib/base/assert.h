// SPDX-License-Identifier: Apache-2.0
// assert.h - checks for our own bugs. They are never for what a peer or an application sent: that is a counted drop or
// a status. UB_ASSERT stays in release builds; UB_DCHECK is for the hot path and vanishes with NDEBUG.
#pragma once

namespace ub {

/// A function that says what came before a failed check: it is called after the check was printed, before the program
/// aborts. Null: there is none. Thread: it is set before other threads run.
using LastWords = void (*)();
void set_last_words(LastWords words);

/// Prints the expression and its place to stderr, then aborts.
[[noreturn, gnu::noinline, gnu::cold]] void assert_failed(const char* expr, const char* file, int line);

}  // namespace ub

#define UB_ASSERT(cond)                               \
  do {                                                \
    if (!(cond)) [[unlikely]]                         \
      ::ub::assert_failed(#cond, __FILE__, __LINE__); \
  } while (0)

#ifdef NDEBUG
#define UB_DCHECK(cond)           \
  do {                            \
    (void)sizeof((cond) ? 1 : 0); \
  } while (0)
#else
#define UB_DCHECK(cond) UB_ASSERT(cond)
#endif
