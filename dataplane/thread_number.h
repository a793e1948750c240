// SPDX-License-Identifier: Apache-2.0
//
// A small number for a thread: an index into what is kept for each.
#pragma once

#include <cstdint>

namespace ub {

constexpr uint32_t kThreadNumbers = 64;
constexpr uint32_t kNoThread = 0;

// Below kThreadNumbers, and no other living thread of the process has it; a thread that ends gives it back. kNoThread:
// all were taken when this thread first asked, or there was no memory to learn of its end. Any thread, never blocks.
uint32_t this_thread_number();

}  // namespace ub
