// SPDX-License-Identifier: Apache-2.0
//
// What loads and stores of TP bypass can name: blocks of a power of two of lines, at a multiple of a line. Others are
// cut into such.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "lib/urma/aperture/remote_path.h"

namespace ub::aperture {

inline constexpr uint64_t kAllBytes = ~uint64_t{0};  // the byte enables of a line

// A block of the remote address space, and what of it somebody wants.
struct Piece {
  uint64_t address;
  uint32_t lines;   // a power of two
  uint32_t offset;  // of the first wanted byte
  uint32_t bytes;   // that are wanted
};

// The first one of a range, as long as it may be.
inline Piece first_piece(uint64_t address, uint32_t bytes, uint32_t most_lines) {
  const auto offset = static_cast<uint32_t>(address % kLineBytes);
  const uint32_t lines = std::min(std::bit_floor((offset + bytes + kLineBytes - 1) / kLineBytes), most_lines);
  return {address - offset, lines, offset, std::min(bytes, lines * kLineBytes - offset)};
}

// Walks through the pieces of some blocks, whose places count from `base`.
class PieceWalk {
 public:
  PieceWalk(std::span<const LoadBlock> blocks, uint64_t base, uint32_t most_lines)
      : blocks_(blocks), base_(base), most_lines_(most_lines) {}

  bool is_over() const { return blocks_.empty(); }
  Piece piece() const { return first_piece(base_ + blocks_[0].at + done_, blocks_[0].bytes - done_, most_lines_); }
  std::byte* to() const { return static_cast<std::byte*>(blocks_[0].to) + done_; }
  void pass(const Piece& piece) {
    done_ += piece.bytes;
    if (done_ != blocks_[0].bytes) return;
    blocks_ = blocks_.subspan(1);
    done_ = 0;
  }

 private:
  std::span<const LoadBlock> blocks_;
  uint64_t base_;
  uint32_t most_lines_;
  uint32_t done_ = 0;  // of the first block
};

// Cuts a store: store_lines(piece, from) for several whole lines, store_line(address, line, enables) for one, or a part
// of one. Ends with the first status that is no success.
template <class StoreLines, class StoreLine>
urma_cr_status_t cut_store(const StoreBlock& block, uint64_t base, uint32_t most_lines, StoreLines store_lines,
                           StoreLine store_line) {
  const auto* from = static_cast<const std::byte*>(block.from);
  urma_cr_status_t status = URMA_CR_SUCCESS;
  for (uint32_t done = 0; done < block.bytes && status == URMA_CR_SUCCESS;) {
    const Piece piece = first_piece(base + block.at + done, block.bytes - done, most_lines);
    const bool whole = block.enables == nullptr && piece.offset == 0;
    const uint32_t whole_lines = whole ? std::bit_floor(piece.bytes / kLineBytes) : 0;
    if (whole_lines > 1) {
      const uint32_t bytes = whole_lines * kLineBytes;
      status = store_lines(Piece{piece.address, whole_lines, 0, bytes}, from + done);
      done += bytes;
      continue;
    }
    const uint32_t bytes = std::min(piece.bytes, kLineBytes - piece.offset);
    std::byte line[kLineBytes]{};
    uint64_t enables = 0;
    for (uint32_t i = 0; i < bytes; ++i) {
      if (is_enabled(block, done + i)) enables |= uint64_t{1} << (piece.offset + i);
    }
    std::memcpy(line + piece.offset, from + done, bytes);
    if (enables != 0) status = store_line(piece.address, line, enables);
    done += bytes;
  }
  return status;
}

}  // namespace ub::aperture
