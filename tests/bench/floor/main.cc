// SPDX-License-Identifier: Apache-2.0
//
// ub_floor: raw paths of this machine. Exit status 77 (skipped) with fewer than two CPUs.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "tests/bench/floor/floor.h"

int main(int argc, char** argv) {
  using namespace ub::floor;
  constexpr int kSkipped = 77;

  Options options;
  Report report;
  bool json = false;
  std::vector<int> cpus;
  void (*run)(const Options&, Report&) = nullptr;

  CLI::App app("What the raw paths of this machine reach between two processes on two CPUs.");
  app.require_subcommand(1);
  app.fallthrough();
  app.add_flag("--json", json, "Print one JSON object instead of the table");
  app.add_option("-t,--seconds", options.seconds, "Length of each measurement")
      ->check(CLI::Range(0.001, 3600.0))
      ->capture_default_str();
  app.add_flag("--unpinned", options.unpinned, "Leave it to the kernel where the processes run");
  app.add_option("--cpus", cpus, "Two CPUs (default: the first two that are allowed)")->expected(2)->delimiter(',');

  auto add = [&](const char* name, const char* help, void (*bench)(const Options&, Report&)) {
    CLI::App* command = app.add_subcommand(name, help);
    command->callback([&report, &run, name, bench] {
      report.bench = name;
      run = bench;
    });
    return command;
  };
  add("c2c", "One cache line between two threads: tells near from far", nullptr);
  add("spsc", "Echo over rings of 64-byte slots in shared memory", run_spsc);
  add("spsc-bw", "Copy in and copy out of a ring in shared memory", run_spsc_bandwidth);
  CLI::App* copy = add("copy", "One memcpy into memory that the other process maps, and out of it", run_copy);
  add("relay", "Echo through a daemon on either side: four processes, each yields when it finds nothing", run_relay);
  add("helper", "Both processes spin on their memory; beside each a thread sleeps that moves the word", run_helper);
  add("placement", "The same, but the sender writes into the other process", run_placement);
  add("eventfd", "Both processes sleep on an eventfd", run_eventfd);
  CLI::App* udp = add("udp", "Echo over UDP sockets, polling; with --bw throughput", run_udp);
  CLI::App* tcp = add("tcp", "Echo over TCP sockets, polling and blocking, and a 64 KiB stream", run_tcp);
  for (CLI::App* command : {udp, tcp}) {
    command->add_flag("--bw", options.bandwidth, "Measure throughput one way only");
    command->add_option("-s,--size", options.size_bytes, "Bytes per message (default 64; UDP throughput 1472)")
        ->check(CLI::Range(1, command == udp ? 65507 : 1 << 20));
    command->add_option("--address", options.address, "IP address of the measuring side")->capture_default_str();
    command->add_option("--peer-address", options.peer_address, "IP address of the other side")->capture_default_str();
  }
  copy->add_option("-s,--size", options.size_bytes, "Bytes per copy (default 65536)")->check(CLI::Range(1, 1 << 20));
  udp->add_flag("--blocking", options.blocking, "Sleep until a datagram comes, instead of polling");
  udp->add_flag("--unconnected", options.unconnected,
                "Sockets that name the peer of every datagram (sendto, recvfrom)");
  udp->add_option("--batch", options.batch, "Datagrams per system call of --bw")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);

  if (cpus.empty()) cpus = ub::tools::allowed_cpus();
  if (cpus.size() < 2 || cpus[0] == cpus[1]) {
    fprintf(stderr, "ub_floor: needs two CPUs, skipped\n");
    return kSkipped;
  }
  options.cpu_near = cpus[0];
  options.cpu_peer = cpus[1];
  try {
    report.before = ub::tools::probe_c2c(options.cpu_near, options.cpu_peer);
    if (run != nullptr) run(options, report);
    report.after = ub::tools::probe_c2c(options.cpu_near, options.cpu_peer);
  } catch (const std::exception& error) {
    fprintf(stderr, "ub_floor: %s\n", error.what());
    return 1;
  }
  json ? print_json(report) : print_table(report);
  return 0;
}
