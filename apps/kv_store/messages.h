// SPDX-License-Identifier: Apache-2.0
//
// What clients ask the server by SEND, and what it answers. All numbers are little-endian, as the host's.
#pragma once

#include <cstdint>

#include "apps/kv_store/client.h"
#include "apps/kv_store/layout.h"

namespace ub::kv {

enum class Op : uint8_t { kPut = 1, kInsert, kRemove, kScan, kGrant, kRelease };

// Key and value follow. It is as long as the head of a record, so that one becomes the other in its place.
struct Request {
  uint64_t
      argument;  // scan: how many records; grant: the units that one record needs; release: the number of the grant
  uint32_t tag;  // comes back in the reply
  uint32_t value_bytes;
  uint16_t key_bytes;  // scan: of the key where it begins
  Op op;
  uint8_t unused[5];
};
static_assert(sizeof(Request) == sizeof(RecordHead));

struct Reply {
  uint64_t slot;  // put, insert: where the slot of the key is, in bytes; grant: its number
  uint64_t word;  // put, insert: what it says; grant: the epoch
  uint32_t tag;
  uint32_t count;  // of ScanEntry or Extent, which follow
  Status status;
  uint32_t more;  // scan: not 0: there was no room for all that was asked for
};
static_assert(sizeof(Reply) == 32);

// The key follows. Then the next one, without a gap.
struct ScanEntry {
  uint64_t slot, word;
  uint64_t key_bytes;
};

// Units of the heap in a row.
struct Extent {
  uint32_t unit, units;
};

constexpr uint32_t kReplyBytes = 8192;
constexpr uint32_t kMostExtents = 128;  // of a grant
constexpr uint32_t kMostKey = 1024;     // bytes; a ScanEntry must fit into a reply
static_assert(sizeof(Reply) + kMostExtents * sizeof(Extent) <= kReplyBytes);
static_assert(sizeof(Reply) + sizeof(ScanEntry) + kMostKey <= kReplyBytes);

}  // namespace ub::kv
