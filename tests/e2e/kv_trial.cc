// SPDX-License-Identifier: Apache-2.0
//
// kv_trial: a client of kv_store that puts, gets, removes and scans and checks all that it reads.
// Others do the same at the same time, and may be killed.
//
// A value tells by itself whether it is whole: its first bytes say of what the rest is made. Values of a key that one
// client alone writes are numbered; nobody may read an older one after a newer one, and the writer reads its last one.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "apps/aperture/memory.h"
#include "apps/kv_store/client.h"
#include "tools/common/tool_error.h"

namespace {

using namespace ub::kv;
using ub::tools::kExitWrongData;
using ub::tools::ToolError;

struct Options {
  std::string host = "localhost";
  uint16_t port = kDefaultPort;
  Mode mode = Mode::kRead;
  uint32_t me = 0, clients = 1;  // of the clients 0 to clients - 1
  uint32_t keys = 20;            // of each client, and as many of all
  uint32_t most_value = 1 << 20;
  uint32_t window = 8;
  uint64_t operations = 0;  // 0: until it is stopped
  bool look = false;
};

constexpr uint32_t kNumbered = 4;  // bytes from which on a value has its number

struct Stamp {
  uint32_t number = 0;
  bool is_whole = false;
};

// Bytes of the key and the number; shorter values, of the key and their length alone.
std::string value_of(const std::string& key, uint32_t number, uint32_t bytes) {
  std::string value(bytes, '\0');
  std::mt19937_64 random(std::hash<std::string>()(key) + (bytes < kNumbered ? 0 : number) + (uint64_t{bytes} << 32));
  for (uint32_t i = 0; i < bytes; i += 8) {
    const uint64_t word = random();
    std::memcpy(value.data() + i, &word, std::min(8u, bytes - i));
  }
  if (bytes >= kNumbered) std::memcpy(value.data(), &number, sizeof number);
  return value;
}

Stamp stamp_of(const std::string& key, std::string_view value) {
  Stamp stamp;
  if (value.size() >= kNumbered) std::memcpy(&stamp.number, value.data(), sizeof stamp.number);
  stamp.is_whole = value == value_of(key, stamp.number, static_cast<uint32_t>(value.size()));
  return stamp;
}

class Trial {
 public:
  Trial(const Options& o, Client& client) : o_(o), client_(client), random_(o.me) {
    for (uint32_t owner = 0; owner <= o.clients; ++owner) {  // the last one: of all
      for (uint32_t i = 0; i < o.keys; ++i) keys_.emplace_back(fmt::format("user{:03}-{:05}", owner, i), owner);
    }
  }

  void run() {
    std::vector<Completion> ended(o_.window);
    const auto goes_on = [this] { return o_.operations == 0 || started_ < o_.operations; };
    while (goes_on() || client_.under_way() != 0) {
      ub::tools::throw_if_stopped();
      while (client_.under_way() < o_.window && goes_on()) start();
      const size_t count = client_.poll(ended);
      for (size_t i = 0; i < count; ++i) check(ended[i]);
    }
    const Counters& c = client_.counters();
    fmt::print(
        "client {}: {} gets, {} puts, {} removes, {} scans; {} hint hits, {} torn reads, {} direct puts, "
        "{} lost races, {} messages\n",
        o_.me, done_[kGet], done_[kPut], done_[kRemove], done_[kScan], c.hint_hits, c.torn_reads, c.direct_puts,
        c.cas_failures, c.messages);
  }

  // After all others have ended: what is there can be read in each way, and replaced.
  void look() {
    std::vector<std::pair<std::string, std::string>> records;
    need(scan(client_, "", UINT32_MAX, &records), "scan");
    for (auto& [key, value] : records) {
      if (!stamp_of(key, value).is_whole) wrong(key, "a scan brings a torn value");
      std::string again;
      need(get(client_, key, &again), "get");
      if (again != value) wrong(key, "get and scan disagree");
      for (uint32_t round = 0; round < 2; ++round) {  // the second one knows where the key is
        const std::string next = value_of(key, 0, round == 0 ? 1 : std::min(5000u, o_.most_value));
        need(put(client_, key, next), "put");
        need(get(client_, key, &again), "get");
        if (again != next) wrong(key, "a value that was put is not there");
      }
      need(put(client_, key, value), "put");
    }
    fmt::print("{} keys are whole\n", records.size());
  }

 private:
  enum Action : uint32_t { kGet, kPut, kRemove, kScan, kActions };
  struct Key {
    Key(std::string its_name, uint32_t its_owner) : name(std::move(its_name)), owner(its_owner) {}

    std::string name;
    uint32_t owner;
    std::optional<std::string> last;  // own keys: what it was put to; nothing: it is not there
    uint32_t newest = 0;              // number that was read or written
    uint32_t seen_at_start = 0;       // newest, when the get was started
    bool busy = false;
    Action action = kGet;
    std::string putting;
  };

  [[noreturn]] static void wrong(const std::string& key, const std::string& what) {
    throw ToolError(kExitWrongData, fmt::format("key {}: {}", key, what));
  }
  void need(Status status, const std::string& what) const {
    if (status == Status::kOk) return;
    throw ToolError(fmt::format("{}: {} {}", what, name_of(status), client_.error()));
  }

  // From 1 byte to the longest value; short ones are as frequent as long ones.
  uint32_t random_bytes() {
    return static_cast<uint32_t>(std::exp(std::uniform_real_distribution<>(0, std::log(o_.most_value))(random_)));
  }

  void start() {
    const uint64_t which = random_() % keys_.size();
    Key& key = keys_[which];
    if (key.busy) return;
    const bool may_write = key.owner == o_.me || key.owner == o_.clients;
    const uint32_t dice = random_() % 100;
    key.action = dice < 2 ? kScan : !may_write || dice < 50 ? kGet : dice < 92 ? kPut : kRemove;
    key.seen_at_start = key.newest;
    key.busy = true;
    ++started_;
    switch (key.action) {
      case kGet:
        client_.start_get(key.name, which);
        break;
      case kPut:
        key.putting = value_of(key.name, ++puts_, random_bytes());
        if (random_() % 8 == 0 && !key.last) {
          client_.start_insert(key.name, key.putting, which);
        } else {
          client_.start_put(key.name, key.putting, which);
        }
        break;
      case kRemove:
        client_.start_remove(key.name, which);
        break;
      case kScan:
      case kActions:
        client_.start_scan(key.name, 10, which);
        break;
    }
  }

  void check(const Completion& ended) {
    Key& key = keys_[ended.cookie];
    key.busy = false;
    const bool own = key.owner == o_.me, of_all = key.owner == o_.clients;
    if (ended.status == Status::kFailed || ended.status == Status::kTooLarge || ended.status == Status::kFull) {
      need(ended.status, "an operation");
    }
    if (++done_[key.action] == 50 && key.action == kGet) {
      fmt::print("client {} is under way\n", o_.me);
      std::fflush(stdout);
    }
    switch (key.action) {
      case kGet:
        if (own && (ended.status == Status::kOk) != key.last.has_value()) wrong(key.name, "it should (not) be there");
        if (own && key.last && ended.value != *key.last) wrong(key.name, "it is not what was put last");
        if (ended.status == Status::kOk) check_value(key, ended.value);
        break;
      case kPut:
        if (own) key.last = key.putting;
        if (own && ended.status != Status::kOk) wrong(key.name, "an insert found what is not there");
        break;
      case kRemove:
        if (own && (ended.status == Status::kOk) != key.last.has_value()) wrong(key.name, "removed, though not there");
        if (!of_all) key.last.reset();
        break;
      case kScan:
      case kActions:
        check_scan(key, ended.records);
        break;
    }
  }

  void check_value(Key& key, std::string_view value) {
    const Stamp stamp = stamp_of(key.name, value);
    if (!stamp.is_whole) wrong(key.name, "a torn value");
    if (key.owner == o_.clients || value.size() < kNumbered) return;
    if (stamp.number < key.seen_at_start) wrong(key.name, "a value that is older than one that was read before");
    key.newest = std::max(key.newest, stamp.number);
  }

  void check_scan(const Key& key, std::span<const Record> records) {
    std::string last;
    for (const Record& record : records) {
      const std::string name(record.key);
      if (name < key.name || (!last.empty() && name <= last))
        wrong(name, "it is not the next one in the order of keys");
      if (!stamp_of(name, record.value).is_whole) wrong(name, "a scan brings a torn value");
      last = name;
    }
  }

  const Options& o_;
  Client& client_;
  std::mt19937 random_;
  std::vector<Key> keys_;
  uint32_t puts_ = 0;
  uint64_t started_ = 0;
  uint64_t done_[kActions] = {};
};

void run(const Options& o) {
  ub::apps::Device device("");
  ClientConfig config;
  config.context = device.context();
  config.host = o.host;
  config.port = o.port;
  config.mode = o.mode;
  config.window = o.window;
  config.hints = 64;  // few, so that keys are also looked up
  Client client(config);
  Trial trial(o, client);
  if (o.look) {
    trial.look();
  } else {
    trial.run();
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  CLI::App app("kv_trial - a client of kv_store that checks what it reads", "kv_trial");
  app.add_option("host", o.host);
  app.add_option("-p,--port", o.port);
  const std::map<std::string, Mode> modes = {{"read", Mode::kRead}, {"write", Mode::kWrite}, {"load", Mode::kLoad}};
  app.add_option("--mode", o.mode)->transform(CLI::CheckedTransformer(modes));
  app.add_option("--me", o.me, "number of this client, from 0 on");
  app.add_option("--clients", o.clients);
  app.add_option("--keys", o.keys, "of each client");
  app.add_option("--most-value", o.most_value, "bytes")->check(CLI::PositiveNumber);
  app.add_option("--window", o.window);
  app.add_option("--operations", o.operations, "0: until it is stopped");
  app.add_flag("--look", o.look, "check and replace what is there, when others have ended");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : ub::tools::kExitUsage;
  }
  ub::tools::install_stop_handler();
  try {
    run(o);
    return 0;
  } catch (const std::exception& e) {
    fmt::print(stderr, "kv_trial {}: {}\n", o.me, e.what());
    return ub::tools::exit_code_of(e);
  }
}
