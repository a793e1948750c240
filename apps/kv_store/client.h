// SPDX-License-Identifier: Apache-2.0
//
// A client of kv_store: operations on keys and values that lie in the memory of a server (docs/kv-store.md).
//
// Operations are started, and end later, in any order: poll() tells which. Operations on the same key that are under
// way at the same time may be executed in any order, too. Once an operation has ended, every client sees what it did.
//
// Thread: one for each client. A process may have several on one context. Nothing blocks but the constructor, which
// waits for the server for some seconds, and throws tools::ToolError with a sentence: nobody listens there, another
// program does, or the NIC cannot be used.
#pragma once

#include <urma_api.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ub::kv {

constexpr uint16_t kDefaultPort = 18525;  // TCP, of the server
constexpr uint32_t kMostWindow = 64;

// How a client reaches the store. All of them may be mixed on one server.
enum class Mode {
  kRead,   // READs for get and scan, messages to the server for all that changes something
  kWrite,  // the same, and a put of a key whose place is known by WRITE and compare-and-swap
  kLoad,   // loads through the aperture for get and scan, which end within the call; messages for all that changes
};

enum class Status {
  kOk,
  kNotFound,
  kExists,    // insert: the key is there, and keeps its value
  kFull,      // the server has no room for the record or its key
  kTooLarge,  // the key is empty or longer than the store allows, or the value is
  kFailed,    // the server is lost, or refuses: Client::error() says why. All later operations fail, too
};
const char* name_of(Status);

struct ClientConfig {
  urma_context_t* context = nullptr;  // of an open device; stays open until the client is gone
  std::string host;                   // of the server
  uint16_t port = kDefaultPort;
  Mode mode = Mode::kRead;
  uint32_t window = kMostWindow;  // operations under way at a time, 1 to kMostWindow
  uint32_t hints = 1 << 18;       // keys whose places are remembered, of 32 bytes each; 0: none
};

struct Record {
  std::string_view key, value;
};

// The end of an operation. What it points to stays until the next poll().
struct Completion {
  uint64_t cookie = 0;  // as it was started with
  Status status = Status::kOk;
  std::string_view value;           // get
  std::span<const Record> records;  // scan: in the order of keys
};

struct Counters {
  uint64_t hint_hits = 0;     // gets that took one READ
  uint64_t hint_misses = 0;   // gets whose hint was old, or missing
  uint64_t torn_reads = 0;    // records that changed while they were read, and were read again
  uint64_t direct_puts = 0;   // puts that the server took no part in
  uint64_t places_read = 0;   // puts that looked by READs for the place of their key
  uint64_t cas_failures = 0;  // puts that lost a race and went to the server
  uint64_t messages = 0;      // to the server
};

class Client {
 public:
  explicit Client(const ClientConfig&);
  // Operations that are under way may or may not be executed.
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Start an operation. False: the window is full, so poll() first. Keys and values are copied.
  bool start_get(std::string_view key, uint64_t cookie);
  bool start_put(std::string_view key, std::string_view value, uint64_t cookie);     // whether it is there or not
  bool start_insert(std::string_view key, std::string_view value, uint64_t cookie);  // only if it is not there
  bool start_remove(std::string_view key, uint64_t cookie);
  // Up to `count` records from the first key on that is not before `first`. Each of them is one that was there; keys
  // that come or go meanwhile may be missing or not.
  bool start_scan(std::string_view first, uint32_t count, uint64_t cookie);

  // Fills `out` from its beginning with operations that have ended; returns how many these are. Never waits.
  size_t poll(std::span<Completion> out);

  uint32_t under_way() const;   // started, and not told by poll() yet
  uint64_t most_value() const;  // bytes, as the server was configured
  uint64_t most_key() const;
  const Counters& counters() const;
  const std::string& error() const;  // why operations fail; empty: they do not

 private:
  class Engine;
  std::unique_ptr<Engine> engine_;
};

// The same one by one: each call starts an operation and polls until it has ended. Nothing else may be under way.
Status get(Client&, std::string_view key, std::string* value);
Status put(Client&, std::string_view key, std::string_view value);
Status insert(Client&, std::string_view key, std::string_view value);
Status remove(Client&, std::string_view key);
Status scan(Client&, std::string_view first, uint32_t count, std::vector<std::pair<std::string, std::string>>* records);

}  // namespace ub::kv
