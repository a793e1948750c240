// SPDX-License-Identifier: Apache-2.0
#include "dataplane/capture_ring.h"

#include <cstring>

namespace ub {
namespace {

// Where a record begins there is room for one, also at the end of the memory.
constexpr uint64_t kUnit = 64;
static_assert(sizeof(CaptureRecord) <= kUnit);

}  // namespace

void CaptureRing::touch() { std::memset(memory_.data(), 0, memory_.bytes()); }

CaptureRecord* CaptureRing::put(uint32_t kept) {
  const uint64_t bytes = (sizeof(CaptureRecord) + kept + kUnit - 1) / kUnit * kUnit;
  const uint64_t to_end = mask_ + 1 - (put_ & mask_);
  const uint64_t skipped = bytes > to_end ? to_end : 0;  // a record is in one piece
  const uint64_t needed = skipped + bytes;
  if (put_ + needed - taken_before_ > mask_ + 1) {
    taken_before_ = taken_.load(std::memory_order_acquire);
    if (put_ + needed - taken_before_ > mask_ + 1) return nullptr;
  }
  if (skipped != 0) {
    CaptureRecord* rest = record_at(put_);
    rest->bytes = static_cast<uint32_t>(skipped);
    rest->length = 0;
    put_ += skipped;
  }
  CaptureRecord* record = record_at(put_);
  record->bytes = static_cast<uint32_t>(bytes);
  record->kept = kept;
  put_ += bytes;
  return record;
}

}  // namespace ub
