// SPDX-License-Identifier: Apache-2.0
//
// Frames whose payload comes from memory that answers later. Such a frame leaves its port, so that in a ring nobody
// behind it waits for that memory, and is begun again when all of its payload is there. A sender may hold several
// frames at once, so that the latency of its memory is paid once and not for each frame. They stand in a line, and
// leave it in the order in which they were built.
//
// A held frame has a number, which names its record and its place in memory. The numbers are handed out in ranges while
// tables are laid out. Every channel and every queue pair has one number for itself, its home, and takes further ones
// from a pool that all share. Datagrams of UM have a pool of their own.
//
// A frame may be given up while gathers into it are pending. Their answers find nobody, because the record counts its
// uses and the tag of a gather has that count. The host hears of the frame before its place is used again, so that no
// byte of the old frame reaches the new one (tx_drop in host.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "lib/base/arena.h"
#include "lib/base/index_list.h"
#include "lib/base/number_range.h"
#include "lib/base/serial.h"
#include "lib/base/slab.h"
#include "lib/transport/copy_prefix.h"
#include "lib/transport/host.h"

namespace ub {

// How many frames a channel or a queue pair may hold. The number is small because a frame may have a pending gather for
// every range of its request, and the host may limit how many are pending.
constexpr uint32_t kHeldOfSender = 16;
// How many all channels and queue pairs together may hold beside the one that each has room for.
constexpr uint32_t kMoreHeld = 256;

struct HeldFrame {
  uint32_t home;  // the number that its sender has for itself; 0: the record is free
  uint32_t use;   // how often the record has been taken
  ListLink in_line;
  uint32_t link;
  uint32_t bytes;
  uint32_t pending;  // gathers that are not done
  uint32_t item;     // what it is a packet of, as its sender counts: a request, a READ slot, a send queue
  void* message;     // of a new packet of a channel: its tp::TxMessage
  Psn psn;
  bool again;   // a retransmission
  bool first;   // of a queue pair: the first packet of its message, or of what the peer asked for
  bool last;    // the last packet of its message
  bool asks;    // it asks for an acknowledgement
  bool v6;      // it travels over IPv6
  bool failed;  // a gather failed
};

// Frames that one sender holds, in the order in which they leave.
struct HeldLine {
  IndexList frames;
  uint32_t count = 0;

  bool empty() const { return count == 0; }
};

// Numbers that several senders share.
struct HeldPool {
  NumberRange numbers;
  Slab<uint8_t> places;

  void lay_out(NumberRanges& all, Arena& arena, uint32_t count) {
    numbers = all.take(count + 1);
    places.init(arena, count);
  }
  // There is one.
  uint32_t take() { return numbers.of(places.alloc()); }
  void give_back(uint32_t number) { places.free(numbers.index_of(number)); }
};

class HeldFrames {
 public:
  // ---- tables --------------------------------------------------------------------------------------------------
  NumberRanges numbers{1};  // taken while the tables are laid out

  // To be called when every range has been taken. Without slow memory nothing is held, and it is not called.
  void lay_out(Arena& arena, uint32_t most_bytes);

  HeldFrame& operator[](uint32_t number) { return records_[number]; }
  const HeldFrame& operator[](uint32_t number) const { return records_[number]; }
  uint32_t number_of(const HeldFrame& h) const { return static_cast<uint32_t>(&h - records_); }
  const HeldPool& more() const { return more_; }
  bool in_use(uint32_t number) const { return records_[number].home != 0; }
  uint32_t in_use_count() const;
  // The number of the frame that is held there.
  uint32_t number_at(const std::byte* place) const {
    return static_cast<uint32_t>(static_cast<size_t>(place - bytes_) / most_bytes_);
  }

  // ---- records -------------------------------------------------------------------------------------------------

  // May a sender that holds `count` frames take another number?
  bool has_room(uint32_t count) const {
    return count == 0 || (count < kHeldOfSender && has_share(more_.places, count));
  }
  // A record for the sender with this home, in no line; there is room. The home is taken if it is free.
  HeldFrame& take(uint32_t home) { return take_number(in_use(home) ? more_.take() : home, home); }
  // A record of that number, which its user took from a pool of its own.
  HeldFrame& take_number(uint32_t number, uint32_t home);
  void free(HeldFrame& h);

  // ---- gathers -------------------------------------------------------------------------------------------------

  CopyTag tag_of(const HeldFrame& h) const {
    return uint64_t{kHeldCopyPrefix} << kCopyPrefixShift | uint64_t{number_of(h)} << 32 | h.use;
  }
  static constexpr bool is_tag(CopyTag tag) { return copy_prefix_of(tag) == kHeldCopyPrefix; }
  // A gather is done. Returns the number of its frame if it was the last one; 0: others are pending, or the frame was
  // given up.
  uint32_t on_gather_done(CopyTag tag, bool ok);

  // ---- lines ---------------------------------------------------------------------------------------------------

  // The one that leaves next; there is one.
  HeldFrame& first(const HeldLine& line) { return records_[line.frames.front<&HeldFrame::in_line>(records_)]; }
  const HeldFrame& first(const HeldLine& line) const {
    return records_[line.frames.front<&HeldFrame::in_line>(records_)];
  }
  // The one that was built last; there is one.
  const HeldFrame& newest(const HeldLine& line) const { return records_[line.frames.back()]; }
  bool first_waits(const HeldLine& line) const { return !line.empty() && first(line).pending != 0; }
  // Calls fn() with each.
  template <class Fn>
  void each(const HeldLine& line, Fn fn) const {
    if (line.empty()) return;
    for (uint32_t i = line.frames.front<&HeldFrame::in_line>(records_); i != 0;
         i = line.frames.behind<&HeldFrame::in_line>(records_, i)) {
      fn(records_[i]);
    }
  }

  void append(HeldLine& line, HeldFrame& h);
  // The first one left.
  void drop_first(HeldLine& line);
  // The first one is not wanted any more.
  void give_up_first(HeldLine& line);
  void give_up_all(HeldLine& line);
  // Pending gathers into that frame must write nowhere. The host is told later.
  void orphan(const HeldFrame& h) {
    if (h.pending != 0) orphans_[orphan_count_++] = number_of(h);
  }
  uint32_t orphan_count() const { return orphan_count_; }
  bool has_orphans() const { return orphan_count_ != 0; }
  bool is_orphan(uint32_t number) const;

  // ---- frames --------------------------------------------------------------------------------------------------

  // The frame waits, and goes back to its port.
  template <class Host>
  void hold(Host& host, const HeldFrame& h, std::byte* frame) {
    release_orphans(host);
    std::memcpy(place_of(h), frame, h.bytes);
    host.tx_hold(h.link, frame, place_of(h));
  }
  // A frame of the port with what is held; null: there is no room now.
  template <class Host>
  std::byte* resume(Host& host, const HeldFrame& h) const {
    std::byte* frame = host.tx_begin(h.link, h.bytes);
    if (frame != nullptr) std::memcpy(frame, place_of(h), h.bytes);
    return frame;
  }
  // Tells the host of the frames that were given up.
  template <class Host>
  void release_orphans(Host& host) {
    if (orphan_count_ != 0) [[unlikely]]
      drop_orphans(host);
  }

 private:
  template <class Host>
  [[gnu::noinline]] void drop_orphans(Host& host) {
    for (uint32_t i = 0; i < orphan_count_; ++i) host.tx_drop(place_of(records_[orphans_[i]]));
    orphan_count_ = 0;
  }
  std::byte* place_of(const HeldFrame& h) const { return bytes_ + size_t{number_of(h)} * most_bytes_; }

  HeldFrame* records_ = nullptr;
  std::byte* bytes_ = nullptr;
  uint32_t most_bytes_ = 0;
  HeldPool more_;
  uint32_t* orphans_ = nullptr;
  uint32_t orphan_count_ = 0;
};

}  // namespace ub
