// SPDX-License-Identifier: Apache-2.0
#include "lib/urma/aperture/ahead_loads.h"

#include <algorithm>
#include <cstring>

namespace ub::aperture {

urma_cr_status_t AheadLoads::prefetch(uint64_t at) {
  if (is_broken()) return URMA_CR_ACK_TIMEOUT_ERR;
  if (at >= bytes_) return URMA_CR_REM_ACCESS_ABORT_ERR;
  const uint64_t wanted = line_of(at);
  Ahead& place = ahead(next_);
  if (find(wanted) != next_ || !place.load.is_done) return URMA_CR_SUCCESS;
  if (next_ - oldest_ == kLines) drop(oldest_);
  // At the ends of the segment a line has only those bytes that the segment has.
  const uint64_t first = std::max(wanted, base_), end = std::min(wanted + kLineBytes, base_ + bytes_);
  place.load = {{first - base_, place.bytes.data() + (first - wanted), static_cast<uint32_t>(end - first)}};
  if (!below_.ask(&place.load)) {
    place.load.is_done = true;
    return URMA_CR_SUCCESS;
  }
  line(next_++) = wanted;
  if (inline_path_ == SOFTUB_PATH_LANE) inline_path_ = SOFTUB_PATH_AHEAD;
  return URMA_CR_SUCCESS;
}

// Lines are used mostly in the order in which they were asked for.
uint32_t AheadLoads::find(uint64_t wanted) {
  uint32_t number = oldest_;
  while (number != next_ && line(number) != wanted) ++number;
  return number;
}

void AheadLoads::drop(uint32_t number) {
  line(number) = kNone;
  while (oldest_ != next_ && line(oldest_) == kNone) ++oldest_;
  if (oldest_ == next_ && inline_path_ == SOFTUB_PATH_AHEAD) inline_path_ = SOFTUB_PATH_LANE;
}

void AheadLoads::forget() {
  for (uint32_t number = oldest_; number != next_; ++number) drop(number);
}

urma_cr_status_t AheadLoads::take(uint32_t number, const LoadBlock& block) {
  Ahead& place = ahead(number);
  if (!place.load.is_done) below_.finish(&place.load);
  drop(number);
  const uint64_t offset = (base_ + block.at) % kLineBytes;
  if (place.load.status == URMA_CR_SUCCESS) std::memcpy(block.to, place.bytes.data() + offset, block.bytes);
  return place.load.status;
}

urma_cr_status_t AheadLoads::load(std::span<const LoadBlock> blocks) {
  if (oldest_ != next_ && blocks.size() == 1) {
    const LoadBlock& block = blocks[0];
    const bool is_inside = block.bytes != 0 && block.at < bytes_ && block.bytes <= bytes_ - block.at;
    if (is_inside && line_of(block.at) == line_of(block.at + block.bytes - 1)) {
      if (const uint32_t number = find(line_of(block.at)); number != next_) return take(number, block);
    }
  }
  return below_.load(blocks);
}

urma_cr_status_t AheadLoads::store(const StoreBlock& block) {
  const uint64_t first = line_of(block.at), last = line_of(block.at + block.bytes - 1);
  for (uint32_t number = oldest_; number != next_; ++number) {
    if (first <= line(number) && line(number) <= last) drop(number);
  }
  return below_.store(block);
}

urma_cr_status_t AheadLoads::atomic(const RemoteAtomic& request, uint64_t* old) {
  forget();
  return below_.atomic(request, old);
}

}  // namespace ub::aperture
