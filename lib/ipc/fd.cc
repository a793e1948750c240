// SPDX-License-Identifier: Apache-2.0
#include "lib/ipc/fd.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <unordered_set>

#include "lib/ipc/not_cancelled.h"

namespace ub::ipc {
namespace {

// It is never destroyed, because Fds in static objects may live longer than any static object here.
struct Registry {
  std::mutex mutex;
  std::unordered_set<int> fds;
  std::atomic<uint32_t> process{1};
};

Registry& registry();

// The lock is held across fork, so the child finds the set whole.
void before_fork() { registry().mutex.lock(); }
void in_parent() { registry().mutex.unlock(); }
void in_child() {
  Registry& r = registry();
  for (int fd : r.fds) ::close(fd);
  r.fds.clear();
  r.process.fetch_add(1, std::memory_order_relaxed);
  r.mutex.unlock();
}

Registry& registry() {
  static Registry* r = [] {
    auto* made = new Registry;
    ::pthread_atfork(before_fork, in_parent, in_child);
    return made;
  }();
  return *r;
}

}  // namespace

uint32_t fork_generation() { return registry().process.load(std::memory_order_relaxed); }

Fd::Fd(int fd) : fd_(fd) {
  if (fd < 0) return;
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  r.fds.insert(fd);
  process_ = r.process.load(std::memory_order_relaxed);
}

void Fd::reset() {
  if (fd_ < 0) return;
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  if (process_ == r.process.load(std::memory_order_relaxed)) {
    r.fds.erase(fd_);
    const NotCancelled guard;
    ::close(fd_);
  }
  fd_ = -1;
}

}  // namespace ub::ipc
