// SPDX-License-Identifier: Apache-2.0
//
// roce_perf: two processes measure one RoCE operation between them, as urma_perf measures UB. Nothing but the measured
// operations goes over RoCE; what they tell each other goes over TCP.
#include <fmt/format.h>

#include <optional>

#include "tools/common/json_file.h"
#include "tools/common/probe.h"
#include "tools/common/tool_error.h"
#include "tools/roce_perf/test.h"

namespace ub::roce_perf {
namespace {

constexpr int kStepMs = 60'000;

tools::TcpSocket meet(const Options& o) {
  if (o.client()) return tools::TcpSocket::connect(o.server, o.port);
  tools::TcpListener listener(o.port);
  fmt::print("waiting for a client on TCP port {}\n", listener.port());
  std::fflush(stdout);
  return listener.accept();
}

Json probe() {
  const tools::C2cProbe found = tools::probe_c2c(0, 1);
  return {{"mode", found.mode()}, {"median_ns", found.median_ns}};
}

Json run_client(Test& test, tools::Peer& peer) {
  Json document = {{"tool", "roce_perf"}, {"version", UB_VERSION}, {"c2c_before", probe()}};
  document["results"] = Json::array({test.measure(peer)});
  document["c2c_after"] = probe();
  return document;
}

void print(const Options& o, const Json& row) {
  if (o.bandwidth) {
    fmt::print("{} {} bytes: {:.3f} million messages a second, {:.1f} MB/s\n", o.name, o.size,
               row.at("msg_rate_mpps").get<double>(), row.at("bw_average_mib_s").get<double>());
  } else {
    fmt::print("{} {} bytes: {:.2f} us typical, {:.2f} average, {:.2f} at 99 %\n", o.name, o.size,
               row.at("t_typical_us").get<double>(), row.at("t_avg_us").get<double>(), row.at("p99_us").get<double>());
  }
}

void run(const Options& o) {
  std::optional<tools::JsonFile> json_file;
  if (!o.json_file.empty()) json_file.emplace(o.json_file);
  Test test(o);
  tools::Peer peer(meet(o), "roce_perf", "the peer");
  try {
    peer.send("introduction", test.introduction());
    test.connect(peer.expect("introduction", kStepMs));
    peer.send("ready");
    peer.expect("ready", kStepMs);
    if (o.client()) {
      const Json document = run_client(test, peer);
      print(o, document.at("results").at(0));
      if (json_file) json_file->write(document);
      peer.send("done");
    } else {
      test.answer(peer);
      peer.expect("done", kStepMs);
    }
    test.check_data();
    fmt::print("{}\n", test.counters());
    // Nobody tears down what the other one still uses.
    peer.send("bye");
    peer.expect("bye", kStepMs);
  } catch (const std::exception& e) {
    peer.end_with(e);
  }
}

}  // namespace
}  // namespace ub::roce_perf

int main(int argc, char** argv) try {
  ub::tools::install_stop_handler();
  const ub::roce_perf::Options options = ub::roce_perf::parse_options(argc, argv);
  ub::roce_perf::run(options);
  return ub::tools::kExitOk;
} catch (const std::exception& e) {
  fmt::print(stderr, "roce_perf: {}\n", e.what());
  return ub::tools::exit_code_of(e);
}
