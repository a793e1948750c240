// SPDX-License-Identifier: Apache-2.0
#include "lib/urma/aperture/ahead_loads.h"

#include <algorithm>
#include <cstring>

namespace ub::aperture {

urma_cr_status_t AheadLoads::prefetch(uint64_t at) {
  if (is_broken()) return URMA_CR_ACK_TIMEOUT_ERR;
  if (at >= bytes_) return URMA_CR_REM_ACCESS_ABORT_ERR;
  const uint64_t line = line_of(at);
  Ahead& place = lines_[next_];
  if (find(line) != nullptr || !place.load.is_done) return URMA_CR_SUCCESS;
  drop(place);
  // At the ends of the segment a line has only those bytes that the segment has.
  const uint64_t first = std::max(line, base_), end = std::min(line + kLineBytes, base_ + bytes_);
  place.load = {{first - base_, place.bytes.data() + (first - line), static_cast<uint32_t>(end - first)}};
  if (!below_.ask(&place.load)) {
    place.load.is_done = true;
    return URMA_CR_SUCCESS;
  }
  place.line = line;
  ++wanted_;
  next_ = (next_ + 1) % kLines;
  if (inline_path_ == SOFTUB_PATH_LANE) inline_path_ = SOFTUB_PATH_AHEAD;
  return URMA_CR_SUCCESS;
}

AheadLoads::Ahead* AheadLoads::find(uint64_t line) {
  for (uint32_t i = 0; wanted_ != 0 && i < kLines; ++i) {
    const uint32_t place = (likely_ + i) % kLines;
    if (lines_[place].line != line) continue;
    likely_ = place;
    return &lines_[place];
  }
  return nullptr;
}

void AheadLoads::drop(Ahead& ahead) {
  if (ahead.line == kNone) return;
  ahead.line = kNone;
  if (--wanted_ == 0 && inline_path_ == SOFTUB_PATH_AHEAD) inline_path_ = SOFTUB_PATH_LANE;
}

void AheadLoads::forget() {
  for (Ahead& ahead : lines_) drop(ahead);
}

urma_cr_status_t AheadLoads::take(Ahead& ahead, const LoadBlock& block) {
  if (!ahead.load.is_done) below_.finish(&ahead.load);
  likely_ = (likely_ + 1) % kLines;
  drop(ahead);
  const uint64_t offset = (base_ + block.at) % kLineBytes;
  if (ahead.load.status == URMA_CR_SUCCESS) std::memcpy(block.to, ahead.bytes.data() + offset, block.bytes);
  return ahead.load.status;
}

urma_cr_status_t AheadLoads::load(std::span<const LoadBlock> blocks) {
  if (wanted_ != 0 && blocks.size() == 1) {
    const LoadBlock& block = blocks[0];
    const bool is_inside = block.bytes != 0 && block.at < bytes_ && block.bytes <= bytes_ - block.at;
    if (is_inside && line_of(block.at) == line_of(block.at + block.bytes - 1)) {
      if (Ahead* ahead = find(line_of(block.at)); ahead != nullptr) return take(*ahead, block);
    }
  }
  return below_.load(blocks);
}

urma_cr_status_t AheadLoads::store(const StoreBlock& block) {
  const uint64_t first = line_of(block.at), last = line_of(block.at + block.bytes - 1);
  for (uint32_t i = 0; wanted_ != 0 && i < kLines; ++i) {
    if (lines_[i].line != kNone && first <= lines_[i].line && lines_[i].line <= last) drop(lines_[i]);
  }
  return below_.store(block);
}

urma_cr_status_t AheadLoads::atomic(const RemoteAtomic& request, uint64_t* old) {
  forget();
  return below_.atomic(request, old);
}

}  // namespace ub::aperture
