// SPDX-License-Identifier: Apache-2.0
//
// errno as the program left it. Its data calls drive the NIC, which makes system calls of its own; whether one of them
// fails (a socket is empty, a signal came) is nothing that the program asked. So errno is put back where its thread
// leaves the driving, around all system calls at once: cheaper to get right than one by one. Thread: any.
#pragma once

#include <cerrno>

namespace ub::ipc {

class KeepErrno {
 public:
  KeepErrno() : place_(&errno), before_(*place_) {}
  ~KeepErrno() { *place_ = before_; }
  KeepErrno(const KeepErrno&) = delete;
  KeepErrno& operator=(const KeepErrno&) = delete;

 private:
  int* const place_;  // asked for once: each time it is a call into libc
  const int before_;
};

}  // namespace ub::ipc
