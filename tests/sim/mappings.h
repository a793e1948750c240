// SPDX-License-Identifier: Apache-2.0
//
// Regions of peers that a node has mapped, as if both were of one host (docs/same-host-design.md): a Core carries
// requests for them out at once, without packets. Which application has which region mapped, and when no longer, is
// drawn from a random source of its own. A node that maps is not looked at: its Core sends all requests while it is.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <tuple>

#include "lib/base/prng.h"
#include "tests/sim/objects.h"

namespace ub::sim {

class Node;
class World;

// A host's name for a mapped region. It is shut from the moment at which the region goes, its owner dies, the token
// that was shown for the mapping is not good any more, or its owner wants so; the Core need not know of that.
struct Gate {
  Region* region;
  Token token;
  bool unwanted = false;
  bool is_open() const {
    return !unwanted && region->state == Region::State::kLive && region->token.fits(token.value);
  }
};

class Mappings {
 public:
  explicit Mappings(World& world);

  // An application of that node is about to post a request for the region: decides whether it is mapped.
  void prepare(Node&, Owner, Region&);

 private:
  struct Mapping {
    bool decided = false, wanted = false;
    uint32_t handle = 0;  // 0: it is not mapped now
    Gate* gate = nullptr;
  };

  bool may_map(const Region&) const;
  void map(Node&, Owner, Region&, Mapping&);
  void unmap(Node&, Mapping&);

  World& world_;
  Prng rng_;
  std::deque<Gate> gates_;  // those of former mappings, too
  std::map<std::tuple<uint32_t, uint32_t, Owner, uint32_t>, Mapping> mappings_;  // node, its epoch, owner, region
};

}  // namespace ub::sim
