// SPDX-License-Identifier: Apache-2.0
#include "lib/urma/aperture/same_host/shared_window.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "lib/urma/include/ub/umdk/urma/softub_aperture.h"

namespace ub::aperture {
namespace {

constexpr uint32_t kKnown = SOFTUB_FLUSH | SOFTUB_INVALIDATE | SOFTUB_DISCARD | SOFTUB_PREFETCH | SOFTUB_RESIDENT |
                            SOFTUB_WRITABLE;

}  // namespace

// Without MAP_NORESERVE or hints: pages are the owner's, and are there or are made as it touches them.
std::shared_ptr<SharedWindow> SharedWindow::create(ipc::OpenedShare share, const SharedWindowOptions& options,
                                                   std::string* error) {
  std::shared_ptr<SharedWindow> window(new SharedWindow);
  window->bytes_ = ipc::share_pages(options.bytes);
  window->writable_ = share.writable && !options.read_only;
  window->read_only_ = options.read_only;
  window->process_ = ipc::fork_generation();
  window->socket_ = std::move(share.socket);
  const int protection = PROT_READ | (window->writable_ ? PROT_WRITE : 0);
  void* at = ::mmap(nullptr, window->bytes_, protection, MAP_SHARED, share.memory.get(),
                    static_cast<off_t>(options.offset));
  if (at == MAP_FAILED) {
    *error = std::string("the memory cannot be mapped: ") + std::strerror(errno);
    return nullptr;
  }
  window->data_ = static_cast<std::byte*>(at);
  ::madvise(at, window->bytes_, MADV_DONTFORK);
  if (!FaultRouter::get().add(window->data_, window->bytes_, *window, error)) return nullptr;
  return window;
}

SharedWindow::~SharedWindow() {
  FaultRouter::get().remove(*this);
  if (data_ != nullptr && process_ == ipc::fork_generation()) ::munmap(data_, bytes_);
}

urma_cr_status_t SharedWindow::sync(const void* at, size_t bytes, uint32_t what) const {
  const auto offset = static_cast<uint64_t>(static_cast<const std::byte*>(at) - data_);
  if (bytes > bytes_ - offset) return URMA_CR_LOC_LEN_ERR;
  if ((what & ~kKnown) != 0) return URMA_CR_LOC_OPERATION_ERR;
  const urma_cr_status_t ended = ended_.load(std::memory_order_acquire);
  if (ended != URMA_CR_SUCCESS) return ended;
  return (what & SOFTUB_WRITABLE) != 0 && !writable_ ? URMA_CR_LOC_ACCESS_ERR : URMA_CR_SUCCESS;
}

bool SharedWindow::listen() {
  switch (hear_share(socket_.get())) {
    case ShareNews::kNothing:
      return false;
    case ShareNews::kRightEnded:
      return let_go(URMA_CR_REM_ACCESS_ABORT_ERR);
    case ShareNews::kOwnerGone:
      return let_go(URMA_CR_ACK_TIMEOUT_ERR);
  }
  return false;
}

// The cause is there before the memory is not. Where the kernel has no room for the change the socket stays open: the
// NIC goes on to count this process among those who hold the memory.
bool SharedWindow::let_go(urma_cr_status_t cause) {
  ended_.store(cause, std::memory_order_seq_cst);
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  if (::mmap(data_, bytes_, PROT_NONE, kFlags, -1, 0) == MAP_FAILED) return true;
  ::madvise(data_, bytes_, MADV_DONTFORK);
  socket_.reset();
  return true;
}

Served SharedWindow::serve(const Fault& fault, FailedAccess* failed) {
  if (process_ != ipc::fork_generation()) return Served::kForeign;
  urma_cr_status_t cause = ended_.load(std::memory_order_seq_cst);
  if (cause == URMA_CR_SUCCESS) cause = read_only_ ? URMA_CR_LOC_ACCESS_ERR : URMA_CR_REM_ACCESS_ABORT_ERR;
  return failed->fail(fault.address, cause, fault.is_write);
}

}  // namespace ub::aperture
