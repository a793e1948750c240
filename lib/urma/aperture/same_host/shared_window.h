// SPDX-License-Identifier: Apache-2.0
//
// A window that is the remote memory itself: its owner offered it, and this process has mapped it (lib/ipc/share.h).
// An access is one of the CPU, with its atomics and its order; the NIC checked the rights when the window was made.
//
// When the NIC says that the right has ended, or hangs up, the memory gives way to addresses without access, and then
// the socket is closed, which tells the NIC. Faults from then on, and writes to a window that is read-only, go to the
// program's handler.
//
// Thread: any. listen() by the watcher (share_watcher.h).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "lib/ipc/share_connect.h"
#include "lib/urma/aperture/fault_router.h"
#include "lib/urma/aperture/same_host/watched_share.h"
#include "lib/urma/include/ub/umdk/urma/urma_opcode.h"

namespace ub::aperture {

struct SharedWindowOptions {
  uint64_t offset = 0;  // whole pages, in the memory
  uint64_t bytes = 0;
  bool read_only = false;  // the program wants no writes
};

class SharedWindow final : public Window, public WatchedShare {
 public:
  // Null and `*error`: the kernel does not map it, or there is no memory.
  static std::shared_ptr<SharedWindow> create(ipc::OpenedShare, const SharedWindowOptions&, std::string* error);
  ~SharedWindow() override;

  std::byte* data() const { return data_; }
  uint64_t bytes() const { return bytes_; }
  int socket() const override { return socket_.get(); }

  // As softub_sync(): there is nothing to do but to say whether the range is there and may be used so.
  urma_cr_status_t sync(const void* at, size_t bytes, uint32_t what) const;

  // Something is to be read from the socket. True: the right has ended, and the memory is not mapped any more.
  bool listen() override;

  Served serve(const Fault&, FailedAccess*) override;

 private:
  SharedWindow() = default;
  bool let_go(urma_cr_status_t cause);

  std::byte* data_ = nullptr;
  uint64_t bytes_ = 0;
  uint32_t process_ = 0;  // which maps it: a forked child does not
  bool writable_ = false;
  bool read_only_ = false;
  ipc::Fd socket_;
  std::atomic<urma_cr_status_t> ended_{URMA_CR_SUCCESS};  // why
};

}  // namespace ub::aperture
