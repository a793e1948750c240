// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/kernel/kernel.h"

#include <utility>

#include "emu_hw/kernel/wait_list.h"

namespace ub::emu {
namespace {

constexpr uint64_t kMostAtATime = 50'000;  // deadlines without an event between them

}  // namespace

void Kernel::run(Time end) {
  for (Event* event; take_next(end, &event);) {
    event->run(event);
    ++events_run_;
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  }
}

void Kernel::add_task(SpawnedTask* task) {
  task->behind = tasks_;
  if (tasks_ != nullptr) tasks_->before = task;
  tasks_ = task;
}

void Kernel::remove_task(SpawnedTask* task) {
  (task->before != nullptr ? task->before->behind : tasks_) = task->behind;
  if (task->behind != nullptr) task->behind->before = task->before;
}

void Kernel::destroy_tasks() {
  is_ending_ = true;
  while (tasks_ != nullptr) {
    SpawnedTask* task = tasks_;
    remove_task(task);
    task->destroy(task);
  }
}

// False: all is done, or the rest comes behind the end.
bool Kernel::take_next(Time end, Event** event) {
  if (!events_.empty() && (deadlines_.empty() || events_.next_time() <= deadlines_.next_time())) {
    if (events_.next_time() > end) return false;
    *event = events_.pop();
    now_ = events_.now();
    idle_deadlines_ = 0;
    return true;
  }
  if (events_.empty() && open_ == 0) return false;
  if (!deadlines_.empty() && deadlines_.next_time() > end) return false;
  if (events_.empty())
    watch_for_deadlock();
  else
    watch_for_standstill();
  now_ = deadlines_.next_time();
  *event = deadlines_.pop();
  return true;
}

// Each deadline that waits has come once, and perhaps some twice, and nothing followed.
void Kernel::watch_for_deadlock() {
  if (std::exchange(progress_seen_, progress_) != progress_) idle_deadlines_ = 0;
  if (!deadlines_.empty() && idle_deadlines_++ <= 2 * deadlines_.size()) return;
  throw Deadlock("deadlock at " + std::to_string(now_.ps) + " ps: " + std::to_string(open_) +
                 " operations are open, and nothing will happen any more" + who_waits());
}

// Deadlines come at one time, each in the place of the one before, and the event that waits is never reached.
void Kernel::watch_for_standstill() {
  if (deadlines_.next_time() != now_) idle_deadlines_ = 0;
  if (idle_deadlines_++ < kMostAtATime) return;
  throw Deadlock("time stands still at " + std::to_string(now_.ps) +
                 " ps, because a timer comes again at once; is a timeout too short?");
}

std::string Kernel::who_waits() const {
  std::string text;
  for (const WaitList* list : wait_lists_) text += list->describe();
  return text.empty() ? "; none of them waits for a part" : text;
}

}  // namespace ub::emu
