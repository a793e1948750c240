// SPDX-License-Identifier: Apache-2.0
//
// The pairs of addresses by which this end reaches a peer: the usual one, which the peer was named with; those of
// Core::add_path(), if channels may have several paths; and those on which other channels to that one live. What asks
// a peer that has not answered yet asks by each of them in turn, so that a peer is found, and a channel comes to be,
// while some are cut.
#pragma once

#include <cstddef>
#include <span>

#include "lib/transport/core_state.h"
#include "lib/transport/setup/receive_record.h"

namespace ub::setup {

struct Way {
  wire::Endpoint local, remote;
};

class Ways {
 public:
  static constexpr size_t kMostPathsOfChannels = 64;

  // Unless it is there, or there is no room.
  void add(const Way& way);
  size_t size() const { return count_; }
  std::span<const Way> all() const& { return {ways_, count_}; }
  std::span<const Way> all() const&& = delete;  // they would be gone before they are looked at
  // That of this try.
  const Way& operator[](uint32_t number) const { return ways_[number % count_]; }
  // May the answer come so? From the usual address it may come by any port, and to any of our addresses.
  bool has(const Arrival& from) const;

 private:
  Way ways_[1 + kMaxExtraPaths + kMostPathsOfChannels];
  uint32_t count_ = 0;
};

// May channels of this lane have several paths over that link?
bool offers_paths(const CoreState& s, const LinkConfig& link, uint32_t lane);
// To whoever is there; those of other channels are left out.
Ways ways_to(const CoreState& s, const PeerAddress& usual, uint32_t lane);
Ways ways_to(const CoreState& s, const Peer& peer, uint32_t lane);

}  // namespace ub::setup
