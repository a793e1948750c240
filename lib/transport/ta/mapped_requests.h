// SPDX-License-Identifier: Apache-2.0
//
// Requests to memory that this host has mapped (resource/mapped_memory.h) are carried out at once, without packets
// (docs/same-host-design.md). They come after all earlier requests of their queue, because there are none that are
// unfinished, and before all later ones. Whatever is unusual about a request or its queue is left to packets.
#pragma once

#include <concepts>

#include "lib/base/flatten.h"
#include "lib/transport/core_state.h"
#include "lib/transport/host.h"
#include "lib/transport/resource/mapped_memory.h"
#include "lib/transport/resource/segments.h"
#include "lib/transport/ta/completion.h"
#include "lib/transport/ta/queue_front.h"
#include "lib/transport/ta/segmentation.h"
#include "lib/transport/ta/send_completion.h"
#include "lib/transport/ta/send_ring.h"
#include "lib/transport/ta/waiting_requests.h"

namespace ub::ta {

// More bytes at once would keep everybody else from the Core for too long: packets carry them.
constexpr uint32_t kMostMapped = 4 * 1024 * 1024;

template <class Host>
concept MapsMemory = requires(Host& host, void* gate, std::byte* memory, uint128* old, const AtomicRequest& request) {
  { host.write_mapped(gate, memory, memory, size_t{1}) } -> std::same_as<bool>;
  { host.read_mapped(gate, memory, memory, size_t{1}) } -> std::same_as<bool>;
  { host.atomic_mapped(gate, request, old) } -> std::same_as<bool>;
};

template <class Host>
class MappedRequests {
 public:
  MappedRequests(CoreState& s, Host& host) : s_(s), host_(host) {}

  // A doorbell of the queue has rung: carries out what was posted, as far as it may. True: nothing is left.
  [[gnu::noinline, gnu::hot]] UB_FLATTEN bool run(uint32_t queue) {
    SendQueue& q = s_.queues[queue];
    if (!is_usual(q)) return false;
    if (q.next_slot == q.posted && see_posted(q)) fetch(q);
    for (uint64_t bytes = 0; q.next_slot != q.produced;) {
      const Wqe& wqe = q.slots[q.next_slot & q.slot_mask];
      if (!fits_ring(q, q.next_slot, wqe)) return false;
      if (wqe.op == WrOp::kSkip) {
        pass_filler(q, wqe);
        continue;
      }
      if (!is_plain(wqe) || (bytes += wqe.length) > kMostMapped) return false;
      if (!carry_out(q, wqe)) return false;
      complete(q, queue, wqe);
    }
    return q.produced == q.posted;
  }

 private:
  // Is no request of the queue under way, and does nothing but its target say where they go, and when?
  static bool is_usual(const SendQueue& q) {
    return q.started_head == q.started_tail && q.state == QueueState::kReady && !has_admitted(q) && q.waits_for == 0 &&
           !keeps_order(q) && !q.unreliable && q.limits == nullptr && !q.marker_pending && !q.waiter;
  }

  // May the element be one? With nothing before it under way, it may ask for any order.
  static bool is_plain(const Wqe& wqe) {
    constexpr uint8_t kKnown = kWrSignaled | kWrFence | kWrCompOrder | kWrToken;
    const bool is_inline = wqe.op == WrOp::kWrite && wqe.flags == ((wqe.flags & kKnown) | kWrInline);
    const bool one_range = wqe.sge_count == 1 && (wqe.flags & ~kKnown) == 0 && wqe.sge.length >= wqe.length;
    const bool is_usual_form = wqe.exclusive == 0 && wqe.place_order <= 2 && wqe.length != 0;
    return (is_inline || one_range) && is_usual_form && valid_element(wqe);
  }

  // Remote memory of the element; nullptr: packets have to ask its owner.
  std::byte* remote_range(const SendQueue& q, const Wqe& wqe, uint8_t access, void** gate) {
    if (!names_target(s_, q, wqe) || s_.targets[wqe.target].mode != Mode::kRm) [[unlikely]]
      return nullptr;
    return mapped_memory(s_, q.owner, s_.targets[wqe.target].instance, wqe, access, gate);
  }

  // False: it is not for us, and nothing has happened.
  bool carry_out(SendQueue& q, const Wqe& wqe) {
    if ((wqe.flags & kWrSignaled) != 0 && !jfc_has_room(s_, q.jfc)) [[unlikely]]
      return false;
    switch (wqe.op) {
      case WrOp::kWrite:
        return write(q, wqe);
      case WrOp::kRead:
        return read(q, wqe);
      default:
        return is_atomic(wqe.op) && run_atomic(q, wqe);
    }
  }

  bool write(SendQueue& q, const Wqe& wqe) {
    void* gate;
    std::byte* const remote = remote_range(q, wqe, kAccessWrite, &gate);
    if (remote == nullptr) return false;
    const std::byte* const local = (wqe.flags & kWrInline) != 0 ? inline_bytes(wqe) : local_range(q, wqe);
    if (local == nullptr || !host_.write_mapped(gate, remote, local, wqe.length)) return false;
    s_.count(Counter::kMappedWrites);
    return true;
  }
  bool read(SendQueue& q, const Wqe& wqe) {
    void* gate;
    const std::byte* const remote = remote_range(q, wqe, kAccessRead, &gate);
    if (remote == nullptr) return false;
    std::byte* const local = local_range(q, wqe);
    if (local == nullptr || !host_.read_mapped(gate, local, remote, wqe.length)) return false;
    s_.count(Counter::kMappedReads);
    return true;
  }
  bool run_atomic(SendQueue& q, const Wqe& wqe) {
    void* gate;
    std::byte* const remote = remote_range(q, wqe, kAccessAtomic, &gate);
    if (remote == nullptr || reinterpret_cast<uintptr_t>(remote) % wqe.length != 0) return false;
    std::byte* const local = local_range(q, wqe);
    if (local == nullptr) return false;
    const AtomicRequest request{remote, atomic_of(wqe.op), wqe.length, operand_of(wqe), compare_of(wqe)};
    uint128 old;
    if (!host_.atomic_mapped(gate, request, &old)) return false;
    std::memcpy(local, &old, wqe.length);
    s_.count(Counter::kMappedAtomics);
    return true;
  }

  static AtomicOp atomic_of(WrOp op) {
    constexpr int kFirst = static_cast<int>(AtomicOp::kCompareSwap) - static_cast<int>(WrOp::kCompareSwap);
    static_assert(static_cast<int>(WrOp::kFetchXor) + kFirst == static_cast<int>(AtomicOp::kFetchXor));
    return static_cast<AtomicOp>(static_cast<int>(op) + kFirst);
  }

  std::byte* local_range(const SendQueue& q, const Wqe& wqe) {
    return local_memory(s_, q.owner, wqe.sge.segment, wqe.sge.address, wqe.length);
  }

  // The request at the front has ended well. There is room for its completion.
  void complete(SendQueue& q, uint32_t queue, const Wqe& wqe) {
    s_.note(Stage::kRequestEnded, queue, q.started_head, static_cast<uint32_t>(CrStatus::kSuccess));
    ++q.started_head;
    ++q.started_tail;
    q.next_slot += wqe.slots;
    const auto describe = [&] { return send_completion(s_, q, WrState{}); };
    const auto& waiters = s_.queue_waiters;
    [[maybe_unused]] const bool told =
        complete_send(s_, q, q.jfc, waiters, queue, wqe, q.next_slot, CrStatus::kSuccess, describe);
    UB_DCHECK(told);
  }

  CoreState& s_;
  Host& host_;
};

}  // namespace ub::ta
