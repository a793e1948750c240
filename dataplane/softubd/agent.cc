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

Agent::Verdict Agent::poll(Core<PortSet>& core, Instant now, const Patience& patience) {
  const uint32_t consumed = page_.ops_consumed.load(std::memory_order_acquire);
  clock_ += std::min(now - looked_at_, patience.usual / kLooks);
  looked_at_ = now;
  patience_ = patience;
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
  const bool due_done = due_ == consumed_ || due_ - consumed_ > produced_ - consumed_;
  if (due_done) end_wait(now);
  if (!has_work()) return verdict;
  if (due_done) {
    begin_wait(now);
  } else if (is_overdue()) {
    const Verdict asked = ask(core, now);
    if (asked != Verdict::kNothing) return asked;
  }
  return verdict;
}

// ---- an application that leaves copies undone ------------------------------------------------------------------

void Agent::begin_wait(Instant now) {
  due_ = produced_;
  due_since_ = moved_at_ = clock_;
  due_at_ = now;
  ++wait_;
}

void Agent::end_wait(Instant now) {
  asked_ = false;
  if (std::exchange(starved_, false)) longest_starved_ = std::max(longest_starved_, now - due_at_);
}

bool Agent::is_overdue() const {
  return clock_ - moved_at_ >= patience_.usual || clock_ - due_since_ >= patience_.usual * kMoving;
}

Agent::Verdict Agent::ask(Core<PortSet>& core, Instant now) {
  const bool too_long = clock_ - due_since_ >= patience_.starved;
  const bool unanswered = asked_ && clock_ - asked_at_ >= patience_.usual * kUnanswered;
  if (too_long || unanswered) {
    give_up(core, now, starved_ && too_long ? Condition::kStarved : Condition::kUnclear);
    return Verdict::kStalled;
  }
  if (asked_ || clock_ < ask_from_) return Verdict::kNothing;
  asked_ = true;
  asked_at_ = clock_;
  return Verdict::kOverdue;
}

bool Agent::answer(Core<PortSet>& core, Instant now, uint32_t wait, Condition condition) {
  if (!asked_ || wait != wait_ || stalled_ || gone_) return false;
  asked_ = false;
  ask_from_ = clock_ + kAskPause;
  if (condition == Condition::kStarved && !std::exchange(starved_, true)) ++times_starved_;
  if (condition == Condition::kStarved || condition == Condition::kUnclear || !is_overdue()) return false;
  give_up(core, now, condition);
  return true;
}

// Who is slow again and again rests, so that others on the same channels lose little. What it was waited for because
// it was starved does not count.
void Agent::give_up(Core<PortSet>& core, Instant now, Condition why) {
  const bool again = times_stalled_ != 0 && now - stalled_at_ < kForgotten;
  const Duration waited = std::min(clock_ - due_since_, patience_.usual * kMoving);
  rests_until_ = again ? now + waited * kRest : now;
  stalled_at_ = now;
  stalled_ = true;
  ++times_stalled_;
  last_stall_ = {why, now - due_at_};
  end_wait(now);
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
