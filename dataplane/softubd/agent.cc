// SPDX-License-Identifier: Apache-2.0
#include "dataplane/softubd/agent.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace ub {

namespace {

std::byte* data_of(ipc::AppPage& page, uint32_t number) {
  return page.agent_data + size_t{number % ipc::kAgentOps} * ipc::kAgentBytes;
}

}  // namespace

CopyResult Agent::gather(const std::byte* frame, std::byte* dst, uint64_t address, size_t bytes, CopyTag tag) {
  ipc::AgentOp op{};
  op.kind = ipc::AgentOpKind::kGather;
  op.address = address;
  op.bytes = static_cast<uint32_t>(bytes);
  return submit(op, {tag, frame, dst, nullptr, op.bytes, true}, nullptr);
}

CopyResult Agent::place(uint64_t address, const std::byte* src, size_t bytes, bool final, CopyTag tag) {
  ipc::AgentOp op{};
  op.kind = ipc::AgentOpKind::kPlace;
  op.address = address;
  op.bytes = static_cast<uint32_t>(bytes);
  op.final = final;
  return submit(op, {tag, nullptr, nullptr, nullptr, op.bytes, true}, src);
}

CopyResult Agent::atomic(uint64_t address, const AtomicRequest& request, uint128* old, CopyTag tag) {
  ipc::AgentOp op{};
  op.kind = ipc::AgentOpKind::kAtomic;
  op.address = address;
  op.bytes = request.bytes;
  op.atomic_op = static_cast<uint8_t>(request.op);
  op.operand = request.operand;
  op.compare = request.compare;
  return submit(op, {tag, nullptr, nullptr, old, op.bytes, true}, nullptr);
}

CopyResult Agent::submit(const ipc::AgentOp& op, const Pending& pending, const std::byte* payload) try {
  if (stalled_ || gone_ || op.bytes > ipc::kAgentBytes) return CopyResult::kFailed;
  if (waiting_.empty() && produced_ - consumed_ < ipc::kAgentOps) {
    publish(op, pending, payload);
    return CopyResult::kPending;
  }
  if (waiting_.size() == kMostWaiting) return CopyResult::kFailed;
  waiting_.push_back({op, pending, {}});
  if (payload != nullptr) waiting_.back().payload.assign(payload, payload + op.bytes);
  return CopyResult::kPending;
} catch (const std::bad_alloc&) {
  return CopyResult::kFailed;
}

void Agent::publish(const ipc::AgentOp& op, const Pending& pending, const std::byte* payload) {
  if (payload != nullptr) std::memcpy(data_of(page_, produced_), payload, op.bytes);
  page_.ops[produced_ % ipc::kAgentOps] = op;
  pending_[produced_ % ipc::kAgentOps] = pending;
  ++produced_;
  page_.ops_produced.store(produced_, std::memory_order_release);
  published_ = true;
}

void Agent::publish_waiting() {
  while (!waiting_.empty() && produced_ - consumed_ < ipc::kAgentOps) {
    const Waiting& w = waiting_.front();
    publish(w.op, w.pending, w.payload.empty() ? nullptr : w.payload.data());
    waiting_.pop_front();
  }
}

template <class Fn>
void Agent::each_for(const std::byte* frame, Fn fn) {
  for (uint32_t n = consumed_; n != produced_; ++n) {
    if (Pending& p = pending_[n % ipc::kAgentOps]; p.frame == frame) fn(p);
  }
  for (Waiting& w : waiting_) {
    if (w.pending.frame == frame) fn(w.pending);
  }
}

void Agent::frame_aborted(const std::byte* frame) {
  each_for(frame, [](Pending& p) { p.frame = p.dst = nullptr; });
}

void Agent::frame_held(const std::byte* frame, std::byte* held) {
  each_for(frame, [held](Pending& p) {
    if (p.dst != nullptr) p.dst = held + (p.dst - p.frame);
    p.frame = held;
  });
}

Agent::Verdict Agent::poll(Core<PortSet>& core, Instant now, Duration patience) {
  const uint32_t consumed = page_.ops_consumed.load(std::memory_order_acquire);
  clock_ += std::min(now - looked_at_, patience / kLooks);
  looked_at_ = now;
  if (gone_) return Verdict::kNothing;
  if (consumed - consumed_ > produced_ - consumed_) return Verdict::kLied;
  const Verdict verdict = consumed == consumed_ ? Verdict::kNothing : Verdict::kWorked;
  if (consumed_ != consumed) moved_at_ = clock_;
  while (consumed_ != consumed) finish(core, now, consumed_++);
  if (stalled_) {
    stalled_ = consumed_ != produced_ || now < rests_until_;
    return verdict;
  }
  publish_waiting();
  if (!has_work()) return verdict;
  const bool due_done = due_ == consumed_ || due_ - consumed_ > produced_ - consumed_;
  if (due_done) {
    due_ = produced_;
    due_since_ = moved_at_ = clock_;
  } else if (clock_ - moved_at_ >= patience || clock_ - due_since_ >= patience * kMoving) {
    stall(core, now);
    return Verdict::kStalled;
  }
  return verdict;
}

// Who is slow again and again rests, so that others on the same channels lose little.
void Agent::stall(Core<PortSet>& core, Instant now) {
  const bool again = times_stalled_ != 0 && now - stalled_at_ < kForgotten;
  rests_until_ = again ? now + (clock_ - due_since_) * kRest : now;
  stalled_at_ = now;
  stalled_ = true;
  ++times_stalled_;
  fail_all(core, now);
}

void Agent::finish(Core<PortSet>& core, Instant now, uint32_t number) {
  const Pending p = pending_[number % ipc::kAgentOps];
  if (!p.wanted) return;  // failed before
  ++copies_;
  const ipc::AgentOp& op = page_.ops[number % ipc::kAgentOps];
  const bool ok = op.done_ok != 0;
  if (ok && p.dst != nullptr) std::memcpy(p.dst, data_of(page_, number), p.bytes);
  if (ok && p.old != nullptr) *p.old = op.old;
  core.on_copy_done(now, p.tag, ok);
}

// What is in the ring stays there until the application consumes it; nobody waits for it any more.
void Agent::fail_all(Core<PortSet>& core, Instant now) {
  for (uint32_t n = consumed_, end = produced_; n != end; ++n) {
    Pending& p = pending_[n % ipc::kAgentOps];
    if (std::exchange(p.wanted, false)) core.on_copy_done(now, p.tag, false);
  }
  std::deque<Waiting> failed = std::exchange(waiting_, {});
  for (const Waiting& w : failed) core.on_copy_done(now, w.pending.tag, false);
}

void Agent::fail_for_ever(Core<PortSet>& core, Instant now) {
  gone_ = true;
  fail_all(core, now);
  consumed_ = produced_;
}

}  // namespace ub
