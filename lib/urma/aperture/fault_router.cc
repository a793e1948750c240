// SPDX-License-Identifier: Apache-2.0
#include "lib/urma/aperture/fault_router.h"

#include <sched.h>
#include <ucontext.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <new>
#include <utility>

#include "lib/ipc/not_cancelled.h"
#include "lib/ipc/of_process.h"

namespace ub::aperture {
namespace {

constexpr int kSignals[] = {SIGBUS, SIGSEGV};

// What was installed for each of them before us. A forked child inherits it, with our handlers.
struct sigaction g_before[2];
bool g_installed = false;

constinit ipc::OfProcess<FaultRouter> g_router;

size_t index_of(int signal) { return signal == kSignals[0] ? 0 : 1; }

bool is_write_fault([[maybe_unused]] void* machine) {
#if defined(__x86_64__)
  constexpr uint64_t kWrite = 2;  // a bit of the page fault's error code
  return (static_cast<ucontext_t*>(machine)->uc_mcontext.gregs[REG_ERR] & kWrite) != 0;
#else
  return false;
#endif
}

}  // namespace

// While one lives, no table is freed, and a window that was found is not removed before it is held.
class FaultRouter::Lookup {
 public:
  explicit Lookup(FaultRouter& router) : looking_(router.looking_[router.epoch_.load(std::memory_order_seq_cst) % 2]) {
    looking_.fetch_add(1, std::memory_order_seq_cst);
  }
  ~Lookup() { looking_.fetch_sub(1, std::memory_order_seq_cst); }
  Lookup(const Lookup&) = delete;
  Lookup& operator=(const Lookup&) = delete;

 private:
  std::atomic<uint32_t>& looking_;
};

// While one lives, the window that it lets go at its end does not go away. A thread has several if a fault is served
// inside of another: an uncached window touches memory of the program, and that may lie in a cached one.
class FaultRouter::Serving {
 public:
  explicit Serving(Window& held) : window_(held), outer_(std::exchange(t_innermost, this)) {}
  ~Serving() {
    t_innermost = outer_;
    window_.serving_.fetch_sub(1, std::memory_order_seq_cst);
  }
  Serving(const Serving&) = delete;
  Serving& operator=(const Serving&) = delete;

 private:
  friend NotServing;

  [[gnu::tls_model("initial-exec")]] static inline thread_local constinit Serving* t_innermost = nullptr;

  Window& window_;
  Serving* const outer_;
};

// While one lives, its thread holds no window, because the program may leave its handler by a jump and never come back.
// A fault inside of which this one came up goes on if it does come back; its window stays there meanwhile, as nobody
// unmaps a window that the program is using.
class FaultRouter::NotServing {
 public:
  NotServing() : innermost_(std::exchange(Serving::t_innermost, nullptr)) {
    for_each([](Window& window) { window.serving_.fetch_sub(1, std::memory_order_seq_cst); });
  }
  ~NotServing() {
    Serving::t_innermost = innermost_;
    for_each([](Window& window) { window.serving_.fetch_add(1, std::memory_order_seq_cst); });
  }
  NotServing(const NotServing&) = delete;
  NotServing& operator=(const NotServing&) = delete;

 private:
  template <class Change>
  void for_each(Change change) {
    for (const Serving* each = innermost_; each != nullptr; each = each->outer_) change(each->window_);
  }

  Serving* const innermost_;
};

FaultRouter& FaultRouter::get() { return g_router.get(); }

// A child may have been forked between the two steps for a signal.
bool FaultRouter::install(std::string* error) {
  if (g_installed) return true;
  for (int signal : kSignals) {
    struct sigaction ours = {}, before = {};
    ours.sa_sigaction = on_signal;
    // A fault inside our own handler is the program's, or a mistake of ours: it goes to the handler before ours. No
    // other handler runs meanwhile, because it might touch a page that its thread is working on.
    ours.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
    sigfillset(&ours.sa_mask);
    for (int fault : kSignals) sigdelset(&ours.sa_mask, fault);
    if (::sigaction(signal, &ours, &before) != 0) {
      *error = std::string("cannot handle ") + ::strsignal(signal) + ": " + std::strerror(errno);
      return false;
    }
    if (before.sa_sigaction != on_signal) g_before[index_of(signal)] = before;
  }
  g_installed = true;
  return true;
}

bool FaultRouter::add(std::byte* start, size_t bytes, Window& window, std::string* error) {
  std::lock_guard guard(changes_);
  if (!install(error)) return false;
  auto table = std::make_unique<Table>();
  if (held_) {
    std::copy_if(held_->begin(), held_->end(), std::back_inserter(*table),
                 [](const Range& range) { return window_of(range) != nullptr; });
  }
  const auto behind = [](const Range& a, const std::byte* address) { return a.start < address; };
  table->insert(std::lower_bound(table->begin(), table->end(), start, behind), {start, bytes, &window});
  if (held_) retired_.push_back(std::move(held_));
  held_ = std::move(table);
  table_.store(held_.get(), std::memory_order_seq_cst);
  return true;
}

void FaultRouter::remove(Window& window) {
  {
    std::lock_guard waiting(removals_);
    std::vector<std::unique_ptr<Table>> former;
    {
      std::lock_guard guard(changes_);
      if (!held_) return;
      for (Range& range : *held_) {
        if (range.window == &window) __atomic_store_n(&range.window, nullptr, __ATOMIC_SEQ_CST);
      }
      former.swap(retired_);
    }
    wait_for_lookups();
  }
  while (window.serving_.load(std::memory_order_seq_cst) != 0) ::sched_yield();
}

Window* FaultRouter::window_of(const Range& range) { return __atomic_load_n(&range.window, __ATOMIC_SEQ_CST); }

// A lookup that has read the epoch and not yet counted itself may count itself in the former one after it was found
// empty; so the epoch changes twice, and both counts were zero after the change.
void FaultRouter::wait_for_lookups() {
  for (int i = 0; i < 2; ++i) {
    const uint32_t former = epoch_.fetch_add(1, std::memory_order_seq_cst) % 2;
    while (looking_[former].load(std::memory_order_seq_cst) != 0) ::sched_yield();
  }
}

// The window of that address, which does not go away before a Serving lets it go; or null.
Window* FaultRouter::hold(const void* address) {
  const Lookup lookup(*this);
  Window* window = find(address);
  if (window != nullptr) window->serving_.fetch_add(1, std::memory_order_seq_cst);
  return window;
}

Window* FaultRouter::find(const void* address) const {
  const Table* table = table_.load(std::memory_order_seq_cst);
  if (table == nullptr) return nullptr;
  const auto* at = static_cast<const std::byte*>(address);
  auto next = std::upper_bound(table->begin(), table->end(), at,
                               [](const std::byte* a, const Range& range) { return a < range.start; });
  if (next == table->begin()) return nullptr;
  const Range& range = *--next;
  return static_cast<size_t>(at - range.start) < range.bytes ? window_of(range) : nullptr;
}

bool FaultRouter::overlaps(uint64_t address, uint64_t bytes) {
  std::lock_guard guard(changes_);
  if (!held_) return false;
  return std::any_of(held_->begin(), held_->end(), [address, bytes](const Range& range) {
    const auto start = reinterpret_cast<uintptr_t>(range.start);
    return window_of(range) != nullptr && address < start + range.bytes && start < address + bytes;
  });
}

bool FaultRouter::serve(const Fault& fault) {
  FailedAccess failed;
  FaultHandler::Value handler;
  {
    const ipc::NotCancelled guard;  // it may hold a page that other threads wait for
    Window* window = hold(fault.address);
    if (window == nullptr) return false;
    const Serving serving(*window);
    const Served served = window->serve(fault, &failed);
    if (served != Served::kFailed) return served == Served::kDone;
    handler = window->fault_handler();
  }
  const NotServing guard;
  return handler.call != nullptr && handler.call(&failed.told, handler.context);
}

bool FaultRouter::serve(int signal, siginfo_t* info, void* machine) {
  FaultRouter* router = g_router.find();
  if (router == nullptr || info->si_code <= 0) return false;  // there are no windows, or somebody sent it
  const int kept = errno;
  const bool served =
      router->serve({signal, static_cast<std::byte*>(info->si_addr), is_write_fault(machine), machine});
  errno = kept;
  return served;
}

void FaultRouter::on_signal(int signal, siginfo_t* info, void* machine) {
  if (!serve(signal, info, machine)) before_us(signal, info, machine);
}

void FaultRouter::before_us(int signal, siginfo_t* info, void* machine) {
  const struct sigaction& before = g_before[index_of(signal)];
  if ((before.sa_flags & SA_SIGINFO) != 0) return before.sa_sigaction(signal, info, machine);
  if (before.sa_handler == SIG_IGN && info->si_code <= 0) return;
  if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) return before.sa_handler(signal);
  // The access runs again without us and ends the process as real memory would; a signal that was sent is sent again.
  struct sigaction fallback = {};
  fallback.sa_handler = SIG_DFL;
  ::sigaction(signal, &fallback, nullptr);
  if (info->si_code <= 0) ::raise(signal);
}

}  // namespace ub::aperture
