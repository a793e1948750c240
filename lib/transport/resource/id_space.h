// SPDX-License-Identifier: Apache-2.0
//
// Allocates ids. Jettys, JFSs, JFRs and groups share one space of ids (UB Base Specification Rev 2.0, 8.2.3), token ids
// have another; an instance gives out both from the same blocks (wire/id_port.h), one after the other. An id that was
// given back is not used again for CoreConfig::id_rest.
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
  // Are there so many blocks that no further one is asked for? Then resting ids are given out again instead, so that a
  // program which creates and destroys objects without end does not take all blocks of the host.
  bool enough() const { return count_ >= 16; }

  // This id if it lies in one of the blocks, else the first id of the next block; behind the last block comes the
  // first. There must be a block.
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

// Adds a block. In the first block, allocation begins at a random id, so that a message for a former instance with the
// same block mostly finds no object.
void add_id_block(CoreState& s, uint32_t block);

// Returns the wanted id if it is free, else the next free id of this instance's blocks. If all free ids rest and there
// are enough() blocks, it returns a resting one. 0: no id is left. The caller has to know whether this instance may
// give out the wanted id.
uint32_t allocate_id(CoreState& s, uint32_t wanted);
void release_id(CoreState& s, uint32_t id);
// Returns the first free id from `from` on, whether or not it lies in a block of this instance: for numbers that no
// other instance sees. 0: there is none.
uint32_t allocate_private_id(CoreState& s, uint32_t from);

uint32_t allocate_token_id(CoreState& s);
void release_token_id(CoreState& s, uint32_t token_id);

}  // namespace ub
