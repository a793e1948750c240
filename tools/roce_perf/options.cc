// SPDX-License-Identifier: Apache-2.0
#include "tools/roce_perf/options.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <map>

namespace ub::roce_perf {
namespace {

const std::map<std::string, std::pair<Verb, bool>> kTests = {
    {"write_lat", {Verb::kWrite, false}}, {"write_bw", {Verb::kWrite, true}}, {"read_lat", {Verb::kRead, false}},
    {"read_bw", {Verb::kRead, true}},     {"send_lat", {Verb::kSend, false}}, {"send_bw", {Verb::kSend, true}}};

const char* const kExamples = R"(Examples:
  roce_perf write_lat -s 64                    the server; it ends after one test
  roce_perf write_lat -s 64 server-host        the side that measures
Both sides need the same test, sizes and numbers. Times of write_lat and send_lat are half a round trip, those of
read_lat and of write_lat --to-completion the whole operation. The NIC is that of the configuration files and of the
environment (SOFTUB_DPDK_DEVICE ...). Each process needs an address of its own, so on one host:
  SOFTUB_DEVICE_EIDS=127.0.0.1 roce_perf write_lat
  SOFTUB_DEVICE_EIDS=127.0.0.2 roce_perf write_lat localhost
Exit codes: 0 good, 1 failed, 2 wrong usage, 3 peer lost, 4 wrong data, 130 interrupted.)";

}  // namespace

Options parse_options(int argc, char** argv) {
  Options o;
  CLI::App app("Latency and rate of RoCEv2 between two processes, over one reliable queue pair", "roce_perf");
  app.footer(kExamples);
  app.set_version_flag("--version", UB_VERSION);
  app.add_option("test", o.name, "write_lat, write_bw, read_lat, read_bw, send_lat or send_bw")
      ->required()
      ->check(CLI::IsMember(kTests));
  app.add_option("server", o.server, "Where the other side listens; left out, we do");
  app.add_option("-p,--port", o.port, "TCP port, to get to know each other (18516)");
  app.add_option("-s,--size", o.size, "Bytes of a message (64)")->check(CLI::Range(1u, 1u << 30));
  app.add_option("-n,--iterations", o.iterations, "Messages (10000)")->check(CLI::Range(1u, 1'000'000'000u));
  app.add_option("-t,--tx-depth", o.depth, "Requests in flight, of a bandwidth test (64)")
      ->check(CLI::Range(1u, 4096u));
  app.add_option("--reads", o.reads, "READs in flight (16)")->check(CLI::Range(1u, 16u));
  app.add_flag("--to-completion", o.to_completion, "write_lat: until the acknowledgement is here");
  app.add_option("--json", o.json_file, "Write the result to this file, too");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    std::exit(app.exit(e) == 0 ? 0 : 2);
  }
  std::tie(o.verb, o.bandwidth) = kTests.at(o.name);
  if (o.to_completion && o.name != "write_lat") {
    std::fprintf(stderr, "roce_perf: --to-completion is for write_lat\n");
    std::exit(2);
  }
  return o;
}

}  // namespace ub::roce_perf
