// SPDX-License-Identifier: Apache-2.0
//
// A file descriptor that has an owner and belongs to this process alone. It is close-on-exec (its creator sees to
// that), and it is closed in the child of a fork. A child that kept a copy would keep the sockets, locks and memory of
// a dead parent alive, and peers would never see the parent die.
//
// Thread: an Fd has one owner; the registry behind it is locked. In a forked child the Fds of the parent are empty
// shells, and to destroy them does nothing.
#pragma once

#include <cstdint>
#include <utility>

namespace ub::ipc {

// This number changes in the child of every fork (once any Fd was made), so it tells inherited objects from own ones.
uint32_t fork_generation();

class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd);  // takes the descriptor over; -1: the Fd is empty
  ~Fd() { reset(); }
  Fd(Fd&& o) noexcept : fd_(std::exchange(o.fd_, -1)), process_(o.process_) {}
  Fd& operator=(Fd&& o) noexcept {
    if (this != &o) {
      reset();
      fd_ = std::exchange(o.fd_, -1);
      process_ = o.process_;
    }
    return *this;
  }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  void reset();

 private:
  int fd_ = -1;
  uint32_t process_ = 0;  // fork_generation() when it was made
};

}  // namespace ub::ipc
