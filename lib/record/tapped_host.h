// SPDX-License-Identifier: Apache-2.0
//
// A Host (lib/transport/host.h) whose answers may be recorded. For programs that decide when they are compiled that
// they may record, as the simulator and the replay do; the ports of a NIC tell their recorder themselves.
#pragma once

#include "lib/record/recorder.h"
#include "lib/transport/host.h"

namespace ub::record {

template <class Host>
class TappedHost : public Host {
 public:
  using Host::Host;

  void record(Recorder* recorder) { recorder_ = recorder; }  // null: nobody records

  std::byte* tx_begin(uint32_t link, size_t bytes) {
    std::byte* frame = Host::tx_begin(link, bytes);
    if (recorder_ != nullptr) recorder_->began(frame != nullptr);
    return frame;
  }
  void tx_commit(uint32_t link, std::byte* frame, size_t bytes) {
    if (recorder_ != nullptr) recorder_->sent(link, {frame, bytes});
    Host::tx_commit(link, frame, bytes);
  }
  CopyResult gather(std::byte* dst, const std::byte* src, size_t bytes, CopyTag tag) {
    if (recorder_ == nullptr) return Host::gather(dst, src, bytes, tag);
    return told(Host::gather(dst, recorder_->shadows().real_of(src, bytes), bytes, tag));
  }
  CopyResult place(std::byte* dst, const std::byte* src, size_t bytes, bool final, CopyTag tag) {
    return told(Host::place(dst, src, bytes, final, tag));
  }
  CopyResult atomic(const AtomicRequest& request, uint128* old, CopyTag tag) {
    return told(Host::atomic(request, old, tag));
  }

 private:
  CopyResult told(CopyResult result) {
    if (recorder_ != nullptr) recorder_->copied(result);
    return result;
  }

  Recorder* recorder_ = nullptr;
};

}  // namespace ub::record
