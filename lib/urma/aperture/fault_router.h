// SPDX-License-Identifier: Apache-2.0
//
// Faults of mapped windows. A window is a range of addresses whose accesses the process cannot serve by itself: the
// kernel reports them as SIGBUS (userfaultfd) or SIGSEGV (no access), in the thread that made them. The router finds
// the window by the address and lets it serve the fault; then the access runs again. What the window cannot serve the
// program's handler is asked about (softub_on_fault). A fault of any other address goes to the signal handler that was
// installed before ours, or ends the process as it would have without us.
//
// The handlers are installed with the first window and stay. A program that installs one of its own afterwards calls
// softub_serve_fault() from it. Thread: any. Only remove() waits for faults, those of its window, and nobody waits for
// it. Serving a fault takes no lock, calls nothing that is not safe in a signal handler, and keeps errno.
#pragma once

#include <signal.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "lib/urma/aperture/fault_handler.h"

namespace ub::aperture {

// What a signal handler gets of a fault.
struct Fault {
  int signal = 0;             // SIGBUS or SIGSEGV
  std::byte* address = nullptr;
  bool is_write = false;      // what the kernel said of the access, where it says it
  void* machine = nullptr;    // ucontext_t of the thread
};

enum class Served : uint8_t {
  kDone,     // the access is to run again, or was carried out and the registers say so
  kFailed,   // it cannot be served, and *failed says why
  kForeign,  // it is no fault of the window, but of what lies at its address in another process, or of another kind
};

// An access that a window could not serve, as the program's handler is told of it.
struct FailedAccess {
  softub_fault_t told{};
  char instruction[128];  // room for the text that `told` may point to

  Served fail(void* address, urma_cr_status_t cause, bool is_write) {
    told.address = address;
    told.cause = cause;
    told.is_write = is_write;
    return Served::kFailed;
  }
};

class FaultRouter;

class Window {
 public:
  virtual ~Window() = default;
  // Serves a fault at an address of the window. When this returns nothing of the window is held or claimed for it.
  virtual Served serve(const Fault&, FailedAccess* failed) = 0;

  // Whom the program wants to be asked from now on about accesses that cannot be served. Others may still be asking the
  // former one.
  void on_fault(softub_fault_handler_t handler, void* context) { handler_.set({handler, context}); }
  FaultHandler::Value fault_handler() const { return handler_.get(); }

 private:
  friend FaultRouter;

  FaultHandler handler_;
  std::atomic<uint32_t> serving_{0};  // faults that the router gave to it
};

class FaultRouter {
 public:
  // Of this process: a forked child has none of its parent's windows.
  static FaultRouter& get();

  // From now on faults in [start, start + bytes) are the window's. False and `*error`: the signals cannot be taken.
  // Throws std::bad_alloc; then nothing has changed.
  bool add(std::byte* start, size_t bytes, Window&, std::string* error);
  // No fault is given to the window any more, and it serves none when this returns; the program's handler may still be
  // running for one. Allocates nothing. Not while the calling thread makes the window serve a fault.
  void remove(Window&);
  // Does a part of that range belong to a window? Any thread.
  bool overlaps(uint64_t address, uint64_t bytes);

  // What the signal handlers do, also for programs with handlers of their own: true if the fault was one of a window
  // and was served. The program's handler may leave by a jump and never return.
  static bool serve(int signal, siginfo_t*, void* machine);

 private:
  struct Range {
    std::byte* start;
    size_t bytes;
    Window* window;  // null: it was removed, and the next table is without the range
  };
  using Table = std::vector<Range>;  // sorted by address; handlers see it, so that only windows in it are set to null
  class Lookup;
  class Serving;
  class NotServing;

  bool serve(const Fault&);
  Window* hold(const void* address);
  Window* find(const void* address) const;
  static Window* window_of(const Range&);
  void wait_for_lookups();
  static bool install(std::string* error);
  static void on_signal(int signal, siginfo_t* info, void* machine);
  static void before_us(int signal, siginfo_t* info, void* machine);

  std::mutex removals_;  // held while lookups are waited for
  std::mutex changes_;   // for a moment only
  std::atomic<const Table*> table_{nullptr};
  std::unique_ptr<Table> held_;
  std::vector<std::unique_ptr<Table>> retired_;  // lookups may still read them; the next removal frees them
  // How many look for a window that began in an even or odd epoch. Whoever removes a window changes the epoch and waits
  // for those of the former one, so lookups that begin meanwhile hold nobody up.
  std::atomic<uint32_t> epoch_{0};
  std::atomic<uint32_t> looking_[2]{};
};

}  // namespace ub::aperture
