// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <atomic>

#include "tools/common/probe.h"
#include "tools/perf/idle.h"
#include "tools/perf/meter.h"
#include "tools/perf/pattern.h"
#include "tools/perf/tests.h"

namespace ub::tools {
namespace {

void make_room(Endpoint& endpoint, Peer& peer) {
  Idle idle(peer);
  while (endpoint.room(0) == 0) {
    if (endpoint.reap() == 0) idle();
  }
}

void drain(Endpoint& endpoint, Peer& peer) {
  Idle idle(peer);
  while (endpoint.outstanding() != 0) {
    if (endpoint.reap() == 0) idle();
  }
}

// Waits for the message that ends with `seed`. False: the peer has something to say instead.
// `drive`: call the library meanwhile; otherwise only the library's own thread moves the NIC.
bool wait_for_write(const Options& o, Endpoint& endpoint, uint8_t seed, bool drive, Idle& idle) {
  const uint64_t size = endpoint.layout().size;
  const uint8_t* in = endpoint.in_slot(0, 0);
  const volatile uint8_t* last = in + size - 1;
  idle.progress();
  while (*last != seed) {
    if (drive) endpoint.reap();
    if (drive ? idle() : idle.quietly()) return false;
  }
  std::atomic_thread_fence(std::memory_order_acquire);
  if (o.verify) {
    const size_t at = check_pattern(in, size, seed);
    if (at != size) endpoint.count_error(fmt::format("WRITE of {} bytes: byte {} came after the last one", size, at));
  }
  return true;
}

bool wait_for_send(const Options& o, Endpoint& endpoint, Idle& idle) {
  idle.progress();
  while (endpoint.receive() == 0) {
    if (o.events) endpoint.wait_event(true);
    if (o.events ? idle.now() : idle()) return false;
  }
  return true;
}

void wait_for_end(const Options& o, Endpoint& endpoint, Idle& idle) {
  idle.progress();
  while (endpoint.outstanding() != 0) {
    if (endpoint.reap() != 0) continue;
    if (o.events) endpoint.wait_event(false);
    if (o.events) {
      idle.now();
    } else {
      idle();
    }
  }
}

void one_round(const Options& o, Endpoint& endpoint, Peer& peer, Idle& idle) {
  if (stop_requested) [[unlikely]]
    throw_if_stopped();
  if (endpoint.room(0) == 0) make_room(endpoint, peer);
  endpoint.post(0, 1);
  if (!o.ping_pong()) return wait_for_end(o, endpoint, idle);
  const bool poll = o.waiting == Waiting::kPoll;
  if (o.waiting == Waiting::kCompleted) wait_for_end(o, endpoint, idle);
  const bool answered = o.verb == Verb::kSend
                            ? wait_for_send(o, endpoint, idle)
                            : wait_for_write(o, endpoint, static_cast<uint8_t>(endpoint.posted(0)), poll, idle);
  if (!poll) endpoint.reap();
  if (!answered) throw ToolError("the peer ended the test early");
}

}  // namespace

Json measure_latency(const Options& o, Endpoint& endpoint, Peer& peer, LatestTimes* trace_times) {
  auto times = std::make_unique<Histogram>();
  const double ns_per_tick = Ticks::ns_per_tick();
  const bool timed = o.duration_s > 0;
  const uint64_t rounds = timed ? UINT64_MAX : o.warmup + o.iterations_for(endpoint.layout().size);
  Idle idle(peer);
  for (uint64_t i = 0; i < o.warmup; ++i) one_round(o, endpoint, peer, idle);
  const uint64_t start = Ticks::now();
  const uint64_t end = timed ? start + static_cast<uint64_t>(o.duration_s * 1e9 / ns_per_tick) : UINT64_MAX;
  uint64_t last = start;
  for (uint64_t i = o.warmup; i < rounds && last < end; ++i) {
    one_round(o, endpoint, peer, idle);
    const uint64_t now = Ticks::now();
    times->record(now - last);
    if (trace_times != nullptr) trace_times->add(now - last);
    last = now;
  }
  drain(endpoint, peer);

  return latency_row(*times, endpoint.layout().size, o.ping_pong() ? 2 : 1);
}

void answer_latency(const Options& o, Endpoint& endpoint, Peer& peer) {
  if (!o.ping_pong()) return answer_bandwidth(o, endpoint, peer);
  Idle idle(peer, Idle::kNoLimit);
  const bool drive = o.target_mode == TargetMode::kPoll && o.waiting == Waiting::kPoll;
  for (;;) {
    const auto seed = static_cast<uint8_t>(endpoint.posted(0) + 1);
    const bool came =
        o.verb == Verb::kWrite ? wait_for_write(o, endpoint, seed, drive, idle) : wait_for_send(o, endpoint, idle);
    if (!came) break;
    if (stop_requested) [[unlikely]]
      throw_if_stopped();
    if (endpoint.room(0) == 0) make_room(endpoint, peer);
    if (o.waiting == Waiting::kSpin) endpoint.reap();
    endpoint.post(0, 1);
    if (o.waiting == Waiting::kCompleted) wait_for_end(o, endpoint, idle);
  }
  drain(endpoint, peer);
}

}  // namespace ub::tools
