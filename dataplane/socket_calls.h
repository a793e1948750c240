// SPDX-License-Identifier: Apache-2.0
//
// The system calls that take datagrams, as the C library has them, but for one thing: they are no points of
// cancellation. For one of those the library marks the thread before and after each call, with two locked operations,
// and its caller has to forbid cancellation around it: too much for a look at a socket that is mostly empty.
#pragma once

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace ub::socket_calls {

inline ssize_t receive_from(int fd, void* bytes, size_t room, int flags, sockaddr* from, socklen_t* from_bytes) {
  return ::syscall(SYS_recvfrom, fd, bytes, room, flags, from, from_bytes);
}
inline ssize_t receive_message(int fd, msghdr* message, int flags) {
  return ::syscall(SYS_recvmsg, fd, message, flags);
}
inline int receive_messages(int fd, mmsghdr* messages, unsigned room, int flags) {
  return static_cast<int>(::syscall(SYS_recvmmsg, fd, messages, room, flags, nullptr));
}

}  // namespace ub::socket_calls
