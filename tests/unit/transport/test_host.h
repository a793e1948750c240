// SPDX-License-Identifier: Apache-2.0
// test_host.h - what a Core needs from outside (lib/transport/host.h), in the hands of a test: frames that left lie in
// a queue, memory answers at once or when the test says so.
#pragma once

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "lib/base/assert.h"
#include "lib/base/time.h"
#include "lib/base/word_copy.h"
#include "lib/transport/host.h"
#include "lib/transport/looking/note.h"

namespace ub {

class TestHost {
 public:
  static constexpr bool kLooksClosely = true;
  using Bytes = std::vector<std::byte>;

  std::deque<Bytes> frames;  ///< that left
  bool slow = false;         ///< copies wait for finish_copies()
  bool full = false;         ///< no room for frames
  uint32_t full_link = 0;    ///< the same for those of one link
  bool lost = false;         ///< memory is gone when a slow copy is carried out
  bool gone = false;         ///< memory is gone when a copy is asked for
  const void* closed_gate = nullptr;  ///< no access to mapped memory passes it
  uint32_t may_wait = 0;     ///< frames of which the Core said that nobody waits for them

  std::byte* tx_begin(uint32_t link, size_t bytes) {
    if (full || link == full_link) return nullptr;
    // Not zero: what the Core does not write is seen.
    open_.push_back({std::make_unique<Bytes>(bytes, std::byte{0xA5}), std::make_shared<std::byte*>()});
    *open_.back().at = open_.back().bytes->data();
    return *open_.back().at;
  }
  void tx_commit(uint32_t, std::byte* frame, size_t bytes) {
    frames.push_back(take(frame, nullptr));
    UB_ASSERT(bytes <= frames.back().size());  // it got as much as it asked for
    frames.back().resize(bytes);
  }
  void tx_abort(uint32_t, std::byte* frame) { take(frame, nullptr); }
  void tx_hold(uint32_t, std::byte* frame, std::byte* held) { take(frame, held); }
  void tx_may_wait(uint32_t) { ++may_wait; }
  void tx_drop(std::byte* held) { *std::exchange(held_[held], std::make_shared<std::byte*>()) = nullptr; }

  void note(const Note& n) {
    notes_.push_back(n);
    if (on_note) on_note(n);
  }
  std::function<void(const Note&)> on_note;  ///< hears them at once, too
  /// What was noted of a stage while somebody looked.
  std::vector<Note> noted(Stage stage) const {
    std::vector<Note> all;
    for (const Note& n : notes_) {
      if (n.stage == stage) all.push_back(n);
    }
    return all;
  }

  CopyResult gather(std::byte* dst, const std::byte* src, size_t bytes, CopyTag tag) {
    const Open& frame = open_frame(dst);
    // Into nowhere, once the frame was given up.
    return copy(tag, [at = frame.at, offset = dst - *frame.at, src, bytes] {
      if (*at != nullptr) std::memcpy(*at + offset, src, bytes);
    });
  }
  CopyResult place(std::byte* dst, const std::byte* src, size_t bytes, bool, CopyTag tag) {
    return copy(tag, [dst, data = Bytes(src, src + bytes)] { std::memcpy(dst, data.data(), data.size()); });
  }
  CopyResult atomic(const AtomicRequest& request, uint128* old, CopyTag tag) {
    return copy(tag, [=] { *old = run_atomic(request); });
  }

  void load(std::byte* block, const std::byte* memory, size_t bytes) { load_words(block, memory, bytes); }
  void store(std::byte* memory, const std::byte* block, size_t bytes) { store_words(memory, block, bytes); }

  bool write_mapped(void* gate, std::byte* remote, const std::byte* local, size_t bytes) {
    if (gate == closed_gate) return false;
    std::memcpy(remote, local, bytes);
    return true;
  }
  bool read_mapped(void* gate, std::byte* local, const std::byte* remote, size_t bytes) {
    return write_mapped(gate, local, remote, bytes);
  }
  bool atomic_mapped(void* gate, const AtomicRequest& request, uint128* old) {
    if (gate == closed_gate) return false;
    *old = run_atomic(request);
    return true;
  }

  size_t open_frames() const { return open_.size(); }
  size_t pending_copies() const { return pending_.size(); }
  /// What is pending will fail: the memory is gone.
  void lose_pending() {
    for (auto& copy : pending_) copy.second = nullptr;
  }
  /// Carries one of the pending copies out.
  template <class AnyCore>
  void finish_copy(AnyCore& core, Instant now, size_t which = 0) {
    auto [tag, run] = std::move(pending_[which]);
    pending_.erase(pending_.begin() + static_cast<ptrdiff_t>(which));
    const bool ok = !lost && run != nullptr;
    if (ok) run();
    core.on_copy_done(now, tag, ok);
  }
  /// All of them, the oldest first; true: there was one.
  template <class AnyCore>
  bool finish_copies(AnyCore& core, Instant now) {
    if (pending_.empty()) return false;
    while (!pending_.empty()) finish_copy(core, now);
    return true;
  }

 private:
  CopyResult copy(CopyTag tag, std::function<void()> run) {
    if (gone) return CopyResult::kFailed;
    if (slow) {
      pending_.emplace_back(tag, std::move(run));
      return CopyResult::kPending;
    }
    run();
    return CopyResult::kDone;
  }
  struct Open {
    std::unique_ptr<Bytes> bytes;
    std::shared_ptr<std::byte*> at;  // where what is pending for it goes
  };
  const Open& open_frame(const std::byte* at) const {
    auto it = std::find_if(open_.begin(), open_.end(), [=](const Open& f) {
      return at >= f.bytes->data() && at <= f.bytes->data() + f.bytes->size();
    });
    UB_ASSERT(it != open_.end());
    return *it;
  }
  Bytes take(const std::byte* frame, std::byte* held) {
    auto it = std::find_if(open_.begin(), open_.end(), [=](const Open& f) { return f.bytes->data() == frame; });
    UB_ASSERT(it != open_.end());
    Bytes bytes = std::move(*it->bytes);
    *it->at = held;
    if (held != nullptr) held_[held] = it->at;
    open_.erase(it);
    return bytes;
  }

  std::vector<Note> notes_;
  std::vector<Open> open_;
  std::map<std::byte*, std::shared_ptr<std::byte*>> held_;
  std::deque<std::pair<CopyTag, std::function<void()>>> pending_;
};

}  // namespace ub
