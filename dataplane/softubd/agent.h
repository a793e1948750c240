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
#include "dataplane/softubd/starvation.h"
#include "lib/base/time.h"
#include "lib/ipc/app_page.h"
#include "lib/transport/core.h"
#include "lib/transport/host.h"

namespace ub {

// How long an application may leave copies undone.
struct Patience {
  Duration usual = milliseconds(250);  // then somebody looks what is the matter with it
  Duration starved = seconds(30);      // if it is healthy and gets no CPU; up to `usual`: nobody looks
};

class Agent {
 public:
  explicit Agent(ipc::AppPage& page) : page_(page) {}

  // kPending, or kFailed: the agent is stalled, or more waits than it may. `address`: in the application.
  CopyResult gather(const std::byte* frame, std::byte* dst, uint64_t address, size_t bytes, CopyTag);
  CopyResult place(uint64_t address, const std::byte* src, size_t bytes, bool final, CopyTag);
  CopyResult atomic(uint64_t address, const AtomicRequest&, uint128* old, CopyTag);
  void frame_aborted(const std::byte* frame);
  void frame_held(const std::byte* frame, std::byte* held);

  enum class Verdict : uint8_t { kNothing, kWorked, kOverdue, kStalled, kLied };
  // Hands finished operations to the Core. kOverdue: none was finished for the usual patience, or the oldest not for
  // some times that; it waits for an answer() to what was said to be missing, but not for long. kStalled: it was given
  // up, all that waits failed, and all that comes will until the application has answered, longer if it is not the
  // first time; stall() says more. kLied: it finished what it was never given.
  Verdict poll(Core<PortSet>&, Instant now, const Patience&);

  // Which wait kOverdue was about.
  uint32_t wait() const { return wait_; }
  // What the application does in the wait with that number. True: so it was given up, as by kStalled.
  bool answer(Core<PortSet>&, Instant now, uint32_t wait, Condition);

  // The last time that it was given up.
  struct Stall {
    Condition why = Condition::kUnclear;  // kStarved: it was waited for as long as may be; kUnclear: nobody looked
    Duration waited;
  };
  const Stall& stall() const { return last_stall_; }

  // The application is gone: everything fails, now and later.
  void fail_for_ever(Core<PortSet>&, Instant now);

  bool has_finished() const { return page_.ops_consumed.load(std::memory_order_acquire) != consumed_; }
  bool has_work() const { return produced_ != consumed_ || !waiting_.empty(); }
  bool must_be_polled() const { return has_work() || stalled_; }
  // Were operations published since the last call?
  bool take_published() { return std::exchange(published_, false); }
  Instant deadline(const Patience& patience) const {
    return has_work() && !stalled_ ? looked_at_ + patience.usual / kLooks : Instant::never();
  }
  uint64_t times_stalled() const { return times_stalled_; }
  // How often it was waited for because it was starved, and the longest such wait.
  uint32_t times_starved() const { return times_starved_; }
  Duration longest_starved() const { return longest_starved_; }
  uint64_t copies() const { return copies_; }

 private:
  static constexpr size_t kMostWaiting = 8192;
  static constexpr int64_t kLooks = 8;   // at least, before the patience is over
  static constexpr int64_t kMoving = 4;  // times the patience: for an agent that moves, but slowly
  // Times the patience, from question to answer: on a busy machine the control thread needs seconds for what it is at.
  static constexpr int64_t kUnanswered = 20;
  static constexpr int64_t kRest = 20;                      // times as long as it was waited for
  static constexpr Duration kForgotten = seconds(60);       // after a stall: the next one is the first again
  static constexpr Duration kAskPause = milliseconds(100);  // from an answer to the next question

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
  bool is_overdue() const;
  Verdict ask(Core<PortSet>&, Instant now);
  void begin_wait(Instant now);
  void end_wait(Instant now);
  void give_up(Core<PortSet>&, Instant now, Condition why);
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
  Duration asked_at_{}, ask_from_{};   // by that clock
  Instant looked_at_{}, stalled_at_{}, rests_until_{}, due_at_{};
  Patience patience_;  // of the last look
  uint32_t wait_ = 0;
  bool asked_ = false;    // and not answered
  bool starved_ = false;  // in this wait
  bool stalled_ = false;
  bool gone_ = false;
  bool published_ = false;
  Stall last_stall_;
  uint64_t times_stalled_ = 0;
  uint32_t times_starved_ = 0;
  Duration longest_starved_{};
  uint64_t copies_ = 0;  // answered
};

}  // namespace ub
