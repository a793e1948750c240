// SPDX-License-Identifier: Apache-2.0
//
// Two applications and two daemons without a protocol: app A <-> daemon A <-> daemon B <-> app B, four processes,
// each of the two CPUs with an application and its daemon. Who finds nothing yields: what it costs to have a NIC in a
// process of its own where there are as many cores as hosts.
#include <sched.h>

#include "tests/bench/floor/floor.h"
#include "tests/bench/floor/process.h"
#include "tests/bench/floor/slots.h"

namespace ub::floor {
namespace {

using tools::Ticks;

constexpr uint64_t kPatienceNs = 5'000'000'000;

struct RelayMemory {
  Ring a_to_daemon, daemon_to_daemon, daemon_to_b;
  Ring b_to_daemon, daemon_back, daemon_to_a;
};

bool forward(RingReader& in, RingWriter& out) {
  Payload payload;
  if (!in.take(payload)) return false;
  out.put(payload);
  return true;
}

[[noreturn]] void run_daemon(Ring& from_app, Ring& to_peer, Ring& from_peer, Ring& to_app) {
  RingReader app_in(from_app), peer_in(from_peer);
  RingWriter peer_out(to_peer), app_out(to_app);
  for (;;) {
    const bool sent = forward(app_in, peer_out);
    const bool received = forward(peer_in, app_out);
    if (!sent && !received) sched_yield();
  }
}

[[noreturn]] void run_echo(Ring& from_daemon, Ring& to_daemon) {
  RingReader in(from_daemon);
  RingWriter out(to_daemon);
  for (;;) {
    if (!forward(in, out)) sched_yield();
  }
}

}  // namespace

void run_relay(const Options& options, Report& report) {
  report.size_bytes = sizeof(Slot);
  const Shared<RelayMemory> shared;
  RelayMemory& m = *shared.operator->();
  const Peer app_b(peer_cpu(options), [&] { run_echo(m.daemon_to_b, m.b_to_daemon); });
  const Peer daemon_b(peer_cpu(options),
                      [&] { run_daemon(m.b_to_daemon, m.daemon_back, m.daemon_to_daemon, m.daemon_to_b); });
  const Peer daemon_a(near_cpu(options),
                      [&] { run_daemon(m.a_to_daemon, m.daemon_to_daemon, m.daemon_back, m.daemon_to_a); });
  pin(near_cpu(options));

  LatencyRow row{"SPSC slots of 64 B through two daemons", {}};
  const double ns_per_tick = Ticks::ns_per_tick();
  const auto ticks_of = [&](double ns) { return static_cast<uint64_t>(ns / ns_per_tick); };
  const uint64_t warm_up_end = Ticks::now() + ticks_of(options.seconds * 1e8);
  const uint64_t end = warm_up_end + ticks_of(options.seconds * 1e9);
  const uint64_t patience = ticks_of(kPatienceNs);
  RingWriter out(m.a_to_daemon);
  RingReader in(m.daemon_to_a);
  Payload payload = {};
  for (uint64_t now = Ticks::now(); now < end;) {
    out.put(payload);
    while (!in.take(payload)) {
      sched_yield();
      if (Ticks::now() - now > patience) throw std::runtime_error("one of the other processes does not answer");
    }
    const uint64_t then = Ticks::now();
    if (now > warm_up_end)
      row.round_trip_ns.record(static_cast<uint64_t>(static_cast<double>(then - now) * ns_per_tick));
    now = then;
  }
  report.latency.push_back(row);
}

}  // namespace ub::floor
