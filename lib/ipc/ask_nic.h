// SPDX-License-Identifier: Apache-2.0
//
// A program asks a NIC of this host for something at its rendezvous socket: one message there, one back. Thread: any;
// there is no state.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "lib/base/time.h"
#include "lib/ipc/fd.h"
#include "lib/ipc/unix_socket.h"

namespace ub::ipc {

struct NicAnswer {
  Fd socket;
  alignas(8) std::byte message[512];
  size_t bytes = 0;
  Fd fds[kMaxMessageFds];
  size_t fd_count = 0;
};

// Connects to the socket of the NIC at `path`, sends the message and waits for the answer for `patience` at most;
// `meanwhile` is called in between, because the NIC may be this process' own. False and `*why`, a sentence: nobody is
// there, or it does not answer.
bool ask_nic(const std::string& path, std::span<const std::byte> message, Duration patience,
             const std::function<void()>& meanwhile, NicAnswer* answer, std::string* why);

}  // namespace ub::ipc
