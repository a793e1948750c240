// SPDX-License-Identifier: Apache-2.0
//
// The oracle of loads and stores (TP bypass). It hears of what a program asks for, of each byte that a Core writes into
// memory, and of each answer, and says at once what must not be:
//   - a Core writes bytes that no store which just arrived asks for, or writes them twice, or after their store was
//     given up for longer than a frame lives;
//   - a load shows a byte that was not there at any time between its call and its answer, or misses an earlier store of
//     its own handle;
//   - an answer says other than what the rights of the memory were meanwhile.
// It knows addresses, tokens and bytes, and nothing of packets but which access one carries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "tests/sim/objects.h"

namespace ub::sim {

class World;

struct Access {
  enum class Kind : uint8_t { kLoad, kStore };
  enum class State : uint8_t { kOutstanding, kOk, kRefused, kGivenUp };

  uint64_t id = 0;      // the model gives it
  uint32_t handle = 0;  // accesses of one handle are carried out in the order of their calls
  Kind kind = Kind::kLoad;
  const Region* region = nullptr;
  uint64_t address = 0;
  uint32_t bytes = 64;
  uint32_t token = 0;
  std::vector<std::byte> data;    // of a store
  std::vector<uint64_t> enables;  // of a store: bit i % 64 of word i / 64; empty: all bytes
  State state = State::kOutstanding;
  bool strict = false;  // nothing explains that it fails

  bool is_load() const { return kind == Kind::kLoad; }
  bool is_enabled(uint64_t byte) const { return enables.empty() || (enables[byte / 64] >> byte % 64 & 1) != 0; }

  // The model's own.
  uint64_t issued_ns = 0, given_up_ns = 0;
  size_t since = 0;               // of a load: how many writes there were when it was called
  std::vector<std::byte> before;  // and what it would have shown then
  std::vector<bool> written;      // of a store: bytes that have been written
  bool ran() const;               // a byte has
};

class ApertureModel {
 public:
  explicit ApertureModel(World& world) : world_(world) {}

  // A region whose bytes nobody but loads and stores touches. It asks for a token.
  void add_region(const Region*);
  void token_replaced(const Region*);
  void region_leaving(const Region*);  // unregistered, or its instance has stopped

  void called(const std::shared_ptr<Access>&);
  void answered(Access&, bool ok, std::span<const std::byte> bytes);
  // Nobody waits for it any more. A store may still be carried out for `ns`.
  void given_up(Access&, uint64_t for_ns);

  // A request of this access reaches the Core that is to carry it out, and then that is over.
  void arrives(Access* access) { arriving_ = access; }
  void stored(const Region*, uint64_t offset, std::span<const std::byte> bytes);
  void loaded(const Region*, uint64_t offset, uint64_t bytes);

  uint64_t count(Access::State s) const { return counts_[static_cast<size_t>(s)]; }
  uint32_t outstanding() const { return outstanding_; }

 private:
  struct Write {
    const Region* region;
    uint64_t offset;
    uint32_t handle;
    uint64_t access;
    std::vector<std::byte> data;
  };
  struct TokenChange {
    uint64_t at_ns;
    uint32_t token;
  };
  struct Rights {
    std::vector<TokenChange> tokens;
    uint64_t gone_ns = UINT64_MAX;
  };
  struct Seen {
    uint64_t load, address;
    uint32_t bytes;
  };

  std::vector<std::byte> view(const Access&) const;
  bool was_allowed(const Access&) const;  // at some time while it was outstanding
  bool was_refused(const Access&) const;
  bool inside(const Access&) const;  // does its region allow it, but for the token?
  void check_loaded(const Access&, std::span<const std::byte> bytes);
  void check_ran(const Access&);
  void end(Access&, Access::State);
  std::string describe(const Access&) const;

  World& world_;
  uint64_t last_id_ = 0;
  uint32_t outstanding_ = 0;
  uint64_t counts_[4] = {};
  Access* arriving_ = nullptr;
  std::vector<Write> writes_;
  std::map<const Region*, Rights> rights_;
  std::map<uint32_t, std::vector<Seen>> seen_;     // by handle: loads that were answered
  std::map<uint32_t, uint32_t> stores_under_way_;  // by handle
};

}  // namespace ub::sim
