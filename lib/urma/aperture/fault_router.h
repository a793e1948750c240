// SPDX-License-Identifier: Apache-2.0
//
// Faults of mapped windows. A window is a range of addresses whose accesses the process cannot serve by itself: the
// kernel reports them as SIGBUS (userfaultfd) or SIGSEGV (no access), in the thread that made them. The router finds
// the window by the address and lets it serve the fault; then the access runs again. A fault of any other address goes
// to the handler that was installed before ours, or ends the process as it would have without us.
//
// The handlers are installed with the first window and stay. A program that installs one of its own afterwards calls
// softub_serve_fault() from it. Thread: add() and remove() from any thread, one at a time by a lock; serving a fault
// takes no lock, calls nothing that is not safe in a signal handler, and keeps errno.
#pragma once

#include <signal.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace ub::aperture {

// What a signal handler gets of a fault.
struct Fault {
  int signal = 0;             // SIGBUS or SIGSEGV
  std::byte* address = nullptr;
  bool is_write = false;      // what the kernel said of the access, where it says it
  void* machine = nullptr;    // ucontext_t of the thread
};

class Window {
 public:
  virtual ~Window() = default;
  // Serves a fault at an address of the window. True: the access is to run again, or was carried out and the registers
  // say so. False: it cannot be served, and nothing of the window is held or claimed any more; the handler before ours
  // gets it.
  virtual bool serve(const Fault&) = 0;
};

class FaultRouter {
 public:
  static FaultRouter& get();

  // From now on faults in [start, start + bytes) are the window's. False and `*error`: no memory, or the signals cannot
  // be taken.
  bool add(std::byte* start, size_t bytes, Window&, std::string* error);
  // No fault is given to the window any more, and none is being served when this returns. Not from a fault's handler.
  void remove(Window&);
  // The window of an address, or null. The caller makes sure that it is not removed meanwhile.
  Window* find(const void* address) const;
  // Does a part of that range belong to a window of this process? Any thread.
  bool overlaps(uint64_t address, uint64_t bytes);

  // The handlers themselves, also for programs with handlers of their own: true if the fault was one of a window and
  // was served.
  bool serve(int signal, siginfo_t*, void* machine);

 private:
  struct Range {
    std::byte* start;
    size_t bytes;
    Window* window;
  };
  using Table = std::vector<Range>;  // sorted by address; never changed once handlers can see it

  FaultRouter() = default;
  bool install(std::string* error);
  void replace_table(std::unique_ptr<Table>);
  void wait_for_handlers();
  static void on_signal(int signal, siginfo_t*, void* machine);
  static void before_us(int signal, siginfo_t*, void* machine);

  std::mutex changes_;
  std::atomic<const Table*> table_{nullptr};
  std::unique_ptr<const Table> held_;
  // How many handlers are at work that began in an even or odd epoch. Whoever removes a window changes the epoch and
  // waits for those of the former one, so handlers of other windows that come meanwhile hold nobody up.
  std::atomic<uint32_t> epoch_{0};
  std::atomic<uint32_t> serving_[2]{};
  bool installed_ = false;
  uint32_t process_ = 0;  // whose windows they are: a forked child has none of its parent's
};

}  // namespace ub::aperture
