// SPDX-License-Identifier: Apache-2.0
//
// What the raw paths of this machine reach, without a NIC in between: the yardstick for our own numbers.
// Two processes (relay: four), pinned to two CPUs unless Options::unpinned. Every bench runs for Options::seconds per
// row, and the caller probes the distance of the CPUs before and after.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/histogram.h"
#include "tools/common/probe.h"

namespace ub::floor {

struct Options {
  int cpu_near = 0;  // of the process that measures
  int cpu_peer = 1;  // of the other one
  double seconds = 1;
  size_t size_bytes = 0;                   // 0: the default of the bench
  std::string address = "127.0.0.1";       // of the process that measures
  std::string peer_address = "127.0.0.1";  // of the other one
  bool bandwidth = false;
  bool unpinned = false;     // the kernel chooses the CPUs
  bool blocking = false;     // UDP: both sides sleep until something comes
  bool unconnected = false;  // UDP: a socket that could speak to many peers names one for each datagram
  bool copied = false;       // DPDK, one way: payload is copied from memory of the sender and to that of the receiver
  unsigned batch = 32;       // datagrams per system call
};

struct LatencyRow {
  std::string name;
  Histogram round_trip_ns;
};

struct RateRow {
  std::string name;
  double gbit_per_s = 0;  // payload that arrived
  double msgs_per_s = 0;
  double lost_percent = 0;
};

struct Report {
  std::string bench;
  size_t size_bytes = 0;
  tools::C2cProbe before, after;
  std::vector<LatencyRow> latency;
  std::vector<RateRow> rate;
};

// Each fills the rows. They throw std::runtime_error if the system refuses something.
void run_spsc(const Options& options, Report& report);
void run_spsc_bandwidth(const Options& options, Report& report);
void run_copy(const Options& options, Report& report);
void run_relay(const Options& options, Report& report);
void run_helper(const Options& options, Report& report);
void run_eventfd(const Options& options, Report& report);
void run_placement(const Options& options, Report& report);
void run_udp(const Options& options, Report& report);
void run_tcp(const Options& options, Report& report);

void print_table(const Report& report);
void print_json(const Report& report);

}  // namespace ub::floor
