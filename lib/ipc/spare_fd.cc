// SPDX-License-Identifier: Apache-2.0
#include "lib/ipc/spare_fd.h"

#include <fcntl.h>

#include <cerrno>

#include "lib/ipc/unix_socket.h"

namespace ub::ipc {

void SpareFd::open() { fd_ = Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC)); }

bool SpareFd::turn_away(int listener) {
  if (errno != EMFILE && errno != ENFILE) return false;
  fd_.reset();
  accept_unix(listener);
  open();
  return true;
}

}  // namespace ub::ipc
