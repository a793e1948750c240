// SPDX-License-Identifier: Apache-2.0
#include "lib/urma/aperture/flusher.h"

#include <chrono>
#include <thread>
#include <utility>

#include "lib/ipc/of_process.h"
#include "lib/ipc/silent_thread.h"
#include "lib/urma/clock.h"

namespace ub::aperture {
namespace {

// A window does not tell when it becomes dirty, so somebody looks now and then.
constexpr Duration kShortestPause = microseconds(20), kLongestPause = milliseconds(1);

constinit ipc::OfProcess<Flusher> g_flusher;

}  // namespace

Flusher& Flusher::get() { return g_flusher.get(); }
Flusher* Flusher::find() { return g_flusher.find(); }

void Flusher::add(std::shared_ptr<CachedWindow> window) {
  std::lock_guard guard(mutex_);
  windows_.push_back(std::move(window));
  start();
  changed_.notify_one();
}

void Flusher::start() {
  if (started_) return;
  std::thread thread = ipc::silent_thread("softub-flush", [this] { run(); });
  if (!thread.joinable()) return;  // the next window tries again
  thread.detach();
  started_ = true;
}

void Flusher::remove(const CachedWindow* window) {
  std::lock_guard guard(mutex_);
  std::erase_if(windows_, [window](const auto& each) { return each.get() == window; });
}

void Flusher::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return !windows_.empty(); });
    const Instant now{static_cast<uint64_t>(urma::now_ns())};
    Instant due = now + kLongestPause;
    for (const auto& window : windows_) due = earlier(due, window->flush_due(now));
    const Duration pause = due > now + kShortestPause ? due - now : kShortestPause;
    changed_.wait_for(lock, std::chrono::nanoseconds(pause.ns));
  }
}

}  // namespace ub::aperture
