// SPDX-License-Identifier: Apache-2.0
//
// far_table: a hash table in the memory of a server that does nothing; any number of clients put and get.
#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "apps/aperture/program.h"
#include "apps/aperture/table.h"
#include "tools/common/tool_error.h"

namespace {

using namespace ub::apps;
using ub::tools::ToolError;
using Clock = std::chrono::steady_clock;

struct Options {
  std::string put;  // KEY=VALUE
  uint64_t get = 0;
  uint64_t keys = 1000;
  uint32_t rounds = 3;
};

void put_one(Table& table, const std::string& text) {
  const size_t equals = text.find('=');
  uint64_t key = 0;
  const auto end = text.data() + std::min(equals, text.size());
  if (equals == std::string::npos || std::from_chars(text.data(), end, key).ptr != end) {
    throw ToolError(ub::tools::kExitUsage, text + " is not KEY=VALUE with a number as KEY");
  }
  table.put(key, text.substr(equals + 1));
}

void get_one(Table& table, uint64_t key) {
  const auto text = table.get(key);
  if (!text) throw ToolError(fmt::format("there is no key {}", key));
  fmt::print("{}\n", *text);
}

// What a client puts and gets to see that the table keeps its word: keys of its own, whose values nobody else changes,
// and keys that all clients use, whose values tell the key, and who wrote them.
class Trial {
 public:
  Trial(Table& table, const Options& o) : table_(table), o_(o), client_(table.new_client()) {}

  void run() {
    const auto start = Clock::now();
    for (uint32_t round = 0; round < o_.rounds; ++round) {
      for (uint64_t i = 0; i < o_.keys; ++i) {
        ub::tools::throw_if_stopped();
        table_.put(own_key(i), own_text(i, round));
        table_.put(shared_key(i), shared_text(shared_key(i), client_));
        check_shared(shared_key(i + o_.keys / 2));
        check_own(i, round);
      }
    }
    for (uint64_t i = 0; i < o_.keys; ++i) check_own(i, o_.rounds - 1);
    const std::chrono::duration<double> time = Clock::now() - start;
    const uint64_t puts = 2 * o_.keys * o_.rounds;
    fmt::print("client {}: {} puts, {} values read and right, {} of them written by others; {:.1f} us each\n", client_,
               puts, read_, of_others_, time.count() * 1e6 / static_cast<double>(puts + read_));
  }

 private:
  static constexpr uint64_t kOwn = uint64_t{1} << 32;

  uint64_t own_key(uint64_t i) const { return client_ * kOwn + i + 1; }
  uint64_t shared_key(uint64_t i) const { return i % o_.keys + 1; }
  std::string own_text(uint64_t i, uint32_t round) const { return fmt::format("{} round {}", own_key(i), round); }
  // The same number at both ends: a text that is half of one and half of another does not pass.
  static std::string shared_text(uint64_t key, uint64_t client) {
    return fmt::format("{0:08x} shared {1} {2:>{3}}", client, key, fmt::format("{:08x}", client), 20);
  }

  void check_own(uint64_t i, uint32_t round) {
    const auto text = table_.get(own_key(i));
    if (text != own_text(i, round)) wrong(own_key(i), own_text(i, round), text);
    ++read_;
  }
  void check_shared(uint64_t key) {
    const auto text = table_.get(key);
    if (!text) return;
    uint64_t writer = 0;
    std::from_chars(text->data(), text->data() + std::min<size_t>(8, text->size()), writer, 16);
    if (*text != shared_text(key, writer)) wrong(key, shared_text(key, writer), text);
    ++read_;
    if (writer != client_) ++of_others_;
  }
  [[noreturn]] static void wrong(uint64_t key, const std::string& expected, const std::optional<std::string>& found) {
    throw ToolError(ub::tools::kExitWrongData, fmt::format("key {}: expected \"{}\", found {}", key, expected,
                                                           found ? '"' + *found + '"' : "nothing"));
  }

  Table& table_;
  const Options& o_;
  const uint64_t client_;
  uint64_t read_ = 0, of_others_ = 0;
};

void use(const Options& o, const Client& client) {
  Table table(client.memory.segment());
  if (!o.put.empty()) return put_one(table, o.put);
  if (o.get != 0) return get_one(table, o.get);
  Trial(table, o).run();
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  Program program;
  program.name = "far_table";
  program.purpose =
      "a hash table in the memory of a server that does nothing; clients load, store and compare-and-swap";
  program.port = 18521;
  program.bytes = 4 << 20;
  program.footer = R"(Examples:
  far_table                                    the server: room for 65535 keys
  far_table localhost --put 7=red              one value, of up to 47 bytes
  far_table localhost --get 7
  far_table localhost & far_table localhost    two clients put and get at the same time and check what they read
  far_table --loopback
A client on trial needs a key of its own for each of --keys, and all of them share as many. A client that is killed may
leave a slot locked: then start the server again.)";
  program.add_options = [&o](CLI::App& app) {
    auto* put = app.add_option("--put", o.put, "KEY=VALUE: put it, and end");
    auto* get = app.add_option("--get", o.get, "print the value of this key, and end")->check(CLI::PositiveNumber);
    get->excludes(put);
    app.add_option("--keys", o.keys, "of a trial")->check(CLI::Range(1, 1 << 30))->capture_default_str();
    app.add_option("--rounds", o.rounds, "how often a trial puts each key")
        ->check(CLI::Range(1, 1 << 30))
        ->capture_default_str();
  };
  program.run = [&o](const Client& client) { use(o, client); };
  return run_program(program, argc, argv);
}
