// SPDX-License-Identifier: Apache-2.0
//
// A descriptor that is given up for a moment to turn a connection away when there are none left: else it waits for
// ever, and its listener is readable for ever. Thread: one.
#pragma once

#include "lib/ipc/fd.h"

namespace ub::ipc {

class SpareFd {
 public:
  void open();
  void close() { fd_.reset(); }
  // After accept_unix() has found nobody, before errno changes: if that was for want of descriptors, hangs up on the
  // one who waits. True: it did.
  bool turn_away(int listener);

 private:
  Fd fd_;
};

}  // namespace ub::ipc
