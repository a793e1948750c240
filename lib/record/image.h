// SPDX-License-Identifier: Apache-2.0
//
// A Core as it is, in a recording: its rings, which are put in shadows before, then the parts of its state, then the
// pages of shadows and arena that somebody has written to.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "lib/ipc/placed_memory.h"
#include "lib/record/recorder.h"
#include "lib/record/varint.h"
#include "lib/transport/core.h"

namespace ub::record {

// A run of touched bytes: an offset, a length, and the bytes. One without length is the last.
struct RunHeader {
  uint64_t offset, bytes;
};

inline void put_touched(Recorder& recorder, std::span<const std::byte> memory) {
  struct Context {
    Recorder& recorder;
    std::span<const std::byte> memory;
  } context{recorder, memory};
  ipc::each_touched_run(
      memory,
      [](void* p, size_t offset, size_t bytes) {
        const auto& [to, all] = *static_cast<Context*>(p);
        const RunHeader header{offset, bytes};
        to.put_image(std::as_bytes(std::span(&header, 1)));
        to.put_image(all.subspan(offset, bytes));
      },
      &context);
  const RunHeader last{};
  recorder.put_image(std::as_bytes(std::span(&last, 1)));
}

// What is read is checked against the room there is. False: the file is cut off.
inline bool take_touched(Input& in, std::span<std::byte> memory) {
  for (;;) {
    const auto run = in.value<RunHeader>();
    if (!in.good() || run.bytes == 0) return in.good();
    if (run.offset > memory.size() || run.bytes > memory.size() - run.offset) return false;
    const std::byte* from = in.take(run.bytes);
    if (from == nullptr) return false;
    std::memcpy(memory.data() + run.offset, from, run.bytes);
  }
}

template <class CoreType>
void put_image(Recorder& recorder, CoreType& core, std::span<std::byte> arena) {
  core.each_part([&](std::span<std::byte> part) { recorder.put_image(part); });
  put_touched(recorder, recorder.shadows().used());
  put_touched(recorder, arena);
  recorder.end_image();
}

template <class CoreType>
bool take_image(Input& in, CoreType& core, std::span<std::byte> shadows, std::span<std::byte> arena) {
  core.replace_state([&](std::span<std::byte> part) {
    if (const std::byte* from = in.take(part.size())) std::memcpy(part.data(), from, part.size());
  });
  return in.good() && take_touched(in, shadows) && take_touched(in, arena);
}

// ---- the rings of a Core that is there already -----------------------------------------------------------------

// Calls fn(ring, slots, source, indices, work) for the rings of all objects: `ring` has what the Core uses now, and the
// rest are references to the Core's pointers.
template <class CoreType, class Fn>
void each_ring(CoreType& core, Fn fn) {
  CoreState& s = core.state_to_record();
  std::byte* none = nullptr;
  OwnerLimits* no_limits = nullptr;
  const auto call = [&](Ring ring, auto*& slots, auto*& source, QueueIndices*& indices, auto*& work,
                        OwnerLimits*& limits) {
    ring.real_slots = reinterpret_cast<std::byte*>(slots);
    ring.real_source = reinterpret_cast<std::byte*>(source);
    ring.real_indices = indices;
    ring.real_work = reinterpret_cast<std::byte*>(work);
    ring.real_limits = limits;
    const auto as_bytes = [](auto*& p) -> std::byte*& { return reinterpret_cast<std::byte*&>(p); };
    fn(ring, as_bytes(slots), as_bytes(source), indices, as_bytes(work), limits);
  };
  for (uint32_t i = 1; i <= s.jfcs.high_water(); ++i) {
    Jfc& jfc = s.jfcs[i];
    if (!jfc.in_use) continue;
    call({.kind = RingKind::kCompletion, .id = i, .slot_count = jfc.mask + 1}, jfc.slots, none, jfc.indices, none,
         no_limits);
  }
  for (uint32_t id = 0; id < kIdSpace; ++id) {
    const IdSlot& slot = s.ids[id];
    if (slot.kind == ObjectKind::kJfr) {
      Jfr& jfr = s.jfrs[slot.record];
      call({.kind = RingKind::kReceive, .id = id, .slot_count = jfr.mask + 1}, jfr.slots, none, jfr.indices, none,
           no_limits);
    } else if (slot.kind == ObjectKind::kJetty || slot.kind == ObjectKind::kJfs) {
      SendQueue& q = s.queues[s.jettys[slot.record].queue];
      call({.kind = RingKind::kSend,
            .completes_early = q.completes_early,
            .id = id,
            .slot_count = q.slot_mask + 1,
            .work_bytes = (size_t{q.work_mask} + 1) * sizeof(WrState)},
           q.slots, q.source, q.indices, q.work, q.limits);
    } else if (slot.kind == ObjectKind::kQp) {
      roce::Qp& qp = core.roce()->state().qps[slot.record];
      const size_t depth = size_t{qp.work_mask} + 1;
      call({.kind = RingKind::kSend,
            .id = id,
            .slot_count = qp.ring.slot_mask + 1,
            .work_bytes = depth * roce::kWorkBytes},
           qp.ring.slots, qp.ring.source, qp.ring.indices, qp.requests, qp.limits);
      qp.started = reinterpret_cast<roce::StartedRequest*>(qp.requests + depth);
    }
  }
}

// Calls fn(id) for each send queue and queue pair.
template <class CoreType, class Fn>
void each_queue(CoreType& core, Fn fn) {
  for (uint32_t id = 0; id < kIdSpace; ++id) {
    const ObjectKind kind = core.state().ids[id].kind;
    if (kind == ObjectKind::kJetty || kind == ObjectKind::kJfs || kind == ObjectKind::kQp) fn(id);
  }
}

// Calls fn(id) for each JFR in ERROR, whose receives are flushed when that is set again.
template <class CoreType, class Fn>
void each_failed_jfr(CoreType& core, Fn fn) {
  for (uint32_t id = 0; id < kIdSpace; ++id)
    if (core.state().ids[id].kind == ObjectKind::kJfr && core.state(id) == QueueState::kError) fn(id);
}

// Gives the Core rings of its own. False: there is no memory; then it has those of applications again.
template <class CoreType>
bool lend_rings(Recorder& recorder, CoreType& core);
// Gives it back those of applications, with what the Core has done in its own.
template <class CoreType>
void return_rings(Recorder& recorder, CoreType& core);

template <class CoreType>
bool lend_rings(Recorder& recorder, CoreType& core) {
  bool all = true;
  each_ring(core, [&](const Ring& real, std::byte*& slots, std::byte*& source, QueueIndices*& indices,
                      std::byte*& work, OwnerLimits*& limits) {
    const uint32_t number = all ? recorder.adopt(real) : 0;
    all &= number != 0;
    if (!all) return;
    const Ring& ring = recorder.shadows()[number];
    slots = ring.slots;
    source = ring.source;
    indices = ring.indices;
    work = ring.work;
    limits = ring.limits;
  });
  if (!all) return_rings(recorder, core);
  return all;
}

template <class CoreType>
void return_rings(Recorder& recorder, CoreType& core) {
  each_ring(core, [&](const Ring& now, std::byte*& slots, std::byte*& source, QueueIndices*& indices, std::byte*& work,
                      OwnerLimits*& limits) {
    const uint32_t number = recorder.shadows().find(now.kind, now.id);
    if (number == 0) return;
    const Ring ring = recorder.shadows()[number];
    recorder.shadows().return_contents(ring);
    slots = ring.real_slots;
    source = ring.real_source;
    indices = ring.real_indices;
    work = ring.real_work;
    limits = ring.real_limits;
    recorder.shadows().give_back(number);
  });
}

}  // namespace ub::record
