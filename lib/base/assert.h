// SPDX-License-Identifier: Apache-2.0
// assert.h - checks for our own bugs, never for what a peer or an app sent (that is a counted drop or a
// status). UB_ASSERT stays in release builds; UB_DCHECK is for the hot path and vanishes with NDEBUG.
#pragma once

namespace ub {

/// Called after a failed check was printed, before the program aborts: to say what came before. Null: nothing.
/// Thread: before others run.
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
