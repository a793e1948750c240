// SPDX-License-Identifier: Apache-2.0
//
// Which packets have arrived ahead of a gap: a bitmap that has memory only where bits are mixed. It is cut into blocks
// of 16 bits, which all channels take from one pool. A channel has a directory with a node for each block. Where nothing
// has arrived, the node is zero. Where all 16 have, it says so, and the block is back in the pool. The design is that of
// ORNIC.
//
// The bitmap begins at the first missing packet, and packet p has the slot of that packet plus its distance from it, mod
// the width. So a block that holds the first missing packet is never full, and one that is full is passed at once.
//
// No function allocates or fails. If the pool is empty, set() says so; the caller refuses the packet, which comes again.
#pragma once

#include <bit>
#include <cstdint>

#include "lib/base/arena.h"
#include "lib/base/assert.h"
#include "lib/base/serial.h"

namespace ub::tp {

constexpr uint32_t kBlockBits = 16;

// Free blocks are a list: each one holds the number of the next. Block 0 is never given out.
class BlockPool {
 public:
  static constexpr uint32_t kMostBlocks = (1u << 14) - 1;  // a node has 14 bits for the number

  void init(Arena& arena, uint32_t blocks) {
    UB_ASSERT(blocks <= kMostBlocks);
    capacity_ = blocks;
    blocks_ = arena.take<uint16_t>(blocks + 1);
  }

  // A block without a set bit; 0: all blocks are in use.
  uint32_t alloc() {
    uint32_t block = free_;
    if (block != 0) {
      free_ = blocks_[block];
    } else {
      if (high_water_ == capacity_) return 0;
      block = ++high_water_;
    }
    blocks_[block] = 0;
    ++in_use_;
    return block;
  }
  void free(uint32_t block) {
    UB_DCHECK(block != 0 && block <= high_water_ && in_use_ != 0);
    blocks_[block] = static_cast<uint16_t>(free_);
    free_ = block;
    --in_use_;
  }

  uint16_t& operator[](uint32_t block) { return blocks_[block]; }
  uint16_t operator[](uint32_t block) const { return blocks_[block]; }
  uint32_t in_use() const { return in_use_; }
  uint32_t capacity() const { return capacity_; }

 private:
  uint16_t* blocks_ = nullptr;
  uint32_t capacity_ = 0, high_water_ = 0, free_ = 0, in_use_ = 0;
};

// `Directory`: gives node i as directory[i]; the owner keeps it as long as the bitmap is used.
template <class Directory = uint16_t*>
class BlockBitmap {
 public:
  enum class Set : uint8_t { kNew, kDuplicate, kNoBlock };

  // Nothing has arrived from `first` on. The directory has width/16 nodes, which are all zero: they are so after release()
  // and when the bitmap is empty.
  void begin(Directory directory, uint32_t width, Psn first) {
    UB_DCHECK(width % kBlockBits == 0);
    directory_ = directory;
    width_ = width;
    first_ = first;
    first_slot_ = 0;
  }
  Psn first() const { return first_; }  // the first packet that is missing

  // The packet has arrived. It must lie behind first() and less than the width from it.
  Set set(BlockPool& pool, Psn psn) {
    UB_DCHECK(psn != first_);
    const uint32_t slot = slot_of(psn), bit = 1u << slot % kBlockBits;
    uint16_t& node = directory_[slot / kBlockBits];
    if (node == kFull) return Set::kDuplicate;
    if (node == 0) {
      const uint32_t block = pool.alloc();
      if (block == 0) return Set::kNoBlock;
      node = static_cast<uint16_t>(kValid | block);
    }
    const uint32_t block = node & kNumber;
    if ((pool[block] & bit) != 0) return Set::kDuplicate;
    pool[block] = static_cast<uint16_t>(pool[block] | bit);
    if (pool[block] == kAllOnes) {
      pool.free(block);
      node = kFull;
    }
    return Set::kNew;
  }

  // Has the packet arrived? It must lie less than the width from first().
  bool test(const BlockPool& pool, Psn psn) const {
    const uint32_t slot = slot_of(psn);
    return (bits_of(pool, slot / kBlockBits) >> slot % kBlockBits & 1) != 0;
  }

  // The first missing packet has arrived: the bitmap begins at the next one that has not.
  void advance(BlockPool& pool) {
    for (step(1);;) {
      uint16_t& node = directory_[first_slot_ / kBlockBits];
      if (node == kFull) {
        UB_DCHECK(first_slot_ % kBlockBits == 0);
        node = 0;
        step(kBlockBits);
        continue;
      }
      if (node == 0) return;
      uint16_t& block = pool[node & kNumber];
      const uint32_t passed =
          static_cast<uint32_t>(std::countr_one(static_cast<uint32_t>(block >> first_slot_ % kBlockBits)));
      if (passed == 0) return;
      block = static_cast<uint16_t>(block & ~(((1u << passed) - 1) << first_slot_ % kBlockBits));
      if (block == 0) {
        pool.free(node & kNumber);
        node = 0;
      }
      step(passed);
    }
  }

  // The bits of 64 packets from `from` on, as an acknowledgement has them: bit i stands for from + i. `from` must not
  // lie before first(); bits of packets beyond the width are meaningless.
  uint64_t bits(const BlockPool& pool, Psn from) const {
    uint64_t word = 0;
    uint32_t slot = slot_of(from);
    for (uint32_t have = 0; have < 64;) {
      const uint32_t skip = slot % kBlockBits;
      word |= uint64_t{static_cast<uint32_t>(bits_of(pool, slot / kBlockBits)) >> skip} << have;
      have += kBlockBits - skip;
      slot += kBlockBits - skip;
      if (slot == width_) slot = 0;
    }
    return word;
  }

  // Gives all blocks back, and nothing has arrived any more.
  void release(BlockPool& pool) {
    for (uint32_t i = 0; i < width_ / kBlockBits; ++i) {
      if ((directory_[i] & kValid) != 0) pool.free(directory_[i] & kNumber);
      directory_[i] = 0;
    }
  }

 private:
  static constexpr uint16_t kNumber = BlockPool::kMostBlocks, kFull = 1u << 14, kValid = 1u << 15;
  static constexpr uint16_t kAllOnes = 0xFFFF;

  uint32_t slot_of(Psn psn) const {
    const uint32_t slot = first_slot_ + psn.distance(first_);
    UB_DCHECK(slot < 2 * width_);
    return slot < width_ ? slot : slot - width_;
  }
  void step(uint32_t packets) {
    first_ += packets;
    first_slot_ += packets;
    if (first_slot_ >= width_) first_slot_ -= width_;
  }
  uint16_t bits_of(const BlockPool& pool, uint32_t index) const {
    const uint16_t node = directory_[index];
    if (node == kFull) return kAllOnes;
    return node == 0 ? uint16_t{0} : pool[node & kNumber];
  }

  Directory directory_{};
  uint32_t width_ = 0, first_slot_ = 0;
  Psn first_;
};

}  // namespace ub::tp
