// SPDX-License-Identifier: Apache-2.0
//
// What surrounds a Core that is replayed (lib/transport/host.h): it answers as the recording says, keeps the headers of
// frames that are sent, and has no memory but zeros.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lib/base/foreign_pointer.h"
#include "lib/record/frame_shape.h"
#include "lib/record/tapped_host.h"
#include "lib/transport/host.h"
#include "lib/transport/looking/note.h"

namespace ub::record {

struct SentFrame {
  uint32_t link;
  uint32_t bytes;
  uint32_t sum;                       // of its header
  std::vector<std::byte> frame = {};  // that header; of a replay all of it, but with zeros for bytes of memory
};

// What the Host answered during one call, where it was not "yes" and "done".
struct Answers {
  std::vector<uint32_t> refused;                          // numbers of tx_begin()
  std::vector<std::pair<uint32_t, CopyResult>> copies;  // numbers of copies

  void clear() {
    refused.clear();
    copies.clear();
  }
};

class UnrecordedReplayHost {
 public:
  static constexpr bool kLooksClosely = true;

  // ---- for the replayer ----
  void begin_call(Answers&& answers) {
    answers_ = std::move(answers);
    begun_ = copies_ = 0;
    ++calls_;
    sent_.clear();
  }
  // The memory of rings, whose elements may carry payload.
  void keep_rings(std::span<const std::byte> rings) { rings_ = rings; }
  // Only copies of foreign memory are counted.
  void count_foreign_only() { foreign_only_ = true; }
  std::vector<SentFrame>& sent() { return sent_; }
  // The number of the call in which this host has answered that such a copy is pending; 0: in none. To be asked when it
  // is done.
  uint64_t take_pending(CopyTag tag) {
    const auto oldest = pending_.find(tag);
    return oldest == pending_.end() ? 0 : pending_.extract(oldest).mapped();
  }
  std::function<void(const Note&)> on_note;

  // ---- Host ----
  std::byte* tx_begin(uint32_t, size_t bytes) {
    const uint32_t number = begun_++;
    for (const uint32_t refused : answers_.refused)
      if (refused == number) return nullptr;
    std::unique_ptr<std::byte[]> frame;
    if (!free_.empty() && bytes <= kFrameRoom) {
      frame = std::move(free_.back());
      free_.pop_back();
    } else {
      frame = std::make_unique<std::byte[]>(std::max(bytes, kFrameRoom));
    }
    std::byte* at = frame.get();
    open_[at] = std::move(frame);
    return at;
  }
  void tx_commit(uint32_t link, std::byte* frame, size_t bytes) {
    const std::span<const std::byte> whole(frame, bytes);
    sent_.push_back({link, static_cast<uint32_t>(bytes), digest_of(header_of(whole, shape_of(whole))),
                     {whole.begin(), whole.end()}});
    tx_abort(link, frame);
  }
  void tx_abort(uint32_t, std::byte* frame) {
    const auto it = open_.find(frame);
    if (it == open_.end()) return;
    free_.push_back(std::move(it->second));
    open_.erase(it);
  }
  void tx_may_wait(uint32_t) {}
  void tx_hold(uint32_t link, std::byte* frame, std::byte*) { tx_abort(link, frame); }
  void tx_drop(std::byte*) {}

  CopyResult gather(std::byte* dst, const std::byte* src, size_t bytes, CopyTag tag) {
    const bool is_inline = src >= rings_.data() && src < rings_.data() + rings_.size();
    is_inline ? std::memcpy(dst, src, bytes) : std::memset(dst, 0, bytes);
    return next_copy(src, tag);
  }
  CopyResult place(std::byte* dst, const std::byte*, size_t, bool, CopyTag tag) { return next_copy(dst, tag); }
  CopyResult atomic(const AtomicRequest& request, uint128* old, CopyTag tag) {
    *old = {};
    return next_copy(request.address, tag);
  }
  void load(std::byte* block, const std::byte*, size_t bytes) { std::memset(block, 0, bytes); }
  void store(std::byte*, const std::byte*, size_t) {}
  void note(const Note& note) {
    if (on_note) on_note(note);
  }

 private:
  static constexpr size_t kFrameRoom = 9728;

  CopyResult next_copy(const std::byte* memory, CopyTag tag) {
    if (foreign_only_ && !is_foreign(memory)) return CopyResult::kDone;
    const uint32_t number = copies_++;
    for (const auto& [at, result] : answers_.copies) {
      if (at != number) continue;
      if (result == CopyResult::kPending) pending_.emplace(tag, calls_);
      return result;
    }
    return CopyResult::kDone;
  }

  Answers answers_;
  uint32_t begun_ = 0, copies_ = 0;
  bool foreign_only_ = false;
  uint64_t calls_ = 0;
  std::multimap<CopyTag, uint64_t> pending_;  // with the call
  std::vector<SentFrame> sent_;
  std::span<const std::byte> rings_;
  std::unordered_map<std::byte*, std::unique_ptr<std::byte[]>> open_;
  std::vector<std::unique_ptr<std::byte[]>> free_;
};

using ReplayHost = TappedHost<UnrecordedReplayHost>;

}  // namespace ub::record
