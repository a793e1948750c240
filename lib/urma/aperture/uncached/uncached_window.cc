// SPDX-License-Identifier: Apache-2.0
#include "lib/urma/aperture/uncached/uncached_window.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <string_view>
#include <utility>

#include "lib/ipc/fd.h"
#if defined(__x86_64__)
#include "lib/urma/aperture/uncached/x86_access.h"
#endif

namespace ub::aperture {
namespace {

constexpr size_t kPageBytes = 4096;

// A line of text that is put together without anything that a signal handler must not call.
class Line {
 public:
  Line& operator<<(std::string_view text) {
    for (char c : text)
      if (length_ < sizeof text_) text_[length_++] = c;
    return *this;
  }
  Line& hex(const void* value) {
    *this << "0x";
    const auto number = reinterpret_cast<uint64_t>(value);
    for (int shift = 60; shift >= 0; shift -= 4)
      if (number >> shift != 0) *this << std::string_view(&"0123456789abcdef"[number >> shift & 15], 1);
    return *this;
  }
  Line& decimal(unsigned value) {
    if (value >= 10) decimal(value / 10);
    return *this << std::string_view(&"0123456789"[value % 10], 1);
  }
  void write() const { static_cast<void>(!::write(STDERR_FILENO, text_, length_)); }

 private:
  char text_[320];
  size_t length_ = 0;
};

void write_error(const softub_fault_t& error) {
  Line line;
  line << "softub: an access to remote memory at ";
  line.hex(error.address) << " by the instruction at ";
  line.hex(error.code);
  if (error.instruction != nullptr) {
    line << " (" << error.instruction << ") is not supported: " << error.why;
  } else {
    line << " failed: urma_cr_status_t ";
    line.decimal(error.cause);
  }
  line << "\n";
  line.write();
}

bool are_signal_safe(const std::vector<std::unique_ptr<RemotePath>>& paths) {
  return std::all_of(paths.begin(), paths.end(), [](const auto& path) { return path->is_signal_safe(); });
}

// Says why a window makes no sense; or "".
std::string judge(const UncachedOptions& o, const std::vector<std::unique_ptr<RemotePath>>& paths) {
  if (o.bytes == 0) return "a window has at least one byte";
  if (o.bytes > UINT64_MAX - 2 * kPageBytes) return "a window that is larger than all addresses";
  if (paths.empty() || !are_signal_safe(paths)) return "an uncached window needs a path that works in a signal handler";
  return "";
}

}  // namespace

#if defined(__x86_64__)

std::unique_ptr<UncachedWindow> UncachedWindow::create(const UncachedOptions& options,
                                                       std::vector<std::unique_ptr<RemotePath>> paths,
                                                       WindowError* error) try {
  if (std::string why = judge(options, paths); !why.empty()) {
    *error = {URMA_EINVAL, std::move(why)};
    return nullptr;
  }
  error->status = URMA_ENOPERM;
  CodeTable* code = CodeTable::open(&error->why);
  if (code == nullptr) return nullptr;
  std::unique_ptr<UncachedWindow> window(new UncachedWindow(options, std::move(paths), *code));
  if (!window->map(options, error)) return nullptr;
  return FaultRouter::get().add(window->start_, window->bytes_, *window, &error->why) ? std::move(window) : nullptr;
} catch (const std::bad_alloc&) {
  *error = {URMA_ENOMEM, "out of memory"};
  return nullptr;
}

Served UncachedWindow::serve(const Fault& fault, FailedAccess* failed) {
  if (process_ != ipc::fork_generation()) return Served::kForeign;
  MachineState state = take_state(fault.machine);
  const void* const code = reinterpret_cast<const void*>(state.ip);
  Instruction instruction;
  Outcome outcome;
  bool is_decoded = false;
  if (memory_->contains(state.ip, 1)) {
    outcome = unsupported("code in a window cannot be executed");
  } else if (is_decoded = decode(state.ip, &instruction); !is_decoded) {
    outcome = unsupported("it is not known");
  } else {
    outcome = carry_out(instruction, &state, *memory_, code_);
    put_state(state, fault.machine);
  }
  if (outcome.ok()) return Served::kDone;

  std::strcpy(failed->instruction, "?");
  if (is_decoded) write_text(instruction, failed->instruction, sizeof failed->instruction);
  const bool has_place = memory_->contains(outcome.address, 1);
  failed->told.instruction = outcome.why != nullptr ? failed->instruction : nullptr;
  failed->told.why = outcome.why;
  failed->told.code = code;
  failed->fail(has_place ? reinterpret_cast<void*>(outcome.address) : fault.address, outcome.cause, false);
  if (fault_handler().call == nullptr) write_error(failed->told);
  return Served::kFailed;
}

#else

std::unique_ptr<UncachedWindow> UncachedWindow::create(const UncachedOptions&, std::vector<std::unique_ptr<RemotePath>>,
                                                       WindowError* error) {
  *error = {URMA_ENOPERM, "uncached windows exist on x86-64 only; a cached window does without"};
  return nullptr;
}

Served UncachedWindow::serve(const Fault&, FailedAccess*) { return Served::kForeign; }

#endif

UncachedWindow::UncachedWindow(const UncachedOptions& options, std::vector<std::unique_ptr<RemotePath>> paths,
                               CodeTable& code)
    : paths_(std::move(paths)), code_(code), process_(ipc::fork_generation()), bytes_(options.bytes) {}

// Whoever is serving a fault of the window is waited for. A child process has no mapping, and maybe another one there.
UncachedWindow::~UncachedWindow() {
  if (process_ != ipc::fork_generation()) return;
  FaultRouter::get().remove(*this);
  if (mapping_ != nullptr) ::munmap(mapping_, mapped_bytes_);
}

bool UncachedWindow::map(const UncachedOptions& options, WindowError* error) {
  const size_t in_page = (options.remote_address + options.place) % kPageBytes;
  mapped_bytes_ = (in_page + bytes_ + kPageBytes - 1) / kPageBytes * kPageBytes;
  void* at = ::mmap(nullptr, mapped_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) {
    const char* reason = std::strerror(errno);
    *error = {URMA_ENOMEM, "no addresses for a window of " + std::to_string(bytes_) + " bytes: " + reason};
    return false;
  }
  ::madvise(at, mapped_bytes_, MADV_DONTFORK);
  mapping_ = static_cast<std::byte*>(at);
  start_ = mapping_ + in_page;
  memory_.emplace(reinterpret_cast<uint64_t>(start_), bytes_, options.place, options.read_only, paths_);
  return true;
}

}  // namespace ub::aperture
