// SPDX-License-Identifier: Apache-2.0
//
// far_chase: what a dependent load of remote memory costs, through cached and uncached windows and by a handle.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "apps/aperture/chain.h"
#include "apps/aperture/program.h"
#include "apps/aperture/read_queue.h"
#include "tools/common/probe.h"
#include "tools/common/tool_error.h"

namespace {

using namespace ub::apps;
using ub::tools::Ticks;
using ub::tools::ToolError;

struct Options {
  uint32_t hops = 32;    // of a sample
  uint32_t rounds = 5;   // each way has its turn in each
  double seconds = 0.1;  // of a turn
  uint64_t seed = 1;
};

const char* name_of(softub_path_t path) {
  return path == SOFTUB_PATH_LANE ? "a lane" : path == SOFTUB_PATH_FRAMES ? "one of frames" : "a queue";
}

// When all loads before have ended.
uint64_t ticks_after_loads() {
#if defined(__x86_64__)
  __builtin_ia32_lfence();
#endif
  return Ticks::now();
}

// A way to memory and what its samples said. `next` makes one hop: from a place to the one that is written there.
struct Way {
  std::string name;
  std::function<void(Way&)> walk;  // one sample
  uint64_t hops = 0;               // so far
  std::vector<double> samples;     // ns a hop
};

class Chase {
 public:
  Chase(const Options& o, const Client& client)
      : o_(o), client_(client), chain_(client.memory.bytes(), o.seed), handle_(client.memory.segment()) {
    chain_.lay([&](uint64_t at, uint64_t next) { softub::far_ptr<uint64_t>(handle_.get(), at).store(next); });
    handle_.fence();
  }

  void run() {
    add_ways();
    for (uint32_t round = 0; round < o_.rounds; ++round) {
      for (Way& way : ways_) take_turn(way);
    }
    print();
  }

 private:
  // Samples follow each other through the ring, and each must end where the ring says.
  template <class Next>
  void add(const std::string& name, Next next) {
    const auto walk = [this, next](Way& way) mutable {
      uint64_t place = chain_.place(way.hops);
      const uint64_t start = ticks_after_loads();
      for (uint32_t i = 0; i < o_.hops; ++i) place = next(place);
      const uint64_t end = ticks_after_loads();
      way.hops += o_.hops;
      way.samples.push_back(static_cast<double>(end - start) * Ticks::ns_per_tick() / o_.hops);
      if (place != chain_.place(way.hops)) throw ToolError(ub::tools::kExitWrongData, way.name + ": a load was wrong");
    };
    ways_.push_back({name, walk, 0, {}});
  }

  void add_ways() {
    own_.resize(chain_.lines() * Chain::kLine / sizeof(uint64_t));
    chain_.lay([&](uint64_t at, uint64_t next) { own_[at / sizeof(uint64_t)] = next; });
    add_pointers("own memory", reinterpret_cast<const std::byte*>(own_.data()));
    add_window("cached window, all present", SOFTUB_WAY_CACHED, chain_.lines() * Chain::kLine);
    add_window("cached window, an eighth", SOFTUB_WAY_CACHED, chain_.lines() * Chain::kLine / 8);
    add("explicit load", [this](uint64_t at) { return softub::far_ptr<uint64_t>(handle_.get(), at).load(); });
    add_reads();
    add_window("uncached window", SOFTUB_WAY_UNCACHED, 0);
  }

  void add_pointers(const std::string& name, const std::byte* start) {
    add(name, [start](uint64_t at) { return *reinterpret_cast<const volatile uint64_t*>(start + at); });
  }
  // A kernel or a machine that has no such window is told of, and the others go on.
  void add_window(const std::string& name, softub_way_t way, uint64_t cache_bytes) {
    softub_map_options_t options = {};
    options.way = way;
    options.flags = SOFTUB_MAP_READ_ONLY;
    options.cache_bytes = cache_bytes;
    try {
      windows_.push_back(std::make_unique<softub::far_window>(client_.memory.segment(), options));
    } catch (const std::system_error& e) {
      fmt::print("no {} here: {}\n", name, e.what());
      return;
    }
    softub::far_window& window = *windows_.back();
    end_on_fault(window);
    if (cache_bytes >= window.size()) window.sync(SOFTUB_PREFETCH);
    add_pointers(name, window.data());
  }
  void add_reads() {
    queue_.emplace(client_.device.context());
    queue_->connect(client_.place.queue, client_.memory.segment());
    add(kRead, [this](uint64_t at) {
      uint64_t next;
      std::memcpy(&next, queue_->read(at), sizeof next);
      return next;
    });
  }

  void take_turn(Way& way) {
    const auto turn = static_cast<uint64_t>(o_.seconds * 1e9 / Ticks::ns_per_tick());
    for (const uint64_t start = Ticks::now(); Ticks::now() - start < turn;) {
      way.walk(way);
      ub::tools::throw_if_stopped();
    }
  }

  static double percentile(const Way& way, unsigned percent) {
    std::vector<double> sorted = way.samples;
    const auto at = sorted.begin() + static_cast<std::ptrdiff_t>((sorted.size() - 1) * percent / 100);
    std::nth_element(sorted.begin(), at, sorted.end());
    return *at;
  }

  void print() const {
    double read = 0;
    for (const Way& way : ways_) {
      if (way.name == kRead) read = percentile(way, 50);
    }
    fmt::print("dependent loads through {} lines of 64 bytes; ns a hop, of samples of {} hops; the path is {}\n\n",
               chain_.lines(), o_.hops, name_of(handle_.cost().path));
    fmt::print("{:<28} {:>10} {:>10} {:>10} {:>10}\n", "way", "median", "p99", "of a READ", "samples");
    for (const Way& way : ways_) {
      const double median = percentile(way, 50);
      fmt::print("{:<28} {:>10.1f} {:>10.1f} {:>10.3f} {:>10}\n", way.name, median, percentile(way, 99), median / read,
                 way.samples.size());
    }
  }

  static constexpr const char* kRead = "READ of URMA";

  const Options& o_;
  const Client& client_;
  Chain chain_;
  softub::far_handle handle_;
  std::vector<uint64_t> own_;
  std::vector<std::unique_ptr<softub::far_window>> windows_;
  std::optional<ReadQueue> queue_;
  std::vector<Way> ways_;
};

}  // namespace

int main(int argc, char** argv) {
  Options o;
  Program program;
  program.name = "far_chase";
  program.purpose =
      "dependent loads through memory of another process: cached and uncached windows, loads by a handle, and READs";
  program.port = 18520;
  program.bytes = 16 << 20;
  program.footer = R"(Examples:
  far_chase                                    the server: offers 16 MiB
  far_chase localhost                          lays a ring through it, follows it in these ways, prints medians
  far_chase --loopback --memory 1m --seconds 0.02
The ways take turns, so that all of them meet the same machine. "An eighth": so much of the memory may be present.)";
  program.add_options = [&o](CLI::App& app) {
    app.add_option("--hops", o.hops, "dependent loads of one sample")
        ->check(CLI::Range(1, 1 << 20))
        ->capture_default_str();
    app.add_option("--rounds", o.rounds, "turns of each way")->check(CLI::Range(1, 1000))->capture_default_str();
    app.add_option("--seconds", o.seconds, "of a turn")->check(CLI::Range(0.001, 3600.0))->capture_default_str();
    app.add_option("--seed", o.seed, "of the ring's order")->capture_default_str();
  };
  program.run = [&o](const Client& client) { Chase(o, client).run(); };
  return run_program(program, argc, argv);
}
