// SPDX-License-Identifier: Apache-2.0
//
// When packets in flight left, for flows that want the round trip of each: a block of times per flow, by PSN modulo the most
// that it has in flight. A packet that left again has none (Karn). Flows that want none have no block, and a Core that has
// no such flows has no memory for any.
#pragma once

#include <algorithm>

#include "lib/base/arena.h"
#include "lib/base/serial.h"
#include "lib/base/slab.h"
#include "lib/base/time.h"

namespace ub::cc {

class SendTimes {
 public:
  /// `packets`: in flight at most, of one flow; a power of two.
  void init(Arena& arena, uint32_t flows, uint32_t packets) {
    packets_ = packets;
    blocks_.init(arena, flows);
    times_ = arena.take<Instant>(flows == 0 ? 0 : size_t{flows + 1} * packets);
  }

  /// A block without times; 0: there is none left.
  uint32_t take() {
    const uint32_t block = blocks_.alloc();
    if (block != 0) std::fill_n(&times_[size_t{block} * packets_], packets_, Instant{});
    return block;
  }
  /// Nothing happens for 0.
  void give_back(uint32_t& block) {
    if (block != 0) blocks_.free(block);
    block = 0;
  }

  void left(uint32_t block, Psn psn, Instant now) { at(block, psn) = now; }
  void left_again(uint32_t block, Psn psn) { at(block, psn) = {}; }

  /// The peer has this one. False: it tells no round trip, because it left again, or the peer was known to have it.
  bool arrived(uint32_t block, Psn psn, Instant now, Duration* round_trip) {
    Instant& sent_at = at(block, psn);
    if (sent_at == Instant{}) return false;
    *round_trip = now - sent_at;
    sent_at = {};
    return true;
  }

  uint32_t packets() const { return packets_; }
  const Slab<uint32_t>& blocks() const { return blocks_; }

 private:
  Instant& at(uint32_t block, Psn psn) { return times_[size_t{block} * packets_ + (psn.value() & (packets_ - 1))]; }

  Slab<uint32_t> blocks_;
  Instant* times_ = nullptr;  // zero: none
  uint32_t packets_ = 0;
};

}  // namespace ub::cc
