// SPDX-License-Identifier: Apache-2.0
//
// The thread that listens for the end of rights to shared windows (shared_window.h). It begins with the first such
// window and sleeps until a NIC says something. A child of fork has neither the thread nor the windows. Thread: any;
// not from signal handlers.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "lib/ipc/fd.h"
#include "lib/urma/aperture/same_host/shared_window.h"

namespace ub::aperture {

class ShareWatcher {
 public:
  static ShareWatcher& get();
  static ShareWatcher* find();  // null: no window was ever added

  // False and `*error`: no thread or descriptor. Then the window must not be used, since its memory could not be taken
  // back.
  bool add(std::shared_ptr<SharedWindow> window, std::string* error);
  // The thread does not touch it any more when this returns.
  void remove(const SharedWindow* window);

 private:
  bool start(std::string* error);
  void run();

  std::mutex mutex_;  // held while windows are withdrawn, too
  ipc::Fd epoll_;
  std::vector<std::shared_ptr<SharedWindow>> windows_;
  bool started_ = false;
};

}  // namespace ub::aperture
