// SPDX-License-Identifier: Apache-2.0
//
// What waking somebody costs: the floors of a NIC whose application does not drive it.
//
// helper: both processes spin on a word of their own memory. Beside each sleeps a thread on an eventfd, which copies
// the peer's word to where its process spins. Where that thread wakes decides: on the CPU of whoever rang it takes the
// place of a process that waits anyhow; on the other one the ring has to cross. eventfd: both processes sleep on an
// eventfd. placement: the sender writes into the memory of the other process itself (process_vm_writev).
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "tests/bench/floor/floor.h"
#include "tests/bench/floor/process.h"

namespace ub::floor {
namespace {

using tools::Ticks;

constexpr uint64_t kPatienceNs = 5'000'000'000;

struct alignas(128) Word {
  std::atomic<uint64_t> value;
};

// What belongs to one of the two processes.
struct Side {
  Word seen;    // what it spins on
  Word handed;  // for its helper
  std::atomic<pid_t> process;
  std::atomic<bool> ready;
};
using Sides = Side[2];

class Bells {
 public:
  Bells() {
    for (int& fd : fds_) {
      fd = eventfd(0, EFD_CLOEXEC);
      if (fd < 0) fail("eventfd");
    }
  }
  ~Bells() {
    for (int fd : fds_) close(fd);
  }
  Bells(const Bells&) = delete;
  Bells& operator=(const Bells&) = delete;
  int operator[](size_t side) const { return fds_[side]; }

 private:
  int fds_[2];
};

void ring(int bell) {
  const uint64_t one = 1;
  if (write(bell, &one, sizeof one) != sizeof one) fail("write to an eventfd");
}

void wait_for_ring(int bell) {
  uint64_t rings;
  if (read(bell, &rings, sizeof rings) != sizeof rings) fail("read of an eventfd");
}

// Sends 1, 2, ... to and fro: `send(n)` hands n to the other side, `receive(n)` waits for its answer.
template <typename Send, typename Receive>
void ping_pong(const Options& options, LatencyRow& row, Send send, Receive receive) {
  const double ns_per_tick = Ticks::ns_per_tick();
  const auto ticks_of = [&](double ns) { return static_cast<uint64_t>(ns / ns_per_tick); };
  const uint64_t warm_up_end = Ticks::now() + ticks_of(options.seconds * 1e8);
  const uint64_t end = warm_up_end + ticks_of(options.seconds * 1e9);
  uint64_t n = 0;
  for (uint64_t now = Ticks::now(); now < end;) {
    send(++n);
    receive(n);
    const uint64_t then = Ticks::now();
    if (now > warm_up_end) {
      row.round_trip_ns.record(static_cast<uint64_t>(static_cast<double>(then - now) * ns_per_tick));
    }
    now = then;
  }
}

// Returns when `word` reaches n; with an exception if that takes for ever.
void spin(const std::atomic<uint64_t>& word, uint64_t n) {
  uint64_t turns = 0, since = 0;
  while (word.load(std::memory_order_acquire) < n) {
    if (++turns % 4096 != 0) continue;
    if (since == 0) since = tools::monotonic_ns();
    if (tools::monotonic_ns() - since > kPatienceNs) throw std::runtime_error("the other process does not answer");
  }
}

// Copies what is handed to this side, for as long as the process lives.
void start_helper(Side& mine, int bell, int cpu) {
  std::thread([&mine, bell, cpu] {
    if (cpu != kAnyCpu && !tools::pin_to_cpu(cpu)) _exit(1);
    for (;;) {
      wait_for_ring(bell);
      mine.seen.value.store(mine.handed.value.load(std::memory_order_acquire), std::memory_order_release);
    }
  }).detach();
}

// Both processes spin on their word. `send(side, n)` makes n appear there; `begin(side)` runs in each process first.
template <typename Begin, typename Send>
void spinning_latency(const Options& options, Report& report, const char* name, Sides& sides, Begin begin, Send send) {
  LatencyRow row{name, {}};
  const Peer peer(peer_cpu(options), [&] {
    begin(1);
    sides[1].ready = true;
    for (uint64_t n = 1;; ++n) {
      spin(sides[1].seen.value, n);
      send(0, n);
    }
  });
  pin(near_cpu(options));
  begin(0);
  while (!sides[1].ready) sched_yield();
  ping_pong(
      options, row, [&](uint64_t n) { send(1, n); }, [&](uint64_t n) { spin(sides[0].seen.value, n); });
  report.latency.push_back(row);
}

// With a helper on each side.
void helper_latency(const Options& options, Report& report, const char* name, int cpu_of_near, int cpu_of_peer) {
  const Shared<Sides> memory;
  Sides& sides = *memory.operator->();
  const Bells bells;
  spinning_latency(
      options, report, name, sides,
      [&](size_t side) { start_helper(sides[side], bells[side], side == 0 ? cpu_of_near : cpu_of_peer); },
      [&](size_t to, uint64_t n) {
        sides[to].handed.value.store(n, std::memory_order_release);
        ring(bells[to]);
      });
}

}  // namespace

void run_helper(const Options& options, Report& report) {
  report.size_bytes = sizeof(uint64_t);
  if (options.unpinned) {
    helper_latency(options, report, "nobody pinned", kAnyCpu, kAnyCpu);
    return;
  }
  helper_latency(options, report, "helper on the sender's CPU", options.cpu_peer, options.cpu_near);
  helper_latency(options, report, "helper on the target's CPU", options.cpu_near, options.cpu_peer);
  helper_latency(options, report, "helper anywhere", kAnyCpu, kAnyCpu);
}

void run_placement(const Options& options, Report& report) {
  report.size_bytes = sizeof(uint64_t);
  const Shared<Sides> memory;
  Sides& sides = *memory.operator->();
  spinning_latency(
      options, report, "process_vm_writev by the sender", sides,
      [&](size_t side) { sides[side].process.store(getpid(), std::memory_order_release); },
      [&](size_t to, uint64_t n) {
        const iovec local{&n, sizeof n}, remote{&sides[to].seen.value, sizeof n};
        if (process_vm_writev(sides[to].process, &local, 1, &remote, 1, 0) != sizeof n) fail("process_vm_writev");
      });
}

void run_eventfd(const Options& options, Report& report) {
  report.size_bytes = sizeof(uint64_t);
  const Bells bells;
  LatencyRow row{"eventfd, blocking", {}};
  const Peer peer(peer_cpu(options), [&] {
    for (;;) {
      wait_for_ring(bells[1]);
      ring(bells[0]);
    }
  });
  pin(near_cpu(options));
  ping_pong(
      options, row, [&](uint64_t) { ring(bells[1]); }, [&](uint64_t) { wait_for_ring(bells[0]); });
  report.latency.push_back(row);
}

}  // namespace ub::floor
