// SPDX-License-Identifier: Apache-2.0
// objects.h - what stands behind the public handles. The public struct comes first, then, on one cache line,
// the magic and all that post or poll touch; what control calls need follows.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "lib/base/work_queue.h"
#include "lib/urma/backends/backend.h"
#include "lib/urma/data/ring.h"
#include "lib/urma/events/async_queue.h"
#include "lib/urma/include/ub/umdk/urma/urma_types.h"
#include "lib/urma/objects/live.h"
#include "lib/urma/objects/tp.h"
#include "lib/urma/spinlock.h"

namespace ub::urma {

struct Device {
  using Public = urma_device_t;
  static constexpr uint64_t kMagic = magic_of("udevice ");
  Public pub{};
  Magic magic;
};

struct Context {
  using Public = urma_context_t;
  static constexpr uint64_t kMagic = magic_of("ucontext");
  Public pub{};
  Magic magic;
  AsyncQueue async;
  AsyncSource async_source;                // events of the device, which are about no object
  AsyncSource port_sources[MAX_PORT_CNT];  // element: the port's number, not a pointer
  TpTable tps;
};

struct Jfc;
class MappedSegment;

struct Jfce {
  using Public = urma_jfce_t;
  static constexpr uint64_t kMagic = magic_of("ujfce   ");
  Public pub{};
  Magic magic;
  std::mutex mutex;     // guards the chain, and that fd is readable exactly while it is not empty
  Jfc* head = nullptr;  // JFCs with an event that nobody collected
  Jfc* tail = nullptr;
  std::atomic<uint32_t> waiters{0};  // threads in urma_wait_jfc
};

struct Jfc {
  using Public = urma_jfc_t;
  static constexpr uint64_t kMagic = magic_of("ujfc    ");
  Public pub{};

  alignas(kSlotBytes) Magic magic;
  Cqe* slots = nullptr;
  QueueIndices* indices = nullptr;
  uint32_t mask = 0;
  uint32_t depth = 0;
  uint32_t handle = 0;
  std::atomic<uint32_t> polls{0};          // that found something
  std::atomic<uint32_t> told_consumed{0};  // consumer index when the back end was last told of reading
  bool lock_free = false;
  SpinLock lock;

  alignas(kSlotBytes) RingMemory ring;
  Jfce* jfce = nullptr;
  Jfc* next_event = nullptr;  // this and the next two: under Jfce::mutex
  bool event_queued = false;
  bool closed = false;  // being deleted: takes no more events
  std::atomic<uint32_t> events_handed_out{0};
  std::atomic<uint32_t> users{0};  // queues that complete into it
  AsyncSource async;
};

// Access data of a segment in the form that posting needs.
struct Segment {
  using Public = urma_target_seg_t;
  static constexpr uint64_t kMagic = magic_of("usegment");
  alignas(kSlotBytes) Public pub{};
  Magic magic;          // 88 bytes in: on the second line, with the rest of the hot members
  uint32_t handle = 0;  // of the Core; imported: 0
  uint32_t token_id = 0;
  uint32_t token_value = 0;
  uint32_t uasid = 0;
  bool imported = false;
  bool token_required = false;
  std::atomic<bool> exclusive = false;  // imported: requests to it are marked as exclusive
  std::atomic<bool> published = false;  // of ours: it has a name
  std::shared_ptr<MappedSegment> mapped;  // imported: its memory, if this process has that; null: packets
};

struct TokenId {
  using Public = urma_token_id_t;
  static constexpr uint64_t kMagic = magic_of("utokenid");
  Public pub{};
  Magic magic;
  bool internal = false;  // allocated by register_seg, goes with the segment
};

struct JettyGroup {
  using Public = urma_jetty_grp_t;
  static constexpr uint64_t kMagic = magic_of("ugroup  ");
  Public pub{};
  Magic magic;
  urma_jetty_t* members[URMA_MAX_JETTY_IN_JETTY_GRP] = {};
};

struct Jetty;
struct Connect;

struct Target {
  using Public = urma_target_jetty_t;
  static constexpr uint64_t kMagic = magic_of("utarget ");
  alignas(kSlotBytes) Public pub{};
  alignas(kSlotBytes) Magic magic;
  uint32_t handle = 0;
  uint32_t uasid = 0;  // of the instance that was found, whatever the program named
  Mode mode = Mode::kRm;
  bool is_jfr = false;
  Jetty* bound_by = nullptr;   // RC
  Connect* connect = nullptr;  // its asynchronous import, until the result was collected
};

// The magic of a target whose asynchronous import has not succeeded: all that it is good for is unimporting.
inline uint64_t incomplete_magic() { return live_magic<Target>() ^ 1; }

// Send side of a JFS or jetty: the producer of its ring and the limits of a request.
struct SendQueue {
  RingProducer<Wqe> ring;
  uint32_t posted = 0;        // requests ever posted
  uint32_t retired_seen = 0;  // of them finished, as last read
  uint32_t depth = 0;
  uint32_t id = 0;
  uint32_t max_length = 0;              // of a message
  std::atomic<Target*> bound{nullptr};  // RC
  uint16_t max_inline = 0;
  uint8_t max_sge = 1;
  Mode mode = Mode::kRm;
  bool ordered = true;  // the order flags of requests apply
  bool lock_free = false;
  SpinLock lock;

  // cold
  RingMemory memory;
  std::atomic<bool> marker_polled{false};  // URMA_CR_WR_FLUSH_ERR_DONE or URMA_CR_WR_SUSPEND_DONE was polled
};

struct Jfs {
  using Public = urma_jfs_t;
  static constexpr uint64_t kMagic = magic_of("ujfs    ");
  Public pub{};
  alignas(kSlotBytes) Magic magic;
  SendQueue sq;
  AsyncSource async;
};

struct Jfr {
  using Public = urma_jfr_t;
  static constexpr uint64_t kMagic = magic_of("ujfr    ");
  Public pub{};

  alignas(kSlotBytes) Magic magic;
  RingProducer<Rqe> ring;
  uint32_t stride = 1;  // slots of every element, a power of two: nothing wraps
  uint32_t limit = 0;   // depth in slots
  uint8_t max_sge = 1;
  bool lock_free = false;
  std::atomic<bool> in_error{false};
  SpinLock lock;

  RingMemory memory;
  uint32_t rx_threshold = 0;
  std::atomic<uint32_t> users{0};  // jettys that share it
  AsyncSource async;
};

struct Jetty {
  using Public = urma_jetty_t;
  static constexpr uint64_t kMagic = magic_of("ujetty  ");
  Public pub{};
  alignas(kSlotBytes) Magic magic;
  SendQueue sq;
  Jfr* jfr = nullptr;
  bool recv_jfc_is_jfrs = false;  // the program named none
  AsyncSource async;
};

inline Context& context_of(const urma_context_t* ctx) {
  return *reinterpret_cast<Context*>(const_cast<urma_context_t*>(ctx));
}

}  // namespace ub::urma
