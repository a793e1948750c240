// SPDX-License-Identifier: Apache-2.0
#include "lib/record/shadows.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace ub::record {

namespace {

constexpr size_t kAlign = 64;

size_t rounded(size_t bytes) { return std::bit_ceil(std::max(bytes, kAlign)); }

uint32_t load(const std::atomic<uint32_t>& index) { return index.load(std::memory_order_relaxed); }

}  // namespace

// ---- memory ----------------------------------------------------------------------------------------------------

std::byte* Shadows::allocate(size_t bytes) {
  if (bytes == 0) return nullptr;
  const size_t size = rounded(bytes);
  std::vector<std::byte*>& free = free_[size];
  if (!free.empty()) {
    std::byte* at = free.back();
    free.pop_back();
    std::memset(at, 0, bytes);
    return at;
  }
  if (size > memory_.bytes() - used_) return nullptr;
  std::byte* at = memory_.data() + used_;
  used_ += size;
  return at;
}

uint32_t Shadows::lend(const Ring& real) {
  Ring ring = real;
  const size_t slots = size_t{real.slot_count} * kSlotBytes;
  ring.slots = allocate(slots);
  ring.source = real.real_source == nullptr ? nullptr : allocate(slots);
  ring.indices = reinterpret_cast<QueueIndices*>(allocate(sizeof(QueueIndices)));
  ring.work = allocate(real.work_bytes);
  if (real.real_limits != nullptr) {
    auto& [ours, users] = limits_[real.real_limits];
    if (users++ == 0) {
      ours = reinterpret_cast<OwnerLimits*>(allocate(sizeof(OwnerLimits)));
      if (ours != nullptr) *ours = *real.real_limits;
    }
    ring.limits = ours;
    ring.rate = real.real_limits->pacer.bytes_per_second;
  }
  const bool all = ring.slots != nullptr && ring.indices != nullptr &&
                   (real.real_source == nullptr) == (ring.source == nullptr) &&
                   (real.work_bytes == 0) == (ring.work == nullptr) &&
                   (real.real_limits == nullptr) == (ring.limits == nullptr);
  uint32_t number = size();
  if (!free_rings_.empty()) {
    number = free_rings_.back();
    free_rings_.pop_back();
  }
  set(number, ring);
  if (all) return number;
  give_back(number);
  return 0;
}

void Shadows::give_back(uint32_t number) {
  Ring& ring = rings_[number];
  const auto free = [this](void* at, size_t bytes) {
    if (at != nullptr) free_[rounded(bytes)].push_back(static_cast<std::byte*>(at));
  };
  const size_t slots = size_t{ring.slot_count} * kSlotBytes;
  free(ring.slots, slots);
  free(ring.source, slots);
  free(ring.indices, sizeof(QueueIndices));
  free(ring.work, ring.work_bytes);
  if (ring.real_limits != nullptr && --limits_[ring.real_limits].second == 0) {
    *ring.real_limits = *limits_[ring.real_limits].first;
    free(limits_[ring.real_limits].first, sizeof(OwnerLimits));
    limits_.erase(ring.real_limits);
  }
  put(number, {});
  free_rings_.push_back(number);
}

void Shadows::return_contents(const Ring& ring) {
  if (ring.kind != RingKind::kSend) return;
  if (ring.work != nullptr) std::memcpy(ring.real_work, ring.work, ring.work_bytes);
  if (ring.source != nullptr) {
    std::memcpy(ring.real_slots, ring.slots, size_t{ring.slot_count} * kSlotBytes);
    return;
  }
  for (uint32_t left = ring.slots_in_use(); left != 0; --left) {
    const size_t at = size_t{(ring.produced - left) & (ring.slot_count - 1)} * kSlotBytes + offsetof(Wqe, flags);
    ring.real_slots[at] |= ring.slots[at] & static_cast<std::byte>(kWrDead);
  }
}

void Shadows::forget_retired() {
  constexpr size_t kPage = 4096;  // or a part of one
  std::vector<bool> touched(used_ / kPage + 1);  // others are zero, and are to stay without memory
  ipc::each_touched_run(
      used(),
      [](void* to, size_t offset, size_t bytes) {
        auto& pages = *static_cast<std::vector<bool>*>(to);
        std::fill_n(pages.begin() + static_cast<ptrdiff_t>(offset / kPage), (bytes + kPage - 1) / kPage, true);
      },
      &touched);
  const auto forget = [&](std::byte* slot) {
    if (touched[static_cast<size_t>(slot - memory_.data()) / kPage]) std::memset(slot, 0, kSlotBytes);
  };
  for (const uint32_t number : of(RingKind::kSend)) {
    const Ring& ring = rings_[number];
    const uint32_t consumed = load(ring.indices->consumed);
    if (ring.produced - consumed > ring.slot_count) continue;  // an index that cannot be
    for (uint32_t slot = ring.produced; slot != consumed + ring.slot_count; ++slot) {
      const size_t at = size_t{slot & (ring.slot_count - 1)} * kSlotBytes;
      forget(ring.slots + at);
      if (ring.source != nullptr) forget(ring.source + at);
    }
  }
}

void Shadows::set(uint32_t number, const Ring& ring) {
  if (number >= rings_.size()) rings_.resize(number + 1);
  if (const RingKind former = rings_[number].kind; former != ring.kind) {
    const auto list = [this](RingKind kind) -> std::vector<uint32_t>& { return by_kind_[static_cast<size_t>(kind)]; };
    if (former != RingKind::kNone) std::erase(list(former), number);
    if (ring.kind != RingKind::kNone)
      list(ring.kind).insert(std::upper_bound(list(ring.kind).begin(), list(ring.kind).end(), number), number);
  }
  rings_[number] = ring;
}

void Shadows::put(uint32_t number, const Ring& ring) {
  const Ring former = number < rings_.size() ? rings_[number] : Ring{};
  set(number, ring);
  if (former.id != 0 && find(former.kind, former.id) == number) numbers_of(former.kind)[former.id] = 0;
  if (ring.id != 0) name(number, ring.id);
}

void Shadows::name(uint32_t number, uint32_t id) {
  std::vector<uint32_t>& numbers = numbers_of(rings_[number].kind);
  if (id >= numbers.size()) numbers.resize(std::bit_ceil(id + 1));
  numbers[id] = number;
  rings_[number].id = id;
}

bool Shadows::put_zeroed(uint32_t number, const Ring& ring) {
  constexpr uint32_t kMostRings = 1 << 20, kMostSlots = 1 << 22;
  const size_t slots = size_t{ring.slot_count} * kSlotBytes;
  const auto is_ours = [this](const void* at, size_t bytes) {
    const auto from = static_cast<const std::byte*>(at);
    return at == nullptr || (from >= memory_.data() && bytes <= memory_.bytes() &&
                             static_cast<size_t>(from - memory_.data()) <= memory_.bytes() - bytes);
  };
  if (number == 0 || number > kMostRings || !std::has_single_bit(ring.slot_count) || ring.slot_count > kMostSlots ||
      ring.slots == nullptr || ring.indices == nullptr)
    return false;
  const std::pair<void*, size_t> parts[] = {{ring.slots, slots}, {ring.source, slots},
                                            {ring.indices, sizeof(QueueIndices)}, {ring.work, ring.work_bytes},
                                            {ring.limits, sizeof(OwnerLimits)}};
  for (const auto& [at, bytes] : parts)
    if (!is_ours(at, bytes)) return false;
  for (const auto& [at, bytes] : parts)
    if (at != nullptr && at != ring.limits) std::memset(at, 0, bytes);
  put(number, ring);
  return true;
}

uint32_t Shadows::find(RingKind kind, uint32_t id) const {
  const std::vector<uint32_t>& numbers = kind == RingKind::kCompletion ? by_jfc_ : by_queue_;
  return id < numbers.size() ? numbers[id] : 0;
}

const std::byte* Shadows::real_of(const std::byte* p, size_t bytes) const {
  if (p < memory_.data() || p >= memory_.data() + used_) return p;
  for (const Ring& ring : rings_) {
    const size_t slots = size_t{ring.slot_count} * kSlotBytes;
    if (ring.slots == nullptr || p < ring.slots || p >= ring.slots + slots) continue;
    std::byte* real = ring.real_slots + (p - ring.slots);
    if (ring.source != nullptr) std::memcpy(real, p, bytes);
    return real;
  }
  return p;
}

// ---- telling applications --------------------------------------------------------------------------------------

Digest Shadows::tell() {
  Digest digest;
  for (const uint32_t number : of(RingKind::kReceive)) tell_received(rings_[number], digest);
  for (const uint32_t number : of(RingKind::kSend)) {
    Ring& ring = rings_[number];
    if (ring.completes_early && ring.real_indices != nullptr)
      ring.real_indices->retiring.store(load(ring.indices->retiring), std::memory_order_relaxed);
  }
  for (const uint32_t number : of(RingKind::kCompletion)) tell_completions(rings_[number], digest);
  for (const uint32_t number : of(RingKind::kSend)) tell_sent(rings_[number], digest);
  return digest;
}

namespace {

// The slot behind so many requests from `slot` on.
uint32_t behind(const Ring& ring, uint32_t slot, uint32_t requests) {
  const uint32_t mask = ring.slot_count - 1;
  for (uint32_t left = std::min(requests, ring.slot_count); left != 0; --left) {
    const auto element = [&] { return reinterpret_cast<const Wqe*>(ring.slots + size_t{slot & mask} * kSlotBytes); };
    if (element()->op == WrOp::kSkip) slot += ring.slot_count - (slot & mask);
    slot += element()->slots;
  }
  return slot;
}

}  // namespace

// An application that finds the completion of a request knows by `retiring` that the request will retire. Then it does,
// with all before it.
void Shadows::tell_completion(Ring& jfc, std::span<const std::byte> completion) {
  Cqe cqe;
  std::memcpy(&cqe, completion.data(), sizeof cqe);
  const bool of_request = (cqe.flags & kCqeReceive) == 0 && cqe.stamp != 0;
  const uint32_t number = of_request ? find(RingKind::kSend, cqe.local_id) : 0;
  Ring* queue = number != 0 && !rings_[number].completes_early ? &rings_[number] : nullptr;
  const uint32_t retires = queue == nullptr ? 0 : cqe.stamp - queue->told_retired;
  if (retires == 0 || retires > queue->slot_count) queue = nullptr;
  if (queue != nullptr) queue->real_indices->retiring.store(cqe.stamp, std::memory_order_relaxed);
  std::memcpy(jfc.real_slots + size_t{jfc.told_produced & (jfc.slot_count - 1)} * kSlotBytes, completion.data(),
              kSlotBytes);
  jfc.real_indices->produced.store(jfc.told_produced + 1, std::memory_order_release);
  if (queue == nullptr) return;
  queue->told_consumed = behind(*queue, queue->told_consumed, retires);
  queue->told_retired = cqe.stamp;
  queue->real_indices->consumed.store(queue->told_consumed, std::memory_order_release);
  queue->real_indices->retired.store(queue->told_retired, std::memory_order_release);
}

void Shadows::tell_completions(Ring& ring, Digest& digest) {
  const uint32_t produced = load(ring.indices->produced);
  if (produced != ring.told_produced) {
    if (produced - ring.told_produced > ring.slot_count) ring.told_produced = produced - ring.slot_count;
    digest.add(ring.id);
    for (; ring.told_produced != produced; ++ring.told_produced) {
      const size_t at = size_t{ring.told_produced & (ring.slot_count - 1)} * kSlotBytes;
      digest.add({ring.slots + at, kSlotBytes});
      if (ring.real_indices != nullptr) tell_completion(ring, {ring.slots + at, kSlotBytes});
    }
  }
  if (const uint32_t armed = load(ring.indices->armed); armed != ring.armed) {  // the Core has told of completions
    digest.add(armed);
    uint32_t former = ring.armed;
    if (ring.real_indices != nullptr) ring.real_indices->armed.compare_exchange_strong(former, armed);
    ring.armed = armed;
  }
}

void Shadows::tell_sent(Ring& ring, Digest& digest) {
  const uint32_t consumed = load(ring.indices->consumed), retired = load(ring.indices->retired);
  if (ring.real_source != nullptr && ring.completes_early) tell_reported(ring);
  if (consumed == ring.digested_consumed && retired == ring.digested_retired) return;
  digest.add(uint64_t{consumed} << 32 | retired);
  ring.digested_consumed = consumed;
  ring.digested_retired = retired;
  if (ring.real_indices != nullptr) {
    ring.real_indices->retiring.store(load(ring.indices->retiring), std::memory_order_relaxed);
    ring.real_indices->consumed.store(consumed, std::memory_order_release);
    ring.real_indices->retired.store(retired, std::memory_order_release);
  }
  ring.told_consumed = consumed;
  ring.told_retired = retired;
}

// The Core marks elements in `source` that completed before older ones.
void Shadows::tell_reported(const Ring& ring) {
  for (uint32_t left = ring.slots_in_use(); left != 0; --left) {
    const size_t at = size_t{(ring.produced - left) & (ring.slot_count - 1)} * kSlotBytes + offsetof(Wqe, flags);
    const auto flags = static_cast<uint8_t>(ring.source[at]);
    if ((flags & kWrReported) != 0) ring.real_source[at] |= static_cast<std::byte>(kWrReported);
  }
}

void Shadows::tell_received(Ring& ring, Digest& digest) {
  const uint32_t consumed = load(ring.indices->consumed), retired = load(ring.indices->retired);
  const uint32_t armed = load(ring.indices->armed);
  if (consumed == ring.told_consumed && retired == ring.told_retired && armed == ring.armed) return;
  digest.add(uint64_t{consumed} << 32 | retired);
  digest.add(armed);
  if (ring.real_indices != nullptr) {
    ring.real_indices->consumed.store(consumed, std::memory_order_release);
    ring.real_indices->retired.store(retired, std::memory_order_release);
    if (armed != ring.armed) {
      ring.real_indices->armed.store(armed, std::memory_order_relaxed);
      std::atomic_thread_fence(std::memory_order_seq_cst);  // a post reads `armed` after it has published its element
      look_again_ |= load(ring.real_indices->produced) != ring.produced;
    }
  }
  ring.told_consumed = consumed;
  ring.told_retired = retired;
  ring.armed = armed;
}

}  // namespace ub::record
