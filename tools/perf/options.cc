// SPDX-License-Identifier: Apache-2.0
#include "tools/perf/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>

#include "tools/common/tool_error.h"

namespace ub::tools {
namespace {

constexpr uint64_t kMaxSize = 1ull << 30;
constexpr uint64_t kPage = 4096, kUsualWindow = 16u << 20;
constexpr double kMinSeconds = 0.001, kMaxSeconds = 1e6;

const char* const kExamples = R"(Examples:
  urma_perf write_lat -s 64                    on one host, the server; it ends after one test
  urma_perf write_lat -s 64 server-host        on another one, or in another shell
  urma_perf read_bw -a -D 2 server-host        all sizes, two seconds each
  urma_perf send_bw -s 4096 -l 8 -b --verify   both directions, every byte checked
  urma_perf read_lat --target-mode block       (server) its application sleeps while the NIC answers
Both sides need the same test and sizes; what differs is said. Times of ping-pong tests (write_lat, send_lat) are half
a round trip, those of read_lat, atomic_lat and write_lat --to-completion the whole operation. MB are 2^20 bytes.
Exit codes: 0 good, 1 failed, 2 wrong usage, 3 peer lost, 4 wrong data, 130 interrupted.)";

const std::map<std::string, std::pair<Verb, bool>> kTests = {
    {"write_lat", {Verb::kWrite, false}},   {"write_bw", {Verb::kWrite, true}},   {"read_lat", {Verb::kRead, false}},
    {"read_bw", {Verb::kRead, true}},       {"send_lat", {Verb::kSend, false}},   {"send_bw", {Verb::kSend, true}},
    {"atomic_lat", {Verb::kAtomic, false}}, {"atomic_bw", {Verb::kAtomic, true}}, {"load_lat", {Verb::kLoad, false}},
    {"load_bw", {Verb::kLoad, true}},       {"store_lat", {Verb::kStore, false}}, {"store_bw", {Verb::kStore, true}},
    {"map_lat", {Verb::kMap, false}},       {"map_bw", {Verb::kMap, true}}};

// Returns a sentence or "". That is no number is not in the range, either.
std::string check_duration(double seconds) {
  if (seconds >= kMinSeconds && seconds <= kMaxSeconds) return {};
  return fmt::format("-D {}: seconds, {} to {:.0f}", seconds, kMinSeconds, kMaxSeconds);
}

// What is for windows alone. Returns a sentence or "".
std::string check_window(const Options& o, bool all) {
  if (o.verb != Verb::kMap) {
    if (!o.uncached && o.cache_percent == 0 && o.prefetch < 0) return {};
    return "--way, --cache and --prefetch are for map_lat and map_bw";
  }
  if (all || o.max_size() % kPage != 0)
    return "-s is the size of the window, a multiple of 4096; -a is for other tests";
  if (o.uncached && (o.cache_percent != 0 || o.prefetch >= 0))
    return "an uncached window has no --cache and no --prefetch";
  return {};
}

// What the parser cannot express. Returns a sentence or "".
std::string check(Options& o, uint64_t size, bool all, const std::string& mode, const std::string& target_mode,
                  const std::string& atomic_type) {
  const bool passive_target = o.verb != Verb::kSend && !o.ping_pong();
  o.rc = mode == "rc";
  o.compare_swap = atomic_type == "CMP_AND_SWAP";
  o.target_mode = target_mode == "block"         ? TargetMode::kBlock
                  : target_mode == "spin-memory" ? TargetMode::kSpinMemory
                                                 : TargetMode::kPoll;
  if (o.verb == Verb::kAtomic) {
    if (all || (size != 0 && size != 8)) return "atomics are 8 bytes long: leave -s and -a out";
    o.sizes = {8};
  } else if (all) {
    if (size != 0) return "-a and -s exclude each other";
    for (uint64_t s = 2; s <= 8u << 20; s *= 2) o.sizes.push_back(s);
  } else {
    const uint64_t usual = o.verb == Verb::kMap ? kUsualWindow : o.by_aperture() ? 64 : o.bandwidth ? 65536 : 2;
    o.sizes = {size != 0 ? size : usual};
  }
  if (std::string mistake = check_window(o, all); !mistake.empty()) return mistake;
  if (o.by_aperture()) {
    if (o.bidirectional || o.events || o.stalled || o.jettys > 1 || o.post_list > 1 || o.strong_percent >= 0) {
      return "loads and stores have no queues: -b, -e, -l, --jettys, --stalled and --strong are for other tests";
    }
    if (!o.trace_file.empty()) return "loads, stores and windows have no completions: --trace is for other tests";
    if (o.verify && o.verb == Verb::kStore) return "--verify is for loads; stores are checked by their fence alone";
  }
  if (o.max_size() > kMaxSize) return fmt::format("-s {}: a message has 1 to {} bytes", o.max_size(), kMaxSize);
  if (o.iterations != 0 && o.duration_s != 0) return "-n and -D exclude each other";
  if (o.bidirectional && !o.bandwidth) return "-b is for bandwidth tests";
  if (!o.bandwidth && o.jettys > 1) return "--jettys is for bandwidth tests";
  if (!o.bandwidth && o.strong_percent >= 0) return "--strong is for bandwidth tests, where requests could pass others";
  if (o.stalled && (!o.bandwidth || o.verb == Verb::kSend)) {
    return "--stalled is for write_bw, read_bw and atomic_bw, where nobody receives messages";
  }
  if (!o.bandwidth && o.post_list > 1) return "-l is for bandwidth tests";
  if (o.to_completion && (o.verb != Verb::kWrite || o.bandwidth)) {
    return "--to-completion is for write_lat: the others measure it anyway, or have no answer";
  }
  o.events |= o.epoll;
  if (o.events && o.verb == Verb::kWrite && o.ping_pong()) {
    return "write_lat waits for memory, which has no event: leave -e out, or measure --to-completion";
  }
  if (o.target_mode == TargetMode::kSpinMemory && o.verb == Verb::kSend) {
    return "the target of a SEND waits for completions: --target-mode poll or block";
  }
  if (o.waiting != Waiting::kPoll && (o.verb != Verb::kWrite || !o.ping_pong())) return "--wait is for write_lat";
  if (o.target_mode == TargetMode::kBlock && o.verb == Verb::kWrite && o.ping_pong()) {
    return "the target of write_lat answers, it cannot block: --target-mode poll or spin-memory, or --to-completion";
  }
  if (o.target_mode != TargetMode::kPoll && o.bidirectional) return "-b has no passive target: --target-mode poll";
  if (!passive_target && o.target_mode == TargetMode::kBlock) o.events |= !o.client();
  if (o.tx_depth == 0) o.tx_depth = o.bandwidth && !o.by_aperture() ? 128 : 16;
  if (o.post_list > o.tx_depth) return fmt::format("-l {} is more than -t {}", o.post_list, o.tx_depth);
  if (o.cq_mod == 0) o.cq_mod = o.bandwidth ? 100 : 1;
  if (!o.bandwidth && o.cq_mod > 1) return "-Q is for bandwidth tests";
  // Half the queue may wait for the other half's completion.
  o.cq_mod = std::min(o.cq_mod, std::max(o.tx_depth / 2, 1u));
  return {};
}

}  // namespace

const char* target_mode_name(TargetMode m) {
  return m == TargetMode::kPoll ? "poll" : m == TargetMode::kBlock ? "block" : "spin-memory";
}

const char* waiting_name(Waiting w) {
  return w == Waiting::kPoll ? "poll" : w == Waiting::kSpin ? "spin" : "completion-spin";
}

uint64_t Options::iterations_for(uint64_t size) const {
  if (iterations != 0) return iterations;
  if (verb == Verb::kMap) return bandwidth ? 10 : 10000;
  const uint64_t usual = bandwidth ? 50000 : 10000;
  const uint64_t limit = (bandwidth ? 4ull << 30 : 1ull << 30) / size;  // bytes in all
  return std::clamp<uint64_t>(limit, std::min<uint64_t>(usual, 100), usual);
}

std::optional<Options> parse_options(int argc, char** argv, int* exit_code) {
  Options o;
  uint64_t size = 0;
  bool all = false, ignored = false;
  std::string mode = "rm", target_mode = "poll", waiting = "poll", atomic_type = "FETCH_AND_ADD", way = "cached";

  CLI::App app("urma_perf - latency and bandwidth of URMA operations between two processes", "urma_perf");
  app.footer(kExamples);
  app.set_version_flag("--version", std::string("urma_perf ") + UB_VERSION);
  std::vector<std::string> names;
  for (auto& [name, test] : kTests) names.push_back(name);
  app.add_option("test", o.test, "what to measure")->required()->check(CLI::IsMember(names))->type_name("TEST");
  app.add_option("server", o.server, "host name or address of the server; without it this is the server");
  app.add_option("-d,--ib-dev,--device", o.device, "device name; default: the first one");
  app.add_option("-x,--gid-index,--eid-index", o.eid_index, "which of its addresses")->capture_default_str();
  app.add_option("-p,--port", o.port, "TCP port of the server")->capture_default_str();
  app.add_option("-s,--size", size, "bytes of a message, also 4k, 1m; default: 2 (lat), 64k (bw)")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(uint64_t{1}, kMaxSize));
  app.add_flag("-a,--all", all, "all powers of two from 2 to 8388608");
  app.add_option("-n,--iters", o.iterations, "messages; default: 10000 (lat), 50000 (bw), fewer of large ones")
      ->check(CLI::Range(1u, UINT32_MAX));
  app.add_option("-D,--duration", o.duration_s, "seconds for each size, instead of -n");
  app.add_option("--warmup", o.warmup, "messages before the measurement; default: 1000 or a tenth of -n")
      ->default_str("");
  app.add_option("-t,--tx-depth", o.tx_depth, "requests in flight per jetty; default: 16 (lat), 128 (bw)")
      ->check(CLI::Range(1u, UINT32_MAX));
  app.add_option("-r,--rx-depth", o.rx_depth, "receives posted (send tests)")
      ->check(CLI::Range(2, 1 << 20))
      ->capture_default_str();
  app.add_option("-l,--post-list", o.post_list, "requests handed over with one call")
      ->check(CLI::Range(1u, UINT32_MAX))
      ->capture_default_str();
  app.add_option("-Q,--cq-mod", o.cq_mod, "one completion for so many requests; default: 100 (bw)")
      ->check(CLI::Range(1u, UINT32_MAX));
  app.add_option("-I,--inline_size,--inline", o.inline_bytes,
                 "send messages up to this size inline; default: 220 or what the device has (lat), 0 (bw)")
      ->check(CLI::NonNegativeNumber)
      ->default_str("");
  app.add_option("--jettys,-q,--qp", o.jettys, "jettys on each side")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app.add_option("-m,--mode", mode, "transport mode")->check(CLI::IsMember({"rm", "rc"}))->capture_default_str();
  app.add_flag("--ctp", o.ctp,
               "import the peer's jettys with URMA_CTP: it serves where the wire and the peer have it (with -m rc only "
               "on wires that lose nothing, as shared memory); which transport served is said in any case");
  app.add_option("--strong", o.strong_percent,
                 "percent of the requests that have a strong order, the others have a relaxed one; without: none (bw)")
      ->check(CLI::Range(0, 100));
  app.add_flag("--stalled", o.stalled,
               "the client has one jetty more, whose SEND nobody receives and whose WRITEs wait for it: what do those "
               "that are measured lose? (write_bw, read_bw, atomic_bw)");
  app.add_option("-A,--atomic_type", atomic_type, "for atomic tests")
      ->check(CLI::IsMember({"FETCH_AND_ADD", "CMP_AND_SWAP"}))
      ->capture_default_str();
  app.add_flag("--to-completion", o.to_completion,
               "write_lat: time from post to completion, instead of half a ping-pong");
  app.add_flag("-b,--bidirectional", o.bidirectional, "both sides send (bw)");
  app.add_flag("-e,--events", o.events, "sleep until a completion comes");
  app.add_flag("--epoll", o.epoll, "as -e, but sleep in epoll_wait on the descriptors of the event channels");
  app.add_option("--target-mode", target_mode,
                 "what the application thread of this server does: poll its completions, block in a TCP read "
                 "(send tests: sleep on events), or spin on memory")
      ->check(CLI::IsMember({"poll", "block", "spin-memory"}))
      ->capture_default_str();
  app.add_option("--wait", waiting,
                 "write_lat, both sides: poll until the other one's message comes, spin on memory and call nothing "
                 "(the completion is taken afterwards), or take the completion first and then spin (as perftest)")
      ->check(CLI::IsMember({"poll", "spin", "completion-spin"}))
      ->capture_default_str();
  app.add_flag("--verify", o.verify, "check every payload byte (costs time, which is measured, too)");
  app.add_option(
         "--path", o.path,
         "loads, stores, windows: how packets travel; any: the best there is (load_bw -s 64 has -t lines in flight)")
      ->check(CLI::IsMember({"any", "lane", "frames", "queue"}))
      ->capture_default_str();
  app.add_option("--way", way, "map tests: how the window of -s bytes (default: 16m) is made")
      ->check(CLI::IsMember({"cached", "uncached"}))
      ->capture_default_str();
  app.add_option(
         "--cache", o.cache_percent,
         "map tests: percent of the window that may be present; map_lat then goes to random places and finds some "
         "pages there. Without: all, and each page is dropped before it is touched again")
      ->check(CLI::Range(1, 100));
  app.add_option("--prefetch", o.prefetch, "map tests: pages that are loaded ahead of faults in a row; default: 7")
      ->check(CLI::Range(0, 7));
  app.add_flag("--token", o.token, "protect jettys and memory with a token");
  app.add_flag("--own-memory", o.own_memory,
               "memory of the process instead of softub_alloc: with a daemon, copied by the library's agent");
  app.add_flag("--shared-memory", o.shared_memory,
               "memory of softub_alloc_shared: on one host, the NIC of a peer accesses it itself, without packets, "
               "unless port.shm_place is off")
      ->excludes("--own-memory");
  app.add_option("--cpu", o.cpu, "pin the application thread to this CPU")->check(CLI::NonNegativeNumber);
  app.add_flag("--report_gbits,--report-gbits", o.report_gbits, "Gb/s instead of MB/s");
  app.add_option("--json", o.json_file, "write the results to this file, too")->type_name("FILE");
  app.add_option("--trace", o.trace_file,
                 "write a time series of the program, and of the channels and paths of its NIC, to this CSV file")
      ->type_name("FILE")
      ->check([](const std::string& name) { return std::string(name.empty() ? "it needs the name of a file" : ""); });
  app.add_option("--trace-interval", o.trace_interval_ms, "time between two of its samples: 1ms to 10s; default: 10ms")
      ->transform(CLI::AsNumberWithUnit(std::map<std::string, double>{{"us", 0.001}, {"ms", 1}, {"s", 1000}},
                                        CLI::AsNumberWithUnit::UNIT_REQUIRED, "TIME"))
      ->check(CLI::Range(1.0, 10000.0))
      ->default_str("");
  app.add_flag("-F,--CPU-freq", ignored, "ignored, for scripts made for perftest");

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    *exit_code = app.exit(e) == 0 ? kExitOk : kExitUsage;
    return std::nullopt;
  }
  const bool timed = app.count("--duration") != 0;
  auto [verb, bandwidth] = kTests.at(o.test);
  o.verb = verb;
  o.bandwidth = bandwidth;
  o.uncached = way == "uncached";
  if (app.count("--warmup") == 0) {
    o.warmup = o.iterations != 0 ? std::min<uint64_t>(1000, o.iterations / 10 + 1) : 1000;
    if (o.verb == Verb::kMap && o.bandwidth) o.warmup = 1;
  }
  o.waiting = waiting == "poll" ? Waiting::kPoll : waiting == "spin" ? Waiting::kSpin : Waiting::kCompleted;
  std::string mistake = timed ? check_duration(o.duration_s) : "";
  if (mistake.empty()) mistake = check(o, size, all, mode, target_mode, atomic_type);
  if (!mistake.empty()) {
    fmt::print(stderr, "urma_perf: {}\n", mistake);
    *exit_code = kExitUsage;
    return std::nullopt;
  }
  return o;
}

Json common_options(const Options& o) {
  return {{"version", UB_VERSION},
          {"test", o.test},
          {"-s", o.sizes},
          {"-m", o.rc ? "rc" : "rm"},
          {"-b", o.bidirectional},
          {"-r", o.rx_depth},
          {"-t", o.tx_depth},
          {"-A", o.compare_swap ? "CMP_AND_SWAP" : "FETCH_AND_ADD"},
          {"--jettys", o.jettys},
          {"--stalled", o.stalled},
          {"--verify", o.verify},
          {"--token", o.token},
          {"--to-completion", o.to_completion},
          {"--wait", waiting_name(o.waiting)}};
}

std::string compare_options(const Json& mine, const Json& theirs) {
  std::string text;
  for (auto& [name, value] : mine.items()) {
    const Json other = theirs.is_object() && theirs.contains(name) ? theirs[name] : Json();
    if (other == value) continue;
    auto show = [](const Json& v) { return v.is_array() && v.size() > 1 ? std::string("-a") : v.dump(); };
    text += fmt::format("{}{} is {} here and {} at the peer", text.empty() ? "" : "; ", name, show(value), show(other));
  }
  return text;
}

}  // namespace ub::tools
