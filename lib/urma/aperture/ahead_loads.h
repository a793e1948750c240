// SPDX-License-Identifier: Apache-2.0
//
// Lines that a program has asked for ahead of their use (softub_prefetch), before another path. A load of such a line
// takes it, waits for it if it is still under way, and then it is gone: each serves one load. Up to 64 are kept; one
// that nobody used gives way to a new one once it has arrived.
//
// A load may so see bytes as old as the request for them, but never older than a store or an atomic of this handle: a
// store drops the lines that it touches, an atomic drops all, since it may be what takes a lock.
//
// Inline calls must not pass by: while lines are here, the handle says SOFTUB_PATH_AHEAD instead of SOFTUB_PATH_LANE.
//
// Thread: one at a time. Signal handlers: as the path below.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "lib/urma/aperture/remote_path.h"
#include "lib/urma/include/ub/umdk/urma/softub_aperture.h"

namespace ub::aperture {

class AheadLoads final : public RemotePath {
 public:
  // Before `below`, which leads to a segment of so many bytes that begins at the address `base`. `inline_path` is what
  // inline calls read of the path. Both outlive this.
  AheadLoads(RemotePath& below, uint64_t base, uint64_t bytes, uint32_t* inline_path)
      : below_(below), base_(base), bytes_(bytes), inline_path_(*inline_path) {
    lines_.fill(kNone);
  }

  // Asks for the line of this byte, if there is room for it. As RemotePath::store(): what is known to fail by now.
  urma_cr_status_t prefetch(uint64_t at);
  // Drops all lines.
  void forget();

  urma_cr_status_t load(std::span<const LoadBlock>) override;
  urma_cr_status_t store(const StoreBlock&) override;
  urma_cr_status_t fence() override { return below_.fence(); }
  urma_cr_status_t atomic(const RemoteAtomic&, uint64_t* old) override;
  bool is_signal_safe() const override { return below_.is_signal_safe(); }
  bool is_broken() const override { return below_.is_broken(); }

 private:
  static constexpr uint32_t kLines = 64;
  static constexpr uint64_t kNone = ~uint64_t{0};  // no address of a line

  // A place is named by the number of its request; it is that modulo kLines.
  struct Ahead {
    EarlyLoad load{{}, URMA_CR_SUCCESS, true};
    alignas(kLineBytes) std::array<std::byte, kLineBytes> bytes;
  };

  uint64_t line_of(uint64_t at) const { return (base_ + at) / kLineBytes * kLineBytes; }
  Ahead& ahead(uint32_t number) { return places_[number % kLines]; }
  uint64_t& line(uint32_t number) { return lines_[number % kLines]; }
  // The number of the line; next_: it is not here.
  uint32_t find(uint64_t line);
  void drop(uint32_t number);
  urma_cr_status_t take(uint32_t number, const LoadBlock&);

  RemotePath& below_;
  const uint64_t base_, bytes_;
  uint32_t& inline_path_;
  // Addresses of lines; kNone: nobody wants it, though its answer may be still to come.
  std::array<uint64_t, kLines> lines_{};
  std::array<Ahead, kLines> places_;
  uint32_t oldest_ = 0;  // that is wanted, if any is
  uint32_t next_ = 0;
};

}  // namespace ub::aperture
