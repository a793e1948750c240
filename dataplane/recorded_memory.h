// SPDX-License-Identifier: Apache-2.0
//
// Foreign memory whose answers are recorded.
//
// Thread: the owner of the Core.
#pragma once

#include "dataplane/foreign_memory.h"
#include "lib/record/recorder.h"

namespace ub {

class RecordedMemory final : public ForeignMemory {
 public:
  // The recorder outlives this.
  explicit RecordedMemory(record::Recorder& recorder) : recorder_(recorder) {}

  // This, in front of that memory from now on.
  RecordedMemory& over(ForeignMemory& memory) {
    inner_ = &memory;
    return *this;
  }

  CopyResult gather(const std::byte* frame, std::byte* dst, const std::byte* src, size_t bytes, CopyTag tag) override {
    return told(inner_->gather(frame, dst, src, bytes, tag));
  }
  CopyResult place(std::byte* dst, const std::byte* src, size_t bytes, bool final, CopyTag tag) override {
    return told(inner_->place(dst, src, bytes, final, tag));
  }
  CopyResult atomic(const AtomicRequest& request, uint128* old, CopyTag tag) override {
    return told(inner_->atomic(request, old, tag));
  }
  void frame_aborted(const std::byte* frame) override { inner_->frame_aborted(frame); }
  void frame_held(const std::byte* frame, std::byte* held) override { inner_->frame_held(frame, held); }

 private:
  CopyResult told(CopyResult result) {
    recorder_.copied(result);
    return result;
  }

  record::Recorder& recorder_;
  ForeignMemory* inner_ = nullptr;
};

}  // namespace ub
