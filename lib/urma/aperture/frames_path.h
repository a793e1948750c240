// SPDX-License-Identifier: Apache-2.0
//
// Frames of TP bypass as a path, on wires that carry them (LinkConfig::bypass). The Core knows which call waits for
// which answer, which load goes again, and when a handle breaks (lib/transport/bypass/requester.h). This class cuts
// accesses into blocks, and keeps bytes apart: whoever drives the Core touches the path's own memory alone, since a
// program's may lie in a window.
//
// Loads of one call are under way together, stores until somebody wants to know of them. A load waits until all stores
// before it are executed.
//
// Thread: one at a time. Signal handlers: safe. One that has interrupted its thread inside this library gets
// URMA_CR_LOC_OPERATION_ERR, because the NIC may be that thread's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "lib/base/time.h"
#include "lib/transport/bypass/calls.h"
#include "lib/urma/aperture/piece.h"
#include "lib/urma/aperture/remote_path.h"

namespace ub::aperture {

class FramesPath final : public RemotePath {
 public:
  // The handle of a Core, and who runs what is done with it.
  struct Way {
    uint32_t most_bytes = 0;  // of a block
    std::function<bypass::Ran(bypass::Turns&, Duration patience)> run;
    std::function<void()> close;  // writes nothing for it afterwards
  };

  FramesPath(Way way, const RemoteSegment& segment);
  ~FramesPath() override;

  // Loads the first byte. URMA_CR_ACK_TIMEOUT_ERR: it did not come within so much time, and the path is broken.
  urma_cr_status_t try_out(Duration patience);

  urma_cr_status_t load(std::span<const LoadBlock>) override;
  urma_cr_status_t store(const StoreBlock&) override;
  urma_cr_status_t settle() override;
  urma_cr_status_t fence() override;
  bool carries_atomics() const override { return false; }
  urma_cr_status_t atomic(const RemoteAtomic&, uint64_t*) override { return URMA_CR_UNSUPPORTED_OPCODE_ERR; }
  bool is_signal_safe() const override { return true; }
  bool is_broken() const override { return broken_; }

 private:
  static constexpr uint32_t kAtOnce = 64;  // as many calls as a handle has records for
  // The Core has a timeout, but does not count time in which nobody drives the NIC.
  static constexpr Duration kPatience = seconds(20);

  class Loads;
  class Store;
  class Answers;

  urma_cr_status_t check(uint64_t at, uint32_t bytes) const;
  urma_cr_status_t run(bypass::Turns&);
  urma_cr_status_t send(const bypass::StoreRequest&);
  std::byte* place(uint32_t i) const { return buffer_.get() + size_t{i} * most_lines_ * kLineBytes; }
  void take_answers(bypass::Calls&);
  void break_off();

  Way way_;
  RemoteSegment segment_;
  uint32_t most_lines_;
  Duration patience_ = kPatience;
  std::unique_ptr<std::byte[]> buffer_;  // kAtOnce places for a block
  std::array<uint32_t, kAtOnce> stores_{};  // tickets of those without answer, in the order of their sending
  uint32_t sent_ = 0, answered_ = 0;        // stores, modulo 2^32
  bool broken_ = false;
  urma_cr_status_t store_error_ = URMA_CR_SUCCESS;  // the first one since the last fence
};

}  // namespace ub::aperture
