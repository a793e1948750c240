// SPDX-License-Identifier: Apache-2.0
//
// Command line of urma_perf; flags are called as in perftest where it has them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/common/peer.h"

namespace ub::tools {

enum class Verb { kWrite, kRead, kSend, kAtomic, kLoad, kStore, kMap };
enum class TargetMode { kPoll, kBlock, kSpinMemory };
// write_lat: what both sides do while they wait for the other one's message.
enum class Waiting {
  kPoll,      // poll for completions
  kSpin,      // spin on memory and call nothing; the completion is taken when the answer is there
  kCompleted  // take the completion first, then spin on memory and call nothing, as perftest does
};

struct Options {
  Verb verb = Verb::kWrite;
  bool bandwidth = false;
  bool to_completion = false;  // write_lat: from post to completion instead of there and back
  std::string test;            // "write_lat"
  std::string server;          // empty: we are the server
  std::string device;          // empty: the first
  uint32_t eid_index = 0;
  uint16_t port = 21115;

  std::vector<uint64_t> sizes;  // ascending
  uint64_t iterations = 0;      // 0: chosen for each size
  double duration_s = 0;        // > 0: instead of iterations
  uint64_t warmup = 0;
  uint32_t tx_depth = 0, rx_depth = 512;
  uint32_t post_list = 1;
  uint32_t cq_mod = 0;
  int64_t inline_bytes = -1;  // -1: chosen
  uint32_t jettys = 1;
  bool stalled = false;     // one jetty more, whose requests wait for good
  int strong_percent = -1;  // of the requests with a strong order, the others have a relaxed one; -1: none has any
  bool rc = false;
  bool ctp = false;           // ask for the compact transport
  bool compare_swap = false;  // atomics: CAS instead of FADD
  bool bidirectional = false;
  bool events = false;
  bool epoll = false;  // with events: the caller sleeps in epoll_wait, not in urma_wait_jfc
  bool verify = false;
  bool token = false;
  std::string path = "any";    // of loads, stores and windows: "lane", "frames", "queue"
  bool uncached = false;       // windows: each access is one of the remote memory
  uint32_t cache_percent = 0;  // windows: so much may be present, and places are random; 0: all, each page is missing
  int prefetch = -1;           // windows: pages ahead; -1: as the library does
  bool own_memory = false;
  bool shared_memory = false;  // that other programs of the host may map
  bool report_gbits = false;
  TargetMode target_mode = TargetMode::kPoll;
  Waiting waiting = Waiting::kPoll;
  int cpu = -1;
  std::string json_file;
  std::string trace_file;  // empty: no time series is written
  double trace_interval_ms = 10;

  bool client() const { return !server.empty(); }
  // Messages go back and forth; else the other side is a passive target.
  bool ping_pong() const { return !bandwidth && (verb == Verb::kSend || (verb == Verb::kWrite && !to_completion)); }
  bool by_aperture() const { return verb == Verb::kLoad || verb == Verb::kStore || verb == Verb::kMap; }
  uint64_t max_size() const { return sizes.back(); }
  uint64_t iterations_for(uint64_t size) const;
};

const char* target_mode_name(TargetMode);
const char* waiting_name(Waiting);

// Nothing: the program is done (help, version, mistake), with `*exit_code`.
std::optional<Options> parse_options(int argc, char** argv, int* exit_code);

// What both sides must have in common, by name of the option, and a sentence about what differs (or "").
Json common_options(const Options&);
std::string compare_options(const Json& mine, const Json& theirs);

}  // namespace ub::tools
