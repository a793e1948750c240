// SPDX-License-Identifier: Apache-2.0
#include "lib/ipc/unix_socket.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <thread>

namespace ub::ipc {
namespace {

constexpr size_t kMostFds = 253;  // most descriptors that the kernel lets into a message (SCM_MAX_FD)

bool address_of(const std::string& path, sockaddr_un* address, std::string* error) {
  if (path.size() >= sizeof address->sun_path) {
    *error = "socket path too long (" + std::to_string(path.size()) + " bytes, at most " +
             std::to_string(sizeof address->sun_path - 1) + "): " + path + "; configure a shorter directory";
    return false;
  }
  std::memset(address, 0, sizeof *address);
  address->sun_family = AF_UNIX;
  std::memcpy(address->sun_path, path.data(), path.size());
  return true;
}

// Receives a message. `take` gets each descriptor that came with it, as far as `control` has room for them.
template <class Take>
SocketStatus receive(int socket, std::span<std::byte> buffer, size_t* bytes, std::span<char> control, Take take) {
  *bytes = 0;
  iovec iov{buffer.data(), buffer.size()};
  msghdr msg{};
  msg.msg_iov = &iov;
  msg.msg_iovlen = 1;
  msg.msg_control = control.data();
  msg.msg_controllen = control.size();
  ssize_t n;
  do {
    n = ::recvmsg(socket, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (n < 0 && errno == EINTR);
  if (n < 0) {
    if (errno == EAGAIN) return SocketStatus::kAgain;
    return errno == ECONNRESET ? SocketStatus::kClosed : SocketStatus::kFailed;
  }
  for (cmsghdr* c = CMSG_FIRSTHDR(&msg); c != nullptr; c = CMSG_NXTHDR(&msg, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
      take(fd);
    }
  }
  if (n == 0) return SocketStatus::kClosed;
  *bytes = static_cast<size_t>(n);
  return SocketStatus::kOk;
}

Fd make_socket(std::string* error) {
  Fd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) *error = std::string("cannot create a unix socket: ") + std::strerror(errno);
  return fd;
}

}  // namespace

Fd listen_unix(const std::string& path, std::string* error) {
  sockaddr_un address;
  if (!address_of(path, &address, error)) return {};
  Fd fd = make_socket(error);
  if (!fd) return {};
  if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 || ::listen(fd.get(), 128) != 0) {
    *error = "cannot listen on " + path + ": " + std::strerror(errno);
    return {};
  }
  return fd;
}

Fd accept_unix(int listener) { return Fd(::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)); }

SocketStatus connect_unix(const std::string& path, Fd* out, std::string* error) {
  sockaddr_un address;
  if (!address_of(path, &address, error)) return SocketStatus::kFailed;
  Fd fd = make_socket(error);
  if (!fd) return SocketStatus::kFailed;
  if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    int e = errno;
    *error = "cannot connect to " + path + ": " + std::strerror(e);
    if (e == ECONNREFUSED || e == ENOENT) return SocketStatus::kClosed;
    return e == EAGAIN ? SocketStatus::kAgain : SocketStatus::kFailed;
  }
  *out = std::move(fd);
  return SocketStatus::kOk;
}

SocketStatus send_message(int socket, std::span<const std::byte> message, std::span<const int> fds) {
  iovec iov{const_cast<std::byte*>(message.data()), message.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxMessageFds * sizeof(int))] = {};
  msghdr msg{};
  msg.msg_iov = &iov;
  msg.msg_iovlen = 1;
  if (!fds.empty() && fds.size() <= kMaxMessageFds) {
    msg.msg_control = control;
    msg.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* c = CMSG_FIRSTHDR(&msg);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(c), fds.data(), fds.size_bytes());
  }
  for (;;) {
    if (::sendmsg(socket, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) return SocketStatus::kOk;
    if (errno == EINTR) continue;
    if (errno == EAGAIN) return SocketStatus::kAgain;
    return errno == EPIPE || errno == ECONNRESET ? SocketStatus::kClosed : SocketStatus::kFailed;
  }
}

SocketStatus receive_message(int socket, std::span<std::byte> buffer, size_t* bytes, Fd* fds, size_t* fd_count) {
  *fd_count = 0;
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxMessageFds * sizeof(int))];
  return receive(socket, buffer, bytes, control, [&](int fd) {
    if (*fd_count < kMaxMessageFds) {
      fds[(*fd_count)++] = Fd(fd);
    } else {
      ::close(fd);
    }
  });
}

SocketStatus receive_plain(int socket, std::span<std::byte> buffer, size_t* bytes, bool* had_fds) {
  alignas(cmsghdr) char control[CMSG_SPACE(kMostFds * sizeof(int))];
  std::array<int, kMostFds> fds;
  size_t count = 0;
  SocketStatus status = receive(socket, buffer, bytes, control, [&](int fd) { fds[count++] = fd; });
  *had_fds = count != 0;
  auto close_all = [fds, count] {
    for (size_t i = 0; i < count; ++i) ::close(fds[i]);
  };
  try {
    if (*had_fds) std::thread(close_all).detach();
  } catch (const std::system_error&) {  // the kernel makes no other thread
    close_all();
  }
  return status;
}

void refuse_fds(int socket) {
  constexpr int kPassRights = 83;  // SO_PASSRIGHTS
  const int no = 0;
  ::setsockopt(socket, SOL_SOCKET, kPassRights, &no, sizeof no);
}

bool peer_credentials(int socket, PeerCredentials* out) {
  ucred cred{};
  socklen_t size = sizeof cred;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &cred, &size) != 0) return false;
  *out = {cred.pid, cred.uid, cred.gid};
  return true;
}

}  // namespace ub::ipc
