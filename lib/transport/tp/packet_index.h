// SPDX-License-Identifier: Apache-2.0
//
// Finds the kept packet that a channel has under a PSN. Few packets are kept, compared with those that are placed when
// they arrive, so they are looked up in one table for all channels, and no channel needs a table for its window.
//
// PSNs of a window follow each other, so they have lists of their own; the lists of two channels may coincide.
#pragma once

#include <bit>
#include <cstdint>

#include "lib/base/arena.h"
#include "lib/base/assert.h"
#include "lib/base/serial.h"

namespace ub::tp {

class PacketIndex {
 public:
  // `packets`: as many can be kept; they have the numbers from 1 on.
  void init(Arena& arena, uint32_t packets) {
    mask_ = std::bit_ceil(packets) - 1;
    first_ = arena.take<uint32_t>(size_t{mask_} + 1);
    entries_ = arena.take<Entry>(size_t{packets} + 1);
  }

  // The channel must have no packet under this PSN, and the packet must not be in the index.
  void insert(uint32_t channel, Psn psn, uint32_t packet) {
    UB_DCHECK(packet != 0 && find(channel, psn) == 0);
    uint32_t& first = first_[list_of(channel, psn)];
    entries_[packet] = {channel, psn, first};
    first = packet;
    ++size_;
  }
  // 0: the channel has no packet under this PSN.
  uint32_t find(uint32_t channel, Psn psn) const {
    uint32_t packet = first_[list_of(channel, psn)];
    while (packet != 0 && !is(packet, channel, psn)) packet = entries_[packet].next;
    return packet;
  }
  // The packet must be there.
  void remove(uint32_t channel, Psn psn) {
    uint32_t* link = &first_[list_of(channel, psn)];
    while (*link != 0 && !is(*link, channel, psn)) link = &entries_[*link].next;
    UB_DCHECK(*link != 0);
    *link = entries_[*link].next;
    --size_;
  }
  uint32_t size() const { return size_; }

 private:
  struct Entry {
    uint32_t channel;
    Psn psn;
    uint32_t next;  // in the same list; 0: this one is the last
  };

  bool is(uint32_t packet, uint32_t channel, Psn psn) const {
    return entries_[packet].channel == channel && entries_[packet].psn == psn;
  }
  uint32_t list_of(uint32_t channel, Psn psn) const { return (channel * kApart + psn.value()) & mask_; }

  static constexpr uint32_t kApart = 0x9E3779B1;  // odd: channels begin at different places

  uint32_t* first_ = nullptr;  // of each list; 0: it is empty
  Entry* entries_ = nullptr;
  uint32_t mask_ = 0, size_ = 0;
};

}  // namespace ub::tp
