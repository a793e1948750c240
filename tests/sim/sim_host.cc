// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/sim_host.h"

#include <algorithm>
#include <utility>

#include "lib/base/word_copy.h"
#include "tests/sim/apertures.h"
#include "tests/sim/mappings.h"
#include "tests/sim/node.h"
#include "tests/sim/world.h"

namespace ub::sim {

std::byte* UnrecordedSimHost::tx_begin(uint32_t link, size_t bytes) {
  world_.meddle(node_);
  if (SimLane* lane = lane_of(link)) return lane->tx_begin(bytes);
  if (link != node_.link())
    world_.model.fail("node %u: tx_begin on link %u, which it does not have", node_.index(), link);
  if (bytes > node_.config().max_frame_bytes) world_.model.fail("node %u: frame of %zu bytes", node_.index(), bytes);
  const bool shut = world_.apertures && world_.apertures->port_is_shut(node_);
  if (world_.host_rng.chance(world_.options.host.tx_refuse) || world_.network.full(node_.index()) || shut) {
    refused_ = true;
    return nullptr;
  }
  open_.push_back({next_frame_++, std::make_unique<std::byte[]>(bytes), bytes, false});
  return open_.back().memory.get();
}

SimLane* UnrecordedSimHost::lane_of(uint32_t link) const {
  return link != node_.link() && world_.apertures ? world_.apertures->lane_of(node_, link) : nullptr;
}

void UnrecordedSimHost::tx_commit(uint32_t link, std::byte* frame, size_t bytes) {
  if (SimLane* lane = lane_of(link)) return lane->tx_commit(bytes);
  auto it = std::find_if(open_.begin(), open_.end(), [&](const OpenFrame& f) { return f.memory.get() == frame; });
  if (it == open_.end()) return world_.model.fail("node %u: tx_commit of a frame that is not open", node_.index());
  if (bytes > it->bytes)
    world_.model.fail("node %u: frame of %zu bytes in room for %zu", node_.index(), bytes, it->bytes);
  it->bytes = bytes;
  it->committed = true;
  send_committed();
}

void UnrecordedSimHost::send_committed() {
  for (; !open_.empty() && open_.front().committed; open_.pop_front()) {
    OpenFrame& f = open_.front();
    world_.network.send(node_.index(), {std::move(f.memory), static_cast<uint32_t>(f.bytes)});
  }
}

void UnrecordedSimHost::tx_abort(uint32_t link, std::byte* frame) {
  (void)link;
  auto it = std::find_if(open_.begin(), open_.end(), [&](const OpenFrame& f) { return f.memory.get() == frame; });
  if (it == open_.end()) return world_.model.fail("node %u: tx_abort of a frame that is not open", node_.index());
  open_.erase(it);
  send_committed();
}

void UnrecordedSimHost::tx_hold(uint32_t link, std::byte* frame, std::byte* held) {
  const uint64_t number = frame_at(frame);
  for (const auto& [id, p] : pending_)
    if (p.held == held)
      world_.model.fail("node %u: bytes of a former frame are on their way to a place for another", node_.index());
  for (auto& [id, p] : pending_) {
    if (p.kind != Kind::kGather || p.frame != number) continue;
    p.dst = held + (p.dst - frame);
    p.frame = 0;
    p.held = held;
  }
  tx_abort(link, frame);
}

void UnrecordedSimHost::tx_drop(std::byte* held) {
  if (world_.reached) world_.reached->reach(ReachedState::kFrameGivenUp);
  for (auto& [id, p] : pending_) {
    if (p.held == held) p.dst = p.held = nullptr;
  }
}

uint64_t UnrecordedSimHost::frame_at(const std::byte* p) const {
  for (const OpenFrame& f : open_)
    if (p >= f.memory.get() && p <= f.memory.get() + f.bytes) return f.number;
  return 0;
}

UnrecordedSimHost::Access UnrecordedSimHost::access(const std::byte* p, size_t bytes, bool read_only) const {
  if (const Region* r = node_.find_region(p)) {
    if (!r->holds(p, bytes) || r->state == Region::State::kGone) return Access::kBad;
    return r->state == Region::State::kDying ? Access::kDying : Access::kGood;
  }
  return read_only && node_.in_send_ring(p, bytes) ? Access::kGood : Access::kBad;
}

bool UnrecordedSimHost::admit(const char* what, const std::byte* p, size_t bytes, bool read_only, CopyResult* result) {
  world_.meddle(node_);
  *result = CopyResult::kFailed;
  switch (access(p, bytes, read_only)) {
    case Access::kGood:
      return true;
    case Access::kDying:
      return false;
    case Access::kBad:
      break;
  }
  const Region* r = node_.find_region(p);
  world_.model.fail("node %u: %s of %zu bytes touches memory that is not registered (region %d offset %lld)",
                    node_.index(), what, bytes, r == nullptr ? -1 : static_cast<int>(r->uid),
                    r == nullptr ? -1 : static_cast<long long>(p - r->memory()));
  return false;
}

bool UnrecordedSimHost::defer(const std::byte* memory) const {
  const Region* r = node_.find_region(memory);
  return (r != nullptr && (r->mute || world_.now() < r->starved_until)) ||
         world_.host_rng.chance(world_.options.host.pending);
}

CopyResult UnrecordedSimHost::enqueue(Pending p, const std::byte* memory) {
  constexpr uint64_t kPatience = 250'000'000;  // ns; of a daemon with an application that does not answer
  note({Stage::kCopyAsked, static_cast<uint32_t>(p.tag >> 32), static_cast<uint32_t>(p.tag),
        static_cast<uint32_t>(p.bytes)});
  uint64_t id = next_copy_++;
  const Region* r = node_.find_region(memory);
  const bool mute = r != nullptr && r->mute;
  const uint64_t exact = p.kind == Kind::kGather ? world_.options.host.gather_ns : 0;
  pending_.emplace(id, std::move(p));
  if (exact != 0) {
    world_.plan_copy(node_, id, exact);
    return CopyResult::kPending;
  }
  uint64_t delay = mute ? kPatience : 1 + world_.host_rng.below(world_.options.host.pending_ns);
  if (r != nullptr && world_.now() < r->starved_until)
    delay += static_cast<uint64_t>((r->starved_until - world_.now()).ns);
  world_.plan_copy(node_, id, delay);
  return CopyResult::kPending;
}

void UnrecordedSimHost::do_place(std::byte* dst, const std::byte* src, size_t bytes) {
  put(node_.find_region(dst), dst, src, bytes);
}

void UnrecordedSimHost::put(const Region* r, std::byte* dst, const std::byte* src, size_t bytes) {
  std::memcpy(dst, src, bytes);
  if (r == nullptr || bytes == 0) return;
  if (r->hostile && holds_pattern(src, bytes))
    world_.model.fail("node %u: the hostile application got bytes that are not its own: %s", node_.index(),
                      world_.model.whose(src, src + bytes).c_str());
  world_.model.touched(r, r->offset_of(dst), src, bytes);
  world_.model.placed(r, r->offset_of(dst), bytes);
}

void UnrecordedSimHost::do_gather(std::byte* dst, const std::byte* src, size_t bytes) {
  std::memcpy(dst, src, bytes);
  const Region* r = node_.find_region(src);
  if (r != nullptr && !r->local) world_.model.touched(r, r->offset_of(src), nullptr, bytes);
}

uint128 UnrecordedSimHost::do_atomic(const AtomicRequest& request) {
  const Region* r = node_.find_region(request.address);
  if (r != nullptr) world_.model.touched(r, r->offset_of(request.address), request.address, request.bytes);
  return run_atomic(request);
}

// Local memory is read for a request that it belongs to.
void UnrecordedSimHost::check_used(const std::byte* src, size_t bytes) {
  const Region* r = node_.find_region(src);
  if (r != nullptr && r->local && r->free.overlaps(r->offset_of(src), bytes))
    world_.model.fail("node %u: gather of %zu bytes reads offset %llu of region %u, which no request uses",
                      node_.index(), bytes, static_cast<unsigned long long>(r->offset_of(src)), r->uid);
}

CopyResult UnrecordedSimHost::gather(std::byte* dst, const std::byte* src, size_t bytes, CopyTag tag) {
  CopyResult result;
  if (bytes == 0) return CopyResult::kDone;
  if (!admit("gather", src, bytes, true, &result)) return result;
  check_used(src, bytes);
  if (defer(src) || world_.options.host.gather_ns != 0)
    return enqueue({.kind = Kind::kGather,
                    .tag = tag,
                    .dst = dst,
                    .src = src,
                    .bytes = bytes,
                    .final = false,
                    .data = {},
                    .request = {},
                    .old = nullptr,
                    .frame = frame_at(dst),
                    .held = nullptr},
                   src);
  do_gather(dst, src, bytes);
  return CopyResult::kDone;
}

CopyResult UnrecordedSimHost::place(std::byte* dst, const std::byte* src, size_t bytes, bool final, CopyTag tag) {
  CopyResult result;
  if (bytes == 0) return CopyResult::kDone;
  if (!admit("place", dst, bytes, false, &result)) return result;
  if (const Region* r = node_.find_region(dst)) world_.model.arrived(r, r->offset_of(dst));
  if (defer(dst))
    return enqueue({.kind = Kind::kPlace,
                    .tag = tag,
                    .dst = dst,
                    .src = nullptr,
                    .bytes = bytes,
                    .final = final,
                    .data = {src, src + bytes},
                    .request = {},
                    .old = nullptr,
                    .frame = 0,
                    .held = nullptr},
                   dst);
  do_place(dst, src, bytes);
  return CopyResult::kDone;
}

CopyResult UnrecordedSimHost::atomic(const AtomicRequest& request, uint128* old, CopyTag tag) {
  CopyResult result;
  if (!admit("atomic", request.address, request.bytes, false, &result)) return result;
  if (reinterpret_cast<uintptr_t>(request.address) % request.bytes != 0)
    world_.model.fail("node %u: atomic on an address that is not aligned", node_.index());
  if (defer(request.address))
    return enqueue({.kind = Kind::kAtomic,
                    .tag = tag,
                    .dst = request.address,
                    .src = nullptr,
                    .bytes = request.bytes,
                    .final = false,
                    .data = {},
                    .request = request,
                    .old = old,
                    .frame = 0,
                    .held = nullptr},
                   request.address);
  *old = do_atomic(request);
  return CopyResult::kDone;
}

Region* UnrecordedSimHost::pass(void* gate, const char* what, const std::byte* remote, size_t bytes) {
  world_.meddle(node_);
  const Gate& g = *static_cast<const Gate*>(gate);
  if (world_.reached) world_.reached->reach(g.is_open() ? ReachedState::kMapped : ReachedState::kMappedShut);
  if (!g.is_open()) return nullptr;
  if (!g.region->holds(remote, bytes))
    world_.model.fail("node %u: %s of %zu bytes beyond region %u, which is mapped", node_.index(), what, bytes,
                      g.region->uid);
  return g.region;
}

bool UnrecordedSimHost::write_mapped(void* gate, std::byte* remote, const std::byte* local, size_t bytes) {
  CopyResult result;
  const Region* r = pass(gate, "WRITE", remote, bytes);
  if (r == nullptr || !admit("mapped WRITE", local, bytes, true, &result)) return false;
  check_used(local, bytes);
  world_.model.arrived(r, r->offset_of(remote));
  put(r, remote, local, bytes);
  return true;
}

bool UnrecordedSimHost::read_mapped(void* gate, std::byte* local, const std::byte* remote, size_t bytes) {
  CopyResult result;
  const Region* r = pass(gate, "READ", remote, bytes);
  if (r == nullptr || !admit("mapped READ", local, bytes, false, &result)) return false;
  world_.model.touched(r, r->offset_of(remote), nullptr, bytes);
  do_place(local, remote, bytes);
  return true;
}

bool UnrecordedSimHost::atomic_mapped(void* gate, const AtomicRequest& request, uint128* old) {
  const Region* r = pass(gate, "atomic", request.address, request.bytes);
  if (r == nullptr) return false;
  if (reinterpret_cast<uintptr_t>(request.address) % request.bytes != 0)
    world_.model.fail("node %u: atomic on an address that is not aligned", node_.index());
  world_.model.touched(r, r->offset_of(request.address), request.address, request.bytes);
  *old = run_atomic(request);
  return true;
}

void UnrecordedSimHost::load(std::byte* block, const std::byte* memory, size_t bytes) {
  CopyResult result;
  if (!admit("load", memory, bytes, true, &result)) return;
  const Region* r = node_.find_region(memory);
  if (world_.apertures && r != nullptr) world_.apertures->model.loaded(r, r->offset_of(memory), bytes);
  load_words(block, memory, bytes);
}

void UnrecordedSimHost::store(std::byte* memory, const std::byte* block, size_t bytes) {
  CopyResult result;
  if (!admit("store", memory, bytes, false, &result)) return;
  const Region* r = node_.find_region(memory);
  if (world_.apertures && r != nullptr) world_.apertures->model.stored(r, r->offset_of(memory), {block, bytes});
  store_words(memory, block, bytes);
}

// Is there still somebody whose frame is held there? Or was it given up, and the Core will say so before it uses the
// place again?
bool UnrecordedSimHost::is_held(const std::byte* held) const {
  const HeldFrames& frames = node_.core().state().held;
  const uint32_t number = frames.number_at(held);
  return frames.is_orphan(number) || frames.in_use(number);
}

void UnrecordedSimHost::note(const Note& note) { world_.last_events.add(world_.now(), node_.index(), note); }

bool UnrecordedSimHost::finish(uint64_t copy, CopyTag* tag) {
  auto node = pending_.extract(copy);
  UB_ASSERT(!node.empty());
  Pending& p = node.mapped();
  *tag = p.tag;
  switch (p.kind) {
    case Kind::kGather:
      if (p.held != nullptr && !is_held(p.held))
        world_.model.fail("node %u: bytes arrive in a held frame that nobody waits for", node_.index());
      if (access(p.src, p.bytes, true) != Access::kGood) return false;
      // The Core may have given the frame up meanwhile.
      if (p.held != nullptr || (p.frame != 0 && frame_at(p.dst) == p.frame)) do_gather(p.dst, p.src, p.bytes);
      return true;
    case Kind::kPlace:
      if (access(p.dst, p.bytes, false) != Access::kGood) return false;
      do_place(p.dst, p.data.data(), p.bytes);
      return true;
    case Kind::kAtomic:
      if (access(p.dst, p.bytes, false) != Access::kGood) return false;
      *p.old = do_atomic(p.request);
      return true;
  }
  return false;
}

}  // namespace ub::sim
