// SPDX-License-Identifier: Apache-2.0
//
// What a channel of CTP has besides where its wire may lose, double or reorder packets (UB Base Specification Rev 2.0,
// 6.2.1, 7.3.1.1; docs/compact-design.md): the requests that it may have to repeat (repeated_requests.h), and the
// results that it keeps for the queues of its peer, so that none of their requests is executed twice (kept_results.h).
// The records are plain data and lie in CoreState::repeats. Their number is CoreConfig::compact_repeats, and the memory
// of a record is touched only as it is used.
#pragma once

#include <cstdint>

#include "lib/base/serial.h"
#include "lib/base/time.h"
#include "lib/transport/wire/opcodes.h"

namespace ub::ta {

constexpr uint32_t kKeptResults = 64;   // of one queue: those of its newest TASSNs
constexpr uint32_t kRepeatQueues = 32;  // queues of one end that use such a channel, in its whole life
constexpr uint32_t kRepeatable = 128;   // segments that are unanswered on such a channel, at most
// TASSNs of a queue between the newest request that the target is known to have and the next one on such a channel, at
// most. The target takes a TASSN that is 2^15 or more ahead of the newest one that it knows for an old one.
constexpr uint32_t kMostBetween = 1 << 14;

// A segment that was sent and may have to be sent again.
struct SentSegment {
  Instant at;  // when it was sent last
  uint32_t queue;
  uint32_t work_request;
  uint16_t segment;
  uint8_t generation;  // of the queue
  uint8_t repeats;     // how often it was sent again
  bool lost;           // its answer is late: it waits until it may be sent again
  bool due;            // it is to be sent again, as soon as the port has room
};

// A queue of ours that uses the channel.
struct RepeatQueue {
  uint32_t rcid;
  Tassn newest;   // of its requests that the target has answered; at first that of the first one it was to get
  uint8_t wraps;  // how often the TASSNs of the queue have begun at 0 since then, at most 255
  bool closed;    // it was destroyed: another one with its RCID would begin with TASSNs that have results at the target
};

// What a request was answered with.
struct KeptResult {
  uint64_t value, value_high;  // of an atomic: what it found
  wire::TaOpcode opcode;       // of the answer
  uint8_t rspst, rspinfo;
  uint8_t value_bytes;
};

// The results of one queue of the peer. A TASSN has its place by its value modulo kKeptResults.
struct QueueResults {
  uint32_t rcid;
  Tassn newest;   // of those that came
  uint64_t kept;  // a bit for each of the newest kKeptResults TASSNs: `results` has its result
  KeptResult results[kKeptResults];
};

struct Repeats {
  // Requests of ours.
  Instant look_at;  // when somebody has to look whether one is due; never: none is unanswered
  Tassn timed;      // Channel::timing: the answer to this request of `timed_rcid` tells the round trip
  uint32_t timed_rcid;
  uint16_t sent_count, due_count;
  uint8_t queue_count;
  // Requests of the peer.
  uint8_t results_count;
  uint8_t results_last;  // whose results were wanted last

  RepeatQueue queues[kRepeatQueues];
  SentSegment sent[2 * kRepeatable];  // half of them may be answered: they are dropped when there is no room
  QueueResults results[kRepeatQueues];
};
static_assert(sizeof(SentSegment) <= 24 && sizeof(QueueResults) <= 1552);

}  // namespace ub::ta
