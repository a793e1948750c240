// SPDX-License-Identifier: Apache-2.0
//
// The times at which packets in flight left, for flows that want the round trip of each packet. A flow has a block of
// times, which are found by PSN modulo the most packets that it has in flight. A packet that left again has no time
// (Karn), nor has one whose acknowledgement the peer may delay, if the flow does not want that delay. Flows that want
// no round trips have no block, and a Core without flows that want them has no memory for blocks.
#pragma once

#include <algorithm>

#include "lib/base/arena.h"
#include "lib/base/serial.h"
#include "lib/base/slab.h"
#include "lib/base/time.h"

namespace ub::cc {

class SendTimes {
 public:
  /// `packets`: the most packets that one flow has in flight; a power of two.
  void init(Arena& arena, uint32_t flows, uint32_t packets) {
    packets_ = packets;
    blocks_.init(arena, flows);
    times_ = arena.take<Instant>(flows == 0 ? 0 : size_t{flows + 1} * packets);
  }

  /// Takes a block without times; 0: there is none left.
  uint32_t take() {
    const uint32_t block = blocks_.alloc();
    if (block != 0) std::fill_n(&times_[size_t{block} * packets_], packets_, Instant{});
    return block;
  }
  /// Gives a block back. If it is 0, nothing happens.
  void give_back(uint32_t& block) {
    if (block != 0) blocks_.free(block);
    block = 0;
  }

  void left(uint32_t block, Psn psn, Instant now) { at(block, psn) = now; }
  void forget(uint32_t block, Psn psn) { at(block, psn) = {}; }

  /// The peer has this packet. False: the packet tells no round trip, because it left again, or was known to have
  /// arrived.
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
  Instant* times_ = nullptr;  // a time of zero: there is none
  uint32_t packets_ = 0;
};

}  // namespace ub::cc
