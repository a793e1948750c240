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

// Binds and listens; `path` must not exist. Empty and `*error` on failure.
Fd listen_unix(const std::string& path, std::string* error);
// Next waiting connection; empty: none.
Fd accept_unix(int listener);
// kClosed: nobody listens there (no such file, or a socket that a dead process left). kAgain: its backlog is
// full.
SocketStatus connect_unix(const std::string& path, Fd* out, std::string* error);

SocketStatus send_message(int socket, std::span<const std::byte> message, std::span<const int> fds);
// `*bytes` gets the length of the message (cut at the buffer's), fds[0..*fd_count) what came with it. A
// message with more descriptors than kMaxMessageFds loses the rest.
SocketStatus receive_message(int socket, std::span<std::byte> buffer, size_t* bytes, Fd* fds, size_t* fd_count);

// From somebody who is not trusted and has no descriptors to send. What the last holder of a descriptor waits for when
// it closes it is the sender's choice (SO_LINGER, FUSE): a thread of its own closes them.
SocketStatus receive_plain(int socket, std::span<std::byte> buffer, size_t* bytes, bool* had_fds);
// For a listener and what it accepts: the kernel refuses such messages to their sender, if it can (Linux 6.16).
void refuse_fds(int socket);

bool peer_credentials(int socket, PeerCredentials*);

}  // namespace ub::ipc
