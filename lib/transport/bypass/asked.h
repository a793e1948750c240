// SPDX-License-Identifier: Apache-2.0
//
// What this NIC asked of others over frames and waits for: a record for each load or store, found by the TASSN of its
// answer, which is the only key. Plain data; requester.h sends and receives.
//
// A request that is given up may still be answered. So its TASSN rests for as long as request and answer may be under
// way, and an answer to it is dropped meanwhile.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "lib/base/slab.h"
#include "lib/transport/bypass/calls.h"
#include "lib/transport/bypass/pair.h"
#include "lib/transport/core_state.h"
#include "lib/transport/wire/bypass_packet.h"

namespace ub::bypass {

constexpr uint32_t kMaxHandles = 256;
constexpr uint32_t kRecordsPerHandle = 64;
constexpr Duration kTassnRest = kFrameLife * 3;  // a request, what is owed to it, and the answer

enum class Stage : uint8_t { kFree, kLoad, kStore, kDone };

// Times are microseconds modulo 2^32.
struct Asked {
  uint64_t address;
  std::byte* to;  // of a load
  uint32_t called_us, sent_us;
  uint16_t tassn;
  uint8_t length_code;  // 64 << code bytes
  Stage stage;
  uint8_t tries;  // how often a load was sent again
  Outcome outcome;

  bool waits() const { return stage == Stage::kLoad || stage == Stage::kStore; }
};
static_assert(sizeof(Asked) == 32);

struct Handle {
  uint32_t channel, tpn, link;
  uint32_t mtu;  // of the channel
  wire::BypassRoute route;
  uint32_t token_id, token;
  bool has_token;
  bool in_use, broken;
  Owner owner;
  Duration timeout;
  Duration round_trip;  // smoothed; 0: not known
  Instant looks_at;     // when its timer is due; never: it is not set
  uint64_t free;        // bits of records that are kFree
  uint32_t under_way;   // records that wait
};

struct AskedState {
  Slab<Handle> handles;
  Asked* records = nullptr;        // kRecordsPerHandle for each handle
  uint16_t* by_tassn = nullptr;    // 1 + number of its record; kResting: it rests; 0: nobody uses it
  Instant* rests_until = nullptr;  // by TASSN, of those that rest
  uint16_t next_tassn = 0;
  NumberRange timers;  // one for each handle

  Asked& record(uint32_t handle, uint32_t place) const { return records[(handle - 1) * kRecordsPerHandle + place]; }
};
constexpr uint16_t kResting = UINT16_MAX;
static_assert(kMaxHandles * kRecordsPerHandle < kResting);

void lay_out_asked(CoreState& s, AskedState& asked, Arena& arena);

// Looks for a TASSN that nobody uses. False: there is none near by, because too many rest.
bool find_tassn(AskedState& asked, Instant now, uint16_t* tassn);
// The record that waits for an answer with this TASSN; null: none does.
Asked* find_asked(AskedState& asked, uint16_t tassn, uint32_t* handle);
// From now on an answer to the record's TASSN is dropped.
void rest_tassn(AskedState& asked, Instant now, uint16_t tassn);

// The record stops waiting.
void finish(AskedState& asked, uint32_t handle, Asked& record, Outcome outcome);
// What the handle waits for stays unanswered, and it takes nothing any more.
void break_handle(CoreState& s, AskedState& asked, uint32_t handle);

// How long a load waits before it goes again: 8 round trips or 100 us, doubling up to 50 ms, so that a port which is
// nearly always full has many tries; short enough for three repeats.
Duration patience(const Handle& handle, uint8_t tries);

}  // namespace ub::bypass
