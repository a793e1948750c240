// SPDX-License-Identifier: Apache-2.0
//
// Shared memory without protocol. Echo: a ring of 64-byte slots each way, with one message under way or with many.
// Bandwidth: blocks copied into a ring and out of it; the ring is larger than the caches, since lines pulled dirty from
// the other core's cache are slower than lines that have been written back.
#include <memory>

#include "tests/bench/floor/floor.h"
#include "tests/bench/floor/process.h"
#include "tests/bench/floor/slots.h"

namespace ub::floor {
namespace {

using tools::Ticks;

struct EchoMemory {
  Ring to_peer;
  Ring to_us;
};

void echo(EchoMemory* memory) {
  char payload[sizeof(Slot::payload)];
  for (uint64_t n = 0;; ++n) {
    Slot& in = memory->to_peer[n % kSlots];
    uint64_t sequence;
    while ((sequence = in.sequence.load(std::memory_order_acquire)) != n + 1) {
      if (sequence == kStop) return;
    }
    memcpy(payload, in.payload, sizeof(payload));
    Slot& out = memory->to_us[n % kSlots];
    memcpy(out.payload, payload, sizeof(payload));
    out.sequence.store(n + 1, std::memory_order_release);
  }
}

constexpr uint64_t kWindow = 256;

// Messages that came back in a second, with so many under way. `n` have been sent and are back.
RateRow echo_rate(EchoMemory* memory, const Options& options, uint64_t& n) {
  const uint64_t warm_up_end = tools::monotonic_ns() + static_cast<uint64_t>(options.seconds * 1e8);
  const uint64_t end = warm_up_end + static_cast<uint64_t>(options.seconds * 1e9);
  char payload[sizeof(Slot::payload)] = {};
  uint64_t sent = n, counted_from = 0, first_ns = 0, now = 0;
  const auto is_back = [&] {
    const Slot& in = memory->to_us[n % kSlots];
    if (in.sequence.load(std::memory_order_acquire) != n + 1) return false;
    memcpy(payload, in.payload, sizeof(payload));
    ++n;
    return true;
  };
  while ((now = tools::monotonic_ns()) < end) {
    if (first_ns == 0 && now >= warm_up_end) {
      first_ns = now;
      counted_from = n;
    }
    for (; sent - n < kWindow; ++sent) {
      Slot& out = memory->to_peer[sent % kSlots];
      memcpy(out.payload, payload, sizeof(payload));
      out.sequence.store(sent + 1, std::memory_order_release);
    }
    while (is_back()) {
    }
  }
  const double per_ns = static_cast<double>(n - counted_from) / static_cast<double>(now - first_ns);
  while (n != sent) is_back();
  return {"echo, " + std::to_string(kWindow) + " under way", per_ns * sizeof(payload) * 8, per_ns * 1e9, 0};
}

constexpr size_t kBlockBytes = 4096;
constexpr size_t kBlocks = (8 << 20) / kBlockBytes;
constexpr size_t kCreditEvery = 16;
constexpr size_t kUserBytes = 64 << 10;  // what the two applications read from and write to

struct CopyMemory {
  char blocks[kBlocks][kBlockBytes];
  Slot headers[kBlocks];
  alignas(128) std::atomic<uint64_t> consumed;
  alignas(128) std::atomic<uint64_t> stop;
};

void produce(CopyMemory* memory) {
  const std::unique_ptr<char[]> source(new char[kUserBytes]);
  memset(source.get(), 0x5a, kUserBytes);
  uint64_t free_until = kBlocks;
  for (uint64_t n = 0;; ++n) {
    while (n >= free_until) {
      free_until = memory->consumed.load(std::memory_order_acquire) + kBlocks;
      if (memory->stop.load(std::memory_order_relaxed) != 0) return;
    }
    memcpy(memory->blocks[n % kBlocks], source.get() + n * kBlockBytes % kUserBytes, kBlockBytes);
    memory->headers[n % kBlocks].sequence.store(n + 1, std::memory_order_release);
  }
}

}  // namespace

void run_spsc(const Options& options, Report& report) {
  report.size_bytes = sizeof(Slot);
  const Shared<EchoMemory> memory;
  Peer peer(options.cpu_peer, [&] { echo(memory.operator->()); });
  if (!tools::pin_to_cpu(options.cpu_near)) fail("pin to CPU " + std::to_string(options.cpu_near));

  LatencyRow row{"SPSC slots of 64 B", {}};
  const double ns_per_tick = Ticks::ns_per_tick();
  const uint64_t ticks = static_cast<uint64_t>(options.seconds * 1e9 / ns_per_tick);
  const uint64_t warm_up_end = Ticks::now() + ticks / 10;
  const uint64_t end = warm_up_end + ticks;
  char payload[sizeof(Slot::payload)] = {};
  uint64_t n = 0;
  for (uint64_t now = Ticks::now(); now < end; ++n) {
    Slot& out = memory->to_peer[n % kSlots];
    memcpy(out.payload, payload, sizeof(payload));
    out.sequence.store(n + 1, std::memory_order_release);
    Slot& in = memory->to_us[n % kSlots];
    while (in.sequence.load(std::memory_order_acquire) != n + 1) {
    }
    memcpy(payload, in.payload, sizeof(payload));
    const uint64_t then = Ticks::now();
    if (now > warm_up_end)
      row.round_trip_ns.record(static_cast<uint64_t>(static_cast<double>(then - now) * ns_per_tick));
    now = then;
  }
  report.latency.push_back(row);
  report.rate.push_back(echo_rate(memory.operator->(), options, n));
  memory->to_peer[n % kSlots].sequence.store(kStop, std::memory_order_release);
  peer.join();
}

void run_spsc_bandwidth(const Options& options, Report& report) {
  report.size_bytes = kBlockBytes;
  const Shared<CopyMemory> memory;
  Peer peer(options.cpu_peer, [&] { produce(memory.operator->()); });
  if (!tools::pin_to_cpu(options.cpu_near)) fail("pin to CPU " + std::to_string(options.cpu_near));

  const std::unique_ptr<char[]> target(new char[kUserBytes]);
  const uint64_t start = tools::monotonic_ns();
  const uint64_t warm_up_end = start + static_cast<uint64_t>(options.seconds * 1e8);
  const uint64_t end = warm_up_end + static_cast<uint64_t>(options.seconds * 1e9);
  uint64_t counted_from = 0;
  uint64_t first_ns = 0;
  uint64_t now = start;
  uint64_t n = 0;
  while (now < end) {
    if (first_ns == 0 && now >= warm_up_end) {
      first_ns = now;
      counted_from = n;
    }
    for (size_t i = 0; i < kCreditEvery; ++i, ++n) {
      while (memory->headers[n % kBlocks].sequence.load(std::memory_order_acquire) != n + 1) {
      }
      memcpy(target.get() + n * kBlockBytes % kUserBytes, memory->blocks[n % kBlocks], kBlockBytes);
    }
    memory->consumed.store(n, std::memory_order_release);
    now = tools::monotonic_ns();
  }
  memory->stop.store(1);
  peer.join();
  const double messages_per_ns = static_cast<double>(n - counted_from) / static_cast<double>(now - first_ns);
  report.rate.push_back(
      {"copy in + copy out, 4 KiB blocks over 8 MiB", messages_per_ns * kBlockBytes * 8, messages_per_ns * 1e9, 0});
}

}  // namespace ub::floor
