// SPDX-License-Identifier: Apache-2.0
#include "lib/urma/aperture/line_cache.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace ub::aperture {
namespace {

static_assert(SOFTUB_CACHE_LINE == kLineBytes && SOFTUB_CACHE_LINE == SOFTUB_LANE_LINE);
static_assert((SOFTUB_CACHE_EPOCHS | SOFTUB_CACHE_PARTIAL) == kLineBytes - 1);

constexpr size_t kAtOnce = 64;  // loads that are sent together

uint64_t line_of(uint64_t address) { return address - address % kLineBytes; }

void copy_bytes(uint8_t* to, const uint8_t* from, uint64_t mask) {
  for (int at = 0; mask != 0;) {
    const int skipped = std::countr_zero(mask), run = std::countr_one(mask >> skipped);
    at += skipped;
    std::memcpy(to + at, from + at, static_cast<size_t>(run));
    at += run;
    mask = skipped + run == 64 ? 0 : mask >> (skipped + run);
  }
}

}  // namespace

LineCache::LineCache(RemotePath& below, uint64_t base, uint64_t bytes, softub_cache_t policy)
    : below_(below), base_(base), bytes_(bytes) {
  state_.epoch = SOFTUB_CACHE_EPOCH;
  state_.keeps_stores = policy == SOFTUB_CACHE_WRITE_BACK;
}

// ---- where things are ------------------------------------------------------------------------------------------

LineCache::Piece LineCache::piece_of(uint64_t at, uint32_t bytes, uint32_t done) const {
  const uint64_t address = base_ + at + done;
  const auto offset = static_cast<uint32_t>(address % kLineBytes);
  return {address, offset, std::min(kLineBytes - offset, bytes - done), done};
}

// As bits of the line.
uint64_t LineCache::enabled_bytes(const StoreBlock& block, const Piece& piece) {
  if (block.enables == nullptr) return piece.mask();
  uint64_t enabled = 0;
  for (uint32_t i = 0; i < piece.bytes; ++i) {
    if (is_enabled(block, piece.done + i)) enabled |= uint64_t{1} << (piece.offset + i);
  }
  return enabled;
}

std::optional<LineCache::Place> LineCache::find(uint64_t address) const {
  const uint32_t set = softub_cache_set_of(address);
  const uint64_t tag = softub_cache_tag(&state_, address);
  const uint32_t way = softub_cache_way(&state_.sets[set], tag, SOFTUB_CACHE_PARTIAL);
  if (!softub_cache_is(&state_.sets[set], way, tag, SOFTUB_CACHE_PARTIAL)) return std::nullopt;
  return Place{set, way};
}

urma_cr_status_t LineCache::check(uint64_t at, uint32_t bytes) const {
  if (is_broken()) return URMA_CR_ACK_TIMEOUT_ERR;
  if (bytes == 0 || bytes > kMaxBlockBytes) return URMA_CR_LOC_LEN_ERR;
  return at < bytes_ && bytes <= bytes_ - at ? URMA_CR_SUCCESS : URMA_CR_REM_ACCESS_ABORT_ERR;
}

// ---- loads -----------------------------------------------------------------------------------------------------

urma_cr_status_t LineCache::load(std::span<const LoadBlock> blocks) {
  for (const LoadBlock& block : blocks) {
    if (const urma_cr_status_t status = check(block.at, block.bytes); status != URMA_CR_SUCCESS) return status;
  }
  return blocks.size() == 1 && blocks[0].bytes <= kLineBytes ? load_and_keep(blocks[0]) : load_around(blocks);
}

urma_cr_status_t LineCache::load_and_keep(const LoadBlock& block) {
  for (uint32_t done = 0; done < block.bytes;) {
    const Piece piece = piece_of(block.at, block.bytes, done);
    std::optional<Place> place = find(piece.address);
    if (place && (piece.mask() & ~known_bytes(*place)) == 0) {
      ++state_.hits;
    } else {
      ++misses_;
      if (const urma_cr_status_t status = fetch(piece.address, &place); status != URMA_CR_SUCCESS) return status;
    }
    std::memcpy(static_cast<uint8_t*>(block.to) + done, line(*place) + piece.offset, piece.bytes);
    done += piece.bytes;
  }
  return URMA_CR_SUCCESS;
}

// Makes a line whole that is missing, or partial and then in its `place`. At the ends of the segment it has only those
// bytes that the segment has, and nobody asks for others.
urma_cr_status_t LineCache::fetch(uint64_t address, std::optional<Place>* place) {
  const uint64_t at = address - base_, offset = address % kLineBytes;
  const uint64_t before = std::min(at, offset), behind = std::min(bytes_ - at, kLineBytes - offset);
  uint8_t loaded[kLineBytes];
  const LoadBlock block{at - before, loaded + offset - before, static_cast<uint32_t>(before + behind)};
  if (const urma_cr_status_t status = below_.load({&block, 1}); status != URMA_CR_SUCCESS) return status;
  if (!*place) {
    *place = make_room(address);
    dirty(**place) = 0;
  }
  const Piece piece{0, static_cast<uint32_t>(offset - before), block.bytes, 0};
  copy_bytes(line(**place), loaded, piece.mask() & ~dirty(**place));
  tag(**place) = softub_cache_tag(&state_, address);
  return URMA_CR_SUCCESS;
}

bool LineCache::has(uint64_t at) {
  const std::optional<Place> place = find(base_ + at);
  return place && !is_partial(*place);
}

bool LineCache::is_here(const LoadBlock& block) {
  for (uint32_t done = 0; done < block.bytes;) {
    const Piece piece = piece_of(block.at, block.bytes, done);
    const std::optional<Place> place = find(piece.address);
    if (!place || (piece.mask() & ~known_bytes(*place)) != 0) return false;
    done += piece.bytes;
  }
  return true;
}

void LineCache::copy_what_is_here(const LoadBlock& block) {
  for (uint32_t done = 0; done < block.bytes;) {
    const Piece piece = piece_of(block.at, block.bytes, done);
    if (const std::optional<Place> place = find(piece.address)) {
      const uint64_t known = (piece.mask() & known_bytes(*place)) >> piece.offset;
      copy_bytes(static_cast<uint8_t*>(block.to) + done, line(*place) + piece.offset, known);
    }
    done += piece.bytes;
  }
}

urma_cr_status_t LineCache::load_around(std::span<const LoadBlock> blocks) {
  std::array<LoadBlock, kAtOnce> missing;
  for (size_t next = 0; next != blocks.size();) {
    size_t count = 0;
    for (; next != blocks.size() && count != missing.size(); ++next) {
      if (is_here(blocks[next])) {
        ++state_.hits;
      } else {
        ++misses_;
        missing[count++] = blocks[next];
      }
    }
    if (count == 0) continue;
    const urma_cr_status_t status = below_.load({missing.data(), count});
    if (status != URMA_CR_SUCCESS) return status;
  }
  for (const LoadBlock& block : blocks) copy_what_is_here(block);
  return URMA_CR_SUCCESS;
}

// ---- stores ----------------------------------------------------------------------------------------------------

urma_cr_status_t LineCache::store(const StoreBlock& block) {
  if (const urma_cr_status_t status = check(block.at, block.bytes); status != URMA_CR_SUCCESS) return status;
  if (!state_.keeps_stores || block.bytes > kLineBytes) return store_through(block);
  keep_store(block);
  return URMA_CR_SUCCESS;
}

void LineCache::keep_store(const StoreBlock& block) {
  for (uint32_t done = 0; done < block.bytes;) {
    const Piece piece = piece_of(block.at, block.bytes, done);
    done += piece.bytes;
    const uint64_t enabled = enabled_bytes(block, piece);
    if (enabled == 0) continue;
    std::optional<Place> place = find(piece.address);
    ++(place ? state_.hits : misses_);
    if (!place) {
      place = make_room(piece.address);
      tag(*place) = softub_cache_tag(&state_, piece.address) | SOFTUB_CACHE_PARTIAL;
      dirty(*place) = 0;
    }
    const auto* from = static_cast<const uint8_t*>(block.from) + piece.done;
    copy_bytes(line(*place) + piece.offset, from, enabled >> piece.offset);
    dirty(*place) |= enabled;
    state_.has_dirty = true;
  }
}

// What was dirty of these bytes is older than what is sent now.
urma_cr_status_t LineCache::store_through(const StoreBlock& block) {
  if (const urma_cr_status_t status = below_.store(block); status != URMA_CR_SUCCESS) return status;
  for (uint32_t done = 0; done < block.bytes;) {
    const Piece piece = piece_of(block.at, block.bytes, done);
    done += piece.bytes;
    const std::optional<Place> place = find(piece.address);
    ++(place ? state_.hits : misses_);
    if (!place) continue;
    const uint64_t enabled = enabled_bytes(block, piece);
    const auto* from = static_cast<const uint8_t*>(block.from) + piece.done;
    copy_bytes(line(*place) + piece.offset, from, enabled >> piece.offset);
    dirty(*place) &= ~enabled;
  }
  return URMA_CR_SUCCESS;
}

// ---- lines go --------------------------------------------------------------------------------------------------

LineCache::Place LineCache::make_room(uint64_t address) {
  Place place{softub_cache_set_of(address), 0};
  for (; place.way != kWays; ++place.way) {
    if (!is_present(place)) return place;
  }
  place.way = next_victim_[place.set]++ % kWays;
  ++evictions_;
  write_back(place);
  return place;
}

// Nothing is known of a partial line afterwards, but it has a place for the next store. What cannot be sent is dropped.
void LineCache::write_back(Place place) {
  const uint64_t bytes = std::exchange(dirty(place), 0);
  urma_cr_status_t status = URMA_CR_SUCCESS;
  if (bytes != 0) {
    const int first = std::countr_zero(bytes);
    const uint64_t enables = bytes >> first;
    const auto count = static_cast<uint32_t>(std::bit_width(enables));
    const bool has_gaps = std::popcount(enables) != static_cast<int>(count);
    const uint64_t at = line_of(tag(place)) + static_cast<uint64_t>(first) - base_;
    status = below_.store({at, line(place) + first, count, has_gaps ? &enables : nullptr});
    ++write_backs_;
  }
  if (error_ == URMA_CR_SUCCESS) error_ = status;
  if (status != URMA_CR_SUCCESS) tag(place) = 0;
}

// Of all lines that are here and touch a range of the segment.
template <class F>
void LineCache::for_each_line(uint64_t at, uint64_t bytes, F f) {
  const uint64_t first = line_of(base_ + at), last = line_of(base_ + at + bytes - 1);
  if ((last - first) / kLineBytes < kSets) {
    for (uint64_t address = first;; address += kLineBytes) {
      if (const std::optional<Place> place = find(address)) f(*place);
      if (address == last) return;
    }
  }
  for (uint32_t i = 0; i < kSets * kWays; ++i) {
    const Place place{i / kWays, i % kWays};
    const uint64_t address = line_of(tag(place));
    if (is_present(place) && address >= first && address <= last) f(place);
  }
}

void LineCache::write_back_all() {
  if (!state_.has_dirty) return;
  for_each_line(0, bytes_, [this](Place place) { write_back(place); });
  state_.has_dirty = false;
}

// None of them is dirty. Epochs begin anew when all have been used, and then no line of a former one may be left.
void LineCache::drop_all() {
  if (state_.epoch != SOFTUB_CACHE_EPOCHS) {
    state_.epoch += SOFTUB_CACHE_EPOCH;
    return;
  }
  for (softub_cache_set_t& set : state_.sets) std::fill(std::begin(set.tags), std::end(set.tags), 0);
  state_.epoch = SOFTUB_CACHE_EPOCH;
}

urma_cr_status_t LineCache::fence() {
  write_back_all();
  const urma_cr_status_t status = below_.fence();
  const urma_cr_status_t before = std::exchange(error_, URMA_CR_SUCCESS);
  const urma_cr_status_t first = before != URMA_CR_SUCCESS ? before : status;
  if (first != URMA_CR_SUCCESS) drop_all();
  return first;
}

urma_cr_status_t LineCache::atomic(const RemoteAtomic& request, uint64_t* old) {
  write_back_all();
  if (request.bytes != 0 && check(request.at, request.bytes) == URMA_CR_SUCCESS) {
    for_each_line(request.at, request.bytes, [this](Place place) { tag(place) = 0; });
  }
  return below_.atomic(request, old);
}

urma_cr_status_t LineCache::check_sync(uint64_t segment_bytes, uint64_t at, uint64_t bytes, uint32_t what) {
  constexpr uint32_t kAll = SOFTUB_FLUSH | SOFTUB_INVALIDATE | SOFTUB_DISCARD;
  if ((what & ~kAll) != 0) return URMA_CR_LOC_OPERATION_ERR;
  const bool is_inside = at < segment_bytes && (bytes == SOFTUB_TO_THE_END || bytes <= segment_bytes - at);
  return is_inside ? URMA_CR_SUCCESS : URMA_CR_LOC_LEN_ERR;
}

urma_cr_status_t LineCache::sync(uint64_t at, uint64_t bytes, uint32_t what) {
  const urma_cr_status_t checked = check_sync(bytes_, at, bytes, what);
  if (checked != URMA_CR_SUCCESS) return checked;
  bytes = std::min(bytes, bytes_ - at);
  if (bytes == 0 || what == 0) return URMA_CR_SUCCESS;
  const bool drops = (what & (SOFTUB_INVALIDATE | SOFTUB_DISCARD)) != 0;
  const auto act = [&](Place place) {
    if ((what & (SOFTUB_FLUSH | SOFTUB_INVALIDATE)) != 0) write_back(place);
    if (drops) tag(place) = 0;
  };
  if (bytes != bytes_) {
    for_each_line(at, bytes, act);
    return URMA_CR_SUCCESS;
  }
  if (state_.has_dirty) {
    for_each_line(0, bytes_, act);
  } else if (drops) {
    drop_all();
  }
  state_.has_dirty = false;
  return URMA_CR_SUCCESS;
}

softub_cache_counts_t LineCache::counts() const {
  return {.hits = state_.hits, .misses = misses_, .write_backs = write_backs_, .evictions = evictions_};
}

}  // namespace ub::aperture
