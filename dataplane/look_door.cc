// SPDX-License-Identifier: Apache-2.0
#include "dataplane/look_door.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <span>
#include <utility>

#include "lib/ipc/unix_socket.h"

namespace ub {

std::string LookDoor::path_beside(const std::string& page) { return page.substr(0, page.rfind('.')) + ".look"; }

bool LookDoor::open(const std::string& path, std::string* error) {
  ::unlink(path.c_str());
  epoll_ = ipc::Fd(::epoll_create1(EPOLL_CLOEXEC));
  spare_fd_.open();
  listener_ = ipc::listen_unix(path, error);
  if (!listener_) return false;
  path_ = path;
  ipc::refuse_fds(listener_.get());
  if (epoll_ && watch(listener_.get())) return true;
  *error = std::string("cannot watch ") + path + ": " + std::strerror(errno);
  listener_.reset();
  return false;
}

void LookDoor::close() {
  if (!path_.empty()) ::unlink(path_.c_str());
  path_.clear();
  listener_.reset();
}

bool LookDoor::watch(int fd) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLRDHUP;
  event.data.fd = fd;
  return ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
}

void LookDoor::serve(const std::function<std::string(std::string_view)>& answer) {
  std::array<epoll_event, kMostVisitors + 1> ready;
  const int count = ::epoll_wait(epoll_.get(), ready.data(), static_cast<int>(ready.size()), 0);
  for (int i = 0; i < count; ++i) {
    const int fd = ready[static_cast<size_t>(i)].data.fd;
    // What a tool wanted that has gone is not done: nobody would know of it.
    const bool has_gone = (ready[static_cast<size_t>(i)].events & (EPOLLRDHUP | EPOLLHUP)) != 0;
    if (fd == listener_.get()) {
      admit();
    } else if (has_gone || !serve_one(fd, answer)) {
      std::erase_if(visitors_, [fd](const ipc::Fd& v) { return v.get() == fd; });
    }
  }
}

void LookDoor::admit() {
  while (ipc::Fd visitor = ipc::accept_unix(listener_.get())) {
    ipc::PeerCredentials who;
    const bool may = ipc::peer_credentials(visitor.get(), &who) && (who.uid == 0 || who.uid == ::geteuid());
    if (may && visitors_.size() < kMostVisitors && watch(visitor.get())) {
      visitors_.push_back(std::move(visitor));
      continue;
    }
    const std::string_view why =
        may ? "too many tools ask at the same time" : "only the user of this process and root may look at it";
    ipc::send_message(visitor.get(), std::as_bytes(std::span(why)), {});
  }
  spare_fd_.turn_away(listener_.get());
}

bool LookDoor::serve_one(int visitor, const std::function<std::string(std::string_view)>& answer) {
  std::array<std::byte, kMostRequestBytes> request;
  size_t bytes = 0;
  bool had_fds = false;
  const ipc::SocketStatus status = ipc::receive_plain(visitor, request, &bytes, &had_fds);
  if (status == ipc::SocketStatus::kAgain) return true;
  if (status != ipc::SocketStatus::kOk || bytes == 0 || had_fds) return false;
  const std::string said = answer({reinterpret_cast<const char*>(request.data()), bytes});
  return ipc::send_message(visitor, std::as_bytes(std::span(said)), {}) == ipc::SocketStatus::kOk;
}

}  // namespace ub
