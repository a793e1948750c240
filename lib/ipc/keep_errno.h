// SPDX-License-Identifier: Apache-2.0
//
// Keeps errno as the program left it. The program's data calls drive the NIC, which makes system calls of its own. If
// one of them fails (a socket is empty, a signal came), that is nothing that the program asked. So errno is put back
// where a thread stops driving. To do so once around all system calls is easier to get right than to do it for each of
// them. Thread: any.
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
  int* const place_;  // asked for only once, because each time costs a call into libc
  const int before_;
};

}  // namespace ub::ipc
