// SPDX-License-Identifier: Apache-2.0
//
// The event loop. Operations are coroutines (task.h); what passes through links, switches and timers of the Core are
// plain events. Both are resumed here alone, so no stack grows with the length of a chain.
//
// Deadlines of Cores wait in a queue of their own, behind events of the same time. They are no reason to go on: the
// emulation ends when no event is left and no operation is open. If operations are open, no event is left, and a round
// of deadlines brought no progress, this is a deadlock, and the message names who waits for what.
//
// One thread.
#pragma once

#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "emu_hw/kernel/deadline_queue.h"
#include "emu_hw/kernel/event_queue.h"
#include "emu_hw/kernel/virtual_time.h"

namespace ub::emu {

class WaitList;

// A task that nobody awaits, known to the kernel until it ends.
struct SpawnedTask {
  SpawnedTask* before = nullptr;
  SpawnedTask* behind = nullptr;
  void (*destroy)(SpawnedTask*) = nullptr;
};

class Deadlock : public std::runtime_error {
 public:
  using runtime_error::runtime_error;
};

class Kernel {
 public:
  Kernel() = default;
  ~Kernel() { destroy_tasks(); }
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  Time now() const { return now_; }

  // `who` asks for it; named if it lies beyond the end of virtual time.
  void push_after(Span span, Event* event, const char* who) { events_.push(after(now_, span, who), event); }
  // Next in line of what happens now.
  void push_now(Event* event) { events_.push(now_, event); }
  // Not before now; in place of the time that it had. It is no longer set when it comes.
  void set_deadline(Deadline& deadline, Time at) { deadlines_.set(deadline, at); }
  void clear_deadline(Deadline& deadline) { deadlines_.clear(deadline); }

  // How many operations have begun and not ended.
  void begin_operation() { ++open_; }
  void end_operation() { --open_, ++progress_; }
  uint64_t open_operations() const { return open_; }
  // Nothing is left to be done.
  bool is_done() const { return events_.empty() && open_ == 0; }
  // Something happened that an operation may be waiting for: a frame, a completion, a change of state.
  void note_progress() { ++progress_; }

  void add_task(SpawnedTask*);
  void remove_task(SpawnedTask*);
  // Destroys tasks that have not ended. Whoever owns parts that these hold calls it before the parts are gone. What a
  // task holds is not handed on to another one then, and nothing runs afterwards.
  void destroy_tasks();
  bool is_ending() const { return is_ending_; }

  // A task that nobody awaits threw; run() throws it.
  void fail(std::exception_ptr error) {
    if (!error_) error_ = std::move(error);
  }

  // Until all is done, or virtual time would pass `end`; then now() is the time of what was done last. Throws Deadlock,
  // TimeOverflow, and what a task threw.
  void run(Time end = {UINT64_MAX});

  uint64_t events_run() const { return events_run_; }

 private:
  friend WaitList;

  bool take_next(Time end, Event** event);
  void watch_for_deadlock();
  void watch_for_standstill();
  std::string who_waits() const;

  Time now_;
  EventQueue events_;
  DeadlineQueue deadlines_;
  uint64_t open_ = 0;
  uint64_t progress_ = 0, progress_seen_ = 0;
  uint64_t idle_deadlines_ = 0;  // since the last event or progress; while an event waits, those of one time
  uint64_t events_run_ = 0;
  SpawnedTask* tasks_ = nullptr;
  bool is_ending_ = false;
  std::exception_ptr error_;
  std::vector<const WaitList*> wait_lists_;
};

}  // namespace ub::emu
