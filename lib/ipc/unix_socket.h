// SPDX-License-Identifier: Apache-2.0
//
// Small messages with descriptors between processes of one host: AF_UNIX, SOCK_SEQPACKET, non-blocking,
// close-on-exec. A message arrives whole or not at all. Thread: any, set-up only.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "lib/ipc/fd.h"

namespace ub::ipc {

inline constexpr size_t kMaxMessageFds = 8;

struct PeerCredentials {
  pid_t pid = 0;
  uid_t uid = 0;
  gid_t gid = 0;
};

enum class SocketStatus : uint8_t {
  kOk,
  kAgain,   // nothing to receive, or no room to send
  kClosed,  // the peer is gone
  kFailed,  // anything else; see errno
};

// Binds and listens; `path` must not exist. On failure the result is an empty Fd, and `*error` says why.
Fd listen_unix(const std::string& path, std::string* error);
// Takes the next connection that waits; an empty Fd: there is none.
Fd accept_unix(int listener);
// kClosed: nobody listens there (there is no such file, or it is a socket that a dead process left). kAgain: the
// backlog is full.
SocketStatus connect_unix(const std::string& path, Fd* out, std::string* error);

SocketStatus send_message(int socket, std::span<const std::byte> message, std::span<const int> fds);
// `*bytes` gets the length of the message (at most that of the buffer), and fds[0..*fd_count) the descriptors that came
// with it. Of a message with more descriptors than kMaxMessageFds, the rest is lost.
SocketStatus receive_message(int socket, std::span<std::byte> buffer, size_t* bytes, Fd* fds, size_t* fd_count);

// Receives from somebody who is not trusted and has no descriptors to send. The last holder of a descriptor who closes
// it may have to wait, and the sender chooses for what (SO_LINGER, FUSE). So a thread of its own closes them.
SocketStatus receive_plain(int socket, std::span<std::byte> buffer, size_t* bytes, bool* had_fds);
// For a listener and its connections: the kernel (from Linux 6.16 on) refuses messages with descriptors to their
// sender.
void refuse_fds(int socket);

bool peer_credentials(int socket, PeerCredentials*);

}  // namespace ub::ipc
