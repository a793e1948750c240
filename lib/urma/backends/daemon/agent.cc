// SPDX-License-Identifier: Apache-2.0
#include "lib/urma/backends/daemon/agent.h"

#include <cstring>

#include "lib/base/application_memory.h"
#include "lib/base/atomic_operation.h"
#include "lib/transport/host.h"

namespace ub::urma {
namespace {

constexpr uint32_t kBatch = 16;  // operations under one lock: 128 KiB at most, so remove() waits for microseconds

std::byte* pointer(uint64_t address) { return reinterpret_cast<std::byte*>(address); }

bool run_atomic_op(const ipc::AgentOp& op, uint128* old) {
  const auto kind = static_cast<AtomicOp>(op.atomic_op);
  if (!is_atomic_width(op.bytes) || op.address % op.bytes != 0 || !is_atomic_op(kind)) return false;
  *old = run_atomic({pointer(op.address), kind, op.bytes, op.operand, op.compare});
  return true;
}

}  // namespace

// ---- the line --------------------------------------------------------------------------------------------------

// The boundary at that address, made if there is none; it then covers what the one before it does.
std::map<uint64_t, Agent::Boundary>::iterator Agent::boundary(uint64_t address) {
  auto it = line_.lower_bound(address);
  if (it != line_.end() && it->first == address) return it;
  const uint32_t covers = it == line_.begin() ? 0 : std::prev(it)->second.covers;
  return line_.emplace_hint(it, address, Boundary{covers, 0});
}

void Agent::drop(std::map<uint64_t, Boundary>::iterator boundary) {
  if (--boundary->second.ends == 0) line_.erase(boundary);
}

void Agent::add(uint64_t address, uint64_t bytes) {
  std::lock_guard guard(mutex_);
  auto first = boundary(address);
  ++first->second.ends;
  try {
    ++boundary(address + bytes)->second.ends;
  } catch (...) {
    drop(first);
    throw;
  }
  for (auto it = first; it->first != address + bytes; ++it) ++it->second.covers;
}

void Agent::remove(uint64_t address, uint64_t bytes) {
  std::lock_guard guard(mutex_);
  auto first = line_.find(address), last = line_.find(address + bytes);
  for (auto it = first; it != last; ++it) --it->second.covers;
  drop(first);
  drop(last);
}

bool Agent::is_registered(uint64_t address, uint64_t bytes) const {
  const uint64_t end = address + bytes;
  if (end < address) return false;
  auto it = line_.upper_bound(address);
  if (it == line_.begin()) return false;
  for (--it; it->second.covers != 0; ++it) {
    // What covers something has an end, so there is a next one.
    if (end <= std::next(it)->first) return true;
  }
  return false;
}

// ---- operations ------------------------------------------------------------------------------------------------

bool Agent::run(const ipc::AgentOp& op, std::byte* data, uint128* old) const {
  if (op.bytes > ipc::kAgentBytes || !is_registered(op.address, op.bytes)) return false;
  const ApplicationMemory memory;
  switch (op.kind) {
    case ipc::AgentOpKind::kGather:
      std::memcpy(data, pointer(op.address), op.bytes);
      return true;
    case ipc::AgentOpKind::kPlace:
      if (op.final) {
        copy_final_word_last(pointer(op.address), data, op.bytes);
      } else {
        std::memcpy(pointer(op.address), data, op.bytes);
      }
      return true;
    case ipc::AgentOpKind::kAtomic:
      return run_atomic_op(op, old);
  }
  return false;
}

bool Agent::serve(ipc::AppPage& page) {
  std::lock_guard guard(mutex_);
  uint32_t done = done_.load(std::memory_order_relaxed);
  const uint32_t produced = page.ops_produced.load(std::memory_order_acquire);
  const uint32_t waiting = produced - done;
  if (waiting > ipc::kAgentOps) done_.store(produced, std::memory_order_relaxed);  // cannot be: nobody is answered
  if (waiting == 0 || waiting > ipc::kAgentOps) return false;
  for (uint32_t n = 0; n < waiting && n < kBatch; ++n) {
    ipc::AgentOp& op = page.ops[done % ipc::kAgentOps];
    std::byte* data = page.agent_data + size_t{done % ipc::kAgentOps} * ipc::kAgentBytes;
    uint128 old = 0;
    const bool ok = run(op, data, &old);
    op.old = old;
    op.done_ok = ok;
    page.ops_consumed.store(++done, std::memory_order_release);
  }
  done_.store(done, std::memory_order_relaxed);
  return true;
}

}  // namespace ub::urma
