// SPDX-License-Identifier: Apache-2.0
//
// A small number for a thread: an index into what is kept for each.
#pragma once

#include <cstdint>

namespace ub {

constexpr uint32_t kThreadNumbers = 64;
constexpr uint32_t kNoThread = 0;

namespace threads {

constexpr uint32_t kNotAsked = UINT32_MAX;
// Initial-exec: a word of the thread at a place that is known when the program is loaded, and not behind a call.
[[gnu::tls_model("initial-exec")]] extern thread_local constinit uint32_t number_of_this_thread;
uint32_t take_number_of_this_thread();

}  // namespace threads

// Below kThreadNumbers, and no other living thread of the process has it; a thread that ends gives it back. kNoThread:
// all were taken when this thread first asked, or there was no memory to learn of its end. Any thread, never blocks.
inline uint32_t this_thread_number() {
  const uint32_t number = threads::number_of_this_thread;
  return number != threads::kNotAsked ? number : threads::take_number_of_this_thread();
}

}  // namespace ub
