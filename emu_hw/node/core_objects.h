// SPDX-License-Identifier: Apache-2.0
//
// What an application owns around a Core that it drives itself: memory, and objects with their rings. For emulations
// and benchmarks; applications have the library.
//
//   Region, CompletionQueue, ReceiveQueue: made on a node, which has a member `core` and must outlive them
//   SendRing: the ring of a jetty, a JFS or a queue pair, whose creation takes config()
//
// Thread: that of the Core.
#pragma once

#include <sys/mman.h>

#include <cstdint>
#include <new>
#include <vector>

#include "lib/base/assert.h"
#include "lib/base/work_queue.h"
#include "lib/transport/core_types.h"
#include "lib/transport/wire/network_header.h"

namespace ub::emu {

// Instance `number` (from 1): 10.x.y.z, uasid = number.
inline wire::Endpoint endpoint_of(uint32_t number) {
  return {wire::IpAddress::from_v4(0x0a000000 + number), wire::kUbUdpPort};
}
inline InstanceId instance_of(uint32_t number) {
  InstanceId id;
  id.eid.bytes = endpoint_of(number).ip.bytes;
  id.uasid = number;
  return id;
}

// Zeroed memory that costs what is touched of it.
class Pages {
 public:
  explicit Pages(size_t bytes) : bytes_((bytes + kPage - 1) / kPage * kPage) {
    void* p = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) throw std::bad_alloc();
    data_ = static_cast<std::byte*>(p);
  }
  ~Pages() { munmap(data_, bytes_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }

  // In whole pages; only exact where transparent huge pages are off for it, see never_huge().
  size_t touched_bytes() const {
    std::vector<unsigned char> map(bytes_ / kPage);
    if (mincore(data_, bytes_, map.data()) != 0) return 0;
    size_t pages = 0;
    for (unsigned char c : map) pages += c & 1;
    return pages * kPage;
  }
  void never_huge() { madvise(data_, bytes_, MADV_NOHUGEPAGE); }

 private:
  static constexpr size_t kPage = 4096;
  std::byte* data_;
  size_t bytes_;
};

// Ring memory; `count` is a power of two.
template <class T>
class Ring {
 public:
  explicit Ring(size_t count) : pages_(count * sizeof(T)), count_(count) {}
  T& operator[](size_t i) { return data()[i]; }
  T* data() { return reinterpret_cast<T*>(pages_.data()); }
  size_t count() const { return count_; }

 private:
  Pages pages_;
  size_t count_;
};

struct Region {
  template <class Node>
  Region(Node& node, size_t bytes, uint8_t access = kAccessRead | kAccessWrite | kAccessAtomic, Token token = {})
      : pages(bytes) {
    SegmentConfig s;
    s.token = token;
    s.memory = pages.data();
    s.address = s.local_address = address();
    s.length = bytes;
    s.access = access;
    s.direct = true;
    UB_ASSERT(node.core.register_segment(s, &registered) == Status::kOk);
  }
  std::byte* data() const { return pages.data(); }
  uint64_t address() const { return reinterpret_cast<uintptr_t>(pages.data()); }
  Sge sge(size_t offset, uint32_t bytes) const { return {address() + offset, bytes, registered.handle}; }

  Pages pages;
  RegisteredSegment registered;
};

struct CompletionQueue {
  template <class Node>
  CompletionQueue(Node& node, uint32_t depth) : slots(depth) {
    JfcConfig c;
    c.slots = slots.data();
    c.slot_count = c.depth = depth;
    c.indices = indices.data();
    UB_ASSERT(node.core.create_jfc(c, &id) == Status::kOk);
  }
  // The oldest completion, or nullptr; pop() when it was read.
  const Cqe* front() {
    if (consumed == indices[0].produced.load(std::memory_order_acquire)) return nullptr;
    return &slots[consumed & (slots.count() - 1)];
  }
  void pop() { indices[0].consumed.store(++consumed, std::memory_order_release); }

  Ring<Cqe> slots;
  Ring<QueueIndices> indices{1};
  uint32_t id = 0;
  uint32_t consumed = 0;
};

struct ReceiveQueue {
  template <class Node>
  ReceiveQueue(Node& node, CompletionQueue& jfc, uint32_t depth) : slots(depth) {
    JfrConfig c;
    c.slots = slots.data();
    c.slot_count = depth;
    c.indices = indices.data();
    c.jfc = jfc.id;
    UB_ASSERT(node.core.create_jfr(c, &id) == Status::kOk);
  }
  void post(uint64_t user_ctx, const Sge& sge) {
    Rqe& e = slots[produced & (slots.count() - 1)];
    e.user_ctx = user_ctx;
    e.length = sge.length;
    e.sge_count = e.slots = 1;
    e.skip = 0;
    e.sge[0] = sge;
    indices[0].produced.store(++produced, std::memory_order_release);
  }

  Ring<Rqe> slots;
  Ring<QueueIndices> indices{1};
  uint32_t id = 0;
  uint32_t produced = 0;
};

// Where work is posted, and what the Core needs for it.
struct SendRing {
  SendRing(uint32_t ring_depth, size_t work_bytes) : depth(ring_depth), slots(2 * ring_depth), work(work_bytes) {}

  SendQueueConfig config(const CompletionQueue& jfc) {
    SendQueueConfig c;
    c.slots = slots.data();
    c.slot_count = static_cast<uint32_t>(slots.count());
    c.depth = depth;
    c.indices = indices.data();
    c.work = work.data();
    c.jfc = jfc.id;
    return c;
  }
  // Ring, work and indices.
  static size_t memory_bytes(uint32_t depth, size_t work_bytes) {
    return 2 * depth * sizeof(Wqe) + work_bytes + sizeof(QueueIndices);
  }

  // Writes an element with one local range; the caller keeps to the depth.
  void post(const Wqe& element, uint64_t compare = 0) {
    uint32_t n = wqe_slots(element.op, 1, 0);
    uint32_t mask = static_cast<uint32_t>(slots.count()) - 1;
    if ((produced & mask) + n > mask + 1) {
      Wqe& skip = slots[produced & mask];
      skip.op = WrOp::kSkip;
      skip.slots = static_cast<uint8_t>(mask + 1 - (produced & mask));
      produced += skip.slots;
    }
    Wqe& e = slots[produced & mask];
    e = element;
    e.slots = static_cast<uint8_t>(n);
    e.sge_count = 1;
    if (has_extra(e.op)) reinterpret_cast<WqeExtra*>(&e + 1)->compare = compare;
    produced += n;
    indices[0].produced.store(produced, std::memory_order_release);
  }

  uint32_t depth;
  Ring<Wqe> slots;
  Pages work;
  Ring<QueueIndices> indices{1};
  uint32_t id = 0;  // of the object whose ring this is
  uint32_t produced = 0;
};

}  // namespace ub::emu
