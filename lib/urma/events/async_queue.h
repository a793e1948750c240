// SPDX-License-Identifier: Apache-2.0
// async_queue.h - asynchronous events of one context, behind its async_fd.
//
// An event is a bit in the object it is about, and objects with bits set are chained: queueing allocates
// nothing, since it happens while a thread owns the Core. The same event of the same object is queued once.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "lib/urma/include/ub/umdk/urma/urma_types.h"

namespace ub::urma {

// Part of every object that asynchronous events are about.
struct AsyncSource {
  void* element = nullptr;  // the public object
  AsyncSource* next = nullptr;
  uint32_t pending = 0;                 // bit n: event type n waits
  std::atomic<uint32_t> handed_out{0};  // by urma_get_async_event; all must be acknowledged before deletion
  bool queued = false;
  bool closed = false;  // being deleted: takes no more events
};

class AsyncQueue {
 public:
  // False: errno says why.
  bool open();
  void close();
  int fd() const { return fd_; }

  // `instead_of`: events by bit that it makes untrue, if they still wait.
  void push(AsyncSource& source, urma_async_event_type_t type, uint32_t instead_of = 0);
  // False: empty.
  bool take(urma_async_event_t* event);
  // Lets an object that was removed have events again.
  void readmit(AsyncSource& source);
  // Drops what is queued for an object that goes away, and what may still come.
  void remove(AsyncSource& source);

 private:
  void settle();  // fd is not readable when nothing is queued

  std::mutex mutex_;
  AsyncSource* head_ = nullptr;
  AsyncSource* tail_ = nullptr;
  int fd_ = -1;
};

}  // namespace ub::urma
