// SPDX-License-Identifier: Apache-2.0
// orphans.h - what is left when the daemon is gone: queues with requests that nobody serves.
//
// While the daemon lives, this only remembers the rings of each object. Then it takes the Core's place as their
// consumer and completer: every request and receive, posted before or after, completes with WR_FLUSH_ERR, each send
// queue gets its WR_FLUSH_ERR_DONE, and whoever waits for an event gets one. What finds its JFC full goes on when
// there is room.
//
// No request completes twice: the Core stamps a completion before it gives the element back, so that the one request
// which the daemon may have left between the two is known. A receive that a message had begun to fill when the daemon
// died is lost with the message: the Core takes it out of the ring at the message's first packet.
//
// Thread: any. `report` is called under a lock and must not call back.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>

#include "lib/urma/backends/backend.h"

namespace ub::urma {

class Orphans {
 public:
  explicit Orphans(NicEventSink report) : report_(std::move(report)) {}

  // ---- while the daemon lives, and after ----
  // May throw std::bad_alloc, and has remembered nothing then.
  void add_jfc(uint32_t jfc, const JfcConfig&);
  void add_jfr(uint32_t id, const JfrConfig&);
  void add_queue(uint32_t id, const JettyConfig&);
  void remove_jfc(uint32_t jfc);
  void remove_jfr(uint32_t id);
  void remove_queue(uint32_t id);
  // The queue left ERROR: a WR_FLUSH_ERR_DONE that it got earlier does not count any more.
  void left_error(uint32_t id);

  // Events were lost: wakes whoever may have missed one.
  void report_unread();

  // ---- when it is gone ----
  // Nobody else writes into the rings any more.
  void adopt();
  // Completes what was posted on a queue; as adopt() does for what it finds, so one of both sees each request.
  void posted(uint32_t id);
  // Completes everything that can be completed now; does nothing while another thread is at it.
  void serve();
  // A JFC was armed, or read.
  void attend(uint32_t jfc);

 private:
  struct Jfc {
    Cqe* slots;
    QueueIndices* indices;
    uint32_t mask;
    uint32_t depth;
    uint32_t produced;  // once adopted
    uint64_t cookie;
  };
  struct Queue {
    Wqe* slots;
    QueueIndices* indices;
    uint32_t mask;
    uint32_t jfc;
    uint64_t user_data;
    uint8_t cqe_flags;
    bool flush_done_due;
    uint32_t fresh_from;  // completions of its JFC before this one are of the time before it left ERROR
  };
  struct Jfr {
    const Rqe* slots;
    QueueIndices* indices;
    uint32_t mask;
    uint32_t jfc;
    uint64_t user_data;
  };

  void find_flush_dones(const Jfc& jfc);
  void skip_delivered(uint32_t id, Queue& queue);
  void serve_all();
  void flush(uint32_t id, Queue& queue);
  void flush(uint32_t id, Jfr& jfr);
  bool push(uint32_t jfc, const Cqe& cqe);
  void tell(Jfc& jfc);

  const NicEventSink report_;
  std::mutex mutex_;  // guards what follows
  std::map<uint32_t, Jfc> jfcs_;
  std::map<uint32_t, Queue> queues_;
  std::map<uint32_t, Jfr> jfrs_;
  bool adopted_ = false;
};

}  // namespace ub::urma
