// SPDX-License-Identifier: Apache-2.0
//
// A path and its atomics: where the path carries none, they go by a queue, which is made for the first one or when
// prepare() is called. Everything else goes by the path.
//
// Thread: whoever uses the path.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "lib/urma/aperture/queue_path.h"
#include "lib/urma/aperture/remote_path.h"

namespace ub::aperture {

class QueuedAtomics final : public RemotePath {
 public:
  // Before `below`, which leads to `seg`. It outlives this.
  QueuedAtomics(RemotePath& below, urma_target_seg_t* seg) : below_(below), seg_(seg) {}

  // Makes the queue now, if there has to be one. False and `*why`.
  bool prepare(std::string* why);

  urma_cr_status_t load(std::span<const LoadBlock> blocks) override { return below_.load(blocks); }
  urma_cr_status_t store(const StoreBlock& block) override { return below_.store(block); }
  urma_cr_status_t fence() override { return below_.fence(); }
  urma_cr_status_t settle() override { return below_.settle(); }
  // The stores before it come first; what became of them is told by the next fence().
  urma_cr_status_t atomic(const RemoteAtomic&, uint64_t* old) override;
  bool ask(EarlyLoad* load) override { return below_.ask(load); }
  void finish(EarlyLoad* load) override { below_.finish(load); }
  bool is_signal_safe() const override { return below_.is_signal_safe(); }
  bool is_broken() const override { return below_.is_broken() || (queue_ != nullptr && queue_->is_broken()); }

 private:
  RemotePath& below_;
  urma_target_seg_t* const seg_;
  std::unique_ptr<QueuePath> queue_;
};

}  // namespace ub::aperture
