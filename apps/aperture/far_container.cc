// SPDX-License-Identifier: Apache-2.0
//
// far_container: a container of the standard library whose elements live in the memory of another process.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <list>
#include <map>
#include <new>
#include <numeric>
#include <random>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "apps/aperture/program.h"
#include "tools/common/tool_error.h"

namespace {

using namespace ub::apps;
using softub::far_allocator;
using ub::tools::ToolError;

struct Options {
  std::string container = "map";
  uint64_t items = 20'000;
  uint64_t lookups = 10'000;
  uint64_t cache_bytes = 512 << 10;
};

// An element. Its words follow from its key, so that each can be checked by itself.
struct Record {
  uint64_t key, words[5];

  static Record of(uint64_t key) {
    Record record = {key, {}};
    uint64_t state = key;
    for (uint64_t& word : record.words) word = state = state * 6364136223846793005 + 1442695040888963407;
    return record;
  }
  bool operator==(const Record&) const = default;
};

using Pair = std::pair<const uint64_t, Record>;
using Vector = std::vector<Record, far_allocator<Record>>;
using List = std::list<Record, far_allocator<Record>>;
using Map = std::map<uint64_t, Record, std::less<>, far_allocator<Pair>>;
using UnorderedMap = std::unordered_map<uint64_t, Record, std::hash<uint64_t>, std::equal_to<>, far_allocator<Pair>>;

void insert(Vector& container, const Record& record) { container.push_back(record); }
void insert(List& container, const Record& record) { container.push_back(record); }
template <class Container>
void insert(Container& container, const Record& record) {
  container.emplace(record.key, record);
}

const Record& record_of(const Record& element) { return element; }
const Record& record_of(const Pair& element) { return element.second; }

// The element that came as number `i` with this key. A list has no way to find it but to walk.
const Record& look_up(const Vector& container, uint64_t i, uint64_t) { return container.at(i); }
template <class Container>
const Record& look_up(const Container& container, uint64_t, uint64_t key) {
  return container.at(key);
}

void expect_right(const Record& record, const char* where) {
  if (record == Record::of(record.key)) return;
  throw ToolError(ub::tools::kExitWrongData, fmt::format("the element with key {} is wrong {}", record.key, where));
}

template <class Container>
class Trial {
 public:
  Trial(const Options& o, const Client& client)
      : o_(o), client_(client), window_(client.memory.segment(), mapped(o)), arena_(window_), container_(arena_) {
    end_on_fault(window_);
    keys_.resize(o.items);
    std::iota(keys_.begin(), keys_.end(), uint64_t{0});
    std::shuffle(keys_.begin(), keys_.end(), random_);
  }

  void run() {
    step("filling", "filled, in random order of the keys", [this] { fill(); });
    step("walking", "walked through: each element is there once, and right", [this] { walk(); });
    if constexpr (!std::is_same_v<Container, List>) {
      step("looking up", "looked up at random: right", [this] { look_up_some(); });
    }
    step("writing back", "written back, and read from the server's memory by loads: right",
         [this] { compare_with_loads(); });
    print();
  }

 private:
  static softub_map_options_t mapped(const Options& o) {
    softub_map_options_t options = {};
    options.way = SOFTUB_WAY_CACHED;
    options.cache_bytes = o.cache_bytes;
    return options;
  }

  template <class Work>
  void step(const char* begins, const char* what, Work work) {
    const auto start = std::chrono::steady_clock::now();
    fmt::print("            {} ...\n", begins);
    std::fflush(stdout);
    work();
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    fmt::print("{:8.2f} s  {}\n", time.count(), what);
    std::fflush(stdout);
  }

  void fill() {
    for (uint64_t key : keys_) {
      ub::tools::throw_if_stopped();
      try {
        insert(container_, Record::of(key));
      } catch (const std::bad_alloc&) {
        throw ToolError(fmt::format("the server's memory is full after {} of {} items: start it with more --memory",
                                    container_.size(), o_.items));
      }
    }
  }

  void walk() {
    std::vector<bool> seen(o_.items);
    for (const auto& element : container_) {
      ub::tools::throw_if_stopped();
      const Record& record = record_of(element);
      expect_right(record, "in the window");
      if (record.key >= o_.items || seen[record.key]) {
        throw ToolError(ub::tools::kExitWrongData, fmt::format("key {} is there twice, or never came", record.key));
      }
      seen[record.key] = true;
    }
    if (std::find(seen.begin(), seen.end(), false) != seen.end()) {
      throw ToolError(ub::tools::kExitWrongData, "an element is missing");
    }
  }

  void look_up_some() {
    std::uniform_int_distribution<uint64_t> any(0, o_.items - 1);
    for (uint64_t i = 0; i < o_.lookups; ++i) {
      ub::tools::throw_if_stopped();
      const uint64_t number = any(random_);
      expect_right(look_up(std::as_const(container_), number, keys_[number]), "in the window");
    }
  }

  // Of the elements one in 16, past the window: what the server holds.
  void compare_with_loads() {
    window_.sync(SOFTUB_FLUSH);
    const softub::far_handle handle(client_.memory.segment());
    uint64_t number = 0;
    for (const auto& element : container_) {
      if (number++ % 16 != 0) continue;
      const Record& here = record_of(element);
      const Record there = softub::far_ptr<Record>(handle, window_.at(&here)).load();
      if (there.key != here.key) throw ToolError(ub::tools::kExitWrongData, "the server holds something else");
      expect_right(there, "in the server's memory");
    }
  }

  void print() const {
    const softub_window_counts_t c = window_.counts();
    const auto mib = [](uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); };
    fmt::print("\n{} of {} elements: {:.1f} MiB in a window of {:.1f} MiB, of which at most {:.1f} MiB are here\n",
               o_.container, container_.size(), mib(arena_.in_use()), mib(window_.size()), mib(o_.cache_bytes));
    fmt::print("faults: {} of missing pages (median {:.1f} us, p99 {:.1f} us), {} of first writes, {} failed\n",
               c.missing_faults, static_cast<double>(c.missing_p50_ns) / 1e3,
               static_cast<double>(c.missing_p99_ns) / 1e3, c.write_faults, c.failed_faults);
    fmt::print("pages: {} fetched, {} of them ahead; {} evicted; {} written back, of which {} bytes had changed\n",
               c.fetched_pages, c.prefetched_pages, c.evicted_pages, c.written_back_pages, c.written_back_bytes);
    std::fflush(stdout);
  }

  const Options& o_;
  const Client& client_;
  std::mt19937_64 random_{1};
  std::vector<uint64_t> keys_;
  softub::far_window window_;
  softub::far_arena arena_;
  Container container_;
};

void run(const Options& o, const Client& client) {
  if (o.container == "vector") {
    Trial<Vector>(o, client).run();
  } else if (o.container == "list") {
    Trial<List>(o, client).run();
  } else if (o.container == "map") {
    Trial<Map>(o, client).run();
  } else {
    Trial<UnorderedMap>(o, client).run();
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  Program program;
  program.name = "far_container";
  program.purpose = "a container of the standard library whose elements live in the memory of another process";
  program.port = 18523;
  program.bytes = 64 << 20;
  program.footer = R"(Examples:
  far_container                                the server: offers 64 MiB
  far_container localhost                      a std::map there, larger than what may be present here: half a minute
  far_container localhost --items 2000         a short look
  far_container localhost --container vector --items 500000 --cache 4m
  far_container --loopback --items 1000
One client at a time: all of them use the same memory from its start.)";
  program.add_options = [&o](CLI::App& app) {
    app.add_option("--container", o.container, "vector, list, map or unordered_map")
        ->check(CLI::IsMember({"vector", "list", "map", "unordered_map"}))
        ->capture_default_str();
    app.add_option("--items", o.items, "elements of 48 bytes")
        ->check(CLI::Range(1, 1'000'000'000))
        ->capture_default_str();
    app.add_option("--lookups", o.lookups, "of elements at random")->capture_default_str();
    app.add_option("--cache", o.cache_bytes, "bytes of the container that may be present here, also 64k, 1m")
        ->transform(CLI::AsSizeValue(false))
        ->check(CLI::Range(uint64_t{32768}, uint64_t{1} << 40))
        ->default_str(std::to_string(o.cache_bytes));
  };
  program.run = [&o](const Client& client) { run(o, client); };
  return run_program(program, argc, argv);
}
