// SPDX-License-Identifier: Apache-2.0
//
// Writes down everything that enters a Core, and a digest of what comes out (docs/recording-design.md). The Core tells
// it of control calls; whoever drives the Core, by way of RecordedCore, of the others and of turns; and the Host of
// frames and memory.
//
// A recording that cannot go on (the disk is full) ends: recorded() is false then, and all calls do nothing but lend
// and tell, until somebody ends it.
//
// Thread: the owner of the Core.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/time.h"
#include "lib/record/file.h"
#include "lib/record/frame_shape.h"
#include "lib/record/shadows.h"
#include "lib/record/varint.h"
#include "lib/transport/host.h"
#include "lib/transport/looking/call_log.h"

namespace ub::record {

// Frames of one kind mostly differ in few bytes: each is written as its difference to the last one of its kind.
class LikeFrames {
 public:
  static constexpr size_t kMostBytes = kMostKept;

  std::byte* of(uint32_t link, size_t bytes) { return frames_[(link * 31 + bytes) % kFrames]; }
  void forget() { std::memset(frames_, 0, sizeof frames_); }

 private:
  static constexpr size_t kFrames = 64;
  alignas(64) std::byte frames_[kFrames][kMostBytes];
};

struct RecorderOptions {
  size_t most_bytes = size_t{256} << 20;  // of a file
  bool headers = false;                   // write the headers of frames that were sent, not only their digests
  bool payload = false;                   // write payload, too
  bool foreign_only = false;              // the Host tells of copies of foreign memory alone
  uint64_t recording = 0;                 // the same in all files of a recording
  uint32_t number = 0;                    // of the file
};

class Recorder final : public CallLog {
 public:
  // To be called before queues are adopted. False: there is no memory.
  bool begin_shadows() { return shadows_.memory().data() != nullptr || shadows_.begin(); }
  // Begins a file at `path`. False and `*why`; the recorder is of no use then.
  bool begin(const std::string& path, const RecorderOptions&, const CoreConfig&, std::span<std::byte> arena,
             std::string* why);
  bool recorded() const { return file_ != nullptr && ended_ == Ended::kNot; }
  // Is the file nearly full? Then another one is to follow, between two turns.
  bool is_nearly_full() const { return recorded() && !file_->fits(options_.payload ? kLastWithPayload : kLastBytes); }
  Ended ended() const { return ended_; }
  const FileWriter* file() const { return file_.get(); }
  Shadows& shadows() { return shadows_; }

  // A part of the image, in the order in which a replay takes them (image.h).
  void put_image(std::span<const std::byte> bytes);
  void end_image() {
    if (recorded()) file_->seal_image();
  }

  // ---- turns -----------------------------------------------------------------------------------------------
  // Which rings are looked at when a turn begins: all, or those alone that somebody rings for within it.
  enum class Look : uint8_t { kAll, kRung };
  // Takes what applications did since the last turn. Calls outside of a turn are turns of their own.
  void begin_turn(Look look = Look::kAll) {
    in_turn_ = true;
    turn_began_ = recorded() ? file_->used() : 0;
    if (look == Look::kAll) take_all();
  }
  // Applications see what was done. It may be called within a turn, before somebody is told of events.
  void tell();
  void end_turn();
  // JFRs in ERROR got receives that nobody will flush: whoever drives calls set_state(kError) for each.
  std::vector<uint32_t> take_unflushed() { return std::exchange(unflushed_, {}); }

  // ---- calls of the data path ------------------------------------------------------------------------------
  void begin_frame(Call, Instant now, uint32_t link, std::span<const std::byte> frame);
  template <class... Numbers>
  void begin_turn_call(Call call, Instant now, Numbers... numbers) {
    if (++depth_ != 1) return;
    if (!in_turn_) take_all();
    std::byte* at = begin_entry(2 + kMostVarint * (1 + sizeof...(numbers)));
    if (at == nullptr) return;
    *at++ = static_cast<std::byte>(Entry::kTurnCall);
    *at++ = static_cast<std::byte>(call);
    at = put_time(at, now);
    ((at = put_varint(at, static_cast<uint64_t>(numbers))), ...);
    file_->commit(at);
  }
  void end_call() {
    if (--depth_ == 0) end_answers();
  }

  // ---- CallLog ---------------------------------------------------------------------------------------------
  void lend(JfcConfig*) override;
  void lend(JfrConfig*) override;
  void lend(SendQueueConfig*) override;
  void begin(Call, std::initializer_list<Bytes> arguments) override;
  void end(std::initializer_list<Bytes> results) override;
  void dropped(Counter why) override;

  // ---- from the Host, during a call ------------------------------------------------------------------------
  void began(bool room);
  void sent(uint32_t link, std::span<const std::byte> frame);
  void copied(CopyResult);

  // The ring of a queue that was there before, with its contents, under the id of its object or the number of its JFC.
  // 0: there is no memory.
  uint32_t adopt(const Ring& real);

  // No further entry is written.
  void stop(Ended);

 private:
  // A turn writes less, unless rings are very long.
  static constexpr size_t kLastBytes = 1 << 20, kLastWithPayload = 4 << 20;

  // Room for an entry; null: nothing is recorded any more.
  std::byte* begin_entry(size_t most) {
    if (!recorded()) return nullptr;
    std::byte* at = file_->room(most);
    return at != nullptr ? at : end_for_want_of_room(most);
  }
  std::byte* end_for_want_of_room(size_t most);
  void put_turn_end();
  std::byte* put_time(std::byte* at, Instant now) {
    const uint64_t before = std::exchange(last_ns_, now.ns);
    return put_varint(at, last_ns_ - before);
  }
  void take_all();
  void take(uint32_t ring);
  void take_posted(uint32_t number, Ring& ring);
  void take_elements(uint32_t number, Ring& ring, uint32_t produced);
  void take_completion_side(uint32_t number, Ring& ring);
  void take_rate(uint32_t number, Ring& ring);
  void take_rung(Call call, uint32_t object);
  // The call under way has no more answers. One outside of a turn is a turn.
  void end_answers() {
    begun_ = copies_ = 0;
    frame_ = {};
    if (!in_turn_) [[unlikely]] {
      tell();
      put_turn_end();
    }
  }
  bool begin_bell(Call, std::initializer_list<Bytes> arguments);
  void lend(const Ring& real, std::byte** slots, std::byte** source, QueueIndices** indices, std::byte** work,
            OwnerLimits** limits);
  template <class Config>
  void lend_simple(RingKind kind, Config* config);
  void settle_lent(std::initializer_list<Bytes> results);
  void put_results(std::initializer_list<Bytes> results);
  void put_sent_payload(std::span<const std::byte> frame, const FrameShape&);

  std::unique_ptr<FileWriter> file_;
  RecorderOptions options_;
  Ended ended_ = Ended::kNot;
  Shadows shadows_;
  LikeFrames frames_in_, frames_out_;
  std::vector<uint32_t> unflushed_;
  uint32_t depth_ = 0;     // calls within calls are no inputs
  bool in_turn_ = false;
  size_t turn_began_ = 0;  // in the file
  uint64_t last_ns_ = 0;
  Call call_{};            // under way
  uint32_t begun_ = 0, copies_ = 0;  // of the call under way
  std::span<const std::byte> frame_;  // of the call under way
  uint32_t lent_ = 0;    // ring of the object that the call under way makes
  uint32_t object_ = 0;  // that it destroys
};

}  // namespace ub::record
