// SPDX-License-Identifier: Apache-2.0
//
// A ring of frames of any length in memory that one producer and one consumer (threads or processes) share.
//
//   area:  [control page: `consumed`] [data: a power of two of bytes, in lines of 64]
//   small frame (up to kSmallFrame bytes):  | word, bytes ... |  ... |    in as few lines as it fits into
//   large frame:                            | word, unused    | bytes ...    the bytes begin on a line of their own
//
// A frame is contiguous; where it would cross the end of the data, a filler takes the rest of the lap. `word` publishes
// a frame: 0 means "not yet", anything else tells the kind, the length, the span and (part of) the position. There is
// no producer index. The consumer looks at the word where the next frame will begin, so a small frame costs the
// transfer of its own lines and nothing else. Payload moves on through the whole ring, because lines that have left the
// private cache of the other core are cheap to write.
//
//   what               written by   order
//   bytes, then word   producer     the word is stored with release and loaded with acquire
//   next word := 0     producer     before the word in front of it, so that old payload is never taken for a word
//   consumed           consumer     stored with release after its last look at the bytes, loaded with acquire
//
// Frames appear in the order of begin(), whatever the order of commit(), and only with publish(). The first word that
// is not published (the "gate") is held back; those behind it are written at once, but the consumer cannot reach them.
// Thus a burst becomes visible as a whole, and the one line that an idle consumer spins on is written once: small
// frames are built in private memory and copied at the end, and large ones do not use that line.
//
// Neither side believes the other. Positions are private. What is read from shared memory is read once and checked, and
// an impossible value sets broken() and ends the use of the ring. A consumer that lies about `consumed` can only have
// its own frames overwritten.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

#include "lib/base/assert.h"

namespace ub::ipc {

class FrameRing {
 public:
  static constexpr size_t kLine = 64;
  static constexpr size_t kControlBytes = 4096;
  static constexpr size_t kMinBytes = size_t{64} << 10;
  static constexpr size_t kMaxBytes = size_t{1} << 30;
  static constexpr size_t kWordBytes = 8;
  static constexpr size_t kSmallFrame = 4 * kLine - kWordBytes;  // a frame and its word take up to four lines
  static constexpr size_t kMaxFrame = 32 * 1024;

  static constexpr size_t area_bytes(size_t data_bytes) { return kControlBytes + data_bytes; }
  static constexpr bool valid_size(uint64_t data_bytes) {
    return data_bytes >= kMinBytes && data_bytes <= kMaxBytes && (data_bytes & (data_bytes - 1)) == 0;
  }
  // The longest frame that always finds room in an empty ring, wherever it begins.
  static constexpr size_t max_frame(size_t data_bytes) {
    return data_bytes / 4 < kMaxFrame ? data_bytes / 4 : kMaxFrame;
  }

 protected:
  enum Kind : uint32_t { kNothing = 0, kSmall = 1, kLarge = 2, kFiller = 3 };

  // word: position in lines (low 16 bits) | span in lines, 16 | kind, 8 | frames published behind it, 8 |
  // bytes, 16
  static uint64_t make_word(Kind kind, size_t bytes, size_t span, uint64_t position) {
    return uint64_t{position / kLine & 0xffff} << 48 | uint64_t{span / kLine} << 32 | uint64_t{kind} << 24 | bytes;
  }
  static constexpr uint32_t kMaxBehind = 255;  // a hint, saturates

  void attach_area(std::byte* area, size_t data_bytes) {
    UB_ASSERT(valid_size(data_bytes) && reinterpret_cast<uintptr_t>(area) % kLine == 0);
    data_ = area + kControlBytes;
    mask_ = data_bytes - 1;
    consumed_ = reinterpret_cast<std::atomic<uint64_t>*>(area);
  }
  std::atomic<uint64_t>& word_at(uint64_t position) const {
    return *reinterpret_cast<std::atomic<uint64_t>*>(data_ + (position & mask_));
  }
  static constexpr size_t round_up(size_t bytes) { return (bytes + kLine - 1) & ~(kLine - 1); }

  std::byte* data_ = nullptr;
  uint64_t mask_ = 0;
  std::atomic<uint64_t>* consumed_ = nullptr;  // position up to which the consumer is done
};

// Thread: the producer.
class FrameRingWriter : FrameRing {
 public:
  using FrameRing::area_bytes;
  using FrameRing::max_frame;
  using FrameRing::valid_size;
  static constexpr uint32_t kMaxOpen = 32;

  // `area`: FrameRing::area_bytes(data_bytes) zeroed bytes, 64-aligned.
  void attach(std::byte* area, size_t data_bytes) {
    attach_area(area, data_bytes);
    max_frame_ = max_frame(data_bytes);
    if (staging_ == nullptr) staging_.reset(new Staging[kMaxOpen]);  // touched as it is used
  }

  // Room for one frame of at most `bytes`; nullptr: the ring is full, too many are open, or it is broken.
  std::byte* begin(size_t bytes) {
    if (bytes > max_frame_ || broken_) [[unlikely]]
      return nullptr;
    if (used_ == ~uint32_t{0} && !(publish() && used_ != ~uint32_t{0})) [[unlikely]]
      return nullptr;
    bool small = bytes <= kSmallFrame;
    size_t span = span_of(small, bytes);
    size_t to_end = mask_ + 1 - (tail_ & mask_);
    size_t need = (span <= to_end ? span : to_end + span) + kLine;  // and the word behind it
    if (tail_ + need - consumed_seen_ > mask_ + 1) [[unlikely]] {
      if (!refresh_consumed() || tail_ + need - consumed_seen_ > mask_ + 1) return nullptr;
    }
    if (span > to_end) [[unlikely]]
      put_filler(to_end);
    clear_word(tail_);
    auto slot = static_cast<uint32_t>(__builtin_ctz(~used_));
    used_ |= 1U << slot;
    open_ |= 1U << slot;
    Open& o = opens_[slot];
    o.position = tail_;
    o.span = span;
    o.small = small;
    o.frame = small ? staging_[slot].bytes + kWordBytes : data_ + (tail_ & mask_) + kLine;
    if (!gate_) {
      gate_ = true;
      gate_position_ = tail_;
      gate_word_ = 0;
    }
    tail_ += span;
    return o.frame;
  }

  // `bytes` may be less than the caller of begin() asked for. The caller may not touch the frame any more.
  void commit(std::byte* frame, size_t bytes) {
    uint32_t slot = slot_of(frame);
    Open& o = opens_[slot];
    size_t span = span_of(o.small, bytes);
    UB_DCHECK(span <= o.span);
    if (o.position + o.span == tail_) {  // the newest frame: nothing lies behind it, so what it does not need is free
      o.span = span;
      tail_ = o.position + span;
      clear_word(tail_);
    }
    close(slot, make_word(o.small ? kSmall : kLarge, bytes, o.span, o.position), bytes);
    // The consumer can begin with a long burst before its end.
    if (tail_ - gate_position_ >= kPublishBytes) publish();
  }

  void abort(std::byte* frame) {
    uint32_t slot = slot_of(frame);
    Open& o = opens_[slot];
    if (o.position + o.span == tail_) {  // its word is still 0
      tail_ = o.position;
      used_ &= ~(1U << slot);
      open_ &= ~(1U << slot);
      if (gate_position_ == o.position) gate_ = false;
    } else {
      close(slot, make_word(kFiller, 0, o.span, o.position), 0);
    }
  }

  // Makes everything visible that was committed in front of the oldest open frame. True: something new became visible.
  bool publish() {
    if (!gate_ || gate_word_ == 0) return false;
    if (gate_staged_ != kNoSlot) {
      copy_first_line(data_ + (gate_position_ & mask_), staging_[gate_staged_].bytes);
      used_ &= ~(1U << gate_staged_);
      gate_staged_ = kNoSlot;
    }
    word_at(gate_position_)
        .store(gate_word_ | uint64_t{behind_ < kMaxBehind ? behind_ : kMaxBehind} << 16, std::memory_order_release);
    behind_ = 0;
    gate_ = open_ != 0;
    if (gate_) [[unlikely]] {
      gate_position_ = oldest_open();
      gate_word_ = 0;
    }
    // Fetches the lines behind the word that the consumer now looks at, before they are written.
    for (size_t ahead = 1; ahead <= kPrefetchLines; ++ahead)
      __builtin_prefetch(data_ + ((tail_ + ahead * kLine) & mask_), 1);
    return true;
  }

  // Everything before this position is visible to the consumer.
  uint64_t published() const { return gate_ ? gate_position_ : tail_; }
  // Reads what the consumer has written by now.
  uint64_t consumed() {
    refresh_consumed();
    return consumed_seen_;
  }
  // What the last look for room, or the last call of consumed(), has read.
  uint64_t consumed_seen() const { return consumed_seen_; }
  bool has_open() const { return open_ != 0; }
  bool broken() const { return broken_; }

 private:
  static constexpr size_t kPublishBytes = 4096;
  static constexpr size_t kPrefetchLines = 4;
  static constexpr uint32_t kNoSlot = ~uint32_t{0};

  struct Open {
    uint64_t position;
    size_t span;
    std::byte* frame;
    bool small;
  };
  struct alignas(kLine) Staging {
    std::byte bytes[kSmallFrame + kWordBytes];
  };

  static size_t span_of(bool small, size_t bytes) {
    return small ? round_up(kWordBytes + bytes) : kLine + round_up(bytes);
  }

  // Copies bytes 8 to 63; the word is stored separately.
  static void copy_first_line(std::byte* to, const std::byte* from) {
    std::memcpy(to + kWordBytes, from + kWordBytes, kLine - kWordBytes);
  }

  uint32_t slot_of(const std::byte* frame) const {
    for (uint32_t set = open_; set != 0; set &= set - 1) {
      auto slot = static_cast<uint32_t>(__builtin_ctz(set));
      if (opens_[slot].frame == frame) return slot;
    }
    UB_ASSERT(!"commit or abort of a frame that is not open");
    return 0;
  }

  // The word at this position is 0 from now on, until a frame there is committed. A position is zeroed before the word
  // in front of it is written, and `zeroed_` goes back to the start of a frame when the frame begins. So the payload of
  // a frame never lies on a position that is believed to be zero.
  void clear_word(uint64_t position) {
    if (zeroed_ == position) return;
    word_at(position).store(0, std::memory_order_relaxed);
    zeroed_ = position;
  }

  void close(uint32_t slot, uint64_t word, size_t bytes) {
    Open& o = opens_[slot];
    open_ &= ~(1U << slot);
    bool gate = o.position == gate_position_;  // an open frame is never in front of the gate
    if (o.small && bytes != 0) {
      std::byte* to = data_ + (o.position & mask_);
      std::byte* from = staging_[slot].bytes;
      if (bytes > kLine - kWordBytes) copy_lines(to + kLine, from + kLine, bytes - (kLine - kWordBytes));
      if (gate) {
        gate_word_ = word;
        gate_staged_ = slot;  // the slot stays in use until the frame is published
        return;
      }
      copy_first_line(to, from);
    }
    used_ &= ~(1U << slot);
    if (gate) {
      gate_word_ = word;
    } else {
      ++behind_;
      word_at(o.position).store(word, std::memory_order_release);
    }
  }

  // Copies whole lines, which is cheaper than exact lengths.
  static void copy_lines(std::byte* to, const std::byte* from, size_t bytes) {
    for (size_t at = 0; at < bytes; at += kLine) std::memcpy(to + at, from + at, kLine);
  }

  void put_filler(size_t span) {
    uint64_t position = tail_;
    clear_word(position);
    tail_ += span;
    clear_word(tail_);
    uint64_t word = make_word(kFiller, 0, span, position);
    if (gate_) {
      word_at(position).store(word, std::memory_order_release);
    } else {
      gate_ = true;
      gate_position_ = position;
      gate_word_ = word;
      gate_staged_ = kNoSlot;
    }
  }

  uint64_t oldest_open() const {
    uint64_t oldest = ~uint64_t{0};
    for (uint32_t set = open_; set != 0; set &= set - 1) {
      uint64_t p = opens_[__builtin_ctz(set)].position;
      if (p < oldest) oldest = p;
    }
    return oldest;
  }

  bool refresh_consumed() {
    uint64_t c = consumed_->load(std::memory_order_acquire);
    if (c < consumed_seen_ || c > published()) {
      broken_ = true;
      return false;
    }
    consumed_seen_ = c;
    return true;
  }

  uint64_t tail_ = 0;  // where the next frame begins; positions count bytes and never wrap
  uint64_t consumed_seen_ = 0;
  uint64_t zeroed_ = 0;         // the word at this position is 0 (as in fresh memory)
  uint64_t gate_position_ = 0;  // the first frame that is not published, if gate_
  uint64_t gate_word_ = 0;      // the word of that frame; 0: the frame is still open
  uint32_t gate_staged_ = kNoSlot;
  uint32_t behind_ = 0;  // frames committed behind the gate
  bool gate_ = false;
  bool broken_ = false;
  uint32_t used_ = 0;  // slots in use: of open frames, or of the gate
  uint32_t open_ = 0;
  size_t max_frame_ = 0;
  std::unique_ptr<Staging[]> staging_;
  Open opens_[kMaxOpen];
};

// Thread: the consumer.
class FrameRingReader : FrameRing {
 public:
  struct Frame {
    const std::byte* data;
    uint32_t bytes;
  };

  void attach(std::byte* area, size_t data_bytes) { attach_area(area, data_bytes); }

  // Takes the next frame, which stays where it is until release(). False: there is none now, or the ring is broken.
  bool next(Frame* out) {
    uint64_t word = word_at(head_).load(std::memory_order_acquire);
    // Fetches the lines that a frame like the last one would have, so that they travel together with the word.
    for (size_t at = kLine; at < likely_span_; at += kLine) __builtin_prefetch(data_ + ((head_ + at) & mask_));
    if (word == 0) [[likely]]
      return false;
    return take(word, out);
  }
  // How many frames came together with those that were taken. If there are none, next() costs the transfer of a line
  // that most likely says "not yet", so a caller in a hurry does not ask.
  uint32_t more() const { return more_; }
  bool empty() const { return broken_ || word_at(head_).load(std::memory_order_acquire) == 0; }
  // Gives back the memory of every frame that next() returned.
  void release() {
    if (head_ == released_) return;
    released_ = head_;
    consumed_->store(head_, std::memory_order_release);
  }
  uint64_t position() const { return head_; }
  bool broken() const { return broken_; }

 private:
  static constexpr uint32_t kMaxFillers = 64;  // most fillers in a row: ends of laps, and aborted frames

  bool take(uint64_t word, Frame* out) {
    for (uint32_t fillers = 0; fillers < kMaxFillers; ++fillers) {
      size_t bytes = word & 0xffff;
      auto kind = static_cast<uint32_t>(word >> 24 & 0xff);
      size_t span = (word >> 32 & 0xffff) * kLine;
      size_t offset = head_ & mask_;
      size_t front = kind == kSmall ? kWordBytes : kLine;
      if (broken_ || word >> 48 != (head_ / kLine & 0xffff) || span == 0 || span > mask_ + 1 - offset ||
          kind > kFiller || front + bytes > span || (kind == kSmall && bytes > kSmallFrame)) [[unlikely]] {
        broken_ = true;
        return false;
      }
      head_ += span;
      auto behind = static_cast<uint32_t>(word >> 16 & 0xff);
      more_ = behind != 0 ? behind : more_ - (more_ != 0);
      if (kind != kFiller) [[likely]] {
        likely_span_ = kind == kSmall ? span : 0;
        out->data = data_ + offset + front;
        out->bytes = static_cast<uint32_t>(bytes);
        // Fetches all lines of a small frame at once. A parser would fetch them one after the other.
        for (size_t at = kLine; at < span && at <= kSmallFrame; at += kLine) __builtin_prefetch(data_ + offset + at);
        return true;
      }
      word = word_at(head_).load(std::memory_order_acquire);
      if (word == 0) return false;
    }
    return false;
  }

  uint64_t head_ = 0;
  uint64_t released_ = 0;
  size_t likely_span_ = 0;
  uint32_t more_ = 0;
  bool broken_ = false;
};

}  // namespace ub::ipc
