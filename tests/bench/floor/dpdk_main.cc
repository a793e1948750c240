// SPDX-License-Identifier: Apache-2.0
//
// ub_floor_dpdk: what DPDK's drivers reach on this machine. Exit status 77 (skipped) with fewer than two CPUs.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "tests/bench/floor/dpdk.h"

int main(int argc, char** argv) {
  using namespace ub::floor;
  constexpr int kSkipped = 77;

  Options options;
  Report report;
  Devices devices;
  bool json = false;
  std::vector<int> cpus;
  std::vector<std::string> interfaces;
  std::string socket = "ub-floor-" + std::to_string(getpid());

  CLI::App app("What DPDK's drivers reach between two processes on two CPUs, without hugepages.");
  app.require_subcommand(1);
  app.fallthrough();
  app.add_flag("--json", json, "Print one JSON object instead of the table");
  app.add_option("-t,--seconds", options.seconds, "Length of each measurement")
      ->check(CLI::Range(0.001, 3600.0))
      ->capture_default_str();
  app.add_option("--cpus", cpus, "Two CPUs (default: the first two that are allowed)")->expected(2)->delimiter(',');

  CLI::App* memif = app.add_subcommand("memif", "Echo over shared memory of two memif devices; with --bw throughput");
  CLI::App* af_packet = app.add_subcommand("af_packet", "The same over a veth pair by packet sockets; needs root");
  CLI::App* af_xdp = app.add_subcommand("af_xdp", "The same with AF_XDP");
  for (CLI::App* command : {memif, af_packet, af_xdp}) {
    command->add_flag("--bw", options.bandwidth, "Measure throughput one way only");
    command->add_flag("--copied", options.copied,
                      "With --bw: copy payload from memory of the sender, and to memory of the receiver");
    command
        ->add_option("-s,--size", options.size_bytes,
                     "Bytes per frame (default for --bw: 4144 over memif, else 1088; the echo takes 64 and, if given, "
                     "this)")
        ->check(CLI::Range(kSmallFrame, kMaxFrame));
    if (command == memif) continue;
    command->add_option("interfaces", interfaces, "The two ends, up: that of the receiver first")
        ->expected(2)
        ->required();
  }
  CLI11_PARSE(app, argc, argv);

  if (cpus.empty()) cpus = ub::tools::allowed_cpus();
  if (cpus.size() < 2 || cpus[0] == cpus[1]) {
    fprintf(stderr, "ub_floor_dpdk: needs two CPUs, skipped\n");
    return kSkipped;
  }
  options.cpu_near = cpus[0];
  options.cpu_peer = cpus[1];
  if (memif->parsed()) {
    report.bench = "memif";
    const std::string arguments = ",socket=" + socket + ",bsize=8192";
    devices = {"net_memif0,role=server" + arguments, "net_memif0,role=client" + arguments};
  } else {
    report.bench = af_xdp->parsed() ? "af_xdp" : "af_packet";
    const std::string driver = "net_" + report.bench + "0,iface=";
    const std::string arguments = af_xdp->parsed() ? "" : ",framesz=2048,framecnt=512,qdisc_bypass=1";
    devices = {driver + interfaces[0] + arguments, driver + interfaces[1] + arguments};
  }
  if (options.size_bytes == 0) {
    const size_t packet = memif->parsed() ? kPacketFrame : kVethFrame;
    options.size_bytes = options.bandwidth ? packet : kSmallFrame;
  }
  try {
    report.before = ub::tools::probe_c2c(options.cpu_near, options.cpu_peer);
    (options.bandwidth ? run_dpdk_one_way : run_dpdk_echo)(options, devices, report);
    report.after = ub::tools::probe_c2c(options.cpu_near, options.cpu_peer);
  } catch (const std::exception& error) {
    fprintf(stderr, "ub_floor_dpdk: %s\n", error.what());
    return 1;
  }
  json ? print_json(report) : print_table(report);
  return 0;
}
