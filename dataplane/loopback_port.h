// SPDX-License-Identifier: Apache-2.0
//
// The wire from an instance to itself: frames sent are received by the next burst. One link; lossless (a full
// queue answers nullptr), ICRC optional. A private FrameRing: both ends are the owner of the Core.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "dataplane/port_concept.h"
#include "lib/base/time.h"
#include "lib/ipc/frame_ring.h"
#include "lib/ipc/memfd.h"
#include "lib/transport/core_types.h"

namespace ub {

struct LoopbackPortOptions {
  uint32_t mtu = 4096;             // payload bytes of a packet
  uint64_t ring_bytes = 1U << 20;  // power of two, at least 64 KiB; touched as it is used
};

class LoopbackPort {
 public:
  explicit LoopbackPort(const LoopbackPortOptions& = {});
  LoopbackPort(const LoopbackPort&) = delete;
  LoopbackPort& operator=(const LoopbackPort&) = delete;

  // False: out of memory at construction; nothing works then.
  bool ok() const { return static_cast<bool>(area_); }

  // For Core::add_link; then tell the port the number it got.
  LinkConfig link_config() const {
    return {.mtu = options_.mtu, .icrc_optional = true, .lossless = true, .compact = true, .link_frames = true};
  }
  void set_link(uint32_t link) { link_ = link; }
  uint32_t link() const { return link_; }

  size_t rx_burst(RxFrame* out, size_t room) {
    size_t n = 0;
    ipc::FrameRingReader::Frame frame;
    while (n < room && reader_.next(&frame)) out[n++] = {frame.data, frame.bytes, link_};
    return n;
  }
  void rx_release() { reader_.release(); }
  std::byte* tx_begin(uint32_t, size_t bytes) { return writer_.begin(bytes); }
  void tx_commit(uint32_t, std::byte* frame, size_t bytes) { writer_.commit(frame, bytes); }
  void tx_abort(uint32_t, std::byte* frame) { writer_.abort(frame); }
  void tx_flush(Instant) { writer_.publish(); }
  // Sent and not received yet: nobody else rings for it.
  bool has_frames() const { return !reader_.empty(); }
  bool prepare_sleep() { return has_frames(); }
  void finish_sleep() {}
  void fds(std::vector<int>&) const {}

 private:
  LoopbackPortOptions options_;
  ipc::Mapping area_;
  uint32_t link_ = 0;
  ipc::FrameRingWriter writer_;
  ipc::FrameRingReader reader_;
};

}  // namespace ub
