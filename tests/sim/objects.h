// SPDX-License-Identifier: Apache-2.0
//
// What an application of the simulation owns: memory regions, completion queues, receive queues and send
// queues. They hold the rings that a Core works on, and do what liburma does at post and poll. Ring memory is
// allocated one by one and freed as soon as its object is destroyed, so that a sanitizer sees a Core that
// goes on using it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#include "lib/base/assert.h"
#include "lib/transport/core_types.h"
#include "tests/sim/pattern.h"
#include "tests/sim/range_set.h"

namespace ub::sim {

constexpr Owner kFirstHostileOwner = 0x8000;  // hostile.h; the others have smaller numbers

struct FreeDeleter {
  void operator()(void* p) const { std::free(p); }
};
using Bytes = std::unique_ptr<std::byte[], FreeDeleter>;

inline Bytes make_bytes(size_t bytes, bool zero) {
  size_t rounded = (bytes + 63) / 64 * 64;
  auto* p = static_cast<std::byte*>(std::aligned_alloc(64, rounded == 0 ? 64 : rounded));
  if (zero) std::memset(p, 0, rounded);
  return Bytes(p);
}

// The token of a region or a receiver. While another takes its place, both are good (9.4, 11.4).
struct RotatingToken : Token {
  enum class Former : uint8_t { kNone, kGood, kWithdrawn };

  uint32_t former = 0;
  Former state = Former::kNone;

  RotatingToken() = default;
  RotatingToken(const Token& t) : Token(t) {}
  bool fits(uint32_t shown) const {
    return !required || shown == value || (state == Former::kGood && shown == former);
  }
  void replace(uint32_t by) {
    former = value;
    value = by;
    state = Former::kGood;
  }
};

// A range of application memory, with guard zones around it that nobody may touch.
struct Region {
  static constexpr uint64_t kGuard = 256;
  static constexpr uint64_t kGuardAt = uint64_t{1} << 40;  // pattern position of the guards

  enum class State { kLive, kDying, kGone };  // dying: its application was killed, the NIC does not know yet

  uint32_t uid = 0, node = 0, app = 0, epoch = 0;
  bool local = false;  // buffers of requests and receives; otherwise a target of remote access
  State state = State::kLive;
  uint64_t length = 0;
  uint64_t address = 0;  // how peers name the first byte
  uint8_t access = 0;
  RotatingToken token;
  RegisteredSegment registered;
  RangeSet free;
  Bytes storage;
  bool hostile = false;   // of an application that the oracle does not follow (hostile.h)
  bool direct = false;    // loads and stores reach it
  bool mute = false;      // and that leaves copies undone, as long as anybody waits for one
  Instant starved_until;  // its application gets no CPU: copies are done after that

  // Parts of a target region: words for atomics, constant bytes, contended bytes, ranges that requests own,
  // and at the end some contended bytes for requests that run over the edge.
  static constexpr uint64_t kAtomicBytes = 128;
  uint64_t constant_at = 0, shared_at = 0, owned_at = 0, edge_at = 0;

  Region(uint32_t uid_, uint64_t length_, bool local_)
      : uid(uid_), local(local_), length(length_), storage(make_bytes(length_ + 2 * kGuard, false)) {
    pattern_fill(storage.get(), kUntouched | uid, kGuardAt, kGuard);
    pattern_fill(memory(), (local ? kReleased : kUntouched) | uid, 0, length);
    pattern_fill(memory() + length, kUntouched | uid, kGuardAt + kGuard, kGuard);
  }

  std::byte* memory() const { return storage.get() + kGuard; }
  // What the application believes to be the address of its memory: the same in every run.
  uint64_t va() const { return (uint64_t{uid} << 36) + 0x7000'0000; }
  bool holds(const std::byte* p, size_t bytes) const { return p >= memory() && p + bytes <= memory() + length; }
  uint64_t offset_of(const std::byte* p) const { return static_cast<uint64_t>(p - memory()); }
  bool guards_intact() const {
    return pattern_mismatch(storage.get(), kUntouched | uid, kGuardAt, kGuard) == kGuard &&
           pattern_mismatch(memory() + length, kUntouched | uid, kGuardAt + kGuard, kGuard) == kGuard;
  }
};

// A piece of a local region that a request or receive uses.
struct LocalRange {
  Region* region = nullptr;
  uint64_t offset = 0;
  uint32_t bytes = 0;
  std::byte* data() const { return region->memory() + offset; }
  Sge sge() const { return {region->va() + offset, bytes, region->registered.handle}; }
};

struct Jfc {
  uint32_t uid = 0, node = 0, app = 0, handle = 0;
  Owner owner = 0;
  uint32_t depth = 0;
  bool alive = true;
  bool poll_planned = false;
  bool full_reported = false;  // a kJfcError event came
  bool armed = false;          // an event is wanted
  Instant armed_since{};
  uint16_t told_count = 0;  // its moderation; both 0: none
  Duration told_period{};
  std::unique_ptr<Cqe[]> slots;
  uint32_t slot_count = 0;
  std::unique_ptr<QueueIndices> indices = std::make_unique<QueueIndices>();

  uint32_t waiting() const { return indices->produced.load() - indices->consumed.load(); }
  // It is armed and something waits: must there have been an event, whatever the time?
  bool must_tell() const;
};

// One posted receive.
struct Receive {
  uint64_t id = 0;
  uint32_t length = 0;
  std::vector<LocalRange> ranges;
  bool may_flush = false;  // its queue was set to ERROR
};

struct Jfr {
  uint32_t uid = 0, node = 0, app = 0, id = 0, epoch = 0;
  Mode mode = Mode::kRm;
  bool alive = true;
  bool in_error = false, in_reset = false;
  bool will_revive = false;           // in_error, for a time
  uint64_t silent_since = UINT64_MAX;  // tick of the oracle from which on messages to it are dropped
  uint64_t dropped_before = 0;         // messages that its instance had dropped so until then
  uint32_t depth = 0;
  Jfc* jfc = nullptr;
  RotatingToken token;
  uint32_t buffer_bytes = 0;  // of the receives posted to it, usually
  bool generous = false;      // refilled at every chance, whatever the options say
  bool of_qp = false;         // the receive queue of one queue pair, or of several
  std::unique_ptr<Rqe[]> slots;
  uint32_t slot_count = 0;
  std::unique_ptr<QueueIndices> indices = std::make_unique<QueueIndices>();
  std::deque<Receive> posted;  // not completed yet

  // False: no room.
  bool push(const Receive& r) {
    uint32_t n = rqe_slots(static_cast<uint32_t>(r.ranges.size()));
    uint32_t at = indices->produced.load() % slot_count;
    uint32_t tail = slot_count - at;
    uint32_t skip = n > tail ? tail : 0;
    if (indices->produced.load() - indices->consumed.load() + skip + n > slot_count) return false;
    if (skip != 0) {
      slots[at] = Rqe{};
      slots[at].skip = 1;
      slots[at].slots = static_cast<uint8_t>(skip);
      at = 0;
    }
    for (uint32_t i = 0; i < n; ++i) slots[at + i] = Rqe{};
    Rqe& e = slots[at];
    e.user_ctx = r.id;
    e.length = r.length;
    e.sge_count = static_cast<uint8_t>(r.ranges.size());
    e.slots = static_cast<uint8_t>(n);
    for (uint32_t i = 0; i < r.ranges.size(); ++i) const_cast<Sge&>(sge_of(e, i)) = r.ranges[i].sge();
    indices->produced.store(indices->produced.load() + skip + n, std::memory_order_release);
    return true;
  }
};

struct Queue {
  enum class State { kReady, kReset, kFlushing, kGone };

  uint32_t uid = 0, node = 0, app = 0, id = 0, epoch = 0;
  Owner owner = 0;
  ObjectKind kind = ObjectKind::kJetty;
  Mode mode = Mode::kRm;
  State state = State::kReady;
  Jfc* jfc = nullptr;
  Jfr* jfr = nullptr;       // kJetty
  Jfc* recv_jfc = nullptr;  // kJetty; null: the JFR's
  Queue* peer = nullptr;    // RC: the jetty at the other end
  uint32_t bound_target = 0;
  uint32_t bound_token = 0;  // that it shows there
  bool qp = false;                             // a queue pair of RoCE, of which `peer` is the other end
  uint32_t qkey = 0;                           // of UD
  bool srq = false;                            // others use its JFR too
  bool broken = false;                         // a request failed: what is behind it is flushed
  bool suspends = false;                       // a request that fails suspends it
  bool comes_back = false;                     // from ERROR, when all was taken back
  uint64_t silent_since = UINT64_MAX;          // as those of a Jfr
  uint64_t dropped_before = 0;
  bool completes_early = false;                // requests complete as they finish
  bool rot = false;                            // its target keeps its order
  bool failed_one = false, suspended = false;  // ... one did; and the marker was polled
  uint32_t explained = 0;  // statuses that something which happened to the pair explains, for all its requests
  uint32_t depth = 0;
  uint8_t rnr_retry = 7;
  uint32_t posted = 0;
  uint32_t full_in_a_row = 0;  // attempts to post for which there was no room
  std::unique_ptr<Wqe[]> slots;
  std::unique_ptr<Wqe[]> source;  // null: the application writes `slots`
  uint32_t slot_count = 0;
  Bytes work;
  std::unique_ptr<QueueIndices> indices = std::make_unique<QueueIndices>();

  bool takes_requests() const { return state == State::kReady || state == State::kReset; }
  bool ud() const { return qp && mode == Mode::kUm; }
  uint32_t unfinished() const { return posted - indices->retired.load(); }

  // Writes an element; `head.slots` and the skip are filled in here. False: no room.
  bool push(Wqe head, const WqeExtra* extra, const std::vector<Sge>& sges, const std::byte* inline_data) {
    Wqe* ring = source ? source.get() : slots.get();
    bool is_inline = (head.flags & kWrInline) != 0;
    uint32_t n = wqe_slots(head.op, static_cast<uint32_t>(sges.size()), is_inline ? head.length : 0);
    uint32_t at = indices->produced.load() % slot_count;
    uint32_t tail = slot_count - at;
    uint32_t skip = n > tail ? tail : 0;
    if (unfinished() >= depth) return false;
    if (indices->produced.load() - indices->consumed.load() + skip + n > slot_count) return false;
    if (skip != 0) {
      ring[at] = Wqe{};
      ring[at].op = WrOp::kSkip;
      ring[at].slots = static_cast<uint8_t>(skip);
      at = 0;
    }
    for (uint32_t i = 0; i < n; ++i) ring[at + i] = Wqe{};
    Wqe& e = ring[at];
    e = head;
    e.slots = static_cast<uint8_t>(n);
    e.sge_count = static_cast<uint8_t>(sges.size());
    if (extra != nullptr) std::memcpy(static_cast<void*>(&e + 1), extra, sizeof *extra);
    for (uint32_t i = 0; i < sges.size(); ++i) const_cast<Sge&>(sge_of(e, i)) = sges[i];
    if (is_inline && head.length != 0) std::memcpy(const_cast<std::byte*>(inline_bytes(e)), inline_data, head.length);
    indices->produced.store(indices->produced.load() + skip + n, std::memory_order_release);
    ++posted;
    return true;
  }
};

// Who may receive a message: a jetty or a JFR.
struct Receiver {
  Queue* jetty = nullptr;
  Jfr* jfr = nullptr;  // of the jetty, or the JFR itself

  bool operator==(const Receiver&) const = default;
  uint32_t uid() const { return jetty != nullptr ? jetty->uid : jfr->uid; }
  uint32_t id() const { return jetty != nullptr ? jetty->id : jfr->id; }
  uint32_t node() const { return jfr->node; }
  // From this tick on messages to it are dropped.
  uint64_t silent_since() const {
    return jetty == nullptr ? jfr->silent_since : std::min(jetty->silent_since, jfr->silent_since);
  }
  ObjectKind kind() const { return jetty != nullptr ? ObjectKind::kJetty : ObjectKind::kJfr; }
};

}  // namespace ub::sim
