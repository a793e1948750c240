// SPDX-License-Identifier: Apache-2.0
//
// A cache of lines before another path, out of line. softub_line_cache.h has the hits inline, on the same state.
//
// Loads of up to a line keep the lines that they load. Longer ones, and several at a time, take what is here and keep
// nothing, so that a scan does not drive out what is used. Stores of up to a line are kept as dirty bytes
// (write-back); a line whose other bytes are not known is partial, so a store never waits for a load. All other stores
// pass on at once and change the lines that are here. Lines are replaced in turn, a dirty one is sent first.
//
// Coherent with nothing but this path's own calls: fence() sends all dirty bytes before it waits, atomic() sends them
// and drops its line. What others store is seen when a line was dropped. Which store failed is known to nobody, so a
// fence that tells an error has dropped all lines: none holds bytes that the memory refused.
//
// Thread: one at a time. Signal handlers: as the path below.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "lib/urma/aperture/remote_path.h"
#include "lib/urma/include/ub/umdk/urma/softub_aperture.h"

namespace ub::aperture {

class LineCache final : public RemotePath {
 public:
  // Before `below`, which outlives it and leads to a segment of so many bytes, whose first byte has the address `base`.
  LineCache(RemotePath& below, uint64_t base, uint64_t bytes, softub_cache_t policy);

  urma_cr_status_t load(std::span<const LoadBlock>) override;
  urma_cr_status_t store(const StoreBlock&) override;
  urma_cr_status_t fence() override;
  urma_cr_status_t atomic(const RemoteAtomic&, uint64_t* old) override;
  bool is_signal_safe() const override { return below_.is_signal_safe(); }
  bool is_broken() const override { return below_.is_broken(); }

  // Is the whole line of this byte here?
  bool has(uint64_t at);

  // softub_sync_cache().
  urma_cr_status_t sync(uint64_t at, uint64_t bytes, uint32_t what);
  // What it says of its arguments, for a segment of so many bytes.
  static urma_cr_status_t check_sync(uint64_t segment_bytes, uint64_t at, uint64_t bytes, uint32_t what);

  softub_cache_counts_t counts() const;
  // For inline calls; it lives as long as the cache.
  softub_line_cache_t* state() { return &state_; }

 private:
  static constexpr uint32_t kSets = SOFTUB_CACHE_SETS, kWays = SOFTUB_CACHE_WAYS;

  struct Place {
    uint32_t set, way;
  };
  // The part of a range that lies in one line.
  struct Piece {
    uint64_t address;
    uint32_t offset;  // in the line
    uint32_t bytes;
    uint32_t done;  // bytes of the range before it
    uint64_t mask() const { return ~uint64_t{0} >> (kLineBytes - bytes) << offset; }
  };
  Piece piece_of(uint64_t at, uint32_t bytes, uint32_t done) const;
  static uint64_t enabled_bytes(const StoreBlock&, const Piece&);

  uint64_t& tag(Place p) { return state_.sets[p.set].tags[p.way]; }
  uint64_t& dirty(Place p) { return state_.sets[p.set].dirty[p.way]; }
  uint8_t* line(Place p) { return state_.lines[p.set][p.way]; }
  bool is_present(Place p) { return (tag(p) & SOFTUB_CACHE_EPOCHS) == state_.epoch; }
  bool is_partial(Place p) { return (tag(p) & SOFTUB_CACHE_PARTIAL) != 0; }
  // The bytes of a line that are here.
  uint64_t known_bytes(Place p) { return is_partial(p) ? dirty(p) : ~uint64_t{0}; }
  std::optional<Place> find(uint64_t address) const;

  urma_cr_status_t check(uint64_t at, uint32_t bytes) const;
  bool is_here(const LoadBlock&);
  void copy_what_is_here(const LoadBlock&);
  urma_cr_status_t load_and_keep(const LoadBlock&);
  urma_cr_status_t load_around(std::span<const LoadBlock>);
  urma_cr_status_t fetch(uint64_t address, std::optional<Place>* place);
  void keep_store(const StoreBlock&);
  urma_cr_status_t store_through(const StoreBlock&);

  Place make_room(uint64_t address);
  void write_back(Place);
  void write_back_all();
  void drop_all();
  template <class F>
  void for_each_line(uint64_t at, uint64_t bytes, F f);

  RemotePath& below_;
  const uint64_t base_, bytes_;
  softub_line_cache_t state_{};
  std::array<uint8_t, kSets> next_victim_{};
  uint64_t misses_ = 0, write_backs_ = 0, evictions_ = 0;
  urma_cr_status_t error_ = URMA_CR_SUCCESS;  // of a line that could not be sent; told by the next fence
};

}  // namespace ub::aperture
