// SPDX-License-Identifier: Apache-2.0
//
// Invented instances, for tests of what is made of statistics pages.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>

#include "tools/admin/instance_pages.h"

namespace ub::tools {

constexpr uint64_t kInventedStart = 1'700'000'000'000'000'000;  // nanoseconds since 1970
constexpr uint64_t kInventedSecond = 1'000'000'000;

inline void set_v4(uint8_t (&field)[16], uint8_t last) {
  constexpr uint8_t kMapped[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0};
  std::copy(std::begin(kMapped), std::end(kMapped), field);
  field[15] = last;
}

// Alive, with two counters and without objects; its page was renewed once, a second after it began.
inline Instance invented_instance(uint8_t last = 1) {
  Instance i;
  i.name = "10.0.0." + std::to_string(last) + "-4792";
  i.alive = true;
  i.report.pid = 100 + last;
  i.report.program = "perf";
  i.report.placement = "embedded";
  i.report.wires = "shm, udp";
  i.report.device = "softub0";
  i.report.uasid = 0xab;
  i.report.started_ns = kInventedStart;
  i.report.updated_ns = kInventedStart + kInventedSecond;
  i.report.updates = 1;
  i.report.counters = {{"rx.packets", 7}, {"core.away_us", 1'500'000}};
  return i;
}

inline StatsChannel invented_channel(uint32_t tpn) {
  StatsChannel c{};
  c.tpn = tpn;
  set_v4(c.peer_eid, 9);
  set_v4(c.remote_ip, 9);
  c.remote_port = 4793;
  c.state = 3;
  c.next_psn = 30;
  c.oldest_unacked = 20;
  c.tx_packets = 1000;
  c.smoothed_rtt_ns = 25'000;
  c.window_packets = 64;
  c.paths = 1;
  std::strcpy(c.congestion_control, "swift");
  return c;
}

inline StatsApp invented_app(uint32_t pid, uint64_t posts) {
  StatsApp a;
  a.pid = pid;
  a.posts = posts;
  a.segments = 2;
  a.longest_starved_ms = 20;
  std::strcpy(a.program, "worker");
  return a;
}

}  // namespace ub::tools
