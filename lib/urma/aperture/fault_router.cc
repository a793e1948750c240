// SPDX-License-Identifier: Apache-2.0
#include "lib/urma/aperture/fault_router.h"

#include <sched.h>
#include <ucontext.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "lib/ipc/fd.h"

namespace ub::aperture {
namespace {

constexpr int kSignals[] = {SIGBUS, SIGSEGV};

// What was installed for each of them before us.
struct sigaction g_before[2];

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

// Leaked: threads may fault while destructors run.
FaultRouter& FaultRouter::get() {
  static auto* router = new FaultRouter;
  return *router;
}

bool FaultRouter::install(std::string* error) {
  if (installed_) return true;
  for (int signal : kSignals) {
    struct sigaction ours = {};
    ours.sa_sigaction = on_signal;
    // A fault inside our own handler is the program's, or a mistake of ours: it goes to the handler before ours. No
    // other handler runs meanwhile, because it might touch a page that its thread is working on.
    ours.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
    sigfillset(&ours.sa_mask);
    for (int fault : kSignals) sigdelset(&ours.sa_mask, fault);
    if (::sigaction(signal, &ours, &g_before[index_of(signal)]) != 0) {
      *error = std::string("cannot handle ") + ::strsignal(signal) + ": " + std::strerror(errno);
      return false;
    }
  }
  installed_ = true;
  return true;
}

bool FaultRouter::add(std::byte* start, size_t bytes, Window& window, std::string* error) try {
  std::lock_guard guard(changes_);
  if (!install(error)) return false;
  const bool inherited = std::exchange(process_, ipc::fork_generation()) != ipc::fork_generation();
  auto table = std::make_unique<Table>(held_ && !inherited ? *held_ : Table{});
  const auto behind = [](const Range& a, const std::byte* address) { return a.start < address; };
  table->insert(std::lower_bound(table->begin(), table->end(), start, behind), {start, bytes, &window});
  replace_table(std::move(table));
  return true;
} catch (const std::bad_alloc&) {
  *error = "out of memory";
  return false;
}

void FaultRouter::remove(Window& window) {
  std::lock_guard guard(changes_);
  if (!held_) return;
  auto table = std::make_unique<Table>(*held_);
  std::erase_if(*table, [&](const Range& range) { return range.window == &window; });
  replace_table(std::move(table));
}

// The former table is freed when no handler can look at it any more.
void FaultRouter::replace_table(std::unique_ptr<Table> table) {
  table_.store(table.get(), std::memory_order_seq_cst);
  wait_for_handlers();
  held_ = std::move(table);
}

// A handler that has read the epoch and not yet counted itself may count itself in the former one after it was found
// empty; so the epoch changes twice, and both counts were zero after the new table was there.
void FaultRouter::wait_for_handlers() {
  for (int i = 0; i < 2; ++i) {
    const uint32_t former = epoch_.fetch_add(1, std::memory_order_seq_cst) % 2;
    while (serving_[former].load(std::memory_order_seq_cst) != 0) ::sched_yield();
  }
}

Window* FaultRouter::find(const void* address) const {
  const Table* table = table_.load(std::memory_order_seq_cst);
  if (table == nullptr) return nullptr;
  const auto* at = static_cast<const std::byte*>(address);
  auto next = std::upper_bound(table->begin(), table->end(), at,
                               [](const std::byte* a, const Range& range) { return a < range.start; });
  if (next == table->begin()) return nullptr;
  const Range& range = *--next;
  return static_cast<size_t>(at - range.start) < range.bytes ? range.window : nullptr;
}

bool FaultRouter::overlaps(uint64_t address, uint64_t bytes) {
  std::lock_guard guard(changes_);
  if (!held_ || process_ != ipc::fork_generation()) return false;
  return std::any_of(held_->begin(), held_->end(), [address, bytes](const Range& range) {
    const auto start = reinterpret_cast<uintptr_t>(range.start);
    return address < start + range.bytes && start < address + bytes;
  });
}

bool FaultRouter::serve(int signal, siginfo_t* info, void* machine) {
  if (info->si_code <= 0) return false;  // somebody sent it
  const int kept = errno;
  const uint32_t epoch = epoch_.load(std::memory_order_seq_cst) % 2;
  serving_[epoch].fetch_add(1, std::memory_order_seq_cst);
  Window* window = find(info->si_addr);
  const bool served =
      window != nullptr &&
      window->serve({signal, static_cast<std::byte*>(info->si_addr), is_write_fault(machine), machine});
  serving_[epoch].fetch_sub(1, std::memory_order_seq_cst);
  errno = kept;
  return served;
}

void FaultRouter::on_signal(int signal, siginfo_t* info, void* machine) {
  if (!get().serve(signal, info, machine)) before_us(signal, info, machine);
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
