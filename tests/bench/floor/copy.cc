// SPDX-License-Identifier: Apache-2.0
//
// One memcpy between two processes: into memory that the other one maps, or out of it. The other one wrote all of this
// memory once, and sleeps. That is what a WRITE or READ can at best cost whose initiator places it.
#include <memory>

#include "tests/bench/floor/floor.h"
#include "tests/bench/floor/process.h"

namespace ub::floor {
namespace {

using tools::Ticks;

constexpr size_t kMostBytes = 1 << 20;
constexpr size_t kSpan = 8 << 20;  // copies go through all of it, as a window of requests does

struct CopiedMemory {
  char bytes[kSpan];
  std::atomic<bool> touched;
};

// Times of copies of `size` bytes each, which go through all of the shared memory.
template <typename Copy>
void copy_for(const Options& options, size_t size, const char* name, Report& report, Copy copy) {
  LatencyRow row{name, {}};
  const double ns_per_tick = Ticks::ns_per_tick();
  const uint64_t start = Ticks::now();
  const uint64_t ticks = static_cast<uint64_t>(options.seconds * 1e9 / ns_per_tick);
  const uint64_t warm_up_end = start + ticks / 10, end = warm_up_end + ticks;
  uint64_t from = 0, count = 0, now = start;
  for (size_t at = 0; now < end; at = at + 2 * size <= kSpan ? at + size : 0) {
    copy(at);
    const uint64_t then = Ticks::now();
    if (now > warm_up_end) {
      if (count++ == 0) from = now;
      row.round_trip_ns.record(static_cast<uint64_t>(static_cast<double>(then - now) * ns_per_tick));
    }
    now = then;
  }
  const double per_ns = static_cast<double>(count) / (static_cast<double>(now - from) * ns_per_tick);
  report.latency.push_back(row);
  report.rate.push_back({name, per_ns * static_cast<double>(size) * 8, per_ns * 1e9, 0});
}

}  // namespace

void run_copy(const Options& options, Report& report) {
  const size_t size = report.size_bytes = options.size_bytes != 0 ? options.size_bytes : 64 << 10;
  const Shared<CopiedMemory> memory;
  Peer peer(peer_cpu(options), [&] {
    memset(memory->bytes, 1, kSpan);
    memory->touched.store(true);
    for (;;) pause();
  });
  pin(near_cpu(options));
  while (!memory->touched.load()) usleep(1000);
  const std::unique_ptr<char[]> own(new char[kMostBytes]);
  memset(own.get(), 0x5a, kMostBytes);
  copy_for(options, size, "one copy into the other's memory", report,
           [&](size_t at) { memcpy(memory->bytes + at, own.get(), size); });
  copy_for(options, size, "one copy out of the other's memory", report,
           [&](size_t at) { memcpy(own.get(), memory->bytes + at, size); });
}

}  // namespace ub::floor
