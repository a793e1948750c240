// SPDX-License-Identifier: Apache-2.0
//
// The second process of a bench, and memory that both see.
#pragma once

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>

#include "tests/bench/floor/floor.h"
#include "tools/common/affinity.h"

namespace ub::floor {

[[noreturn]] inline void fail(const std::string& what) { throw std::runtime_error(what + ": " + strerror(errno)); }

// Pins the calling thread. kAnyCpu: leaves it alone.
constexpr int kAnyCpu = -1;
inline void pin(int cpu) {
  if (cpu != kAnyCpu && !tools::pin_to_cpu(cpu)) fail("pin to CPU " + std::to_string(cpu));
}
inline int near_cpu(const Options& options) { return options.unpinned ? kAnyCpu : options.cpu_near; }
inline int peer_cpu(const Options& options) { return options.unpinned ? kAnyCpu : options.cpu_peer; }

// A memfd that both processes map: create it before the Peer.
template <typename T>
class Shared {
 public:
  Shared() {
    const int fd = memfd_create("ub_floor", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, sizeof(T)) != 0) fail("memfd");
    memory_ = mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    close(fd);
    if (memory_ == MAP_FAILED) fail("mmap");
    new (memory_) T;  // a fresh memfd is zero; this touches every page of the object's members
  }
  ~Shared() { munmap(memory_, sizeof(T)); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  T* operator->() const { return static_cast<T*>(memory_); }

 private:
  void* memory_;
};

// Runs `body` in a child on `cpu`; the child dies with the parent, and is killed when the Peer goes.
class Peer {
 public:
  template <typename Body>
  Peer(int cpu, Body body) {
    fflush(nullptr);
    const pid_t parent = getpid();
    pid_ = fork();
    if (pid_ < 0) fail("fork");
    if (pid_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    int status = 1;
    try {
      pin(cpu);
      body();
      status = 0;
    } catch (const std::exception& error) {
      fprintf(stderr, "ub_floor, second process: %s\n", error.what());
    }
    _exit(status);
  }
  ~Peer() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  // Waits for its end; throws if it failed.
  void join() {
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = 0;
    if (status != 0) throw std::runtime_error("the second process failed");
  }

 private:
  pid_t pid_ = 0;
};

}  // namespace ub::floor
