// SPDX-License-Identifier: Apache-2.0
//
// A model of the bitmap of ORNIC, to compare with (docs/loss-design.md): which packets have arrived ahead of a gap, in
// blocks of 16 bits that all channels take from one pool. A channel has a directory with a node for each block. Where
// nothing has arrived, the node is empty. Where all 16 have, it says so, and the block is back in the pool. The
// transport itself has one bitmap for each channel with a gap (receive_state.h).
//
// Packets are numbered from 0 on and do not wrap. Packet p has bit p % 16 of node p / 16 mod the number of nodes. So
// the block of the first missing packet is never full, and one that is full is passed at once.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace ub::tp {

constexpr uint32_t kBlockBits = 16;

class BlockPool {
 public:
  explicit BlockPool(uint32_t blocks) : bits_(blocks) {
    for (uint32_t block = blocks; block != 0; --block) free_.push_back(block - 1);
  }

  bool empty() const { return free_.empty(); }
  uint32_t in_use() const { return static_cast<uint32_t>(bits_.size() - free_.size()); }
  // A block without a set bit. The pool must not be empty.
  uint32_t alloc() {
    const uint32_t block = free_.back();
    free_.pop_back();
    bits_[block] = 0;
    return block;
  }
  void free(uint32_t block) { free_.push_back(block); }
  uint16_t& operator[](uint32_t block) { return bits_[block]; }

 private:
  std::vector<uint16_t> bits_;
  std::vector<uint32_t> free_;
};

class BlockBitmap {
 public:
  enum class Arrival : uint8_t { kNew, kDuplicate, kNoBlock };

  BlockBitmap(BlockPool& pool, uint32_t width) : pool_(pool), nodes_(width / kBlockBits) {}

  uint32_t first_missing() const { return first_; }
  // How many nodes were looked at to find the blocks of packets ahead of the gap.
  uint32_t steps() const { return steps_; }

  // A packet less than the width ahead of the first missing one. kNoBlock: the pool is empty, so the packet has to come
  // again.
  Arrival arrive(uint32_t packet) {
    if (packet < first_) return Arrival::kDuplicate;
    if (packet > first_) return arrive_ahead(packet);
    ++first_;
    while (pass()) continue;
    return Arrival::kNew;
  }

 private:
  struct Node {
    bool valid = false, full = false;
    uint32_t block = 0;
  };

  Node& node_of(uint32_t packet) { return nodes_[packet / kBlockBits % nodes_.size()]; }

  Arrival arrive_ahead(uint32_t packet) {
    Node& node = node_of(packet);
    ++steps_;
    if (node.full) return Arrival::kDuplicate;
    if (!node.valid) {
      if (pool_.empty()) return Arrival::kNoBlock;
      node = {.valid = true, .block = pool_.alloc()};
    }
    uint16_t& bits = pool_[node.block];
    const auto with = static_cast<uint16_t>(bits | 1u << packet % kBlockBits);
    if (with == bits) return Arrival::kDuplicate;
    bits = with;
    if (bits == UINT16_MAX) {
      pool_.free(node.block);
      node = {.full = true};
    }
    return Arrival::kNew;
  }

  // Moves the first missing packet over those of its block that have arrived. False: it is missing indeed.
  bool pass() {
    Node& node = node_of(first_);
    const uint32_t at = first_ % kBlockBits;
    if (node.full) {
      node = {};
      first_ += kBlockBits;
      return true;
    }
    if (!node.valid) return false;
    uint16_t& bits = pool_[node.block];
    const auto passed = static_cast<uint32_t>(std::countr_one(static_cast<uint32_t>(bits) >> at));
    bits = static_cast<uint16_t>(bits & ~(((1u << passed) - 1) << at));
    if (bits == 0) {
      pool_.free(node.block);
      node = {};
    }
    first_ += passed;
    return passed != 0;
  }

  BlockPool& pool_;
  std::vector<Node> nodes_;
  uint32_t first_ = 0, steps_ = 0;
};

}  // namespace ub::tp
