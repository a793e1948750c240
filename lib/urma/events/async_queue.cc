// SPDX-License-Identifier: Apache-2.0
#include "lib/urma/events/async_queue.h"

#include <bit>

#include "lib/ipc/ring.h"
#include "lib/urma/events/event_fd.h"

namespace ub::urma {

bool AsyncQueue::open() {
  fd_ = open_event_fd();
  return fd_ >= 0;
}

void AsyncQueue::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

void AsyncQueue::push(AsyncSource& source, urma_async_event_type_t type, uint32_t instead_of) {
  std::lock_guard guard(mutex_);
  uint32_t bit = 1U << type;
  if (source.closed || (source.pending & bit) != 0) return;
  source.pending = (source.pending & ~instead_of) | bit;
  if (!source.queued) {
    source.queued = true;
    source.next = nullptr;
    (head_ == nullptr ? head_ : tail_->next) = &source;
    tail_ = &source;
  }
  ipc::ring(fd_);
}

bool AsyncQueue::take(urma_async_event_t* event) {
  std::lock_guard guard(mutex_);
  AsyncSource* source = head_;
  if (source == nullptr) return false;
  int type = std::countr_zero(source->pending);
  source->pending &= source->pending - 1;
  ++source->handed_out;
  event->event_type = static_cast<urma_async_event_type_t>(type);
  event->element.jfc = static_cast<urma_jfc_t*>(source->element);  // all members are pointers of one size
  event->priv = source;
  if (source->pending == 0) {
    source->queued = false;
    head_ = source->next;
    settle();
  }
  return true;
}

void AsyncQueue::readmit(AsyncSource& source) {
  std::lock_guard guard(mutex_);
  source.closed = false;
}

void AsyncQueue::remove(AsyncSource& source) {
  std::lock_guard guard(mutex_);
  source.closed = true;
  if (!source.queued) return;
  AsyncSource* before = nullptr;
  for (AsyncSource* at = head_; at != &source; at = at->next) before = at;
  (before == nullptr ? head_ : before->next) = source.next;
  if (tail_ == &source) tail_ = before;
  source.queued = false;
  source.pending = 0;
  settle();
}

void AsyncQueue::settle() {
  if (head_ == nullptr) lower_event_fd(fd_);
}

}  // namespace ub::urma
