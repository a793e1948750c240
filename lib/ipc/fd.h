// SPDX-License-Identifier: Apache-2.0
//
// An owned file descriptor that belongs to this process alone: close-on-exec (its creator sees to that) and
// closed in the child of a fork. A child that kept a copy would keep a dead parent's sockets, locks and
// memory alive, and peers would never see the parent die.
//
// Thread: an Fd has one owner; the registry behind it is locked. In a forked child, Fds of the parent are
// empty shells: destroying them does nothing.
#pragma once

#include <cstdint>
#include <utility>

namespace ub::ipc {

// Changes in the child of every fork (once any Fd was made): tells inherited objects from own ones.
uint32_t fork_generation();

class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd);  // takes it over; -1: empty
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
  uint32_t process_ = 0;  // generation of forks in which it was made
};

}  // namespace ub::ipc
