// SPDX-License-Identifier: Apache-2.0
//
// One thread of the benchmark: it draws operations, keeps up to a window of them in flight, and measures each.
//
// A Clock has `now_ns()`, `wait_until(ns)`, which returns then, and `idle()`, which is called when a poll found
// nothing. Thread: the counts and `recorder` may be read by another one at any time, all else is of the thread that
// runs.
#pragma once

#include <algorithm>
#include <atomic>
#include <string>
#include <vector>

#include "tools/ycsb/latencies.h"
#include "tools/ycsb/requests.h"
#include "tools/ycsb/schedule.h"
#include "tools/ycsb/stores/store.h"

namespace ub::ycsb {

struct ClientOptions {
  bool load = false;
  uint64_t operations = 0;  // of this thread; UINT64_MAX: until the deadline
  uint64_t deadline_ns = UINT64_MAX;
  uint32_t window = 1;
  bool intended = false;  // measure the intended latency, too
  bool check_data = false;
};

template <class Clock>
class Client {
 public:
  Client(const ClientOptions& options, Requests requests, KeySequence& inserted, const Schedule& schedule,
         std::unique_ptr<Store> store, Clock& clock, const std::atomic<bool>& stop)
      : o_(options),
        requests_(std::move(requests)),
        inserted_(inserted),
        schedule_(schedule),
        store_(std::move(store)),
        clock_(clock),
        stop_(stop),
        tasks_(options.window),
        done_(options.window) {
    for (uint32_t tag = options.window; tag-- > 0;) free_.push_back(tag);
  }

  // Until all operations have ended. ToolError if the store is lost.
  void run() {
    try {
      while (step()) recorder_.let_read();
    } catch (...) {
      recorder_.end();
      throw;
    }
    recorder_.end();
  }

  Recorder& recorder() { return recorder_; }
  uint64_t ended() const { return ended_.load(std::memory_order_relaxed); }

  // ---- afterwards ----
  uint64_t checked() const { return checked_; }
  uint64_t wrong() const { return wrong_; }
  const std::string& first_wrong_key() const { return first_wrong_key_; }
  const std::string& first_error() const { return first_error_; }
  // What it takes to draw an operation: samples, with the reading of the clock.
  const Histogram& draw_ns() const { return *draw_ns_; }

 private:
  static constexpr uint64_t kLongestWaitNs = 10'000'000;  // after which somebody is looked for who wants us to stop
  static constexpr uint64_t kPatienceNs = 5'000'000'000;  // with requests in flight at the end
  static constexpr uint64_t kSampleEvery = 64;

  struct Task {
    Draw draw;
    uint64_t intended_ns = 0, started_ns = 0;
    uint64_t part_ns = 0;   // of read-modify-write: when the part began that is in flight
    bool updating = false;  // of read-modify-write: the second part
  };

  bool drained() const { return free_.size() == tasks_.size(); }
  bool finished(uint64_t now) const {
    return begun_ == o_.operations || now >= o_.deadline_ns || stop_.load(std::memory_order_relaxed);
  }

  // One turn; false: all is done.
  bool step() {
    uint64_t now = clock_.now_ns();
    const bool over = finished(now);
    uint64_t next_ns = UINT64_MAX;  // when the next operation is meant to begin
    if (!over) {
      active_ns_ = now;
      next_ns = begin_due(now);
    } else if (drained()) {
      return false;
    }
    if (drained()) {
      if (next_ns != UINT64_MAX) clock_.wait_until(std::min({next_ns, now + kLongestWaitNs, o_.deadline_ns}));
      return true;
    }
    const uint64_t wait_ns = next_ns > now ? std::min(next_ns - now, kLongestWaitNs) : 0;
    const size_t count = store_->poll(done_, wait_ns);
    now = clock_.now_ns();
    for (size_t i = 0; i < count; ++i) complete(done_[i], now);
    if (count > 0) {
      active_ns_ = now;
    } else {
      clock_.idle();
      if (over && now - active_ns_ > kPatienceNs) give_up(now);
    }
    return true;
  }

  // Starts what is due, and returns when the next one will be; UINT64_MAX: not before one has completed.
  uint64_t begin_due(uint64_t now) {
    while (!free_.empty() && begun_ < o_.operations) {
      const uint64_t intended = schedule_.has_target() ? schedule_.intended_ns(begun_) : now;
      if (intended > now) return intended;
      begin(intended);
      if (!schedule_.has_target()) continue;
      now = clock_.now_ns();
    }
    return UINT64_MAX;
  }

  void begin(uint64_t intended) {
    const uint32_t tag = free_.back();
    free_.pop_back();
    Task& task = tasks_[tag];
    const bool sample = begun_ % kSampleEvery == 0;
    const uint64_t before = sample ? clock_.now_ns() : 0;
    if (o_.load) {
      requests_.draw_insertion(&task.draw);
    } else {
      requests_.draw(&task.draw);
    }
    ++begun_;
    task.started_ns = task.part_ns = clock_.now_ns();
    task.intended_ns = schedule_.has_target() ? intended : task.started_ns;
    task.updating = false;
    if (sample) draw_ns_->record(task.started_ns - before);
    const Operation operation = task.draw.operation;
    start(tag, operation == Operation::kReadModifyWrite ? Operation::kRead : operation);
  }

  void start(uint32_t tag, Operation operation) {
    const Draw& draw = tasks_[tag].draw;
    store_->start({tag, operation, draw.key.view(), draw.record, draw.read_field, draw.scan_length});
  }

  void complete(const Completion& done, uint64_t now) {
    Task& task = tasks_[done.tag];
    const Operation operation = task.draw.operation;
    if (done.status == Status::kFailed && first_error_.empty()) first_error_ = store_->last_error();
    const bool reads = operation == Operation::kRead || (operation == Operation::kReadModifyWrite && !task.updating);
    if (reads && o_.check_data && done.status == Status::kOk) check(task.draw, done.record);
    if (operation == Operation::kReadModifyWrite) {
      // Its parts count as operations, too, from when each began.
      measure(task.updating ? Operation::kUpdate : Operation::kRead, done.status, now - task.part_ns,
              now - (task.updating ? task.part_ns : task.intended_ns));
      if (!task.updating && done.status == Status::kOk) {
        task.updating = true;
        task.part_ns = clock_.now_ns();
        return start(done.tag, Operation::kUpdate);
      }
    }
    measure(operation, done.status, now - task.started_ns, now - task.intended_ns);
    end(done.tag);
  }

  void end(uint32_t tag) {
    const Draw& draw = tasks_[tag].draw;
    if (draw.operation == Operation::kInsert) inserted_.ended(draw.number);
    free_.push_back(tag);
    ended_.store(ended_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }

  void measure(Operation operation, Status status, uint64_t ns, uint64_t intended_ns) {
    Latencies& latencies = recorder_.latencies();
    latencies.record(operation, status, Clocked::kOperation, ns);
    if (o_.intended) latencies.record(operation, status, Clocked::kIntended, intended_ns);
  }

  void check(const Draw& draw, std::string_view record) {
    ++checked_;
    if (requests_.values().check(record, draw.key.view(), draw.read_field)) return;
    if (wrong_++ == 0) first_wrong_key_ = draw.key.view();
  }

  // What has not been answered has failed.
  void give_up(uint64_t now) {
    if (first_error_.empty()) first_error_ = "no answer from the store";
    std::vector<bool> is_free(tasks_.size(), false);
    for (const uint32_t tag : free_) is_free[tag] = true;
    for (uint32_t tag = 0; tag < tasks_.size(); ++tag) {
      if (is_free[tag]) continue;
      measure(tasks_[tag].draw.operation, Status::kFailed, now - tasks_[tag].started_ns, now - tasks_[tag].intended_ns);
      end(tag);
    }
  }

  const ClientOptions o_;
  Requests requests_;
  KeySequence& inserted_;
  Schedule schedule_;
  std::unique_ptr<Store> store_;
  Clock& clock_;
  const std::atomic<bool>& stop_;

  std::vector<Task> tasks_;     // by tag
  std::vector<uint32_t> free_;  // tags
  std::vector<Completion> done_;
  uint64_t begun_ = 0;
  uint64_t active_ns_ = 0;  // when there was something to begin, or something completed
  Recorder recorder_;
  std::atomic<uint64_t> ended_{0};

  std::unique_ptr<Histogram> draw_ns_ = std::make_unique<Histogram>();
  uint64_t checked_ = 0, wrong_ = 0;
  std::string first_wrong_key_, first_error_;
};

}  // namespace ub::ycsb
