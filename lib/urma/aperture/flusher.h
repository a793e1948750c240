// SPDX-License-Identifier: Apache-2.0
//
// The thread that writes back pages of write-through windows when they are due (CachedWindow::flush_due), or up to a
// millisecond later if none was dirty. It begins with the first such window and sleeps while there is none. A child of
// fork has neither the thread nor the windows. Thread: any; not from signal handlers.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "lib/urma/aperture/window/cached_window.h"

namespace ub::aperture {

class Flusher {
 public:
  static Flusher& get();
  static Flusher* find();  // null: no window was ever added

  // The pointer keeps alive what owns the window.
  void add(std::shared_ptr<CachedWindow> window);
  // The thread does not look at it any more when this returns.
  void remove(const CachedWindow* window);

 private:
  void start();
  void run();

  std::mutex mutex_;  // held while windows are flushed, too
  std::condition_variable changed_;
  std::vector<std::shared_ptr<CachedWindow>> windows_;
  bool started_ = false;
};

}  // namespace ub::aperture
