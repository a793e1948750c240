// SPDX-License-Identifier: Apache-2.0
#include "tools/roce_peer/options.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <map>

namespace ub::roce_peer {
namespace {

const std::map<std::string, Test> kTests = {
    {"rc_pingpong", Test::kRcPingpong}, {"uc_pingpong", Test::kUcPingpong}, {"ud_pingpong", Test::kUdPingpong},
    {"send_lat", Test::kSendLat},       {"send_bw", Test::kSendBw},         {"write_lat", Test::kWriteLat},
    {"write_bw", Test::kWriteBw},       {"read_lat", Test::kReadLat},       {"read_bw", Test::kReadBw},
    {"atomic_lat", Test::kAtomicLat},   {"atomic_bw", Test::kAtomicBw},     {"rping", Test::kRping},
};

const char* const kExamples = R"(Examples:
  roce_peer rc_pingpong                         for: ibv_rc_pingpong -d rxe0 -g 1 this-host
  roce_peer rc_pingpong -s 65536 other-host     with: ibv_rc_pingpong -d rxe0 -g 1 -s 65536, which was started there
  roce_peer write_bw -s 4096 -n 1000            for: ib_write_bw -d rxe0 -x 1 -F -s 4096 -n 1000 this-host
  roce_peer rping -n 100 10.77.0.2              with: rping -s -V -C 100; the address is that of its RoCE NIC
The NIC is that of the configuration files and of the environment (SOFTUB_DPDK_DEVICE ...), with RoCE on. Sizes,
iterations and MTU must be those of the other tool; perftest wants one size and one queue pair. The other tool connects
to, or listens at, an address of this host's kernel, except rping's, which meets the NIC itself.
Exit codes: 0 good, 1 failed, 2 wrong usage, 3 peer lost, 4 wrong data, 130 interrupted.)";

void set_defaults(Options* o) {
  const bool connected = o->test == Test::kRcPingpong || o->test == Test::kUcPingpong;
  const bool pingpong = connected || o->test == Test::kUdPingpong;
  const bool atomic = o->test == Test::kAtomicLat || o->test == Test::kAtomicBw;
  if (o->port == 0) o->port = o->test == Test::kRping ? 7174 : 18515;
  if (o->size == 0) {
    o->size = connected                      ? 4096
              : o->test == Test::kUdPingpong ? 1024
              : o->test == Test::kRping      ? 64
              : atomic                       ? 8
              : o->is_bandwidth()            ? 65536
                                             : 2;
  }
  if (o->iterations == 0) {
    o->iterations = pingpong || !o->is_bandwidth() ? 1000 : o->test == Test::kWriteBw ? 5000 : 1000;
  }
}

}  // namespace

Options parse_options(int argc, char** argv) {
  Options o;
  CLI::App app(
      "Plays the other end of ibv_{rc,uc,ud}_pingpong, perftest (ib_{send,write,read,atomic}_{lat,bw}) "
      "and rping against an unmodified tool, and compares the data.",
      "roce_peer");
  app.footer(kExamples);
  app.set_version_flag("--version", UB_VERSION);
  std::string test;
  app.add_option("test", test, "What the other side runs")->required()->check(CLI::IsMember(kTests));
  app.add_option("host", o.host, "Where the other tool listens; left out, we do");
  app.add_option("-p,--port", o.port, "TCP port (18515); of rping: the port of its service (7174)");
  app.add_option("-s,--size", o.size, "Bytes of a message")->check(CLI::Range(1u, 1u << 30));
  app.add_option("-n,--iterations", o.iterations, "Messages each way")->check(CLI::Range(1u, 100'000'000u));
  app.add_option("-m,--mtu", o.mtu, "Path MTU (the port's); of the pingpongs it is not agreed on")
      ->check(CLI::IsMember({256, 512, 1024, 2048, 4096}));
  app.add_option("-x,--gid-index", o.gid_index, "Which address of the NIC");
  app.add_option("-u,--qp-timeout", o.timeout,
                 "4.096 us * 2^n until we send again (14: 67 ms); seven times, then we fail")
      ->check(CLI::Range(0, 31));
  app.add_option("-t,--tx-depth", o.tx_depth, "Requests in flight (128)")->check(CLI::Range(1u, 8192u));
  app.add_option("-r,--rx-depth", o.rx_depth, "Receives posted (512)")->check(CLI::Range(1u, 8192u));
  std::string connection = "RC";
  app.add_option("-c,--connection", connection, "Of perftest's send and write: RC or UC, as there (RC)")
      ->check(CLI::IsMember({"RC", "UC"}));
  app.add_flag("--echo", o.echo, "A pingpong as the tools play it: what came goes back, and nothing is compared");
  app.add_option("--time-limit", o.time_limit_s, "Seconds for all of it (60)")->check(CLI::Range(0.1, 1e6));
  app.add_option("--linger", o.linger_s, "Seconds that we go on answering after the last message (0.5)")
      ->check(CLI::Range(0.0, 1e6));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    std::exit(app.exit(e) == 0 ? 0 : 2);
  }
  o.test = kTests.at(test);
  o.unreliable = connection == "UC";
  set_defaults(&o);
  if ((o.test == Test::kAtomicLat || o.test == Test::kAtomicBw) && o.size != 8) {
    std::fprintf(stderr, "atomics are 8 bytes long: leave -s out\n");
    std::exit(2);
  }
  const bool sends_or_writes = o.is_perftest() && o.test <= Test::kWriteBw;
  if (o.unreliable && !sends_or_writes) {
    std::fprintf(stderr, "-c UC goes with send_lat, send_bw, write_lat and write_bw\n");
    std::exit(2);
  }
  return o;
}

}  // namespace ub::roce_peer
