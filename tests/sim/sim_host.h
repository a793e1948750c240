// SPDX-License-Identifier: Apache-2.0
//
// What surrounds a Core in the simulation (see lib/transport/host.h): outgoing frames go to the simulated
// network, copies are done at once or later as the seed says, and every address is checked against what the
// instance has registered. Room for frames runs out at random.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "lib/record/tapped_host.h"
#include "lib/transport/host.h"
#include "lib/transport/looking/note.h"
#include "tests/sim/objects.h"

namespace ub::sim {

class World;
class Node;
class SimLane;

class UnrecordedSimHost {
 public:
  UnrecordedSimHost(World& world, Node& node) : world_(world), node_(node) {}

  std::byte* tx_begin(uint32_t link, size_t bytes);
  void tx_commit(uint32_t link, std::byte* frame, size_t bytes);
  void tx_abort(uint32_t link, std::byte* frame);
  void tx_hold(uint32_t link, std::byte* frame, std::byte* held);
  void tx_may_wait(uint32_t) {}  // everybody is awake
  void tx_drop(std::byte* held);

  CopyResult gather(std::byte* dst, const std::byte* src, size_t bytes, CopyTag tag);
  CopyResult place(std::byte* dst, const std::byte* src, size_t bytes, bool final, CopyTag tag);
  CopyResult atomic(const AtomicRequest& request, uint128* old, CopyTag tag);
  bool write_mapped(void* gate, std::byte* remote, const std::byte* local, size_t bytes);
  bool read_mapped(void* gate, std::byte* local, const std::byte* remote, size_t bytes);
  bool atomic_mapped(void* gate, const AtomicRequest& request, uint128* old);
  void load(std::byte* block, const std::byte* memory, size_t bytes);
  void store(std::byte* memory, const std::byte* block, size_t bytes);
  static constexpr bool kLooksClosely = true;
  void note(const Note& note);

  // For the node: carries a pending copy out (or not, if its memory is gone) and tells the tag and the
  // result.
  bool finish(uint64_t copy, CopyTag* tag);
  size_t pending() const { return pending_.size(); }
  size_t open_frames() const { return open_.size(); }
  // Was a frame refused since the last call?
  bool take_refused() { return std::exchange(refused_, false); }

 private:
  enum class Kind : uint8_t { kGather, kPlace, kAtomic };
  enum class Access : uint8_t { kGood, kDying, kBad };
  struct Pending {
    Kind kind;
    CopyTag tag;
    std::byte* dst;
    const std::byte* src;
    size_t bytes;
    bool final;
    std::vector<std::byte> data;  // of a place
    AtomicRequest request;
    uint128* old;
    uint64_t frame;   // of a gather; 0: it goes to a held one, if `dst` says where
    std::byte* held;  // that one
  };
  struct OpenFrame {
    uint64_t number;  // addresses come again, numbers do not
    std::unique_ptr<std::byte[]> memory;
    size_t bytes;
    bool committed;
  };

  SimLane* lane_of(uint32_t link) const;  // null: the link is none
  Access access(const std::byte* p, size_t bytes, bool read_only) const;
  // Looks at an address the Core uses now. False: `*result` is the answer.
  bool admit(const char* what, const std::byte* p, size_t bytes, bool read_only, CopyResult* result);
  bool defer(const std::byte* memory) const;
  CopyResult enqueue(Pending, const std::byte* memory);
  bool is_held(const std::byte* held) const;
  void send_committed();
  // The region that the gate stands for; null: it is shut.
  Region* pass(void* gate, const char* what, const std::byte* remote, size_t bytes);
  void check_used(const std::byte* src, size_t bytes);
  void put(const Region*, std::byte* dst, const std::byte* src, size_t bytes);
  void do_place(std::byte* dst, const std::byte* src, size_t bytes);
  void do_gather(std::byte* dst, const std::byte* src, size_t bytes);
  uint128 do_atomic(const AtomicRequest& request);
  uint64_t frame_at(const std::byte* p) const;  // 0: none that is open

  World& world_;
  Node& node_;
  std::deque<OpenFrame> open_;  // as in a ring: what was begun later waits
  std::map<uint64_t, Pending> pending_;
  uint64_t next_copy_ = 1, next_frame_ = 1;
  bool refused_ = false;
};

// A recording may be made of what it answers.
using SimHost = record::TappedHost<UnrecordedSimHost>;

}  // namespace ub::sim
