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
  RecordedMemory(ForeignMemory& memory, record::Recorder& recorder) : memory_(memory), recorder_(recorder) {}

  ForeignMemory& memory() { return memory_; }

  CopyResult gather(const std::byte* frame, std::byte* dst, const std::byte* src, size_t bytes, CopyTag tag) override {
    return told(memory_.gather(frame, dst, src, bytes, tag));
  }
  CopyResult place(std::byte* dst, const std::byte* src, size_t bytes, bool final, CopyTag tag) override {
    return told(memory_.place(dst, src, bytes, final, tag));
  }
  CopyResult atomic(const AtomicRequest& request, uint128* old, CopyTag tag) override {
    return told(memory_.atomic(request, old, tag));
  }
  void frame_aborted(const std::byte* frame) override { memory_.frame_aborted(frame); }
  void frame_held(const std::byte* frame, std::byte* held) override { memory_.frame_held(frame, held); }

 private:
  CopyResult told(CopyResult result) {
    recorder_.copied(result);
    return result;
  }

  ForeignMemory& memory_;
  record::Recorder& recorder_;
};

}  // namespace ub
