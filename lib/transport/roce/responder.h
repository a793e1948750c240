// SPDX-License-Identifier: Apache-2.0
// responder.h - where the requests of a connection stand at their responder, and how a packet is answered: it is the
// next one, one that came before, one behind a gap, or one that cannot be executed. InfiniBand Architecture
// Specification volume 1, 9.7 to 9.9. It knows PSNs, MSNs and the order of opcodes; it touches no memory and builds no
// packet.
//
// For each request packet, judge() says what to do. If it is kExecute, the caller checks keys and receives. Then it
// carries the packet out and calls accept(), or it refuses the packet with refuse() or not_ready(). After accept() the
// state is that of the next packet.
#pragma once

#include <cstdint>

#include "lib/transport/roce/wire/packet.h"

namespace ub::roce {

enum class OpenMessage : uint8_t { kNone, kSend, kWrite };

struct ResponderState {
  Psn expected;                           // PSN of the next packet to execute
  Msn msn;                                // how many messages are complete
  uint16_t mtu = 1024;                    // that of the path
  OpenMessage open = OpenMessage::kNone;  // the message whose last packet has not come
  bool refused = false;                   // `expected` was asked for again: nothing more is answered until it comes
  uint8_t credits = kNoCredits;           // a code that says how many receives are posted
  uint32_t write_rkey = 0;                // rkey of the open WRITE
  uint32_t write_left = 0;                // bytes of it that are still to come
  uint64_t write_address = 0;             // where the next of them goes
};
static_assert(sizeof(ResponderState) == 32);

enum class Arrival : uint8_t {
  kExecute,      // it is the expected packet
  kAckAgain,     // a SEND or WRITE that was executed: only acknowledge it
  kReadAgain,    // a READ that was executed: read_slots.h knows whether it may be executed again
  kAtomicAgain,  // an atomic that was executed: its slot has the answer
  kGap,          // packets before it are missing: refuse(kPsnSequence)
  kInvalid,      // it is the expected packet, but it cannot be executed: refuse(kInvalidRequest)
  kSilent,       // drop it
};

/// Judges a request packet. `parsed` is the result of the parser: kNone, or one for which is_invalid_request() is true.
[[nodiscard]] Arrival judge(const ResponderState& s, Drop parsed, const Packet& packet);

enum class UnreliableArrival : uint8_t {
  kBegins,  // it begins a message, whatever is missing before it: execute it
  kGoesOn,  // it goes on with the open message: execute it
  kLost,    // its message cannot become whole any more: drop it
  kLate,    // it came before, or what follows it did: drop it, and nothing changes
};

/// A packet that is up to so many PSNs behind may be late. If it is farther behind, more packets were lost than can be
/// counted.
inline constexpr int32_t kLatePackets = 1 << 15;

/// The same for a packet of an unreliable connection (9.8.2), where what is missing does not come again. An open
/// message ends with any packet that does not go on with it. Unless that packet is late, its PSN is `expected` then.
[[nodiscard]] UnreliableArrival judge_unreliable(const ResponderState& s, const Packet& packet);

/// The expected packet was carried out.
void accept(ResponderState& s, const Packet& packet);

/// Where the payload of a WRITE packet goes that judge() let pass. It must be asked before accept(), which moves the
/// state on.
struct WritePlace {
  uint64_t address;
  uint32_t rkey;
};
[[nodiscard]] WritePlace write_place(const ResponderState& s, const Packet& packet);

/// How many PSNs a request takes. A READ takes as many as its response has packets.
[[nodiscard]] uint32_t psns_of(const Packet& packet, uint32_t mtu);

/// The content of an ACK packet.
struct Reply {
  Psn psn;
  Aeth aeth;

  bool operator==(const Reply&) const = default;
};

/// The acknowledgement of everything before `expected`.
[[nodiscard]] Reply acknowledge(const ResponderState& s);
/// The refusal of `expected`, which is missing or will not be executed.
[[nodiscard]] Reply refuse(ResponderState& s, NakCode why);
/// The answer if there is no receive for `expected`, which may come again after the time of that code.
[[nodiscard]] Reply not_ready(ResponderState& s, uint8_t rnr_timer);

}  // namespace ub::roce
