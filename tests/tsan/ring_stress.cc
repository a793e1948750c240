// SPDX-License-Identifier: Apache-2.0
//
// Rings and doorbells under threads that pause, sleep, doze and wake at random: four pairs that send to each other
// in both directions. Every frame arrives, whole and in order, and nobody sleeps through a doorbell. Meant
// for ThreadSanitizer, runs without it too. Ends after about 3 s (or the number of seconds given).
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "lib/ipc/barrier.h"
#include "lib/ipc/doorbell.h"
#include "lib/ipc/frame_ring.h"
#include "lib/ipc/memfd.h"

namespace {

using namespace ub::ipc;

constexpr size_t kRingBytes = FrameRing::kMinBytes;
constexpr int kPairs = 4;
std::atomic<bool> stop{false};
std::atomic<int> failures{0};

void fail(const char* what) {
  std::fprintf(stderr, "ring_stress: %s\n", what);
  failures.fetch_add(1);
  stop.store(true);
}

struct End {
  FrameRingWriter tx;
  FrameRingReader rx;
  Doorbell bell;
  PeerDoorbell peer;
  std::atomic<bool> done{false};
  std::atomic<uint64_t> received{0};
  uint64_t sleeps = 0, dozes = 0, rings = 0;
};

struct Pair {
  Mapping memory;
  End ends[2];

  Pair(bool membarrier) {
    std::string error;
    size_t area = FrameRing::area_bytes(kRingBytes);
    if (!memory.map_private(2 * area)) std::abort();
    for (int i = 0; i < 2; ++i) {
      ends[i].tx.attach(memory.data() + static_cast<size_t>(i) * area, kRingBytes);
      ends[i].rx.attach(memory.data() + static_cast<size_t>(1 - i) * area, kRingBytes);
      if (!ends[i].bell.create(&error)) std::abort();
    }
    for (int i = 0; i < 2; ++i) {
      Doorbell& other = ends[1 - i].bell;
      if (!ends[i].peer.attach(Fd(::dup(other.page_fd())), Fd(::dup(other.event_fd())), 0, &error)) std::abort();
      ends[i].peer.set_fence_needed(!membarrier);
    }
  }
};

void run(End& me, End& peer, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::byte*> open;
  std::vector<uint64_t> numbers;
  uint64_t next_out = 0, next_in = 0;
  bool draining = false;  // a sender waits now and then until all is answered, so that the other end falls asleep
  auto last_progress = std::chrono::steady_clock::now();
  // Half of the threads only answer: they are the ones that sleep for want of work.
  uint64_t credit = 0;
  bool answers = seed % 2 == 1;
  for (;;) {
    bool stopping = stop.load();
    FrameRingReader::Frame f;
    size_t got = 0;
    while (got < 32 && me.rx.next(&f)) {
      uint64_t number;
      std::memcpy(&number, f.data, 8);
      if (number != next_in || f.bytes < 8 || (f.bytes > 8 && f.data[f.bytes - 1] != static_cast<std::byte>(number)))
        return fail("a frame is missing, doubled or damaged");
      ++next_in;
      ++got;
    }
    if (me.rx.broken()) return fail("the ring is broken");
    me.rx.release();
    if (got != 0) {
      credit += got;
      me.received.store(next_in);
      last_progress = std::chrono::steady_clock::now();
    }

    size_t want = answers ? std::min<uint64_t>(credit, 8) : random() % 6;
    if (!answers) {
      draining = next_in != next_out && (draining || random() % 64 == 0);
      if (stopping || draining) want = 0;
    }
    open.clear();
    numbers.clear();
    for (size_t i = 0; i < want; ++i) {
      size_t bytes = random() % 8 == 0 ? 8 + random() % 5000 : 8 + random() % 200;
      std::byte* at = me.tx.begin(bytes);
      if (at == nullptr) break;
      std::memset(at, static_cast<int>(next_out & 0xff), bytes);
      std::memcpy(at, &next_out, 8);
      me.tx.commit(at, bytes);
      ++next_out;
      if (answers) --credit;
      if (random() % 4 == 0) me.tx.publish();
    }
    me.tx.publish();
    if (me.peer.after_publish(/*hurries=*/random() % 2 == 0) == Consumer::kAsleep) {
      me.peer.ring();
      ++me.rings;
    }

    // Each frame is answered by one.
    if (stopping && (answers ? peer.done.load() : next_in == next_out)) {
      me.done.store(true);
      me.peer.ring();
      return;
    }
    if (std::chrono::steady_clock::now() - last_progress > std::chrono::seconds(20))
      return fail("no progress for 20 s");

    switch (random() % (answers ? 256 : 32)) {
      case 0:
        ::usleep(random() % 300);
        break;
      case 1:
        std::this_thread::yield();
        break;
      default:
        break;
    }
    bool idle = got == 0 && (answers ? credit == 0 : random() % 2 == 0);
    if (!idle || me.tx.consumed() < me.tx.published()) continue;  // a producer waits awake, as a port does
    if (random() % 2 == 0) {  // for a while that is short enough to miss a ring: no barrier, and nobody counts on it
      me.bell.begin_doze();
      ++me.dozes;
      pollfd p{me.bell.event_fd(), POLLIN, 0};
      const timespec longest{0, static_cast<long>(Doorbell::kLongestDoze.ns)};
      if (me.rx.empty()) ::ppoll(&p, 1, &longest, nullptr);
      me.bell.end_sleep();
      if (random() % 2 == 0) me.bell.drain();  // what rang may also be found by the next sleep
      continue;
    }
    me.bell.begin_sleep();
    heavy_barrier();
    if (me.rx.empty()) {
      ++me.sleeps;
      pollfd p{me.bell.event_fd(), POLLIN, 0};
      // A sender wakes by itself (its application posts again); one that only answers waits for the doorbell.
      bool forever = answers && !stop.load();
      int n = ::poll(&p, 1, forever ? 10000 : 1);
      if (n == 0 && forever && !stop.load()) return fail("slept through a doorbell");
    }
    me.bell.end_sleep();
    me.bell.drain();
  }
}

}  // namespace

int main(int argc, char** argv) {
  double seconds = argc > 1 ? std::atof(argv[1]) : 3;
  bool membarrier = register_for_heavy_barrier();
  std::vector<std::unique_ptr<Pair>> pairs;
  std::vector<std::thread> threads;
  // Both ways of ordering publish and sleep.
  for (int i = 0; i < kPairs; ++i) pairs.push_back(std::make_unique<Pair>(membarrier && i % 2 == 0));
  for (int i = 0; i < kPairs; ++i) {
    for (int k = 0; k < 2; ++k) {
      Pair& p = *pairs[static_cast<size_t>(i)];
      threads.emplace_back([&p, i, k] { run(p.ends[k], p.ends[1 - k], static_cast<uint32_t>(i * 2 + k)); });
    }
  }
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  stop.store(true);
  for (auto& p : pairs)
    for (End& e : p->ends) e.peer.ring();
  for (std::thread& t : threads) t.join();
  uint64_t frames = 0, sleeps = 0, dozes = 0, rings = 0;
  for (auto& p : pairs) {
    for (End& e : p->ends) {
      frames += e.received.load();
      sleeps += e.sleeps;
      dozes += e.dozes;
      rings += e.rings;
    }
  }
  std::printf("%llu frames, %llu sleeps, %llu dozes, %llu doorbells, %d failures\n",
              static_cast<unsigned long long>(frames), static_cast<unsigned long long>(sleeps),
              static_cast<unsigned long long>(dozes), static_cast<unsigned long long>(rings), failures.load());
  return failures.load() == 0 && frames > 1000 ? 0 : 1;
}
