// SPDX-License-Identifier: Apache-2.0
// roce_app.h - an application with RoCE queue pairs on a Core, for fuzz_roce_session.cc. It keeps a list of what it has
// posted and holds the Core to it: each request completes once, in order, and after an error nothing succeeds; each
// receive completes once; a peer changes no byte outside what its rkeys name.
#pragma once

#include <bit>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "lib/base/assert.h"
#include "lib/transport/core_impl.h"
#include "lib/transport/roce/state.h"
#include "tests/unit/transport/test_host.h"

namespace ub::roce {

inline constexpr uint32_t kPeerLink = 1, kLoopLink = 2;
inline constexpr uint32_t kSecretBytes = 64;

/// Frames for the peer are dropped, those of the loop lie in `frames`. None for the peer may hold the secret.
class FuzzHost : public TestHost {
 public:
  void tx_commit(uint32_t link, std::byte* frame, size_t bytes) {
    TestHost::tx_commit(link, frame, bytes);
    if (link == kLoopLink) return;
    UB_ASSERT(memmem(frames.back().data(), bytes, secret, sizeof secret) == nullptr);
    frames.pop_back();
  }

  uint8_t secret[kSecretBytes] = {};
};

using FuzzCore = Core<FuzzHost>;

inline constexpr uint32_t kSlots = 16;  // of every ring but those of completions
inline constexpr uint32_t kDepth = 6;

/// The memory of an application: what peers may write, what they may read, and what is nobody's but its own, with
/// canaries between. Only ranges that may change are not compared.
class Memory {
 public:
  static constexpr uint32_t kOpen = 4096, kOpenBytes = 8192;                          // for peers, all access
  static constexpr uint32_t kReadOnly = kOpen + kOpenBytes + 4096, kReadable = 4096;  // for peers, to read
  static constexpr uint32_t kLocal = kReadOnly + kReadable + 4096;                    // what is sent
  static constexpr uint32_t kLanding = kLocal + 8192, kLandingBytes = 8192;           // receives and answers
  static constexpr uint32_t kBytes = kLanding + kLandingBytes + 4096;
  static constexpr uint64_t kRemote = 0x7'0000'0000;  // what peers call the first byte

  Memory() : bytes_(kBytes) {
    for (uint32_t i = 0; i < kBytes; ++i) bytes_[i] = static_cast<std::byte>(i * 7 + (i >> 8));
    before_ = bytes_;
  }
  std::byte* data() { return bytes_.data(); }
  uint64_t local_address() const { return reinterpret_cast<uintptr_t>(bytes_.data()); }
  void check(bool open_may_change) const {
    check_range(0, kOpen);
    if (!open_may_change) check_range(kOpen, kOpen + kOpenBytes);
    check_range(kOpen + kOpenBytes, kLanding);
    check_range(kLanding + kLandingBytes, kBytes);
  }
  void accept_changes() { before_ = bytes_; }

 private:
  void check_range(uint32_t from, uint32_t to) const {
    UB_ASSERT(std::memcmp(&bytes_[from], &before_[from], to - from) == 0);
  }
  std::vector<std::byte> bytes_, before_;
};

/// A receive queue. Its receives are numbered `number << 32`, and on.
struct Receives {
  uint32_t id = 0, number = 0;
  uint32_t posted_ever = 0;
  std::unique_ptr<Rqe[]> slots;
  std::unique_ptr<QueueIndices> indices;
  std::map<uint64_t, uint32_t> posted;  // user_ctx: length
};

/// A queue pair. Its requests are numbered `number << 32`, and on.
struct QueuePair {
  struct Posted {
    uint64_t user_ctx;
    bool signaled;
  };
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  QpType type = QpType::kRc;
  uint32_t qpn = 0, number = 0;
  uint32_t posted_ever = 0;
  bool failed = false;  // a request did; those behind it cannot succeed
  bool shares = false;  // its receive queue with others
  std::unique_ptr<Receives> own;
  std::unique_ptr<Wqe[]> slots;
  std::unique_ptr<std::byte, Free> work;
  std::unique_ptr<QueueIndices> indices;
  std::deque<Posted> posted;
};

class App {
 public:
  App(FuzzCore& core, Owner owner, uint32_t key, uint32_t cq_depth)
      : core_(core), owner_(owner), key_(key), completions_(new Cqe[cq_depth]()), cq_mask_(cq_depth - 1) {
    JfcConfig c;
    c.slots = completions_.get();
    c.slot_count = c.depth = cq_depth;
    c.indices = cq_.get();
    c.owner = owner;
    UB_ASSERT(core_.create_jfc(c, &jfc_) == Status::kOk);
    create_receives(shared_);
    open_segment();
    read_only_ = register_range(Memory::kReadOnly, Memory::kReadable, kAccessRead);
    local_ =
        register_range(Memory::kLocal, Memory::kLanding + Memory::kLandingBytes - Memory::kLocal, kAccessLocalOnly);
  }

  // ---- memory ------------------------------------------------------------------------------------------------------
  void open_segment() {
    memory.accept_changes();
    open_ = register_range(Memory::kOpen, Memory::kOpenBytes, kAccessRead | kAccessWrite | kAccessAtomic);
    is_open_ = true;
  }
  void close_segment(Instant now) {
    memory.check(is_open_);
    UB_ASSERT(core_.unregister_segment(now, open_.handle) == Status::kOk);
    memory.accept_changes();
    is_open_ = false;
  }
  bool is_open() const { return is_open_; }
  /// Of memory that peers may write, that they may read, and that is not for them.
  uint32_t rkey(uint32_t which) const {
    const RegisteredSegment* const ranges[] = {&open_, &read_only_, &local_};
    return make_rkey(ranges[which]->token_id, key_);
  }
  Sge open_sge(uint32_t at, uint32_t bytes) {
    return {memory.local_address() + Memory::kOpen + at, bytes, open_.handle};
  }
  Sge source(uint32_t at, uint32_t bytes) {
    return {memory.local_address() + Memory::kLocal + at, bytes, local_.handle};
  }
  Sge landing(uint32_t at, uint32_t bytes) {
    return {memory.local_address() + Memory::kLanding + at, bytes, local_.handle};
  }

  // ---- queues ------------------------------------------------------------------------------------------------------
  void create(QueuePair& q) {
    q.number = ++last_number_;
    q.failed = false;
    q.posted_ever = 0;
    if (!q.shares) {
      q.own = std::make_unique<Receives>();
      create_receives(*q.own);
    }
    q.slots.reset(new Wqe[kSlots]());
    q.indices = std::make_unique<QueueIndices>();
    const size_t bytes = Engine<FuzzHost>::work_bytes(kDepth);
    q.work.reset(static_cast<std::byte*>(std::aligned_alloc(64, bytes)));
    std::memset(q.work.get(), 0, bytes);
    QpConfig c;
    c.type = q.type;
    c.sq = {.slots = q.slots.get(),
            .slot_count = kSlots,
            .depth = kDepth,
            .indices = q.indices.get(),
            .work = q.work.get(),
            .jfc = jfc_};
    c.jfr = receives_of(q).id;
    c.srq = q.shares;
    c.owner = owner_;
    UB_ASSERT(core_.roce()->create_qp(c, &q.qpn) == Status::kOk);
  }
  void destroy(Instant now, QueuePair& q) {
    poll_all(now);
    UB_ASSERT(core_.roce()->destroy_qp(now, q.qpn) == Status::kOk);
    forget(q);
    q.slots.reset();
    q.indices.reset();
    q.work.reset();
    if (q.own) destroy_receives(now, *q.own);
    q.own.reset();
  }
  /// In RESET nothing of it is posted.
  void forget(QueuePair& q) {
    q.posted.clear();
    q.failed = false;
    if (q.own) q.own->posted.clear();
  }
  Receives& receives_of(QueuePair& q) { return q.shares ? shared_ : *q.own; }

  bool has_room(const QueuePair& q, uint32_t slots) const {
    const uint32_t at = q.indices->produced.load();
    const uint32_t skipped = at % kSlots + slots > kSlots ? kSlots - at % kSlots : 0;
    return q.posted_ever - q.indices->retired.load() < kDepth &&
           at + skipped + slots - q.indices->consumed.load() <= kSlots;
  }
  /// `e` is right but for `slots` and `user_ctx`.
  void post(Instant now, QueuePair& q, const Wqe& e, uint64_t compare) {
    const uint32_t slots = wqe_slots(e.op, e.sge_count, (e.flags & kWrInline) != 0 ? e.length : 0);
    if (!has_room(q, slots)) return;
    uint32_t at = q.indices->produced.load();
    if (at % kSlots + slots > kSlots) {
      Wqe& skip = q.slots[at % kSlots];
      skip = Wqe{};
      skip.op = WrOp::kSkip;
      skip.slots = static_cast<uint8_t>(kSlots - at % kSlots);
      at += skip.slots;
    }
    Wqe& w = q.slots[at % kSlots];
    w = e;
    w.slots = static_cast<uint8_t>(slots);
    w.user_ctx = uint64_t{q.number} << 32 | ++q.posted_ever;
    if (has_extra(e.op)) reinterpret_cast<WqeExtra*>(&w + 1)->compare = compare;
    q.posted.push_back({w.user_ctx, (w.flags & kWrSignaled) != 0});
    q.indices->produced.store(at + slots);
    core_.on_posted(now, q.qpn);
  }
  void post_receive(Receives& r, const Sge& sge) {
    const uint32_t at = r.indices->produced.load();
    if (at - r.indices->consumed.load() == kSlots) return;
    Rqe& e = r.slots[at % kSlots] = Rqe{};
    e.user_ctx = uint64_t{r.number} << 32 | ++r.posted_ever;
    e.length = sge.length;
    e.sge_count = e.slots = 1;
    e.sge[0] = sge;
    r.posted[e.user_ctx] = e.length;
    r.indices->produced.store(at + 1);
  }
  Receives& shared() { return shared_; }

  // ---- completions -------------------------------------------------------------------------------------------------
  /// At most so many; returns how many there were.
  uint32_t poll(Instant now, uint32_t most) {
    uint32_t n = 0;
    for (; n < most && polled_ != cq_->produced.load(); ++n, ++polled_) {
      const Cqe& cqe = completions_[polled_ & cq_mask_];
      if ((cqe.flags & kCqeReceive) != 0) {
        received(cqe);
      } else {
        completed(cqe);
      }
      cq_->consumed.store(polled_ + 1);
    }
    UB_ASSERT(cq_->produced.load() - polled_ <= cq_mask_ + 1);
    core_.on_completions_read(now, jfc_);
    return n;
  }
  /// Until nothing comes at this moment.
  void poll_all(Instant now) {
    while (poll(now, UINT32_MAX) != 0) {
    }
  }

  void destroy_rest(Instant now) {
    destroy_receives(now, shared_);
    UB_ASSERT(core_.destroy_jfc(jfc_) == Status::kOk);
    if (is_open_) close_segment(now);
    for (const RegisteredSegment* s : {&read_only_, &local_})
      UB_ASSERT(core_.unregister_segment(now, s->handle) == Status::kOk);
  }

  Memory memory;
  std::vector<QueuePair*> all;  // its queue pairs

 private:
  RegisteredSegment register_range(uint32_t at, uint32_t bytes, uint8_t access) {
    SegmentConfig c;
    c.memory = memory.data() + at;
    c.address = Memory::kRemote + at;
    c.local_address = memory.local_address() + at;
    c.length = bytes;
    c.token = {true, key_};
    c.access = access;
    c.owner = owner_;
    RegisteredSegment out;
    UB_ASSERT(core_.register_segment(c, &out) == Status::kOk);
    return out;
  }
  void create_receives(Receives& r) {
    r.number = ++last_number_;
    r.slots.reset(new Rqe[kSlots]());
    r.indices = std::make_unique<QueueIndices>();
    JfrConfig c;
    c.slots = r.slots.get();
    c.slot_count = kSlots;
    c.indices = r.indices.get();
    c.jfc = jfc_;
    c.owner = owner_;
    UB_ASSERT(core_.create_jfr(c, &r.id) == Status::kOk);
  }
  void destroy_receives(Instant now, Receives& r) {
    UB_ASSERT(core_.destroy_jfr(now, r.id) == Status::kOk);
    r.slots.reset();
    r.indices.reset();
    r.posted.clear();
  }

  void received(const Cqe& cqe) {
    const auto number = static_cast<uint32_t>(cqe.user_ctx >> 32);
    Receives* r = number == shared_.number ? &shared_ : nullptr;
    for (QueuePair* q : all)
      if (q->own && q->own->number == number) r = q->own.get();
    UB_ASSERT(r != nullptr);
    const auto it = r->posted.find(cqe.user_ctx);
    UB_ASSERT(it != r->posted.end());
    if (cqe.status == CrStatus::kSuccess && cqe.opcode != CrOpcode::kWriteImm) UB_ASSERT(cqe.length <= it->second);
    r->posted.erase(it);
  }
  void completed(const Cqe& cqe) {
    QueuePair* q = nullptr;
    for (QueuePair* candidate : all)
      if (candidate->number == cqe.user_ctx >> 32) q = candidate;
    UB_ASSERT(q != nullptr);
    for (; !q->posted.empty() && q->posted.front().user_ctx != cqe.user_ctx; q->posted.pop_front())
      UB_ASSERT(!q->posted.front().signaled && !q->failed);
    UB_ASSERT(!q->posted.empty());
    UB_ASSERT(cqe.status != CrStatus::kSuccess || !q->failed);
    q->failed |= cqe.status != CrStatus::kSuccess;
    q->posted.pop_front();
  }

  FuzzCore& core_;
  Owner owner_;
  uint32_t key_;
  std::unique_ptr<Cqe[]> completions_;
  std::unique_ptr<QueueIndices> cq_ = std::make_unique<QueueIndices>();
  uint32_t cq_mask_, jfc_ = 0, polled_ = 0, last_number_ = 0;
  Receives shared_;
  RegisteredSegment open_, read_only_, local_;
  bool is_open_ = false;
};

}  // namespace ub::roce
