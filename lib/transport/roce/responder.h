// SPDX-License-Identifier: Apache-2.0
// responder.h - where a request of a connection stands at its responder, and what it is answered: the next one, one
// that came before, one behind a gap, or one that cannot be. InfiniBand Architecture Specification volume 1, 9.7 to
// 9.9. Knows PSNs, MSNs and the order of opcodes; touches no memory and builds no packet.
//
// For each request packet: judge() says what to do. For kExecute the caller checks keys and receives, carries the
// packet out and calls accept(), or refuses it with refuse() or not_ready(); the state is that of the next packet then.
#pragma once

#include <cstdint>

#include "lib/transport/roce/wire/packet.h"

namespace ub::roce {

enum class OpenMessage : uint8_t { kNone, kSend, kWrite };

struct ResponderState {
  Psn expected;                           // of the next packet to execute
  Msn msn;                                // messages completed
  uint16_t mtu = 1024;                    // of the path
  OpenMessage open = OpenMessage::kNone;  // its last packet has not come
  bool refused = false;                   // `expected` was asked for again: silence until it comes
  uint8_t credits = kNoCredits;           // code for how many receives are posted
  uint32_t write_rkey = 0;                // of the open WRITE
  uint32_t write_left = 0;                // its bytes still to come
  uint64_t write_address = 0;             // where it goes on
};
static_assert(sizeof(ResponderState) == 32);

enum class Arrival : uint8_t {
  kExecute,      // the expected one
  kAckAgain,     // a SEND or WRITE that was executed: acknowledge, nothing else
  kReadAgain,    // a READ that was executed: read_slots.h knows whether it may be again
  kAtomicAgain,  // an atomic that was executed: its slot has the answer
  kGap,          // packets before it are missing: refuse(kPsnSequence)
  kInvalid,      // the expected one, but it cannot be: refuse(kInvalidRequest)
  kSilent,       // drop it
};

/// `parsed` is the result of the parser: kNone, or one of is_invalid_request(). The packet is a request.
[[nodiscard]] Arrival judge(const ResponderState& s, Drop parsed, const Packet& packet);

enum class UnreliableArrival : uint8_t {
  kBegins,  // a message, whatever is missing before it: execute
  kGoesOn,  // with the open message: execute
  kLost,    // its message cannot be whole any more: drop it
  kLate,    // it came before, or what follows it did: drop it, all else stays
};

/// So far behind a packet may be late; beyond, more were lost than can be counted.
inline constexpr int32_t kLatePackets = 1 << 15;

/// The same of an unreliable connection (9.8.2): what is missing does not come again. An open message ends with
/// whatever does not go on with it, and unless that is late, its PSN is `expected` then.
[[nodiscard]] UnreliableArrival judge_unreliable(const ResponderState& s, const Packet& packet);

/// The expected packet was carried out.
void accept(ResponderState& s, const Packet& packet);

/// Where the payload of a WRITE packet goes that judge() let pass. Not for accepted ones: they moved on.
struct WritePlace {
  uint64_t address;
  uint32_t rkey;
};
[[nodiscard]] WritePlace write_place(const ResponderState& s, const Packet& packet);

/// PSNs that a request takes: a READ as many as its response has packets.
[[nodiscard]] uint32_t psns_of(const Packet& packet, uint32_t mtu);

/// What an ACK packet says.
struct Reply {
  Psn psn;
  Aeth aeth;

  bool operator==(const Reply&) const = default;
};

/// Everything before `expected` is done.
[[nodiscard]] Reply acknowledge(const ResponderState& s);
/// `expected` is missing or will not be executed.
[[nodiscard]] Reply refuse(ResponderState& s, NakCode why);
/// There is no receive for `expected`; it may come again after the time of that code.
[[nodiscard]] Reply not_ready(ResponderState& s, uint8_t rnr_timer);

}  // namespace ub::roce
