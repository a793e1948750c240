// SPDX-License-Identifier: Apache-2.0
#include "lib/ipc/ask_nic.h"

#include <chrono>

#include "lib/ipc/pause.h"

namespace ub::ipc {
namespace {

constexpr Duration kPause = microseconds(20);

}  // namespace

bool ask_nic(const std::string& path, std::span<const std::byte> message, Duration patience,
             const std::function<void()>& meanwhile, NicAnswer* answer, std::string* why) {
  if (connect_unix(path, &answer->socket, why) != SocketStatus::kOk) return false;
  if (send_message(answer->socket.get(), message, {}) != SocketStatus::kOk) {
    *why = "the NIC hung up";
    return false;
  }
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + std::chrono::nanoseconds(patience.ns);
  SocketStatus status;
  while ((status = receive_message(answer->socket.get(), answer->message, &answer->bytes, answer->fds,
                                   &answer->fd_count)) == SocketStatus::kAgain) {
    if (Clock::now() > until) {
      *why = "the NIC did not answer in time";
      return false;
    }
    meanwhile();
    pause_for(kPause);
  }
  if (status == SocketStatus::kOk) return true;
  *why = "the NIC hung up";
  return false;
}

}  // namespace ub::ipc
