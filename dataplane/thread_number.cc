// SPDX-License-Identifier: Apache-2.0
#include "dataplane/thread_number.h"

#include <pthread.h>

#include <atomic>
#include <bit>

namespace ub {

thread_local constinit uint32_t threads::number_of_this_thread = kNotAsked;

namespace {

// The numbers of living threads: bit 0 is kNoThread's.
std::atomic<uint64_t> numbers_taken{1};
static_assert(kThreadNumbers == 64 && kNoThread == 0);

using threads::number_of_this_thread;

void give_number_back(void*) {
  numbers_taken.fetch_and(~(uint64_t{1} << number_of_this_thread), std::memory_order_release);
  number_of_this_thread = kNoThread;
}

// Calls give_number_back when a thread ends. A C++ destructor of thread_local storage would do the same, but the
// run-time library registers it with malloc and ends the process when there is no memory; a key only reports that it
// failed.
class ThreadEnds {
 public:
  ThreadEnds() : made_(pthread_key_create(&key_, give_number_back) == 0) {}
  ~ThreadEnds() {
    if (made_) pthread_key_delete(key_);
  }
  ThreadEnds(const ThreadEnds&) = delete;
  ThreadEnds& operator=(const ThreadEnds&) = delete;
  bool watch_this_thread() const { return made_ && pthread_setspecific(key_, this) == 0; }

 private:
  pthread_key_t key_{};
  bool made_;
};

ThreadEnds thread_ends;

uint32_t take_number() {
  uint64_t taken = numbers_taken.load(std::memory_order_relaxed);
  uint32_t number;
  do {
    number = static_cast<uint32_t>(std::countr_one(taken));
    if (number == kThreadNumbers) return kNoThread;
  } while (!numbers_taken.compare_exchange_weak(taken, taken | uint64_t{1} << number, std::memory_order_acquire));
  return number;
}

}  // namespace

uint32_t threads::take_number_of_this_thread() {
  number_of_this_thread = take_number();
  if (number_of_this_thread != kNoThread && !thread_ends.watch_this_thread()) give_number_back(nullptr);
  return number_of_this_thread;
}

}  // namespace ub
