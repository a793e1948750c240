// SPDX-License-Identifier: Apache-2.0
//
// urma_perf: two processes measure one operation between them. Both walk through the same steps:
//   options compared -> jettys and memory exchanged -> for each size { prepare, ready, run, done, check, ok }
// Nothing but the measured operations goes over URMA; all steps go over TCP.
#include <fmt/format.h>
#include <softub_api.h>
#include <unistd.h>

#include <fstream>
#include <optional>

#include "tools/common/affinity.h"
#include "tools/common/json_file.h"
#include "tools/common/tool_error.h"
#include "tools/perf/endpoint.h"
#include "tools/perf/options.h"
#include "tools/perf/report.h"
#include "tools/perf/tests.h"
#include "tools/perf/trace.h"

namespace ub::tools {
namespace {

constexpr int kStepMs = 60'000;

std::string host_id() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  return id;
}

// Between the CPUs of both sides if they are on this host and pinned, else the first two.
C2cProbe probe(const Options& o, const Json& peer, const std::vector<int>& cpus) {
  const int theirs = peer.value("host", "") == host_id() ? peer.value("cpu", -1) : -1;
  int a = o.cpu >= 0 ? o.cpu : cpus.empty() ? 0 : cpus[0];
  int b = theirs;
  if (b < 0 || b == a) {
    b = a == 0 ? 1 : 0;
    for (int cpu : cpus) {
      if (cpu != a) {
        b = cpu;
        break;
      }
    }
  }
  return probe_c2c(a, b);
}

TcpSocket meet(const Options& o) {
  if (o.client()) return TcpSocket::connect(o.server, o.port);
  TcpListener listener(o.port);
  fmt::print("waiting for a client on TCP port {}\n", listener.port());
  std::fflush(stdout);
  return listener.accept();
}

Json exchange_hello(const Options& o, Peer& peer) {
  peer.send("hello", {{"options", common_options(o)},
                      {"host", host_id()},
                      {"cpu", o.cpu},
                      {"target_mode", target_mode_name(o.target_mode)}});
  Json theirs = peer.expect("hello", kStepMs);
  if (std::string difference = compare_options(common_options(o), theirs.value("options", Json()));
      !difference.empty()) {
    throw ToolError(kExitUsage, "both sides must agree: " + difference);
  }
  return theirs;
}

// One size. Returns the row of the table: ours, the peer's, or the sum.
Json run_size(const Options& o, Endpoint& endpoint, Peer& peer, uint64_t size, LatestTimes* trace_times) {
  endpoint.prepare(size);
  peer.send("ready", {{"bytes", size}});
  if (peer.expect("ready", kStepMs).value("bytes", uint64_t{0}) != size) throw ToolError("the peer is at another size");

  const bool active = o.client() || o.bidirectional, passive = !o.client() || o.bidirectional;
  Json row, their_row;
  if (active) {
    const softub_transports_t before = endpoint.transports();
    if (o.by_aperture()) {
      row = o.verb == Verb::kMap ? measure_window(o, endpoint) : measure_aperture(o, endpoint);
      row["transport"] = serving_path(o, endpoint);
    } else {
      row = o.bandwidth ? measure_bandwidth(o, endpoint, peer) : measure_latency(o, endpoint, peer, trace_times);
      row["transport"] = transport_between(before, endpoint.transports());
    }
    std::vector<uint64_t> posted;
    for (uint32_t j = 0; j < o.jettys; ++j) posted.push_back(endpoint.posted(j));
    if (!passive && o.verb != Verb::kSend) {
      // What a target that spins on memory waits for.
      endpoint.write_control(Endpoint::kDone, 1);
      while (!endpoint.control_idle()) throw_if_stopped();
    }
    peer.send("done", {{"posted", posted}, {"sent", endpoint.messages_sent()}, {"row", row}});
  }
  if (passive) {
    if (o.bandwidth) {
      answer_bandwidth(o, endpoint, peer);
    } else {
      answer_latency(o, endpoint, peer);
    }
    const Json done = peer.expect("done");
    if (o.verb == Verb::kSend) receive_rest(endpoint, peer, done.at("sent").get<uint64_t>());
    if (o.verify) endpoint.check_target_memory(done.at("posted").get<std::vector<uint64_t>>());
    their_row = done.at("row");
  }
  peer.send("ok", {{"errors", endpoint.errors()}, {"first_error", endpoint.first_error()}});
  const Json ok = peer.expect("ok", kStepMs);
  const uint64_t their_errors = ok.value("errors", uint64_t{0});
  if (endpoint.errors() + their_errors != 0) {
    throw ToolError(kExitWrongData,
                    fmt::format("wrong data: {} errors here, {} at the peer; {}", endpoint.errors(), their_errors,
                                endpoint.errors() != 0 ? endpoint.first_error() : ok.value("first_error", "")));
  }
  return row.is_null() ? their_row : their_row.is_null() ? row : sum_of_rows(row, their_row);
}

int run(const Options& o) {
  const std::vector<int> cpus = allowed_cpus();
  std::optional<JsonFile> json_file;
  if (!o.json_file.empty()) json_file.emplace(o.json_file);
  want_statistics_for_trace(o);
  Endpoint endpoint(o);
  std::optional<Trace> trace;
  if (!o.trace_file.empty()) trace.emplace(o, endpoint.progress(), endpoint.uasid());
  // Only now: the library's own thread may run anywhere.
  if (o.cpu >= 0 && !pin_to_cpu(o.cpu))
    throw ToolError(kExitUsage, fmt::format("--cpu {}: there is no such CPU for us", o.cpu));
  Peer peer(meet(o), "urma_perf", "the peer");
  try {
    const Json hello = exchange_hello(o, peer);
    peer.send("introduction", endpoint.introduction());
    const Json introduction = peer.expect("introduction", kStepMs);
    endpoint.connect(introduction);
    if (o.stalled && o.client()) endpoint.stall();

    const std::string target_mode = o.client() ? hello.value("target_mode", "poll") : target_mode_name(o.target_mode);
    Json document = {{"tool", "urma_perf"},
                     {"version", UB_VERSION},
                     {"options", common_options(o)},
                     {"device", endpoint.device_name()},
                     {"eid", endpoint.eid()},
                     {"peer_eid", introduction.value("eid", "?")},
                     {"inline", endpoint.inline_bytes()},
                     {"tx_depth", o.tx_depth},
                     {"post_list", o.post_list},
                     {"cq_mod", o.cq_mod},
                     {"strong_percent", o.strong_percent},
                     {"ctp", o.ctp},
                     {"events", o.events},
                     {"epoll", o.epoll},
                     {"target_mode", target_mode},
                     {"placement", softub_placement()},
                     {"own_memory", o.own_memory},
                     {"shared_memory", o.shared_memory},
                     {"results", Json::array()}};
    fmt::print("# urma_perf {}: {} {} -> {}, {}, {} jetty{}{}, tx depth {}, inline {}, target: {}{}{}\n", o.test,
               endpoint.device_name(), endpoint.eid(), introduction.value("eid", "?"), o.rc ? "RC" : "RM", o.jettys,
               o.jettys > 1 ? "s" : "", o.stalled ? " and a stalled one" : "", o.tx_depth, endpoint.inline_bytes(),
               target_mode, o.bidirectional ? ", both directions" : "", o.verify ? ", verified" : "");
    if (std::string(softub_placement()) != "embedded") {
      fmt::print("# NIC: {}, memory {}\n", softub_placement(), o.own_memory      ? "of the process"
                 : o.shared_memory ? "that others may map"
                                   : "shared with it");
    }
    if (o.client()) {
      const C2cProbe before = probe(o, hello, cpus);
      document["c2c_before"] = probe_json(before);
      fmt::print("# core to core before: {}\n", describe_probe(before));
    }
    print_table_head(o);
    if (trace) trace->begin();
    for (uint64_t size : o.sizes) {
      const Json row = run_size(o, endpoint, peer, size, trace ? &trace->times() : nullptr);
      print_row(o, row);
      document["results"].push_back(row);
    }
    if (trace) trace->end();
    fmt::print("# transport: {}{}\n", describe_transports(document["results"]), o.ctp ? "; CTP was asked for" : "");
    if (o.client()) {
      const C2cProbe after = probe(o, hello, cpus);
      document["c2c_after"] = probe_json(after);
      fmt::print("# core to core after: {}\n", describe_probe(after));
    }
    // Nobody tears down what the other one still uses.
    peer.send("bye");
    peer.expect("bye", kStepMs);
    if (json_file) json_file->write(document);
  } catch (const std::exception& e) {
    peer.end_with(e);
  }
  return kExitOk;
}

}  // namespace
}  // namespace ub::tools

int main(int argc, char** argv) {
  using namespace ub::tools;
  int exit_code = kExitOk;
  const auto options = parse_options(argc, argv, &exit_code);
  if (!options) return exit_code;
  install_stop_handler();
  try {
    return run(*options);
  } catch (const std::exception& e) {
    fmt::print(stderr, "urma_perf: {}\n", e.what());
    return exit_code_of(e);
  }
}
