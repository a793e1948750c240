// SPDX-License-Identifier: Apache-2.0
// bench_kernel.cc - events of the emulation per second, with 10, 1 000 and 100 000 in the queue: each event that runs
// pushes the next one. The delays are those of a NIC: some nothing, most some nanoseconds or a link away, a few a
// timer's. Beside the kernel's queue, in the same run, a 4-ary heap by time and number, and the binary heap of the
// standard library. Then coroutines: a delay, and a task that begins, waits once and ends.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <queue>
#include <vector>

#include "emu_hw/kernel/task.h"
#include "lib/base/prng.h"

namespace {

using namespace ub::emu;

struct Numbered {
  uint64_t at;
  uint64_t number;
  Event* event;
  bool operator<(const Numbered& other) const { return at != other.at ? at < other.at : number < other.number; }
  bool operator>(const Numbered& other) const { return other < *this; }
};

// The same interface, by comparisons.
class FourAryHeap {
 public:
  uint64_t now() const { return now_; }
  void push(uint64_t at, Event* event) {
    entries_.push_back({at, number_++, event});
    for (size_t i = entries_.size() - 1; i != 0 && entries_[i] < entries_[(i - 1) / 4]; i = (i - 1) / 4)
      std::swap(entries_[i], entries_[(i - 1) / 4]);
  }
  Event* pop() {
    const Numbered first = entries_.front();
    entries_.front() = entries_.back();
    entries_.pop_back();
    for (size_t i = 0, child; (child = least_child(i)) != 0 && entries_[child] < entries_[i]; i = child)
      std::swap(entries_[i], entries_[child]);
    now_ = first.at;
    return first.event;
  }

 private:
  size_t least_child(size_t i) const {
    const size_t begin = 4 * i + 1, end = std::min(begin + 4, entries_.size());
    size_t least = begin < end ? begin : 0;
    for (size_t child = begin + 1; child < end; ++child)
      if (entries_[child] < entries_[least]) least = child;
    return least;
  }
  std::vector<Numbered> entries_;
  uint64_t number_ = 0, now_ = 0;
};

class StandardHeap {
 public:
  uint64_t now() const { return now_; }
  void push(uint64_t at, Event* event) { entries_.push({at, number_++, event}); }
  Event* pop() {
    const Numbered first = entries_.top();
    entries_.pop();
    now_ = first.at;
    return first.event;
  }

 private:
  std::priority_queue<Numbered, std::vector<Numbered>, std::greater<>> entries_;
  uint64_t number_ = 0, now_ = 0;
};

class RadixHeap {
 public:
  uint64_t now() const { return queue_.now().ps; }
  void push(uint64_t at, Event* event) { queue_.push({at}, event); }
  Event* pop() { return queue_.pop(); }

 private:
  EventQueue queue_;
};

std::vector<uint64_t> delays() {
  ub::Prng random(1);
  std::vector<uint64_t> all(1 << 14);
  for (uint64_t& each : all) {
    const uint64_t kind = random.below(100);
    each = kind < 20 ? 0 : kind < 70 ? random.below(80'000) : kind < 98 ? 100'000 + random.below(1000) : 10'000'000'000;
  }
  return all;
}

template <class Queue>
void hold(benchmark::State& state) {
  const std::vector<uint64_t> spans = delays();
  Event event{};
  Queue queue;
  size_t next = 0;
  for (int64_t i = 0; i < state.range(0); ++i) queue.push(spans[next++ % spans.size()], &event);
  for (auto _ : state) {
    Event* popped = queue.pop();
    queue.push(queue.now() + spans[next++ % spans.size()], popped);
  }
  state.SetItemsProcessed(state.iterations());
}

Task sleeps(Kernel& kernel, const std::vector<uint64_t>& spans, size_t from) {
  for (size_t i = from;; ++i) co_await delay(kernel, {spans[i % spans.size()] | 1}, "sleep");
}

void events_of_tasks(benchmark::State& state) {
  const std::vector<uint64_t> spans = delays();
  Kernel kernel;
  kernel.begin_operation();
  for (int64_t i = 0; i < state.range(0); ++i) spawn(kernel, sleeps(kernel, spans, static_cast<size_t>(i)));
  Time end{1'000'000};
  kernel.run(end);
  const uint64_t before = kernel.events_run();
  for (auto _ : state) {
    end.ps += 1'000'000'000 / static_cast<uint64_t>(state.range(0));
    kernel.run(end);
  }
  state.SetItemsProcessed(static_cast<int64_t>(kernel.events_run() - before));
}

Task lives_and_ends(Kernel& kernel) { co_await delay(kernel, {1000}, "life"); }

void whole_tasks(benchmark::State& state) {
  Kernel kernel;
  for (auto _ : state) {
    spawn(kernel, lives_and_ends(kernel));
    kernel.run();
  }
  state.SetItemsProcessed(state.iterations());
}

void sizes(benchmark::internal::Benchmark* b) { b->Arg(10)->Arg(1000)->Arg(100'000); }

BENCHMARK(hold<RadixHeap>)->Apply(sizes);
BENCHMARK(hold<FourAryHeap>)->Apply(sizes);
BENCHMARK(hold<StandardHeap>)->Apply(sizes);
BENCHMARK(events_of_tasks)->Apply(sizes);
BENCHMARK(whole_tasks);

}  // namespace

BENCHMARK_MAIN();
