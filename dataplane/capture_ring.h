// SPDX-License-Identifier: Apache-2.0
//
// Copies of frames on their way from the owner of the Core to the thread that writes them to a file: a bounded ring in
// memory, without locks. The owner never waits: where there is no room, a frame is not kept. What the owner puts in may
// still be changed by it until publish(), and is seen by the writer from then on.
//
// Thread: put() and publish() the owner of the Core, take() the writer.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "dataplane/pcapng.h"
#include "lib/ipc/memfd.h"

namespace ub {

struct CaptureInterface;

struct CaptureRecord {
  uint32_t bytes;       // of the record with its frame and what fills it up
  uint32_t kept;        // bytes of the frame behind this record
  uint32_t length;      // of the frame; 0: no frame, but the rest of the ring's memory
  uint16_t reason;      // why the Core dropped it: the number of the counter plus 1; 0: it did not
  pcapng::Direction direction;
  uint64_t time_ns;     // since 1970
  uint64_t missed;      // frames of this interface between the record before and this one
  CaptureInterface* interface;

  std::byte* frame() { return reinterpret_cast<std::byte*>(this + 1); }
  std::span<const std::byte> frame() const { return {reinterpret_cast<const std::byte*>(this + 1), kept}; }
};

class CaptureRing {
 public:
  // `bytes`: a power of two, at least 128 KiB. Not usable: no memory (is_usable()).
  explicit CaptureRing(size_t bytes) : mask_(bytes - 1) { memory_.map_private(bytes); }
  bool is_usable() const { return static_cast<bool>(memory_); }
  // Gives its memory back. Nothing can be put in or taken any more.
  void free() { memory_.reset(); }
  // By the writer, before anything is put in: takes the memory, so that the owner meets no page fault.
  void touch();

  // Room for a frame of which `kept` bytes, at most 64 KiB, are kept; `bytes` and `kept` are filled in. Null: none.
  CaptureRecord* put(uint32_t kept);
  void publish() { published_.store(put_, std::memory_order_release); }

  // Calls fn(const CaptureRecord&) for what has been published; false of fn: the rest later.
  template <class Fn>
  void take(Fn fn) {
    uint64_t at = taken_.load(std::memory_order_relaxed);
    const uint64_t end = published_.load(std::memory_order_acquire);
    for (bool more = true; more && at != end;) {
      const CaptureRecord& record = *record_at(at);
      more = record.length == 0 || fn(record);
      if (more) taken_.store(at += record.bytes, std::memory_order_release);
    }
  }

 private:
  CaptureRecord* record_at(uint64_t at) const {
    return reinterpret_cast<CaptureRecord*>(memory_.data() + (at & mask_));
  }

  ipc::Mapping memory_;
  const uint64_t mask_;
  uint64_t put_ = 0;         // the owner's
  uint64_t taken_before_ = 0;  // what the owner knows of taken_
  alignas(64) std::atomic<uint64_t> published_{0};
  alignas(64) std::atomic<uint64_t> taken_{0};
};

}  // namespace ub
