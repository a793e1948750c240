// SPDX-License-Identifier: Apache-2.0
//
// Which ids this instance may give out, and giving them out in turn. The ids of jettys, JFS, JFR and groups are one space
// (UB Base Specification Rev 2.0, 8.2.3), token ids another; both come from the same blocks (wire/id_port.h). What was
// given back rests for a while.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "lib/transport/wire/id_port.h"

namespace ub {

// A set of blocks of ids.
class IdBlocks {
 public:
  void add(uint32_t block) {
    if (!has(block)) ++count_;
    words_[block / 64] |= uint64_t{1} << block % 64;
  }
  bool has(uint32_t block) const { return (words_[block / 64] >> block % 64 & 1) != 0; }
  uint32_t ids() const { return count_ * wire::kIdsOfBlock; }
  // With so many, ids that rest are given out before further blocks are asked for: whoever makes and destroys objects
  // without end takes no more of the host.
  bool enough() const { return count_ >= 16; }

  // That id if it lies in one of the blocks, else the first id of the next block, from the last on with the first.
  // There is a block.
  uint32_t next(uint32_t id) const {
    uint32_t block = id / wire::kIdsOfBlock % wire::kIdBlocks;
    if (has(block)) return id % kIdSpace;
    do block = (block + 1) % wire::kIdBlocks;
    while (!has(block));
    return block * wire::kIdsOfBlock;
  }

 private:
  std::array<uint64_t, wire::kIdBlocks / 64> words_{};
  uint32_t count_ = 0;
};

struct CoreState;

// The turn begins anywhere in the first one, so that what was meant for a former instance with the same block finds
// nobody, as a rule.
void add_id_block(CoreState& s, uint32_t block);

// The wanted id if it is free, else the next free one in turn of this instance's blocks. Where all others rest and there
// are enough blocks, one that rests; 0: none is left. Whether the wanted id is this instance's to give out is the
// caller's to know.
uint32_t allocate_id(CoreState& s, uint32_t wanted);
void release_id(CoreState& s, uint32_t id);
// The first free id from there on, of this instance or not: numbers that no other instance sees. 0: none.
uint32_t allocate_private_id(CoreState& s, uint32_t from);

uint32_t allocate_token_id(CoreState& s);
void release_token_id(CoreState& s, uint32_t token_id);

}  // namespace ub
