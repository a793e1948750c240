// SPDX-License-Identifier: Apache-2.0
//
// The thread that listens for the end of rights to memory that this program has mapped: shared windows
// (shared_window.h), and segments that requests reach without packets (mapped_segment.h). It begins with the
// first one and sleeps until a NIC says something. A child of fork has neither the thread nor the memory. Thread: any;
// not from signal handlers.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "lib/ipc/fd.h"
#include "lib/urma/aperture/same_host/watched_share.h"

namespace ub::aperture {

class ShareWatcher {
 public:
  static ShareWatcher& get();
  static ShareWatcher* find();  // null: nothing was ever added

  // False and `*error`: no thread or descriptor. Then the memory must not be used, since it could not be taken back.
  bool add(std::shared_ptr<WatchedShare> share, std::string* error);
  // This program's NIC ends: what needs it ends now.
  void nic_ends();
  // The thread does not touch it any more when this returns.
  void remove(const WatchedShare* share);

 private:
  bool start(std::string* error);
  bool watch(WatchedShare& share);
  void ignore(const WatchedShare& share);
  void run();

  std::mutex mutex_;  // held while shares end, too
  ipc::Fd epoll_;
  std::vector<std::shared_ptr<WatchedShare>> shares_;
  bool started_ = false;
};

}  // namespace ub::aperture
