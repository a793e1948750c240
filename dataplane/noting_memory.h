// SPDX-License-Identifier: Apache-2.0
//
// The memory of a daemon's applications while somebody looks at the NIC: it notes each copy that memory will answer
// later (docs/looking.md). Nobody else is to know when that begins, as the memory alone says so.
//
// Thread: the owner of the Core.
#pragma once

#include "dataplane/port_set.h"

namespace ub {

class NotingMemory final : public ForeignMemory {
 public:
  // Notes go to these ports, which outlive this.
  explicit NotingMemory(PortSet& ports) : ports_(ports) {}

  // This, in front of that memory from now on.
  NotingMemory& over(ForeignMemory& memory) {
    inner_ = &memory;
    return *this;
  }

  CopyResult gather(const std::byte* frame, std::byte* dst, const std::byte* src, size_t bytes, CopyTag tag) override {
    return noted(inner_->gather(frame, dst, src, bytes, tag), bytes, tag);
  }
  CopyResult place(std::byte* dst, const std::byte* src, size_t bytes, bool final, CopyTag tag) override {
    return noted(inner_->place(dst, src, bytes, final, tag), bytes, tag);
  }
  CopyResult atomic(const AtomicRequest& request, uint128* old, CopyTag tag) override {
    return noted(inner_->atomic(request, old, tag), request.bytes, tag);
  }
  void frame_aborted(const std::byte* frame) override { inner_->frame_aborted(frame); }
  void frame_held(const std::byte* frame, std::byte* held) override { inner_->frame_held(frame, held); }

 private:
  CopyResult noted(CopyResult result, size_t bytes, CopyTag tag) {
    if (result == CopyResult::kPending) {
      ports_.note({Stage::kCopyAsked, static_cast<uint32_t>(tag >> 32), static_cast<uint32_t>(tag),
                   static_cast<uint32_t>(bytes)});
    }
    return result;
  }

  PortSet& ports_;
  ForeignMemory* inner_ = nullptr;
};

}  // namespace ub
