// SPDX-License-Identifier: Apache-2.0
//
// What programs ask of remote memory over frames, and what becomes of it: values, and the calls of one handle
// (requester.h has them for all handles of a Core).
//
// Thread: the owner of the Core.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "lib/base/status.h"
#include "lib/transport/core_types.h"

namespace ub::bypass {

struct OpenConfig {
  uint32_t target = 0;  // of the instance that has the memory; it must stay until the handle is closed
  uint32_t token_id = 0;
  Token token;
  Duration timeout = seconds(4);
  Owner owner = 0;
};

// A block of remote memory: 64 << length_code bytes at a multiple of 64. A packet of the channel has to have room for
// it.
struct Block {
  uint64_t address = 0;
  uint8_t length_code = 0;

  uint32_t bytes() const { return 64u << length_code; }
};
struct StoreRequest {
  Block block;
  const std::byte* from = nullptr;    // read before the call returns
  const uint64_t* enables = nullptr;  // bit i % 64 of word i / 64; null: all bytes. Bytes behind 1024 are all stored
  bool write_back = false;            // an evicted line of a cache, which the target treats like any other store

  std::span<const std::byte> enabled() const {
    const size_t words = enables == nullptr ? 0 : std::min<size_t>(block.bytes(), 1024) / 64;
    return std::as_bytes(std::span(enables, words));
  }
};

// A handle and what belongs to it.
struct Opened {
  uint32_t handle = 0, target = 0;
  uint32_t most_bytes = 0;  // of a block
};

enum class Outcome : uint8_t {
  kPending,
  kOk,
  kRefused,     // token, bounds or permission; nothing was stored
  kUnanswered,  // no answer in time, or the peer is gone: a store may have run, or may run for as long as frames live
};

// A handle, for as long as a call of Turns lasts. load() and store() return kOk and a ticket; kGone: the handle is
// broken; kInvalid: no packet has room for the block; kBusy: there is no room now.
class Calls {
 public:
  // `to` must stay until the ticket was taken or the handle is closed.
  virtual Status load(const Block& block, std::byte* to, uint32_t* ticket) = 0;
  virtual Status store(const StoreRequest& request, uint32_t* ticket) = 0;
  // What has become of a call. Any answer but kPending frees the ticket.
  virtual Outcome take(uint32_t ticket) = 0;

 protected:
  ~Calls() = default;
};

// Somebody who makes calls, and waits for their answers or for room.
class Turns {
 public:
  // Called again and again until it returns true, with frames received and sent in between. It owns the Core, so it
  // must be short and touch no memory that may be a window.
  virtual bool turn(Calls& calls) = 0;

 protected:
  ~Turns() = default;
};

// How that ended.
enum class Ran : uint8_t {
  kDone,
  kLate,    // turn() was not true for as long as the caller would wait
  kInside,  // this thread owns the Core already, and is in a signal handler
};

}  // namespace ub::bypass
