// SPDX-License-Identifier: Apache-2.0
//
// A store, seen by one thread: requests are started, up to a window of them at a time, and completions are polled.
// A Backend opens one Store for each thread, and stays until all of them are gone.
//
// Errors: a request that fails has a Completion with its Status. A store that is lost throws ToolError (kExitPeerLost).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "tools/ycsb/operation.h"

namespace ub::ycsb {

// The memory of key and record stays as it is until the request has completed.
struct Request {
  uint32_t tag = 0;                        // below the window; none that is in flight has the same one
  Operation operation = Operation::kRead;  // any but kReadModifyWrite
  std::string_view key;
  std::string_view record;   // insert: all fields; update: those to be changed (RecordFormat)
  int32_t read_field = -1;   // read and scan: this field alone; -1: all
  uint32_t scan_length = 0;  // scan: so many records, from the key on
};

struct Completion {
  uint32_t tag = 0;
  Status status = Status::kOk;
  std::string_view record;  // what a read found; valid until the next poll
};

class Store {
 public:
  virtual ~Store() = default;

  // May complete at once; the completion is polled in any case.
  virtual void start(const Request& request) = 0;
  // Fills `done` from its beginning, and returns how many it has filled. With none to tell, a store that sleeps may do
  // so for up to `wait_ns`.
  virtual size_t poll(std::span<Completion> done, uint64_t wait_ns) = 0;
  // Why the last request failed that did.
  virtual std::string last_error() const { return {}; }
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::unique_ptr<Store> connect(uint32_t window) = 0;
};

}  // namespace ub::ycsb
