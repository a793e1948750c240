// SPDX-License-Identifier: Apache-2.0
//
// The daemon's end of one application's agent: copies and atomics in memory that only the application can see, asked
// for in a ring of the shared page and answered in order. What an operation was for is remembered here; of the page
// only results are read, and bytes.
//
// Thread: the owner of the Core.
#pragma once

#include <deque>
#include <utility>
#include <vector>

#include "dataplane/port_set.h"
#include "lib/base/time.h"
#include "lib/ipc/app_page.h"
#include "lib/transport/core.h"
#include "lib/transport/host.h"

namespace ub {

class Agent {
 public:
  explicit Agent(ipc::AppPage& page) : page_(page) {}

  // kPending, or kFailed: the agent is stalled, or more waits than it may. `address`: in the application.
  CopyResult gather(const std::byte* frame, std::byte* dst, uint64_t address, size_t bytes, CopyTag);
  CopyResult place(uint64_t address, const std::byte* src, size_t bytes, bool final, CopyTag);
  CopyResult atomic(uint64_t address, const AtomicRequest&, uint128* old, CopyTag);
  void frame_aborted(const std::byte* frame);
  void frame_held(const std::byte* frame, std::byte* held);

  enum class Verdict : uint8_t { kNothing, kWorked, kStalled, kLied };
  // Hands finished operations to the Core. kStalled: none was finished for `patience`, or the oldest not for some times
  // that; all that waits failed, and all that comes will until the application has answered, longer if it is not the
  // first time. kLied: it finished what it was never given.
  Verdict poll(Core<PortSet>&, Instant now, Duration patience);
  // The application is gone: everything fails, now and later.
  void fail_for_ever(Core<PortSet>&, Instant now);

  bool has_finished() const { return page_.ops_consumed.load(std::memory_order_acquire) != consumed_; }
  bool has_work() const { return produced_ != consumed_ || !waiting_.empty(); }
  bool must_be_polled() const { return has_work() || stalled_; }
  // Were operations published since the last call?
  bool take_published() { return std::exchange(published_, false); }
  Instant deadline(Duration patience) const {
    return has_work() && !stalled_ ? looked_at_ + patience / kLooks : Instant::never();
  }
  uint64_t times_stalled() const { return times_stalled_; }
  uint64_t copies() const { return copies_; }

 private:
  static constexpr size_t kMostWaiting = 8192;
  static constexpr int64_t kLooks = 8;                 // at least, before the patience is over
  static constexpr int64_t kMoving = 4;                // times the patience: for an agent that moves, but slowly
  static constexpr int64_t kRest = 20;                 // times as long as it was waited for
  static constexpr Duration kForgotten = seconds(60);  // after a stall: the next one is the first again

  struct Pending {
    CopyTag tag = 0;
    const std::byte* frame = nullptr;  // gather: what it is for
    std::byte* dst = nullptr;          // and where in it; null: the frame is gone
    uint128* old = nullptr;            // atomic
    uint32_t bytes = 0;
    bool wanted = false;  // the Core waits for it
  };
  // An operation for which the ring had no room.
  struct Waiting {
    ipc::AgentOp op;
    Pending pending;
    std::vector<std::byte> payload;
  };

  CopyResult submit(const ipc::AgentOp&, const Pending&, const std::byte* payload);
  void publish(const ipc::AgentOp&, const Pending&, const std::byte* payload);
  void publish_waiting();
  template <class Fn>
  void each_for(const std::byte* frame, Fn fn);
  void finish(Core<PortSet>&, Instant now, uint32_t number);
  void stall(Core<PortSet>&, Instant now);
  void fail_all(Core<PortSet>&, Instant now);

  ipc::AppPage& page_;
  Pending pending_[ipc::kAgentOps];
  std::deque<Waiting> waiting_;
  uint32_t produced_ = 0, consumed_ = 0;
  uint32_t due_ = 0;  // operations before this one are waited for since `due_since_`
  // The time in which the application is waited for. The worker may have stood still as well, so from one look to the
  // next no more than a part of the patience passes.
  Duration clock_{};
  Duration due_since_{}, moved_at_{};  // by that clock
  Instant looked_at_{}, stalled_at_{}, rests_until_{};
  bool stalled_ = false;
  bool gone_ = false;
  bool published_ = false;
  uint64_t times_stalled_ = 0;
  uint64_t copies_ = 0;  // answered
};

}  // namespace ub
