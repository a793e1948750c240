// SPDX-License-Identifier: Apache-2.0
#include "lib/urma/aperture/same_host/watched_share.h"

#include <span>

#include "lib/ipc/share.h"
#include "lib/ipc/unix_socket.h"

namespace ub::aperture {

ShareNews hear_share(int socket) {
  ipc::ShareNotice notice{};
  size_t bytes = 0;
  bool had_fds;
  const auto into = std::as_writable_bytes(std::span(&notice, 1));
  const auto status = ipc::receive_plain(socket, into, &bytes, &had_fds);
  if (status == ipc::SocketStatus::kAgain) return ShareNews::kNothing;
  if (status != ipc::SocketStatus::kOk) return ShareNews::kOwnerGone;
  return bytes == sizeof notice && notice.magic == ipc::kShareMagic ? ShareNews::kRightEnded : ShareNews::kNothing;
}

}  // namespace ub::aperture
