// SPDX-License-Identifier: Apache-2.0
// requester.h - what a queue pair of a reliable connection has sent, and what became of it: which packet is sent next,
// what an acknowledgement or a response means, when to go back and when to give up. InfiniBand Architecture
// Specification volume 1, 9.7 and 9.9. It touches no memory and builds no packet: a packet is named by its request and
// its place there, and is built again if it is lost. For unreliable connections and datagrams the caller acknowledges
// each packet as it leaves.
//
// Requests are numbered from 0 on. Those that were begun and are not complete lie in a ring that the caller owns. The
// caller begins a request when next_packet() has nothing to send and there is room, and completes as many of the oldest
// as Progress says.
#pragma once

#include <cstdint>
#include <span>

#include "lib/base/serial.h"
#include "lib/base/time.h"
#include "lib/base/work_queue.h"
#include "lib/transport/roce/wire/packet.h"

namespace ub::roce {

enum class RequestKind : uint8_t { kSend, kWrite, kWriteImm, kRead, kAtomic };

constexpr bool has_response(RequestKind kind) { return kind == RequestKind::kRead || kind == RequestKind::kAtomic; }
constexpr bool takes_receive(RequestKind kind) { return kind == RequestKind::kSend || kind == RequestKind::kWriteImm; }

struct SentRequest {
  Psn first_psn;
  uint32_t psns;    // of a READ: those of its response
  uint32_t length;  // bytes; at most kMaxRequestBytes
  Msn ssn;
  RequestKind kind;
};
static_assert(sizeof(SentRequest) == 20);

inline constexpr uint8_t kForEver = 7;                  // a value of rnr_retry
inline constexpr uint32_t kMaxRequestBytes = 1u << 30;  // half of all PSNs are more than its packets

struct RequesterState {
  // Packets [oldest, sent_end) are in flight, and [sent_end, end) were never sent. `cursor`, which is in [oldest,
  // sent_end], is sent next.
  Psn oldest, cursor, sent_end, end;
  uint32_t head = 0, tail = 0;  // requests that were begun and are not complete
  uint32_t cursor_request = 0;  // the request that `cursor` is in; `tail` if there is none
  Msn last_ssn;                 // SSN of the newest request
  Msn ssn_limit;                // with credits: SSN of the newest request that may take a receive
  uint16_t mtu = 1024;
  uint16_t window = 128;    // most packets in flight
  bool limited = false;     // ssn_limit limits the requests
  bool went_back = false;   // since the last progress; the responder may report the same gap again
  uint8_t retry_count = 7;  // as configured
  uint8_t rnr_retry = 7;    // as configured; kForEver
  uint8_t retries_left = 7;
  uint8_t rnr_left = 7;
  uint8_t reads_in_flight = 0;
  uint8_t max_reads = 1;                // most READs and atomics in flight
  Duration timeout{};                   // how long to wait for an acknowledgement; 0: for ever
  Instant deadline = Instant::never();  // when the oldest packet in flight times out
  Instant wait_until{};  // after an RNR NAK: nothing is sent before; the timer is set for it as for `deadline`
};
static_assert(sizeof(RequesterState) <= 80);

using RequestRing = std::span<SentRequest>;  // its size is a power of two

/// Is everything that was begun also sent, and is there room for a request of this kind?
[[nodiscard]] bool may_begin(const RequesterState& s, RequestRing ring, RequestKind kind, uint32_t length);
/// There is room. Packets of requests before this one need not have been sent, if the caller has built them.
void begin(RequesterState& s, RequestRing ring, RequestKind kind, uint32_t length);

struct NextPacket {
  uint32_t request;  // its number
  uint32_t skipped;  // packets of the request before this one; a READ asks for the rest of its response from there on
  bool last;         // it is the last packet of the request
  bool must_ask;     // AckReq must be set, or nothing more can be sent
};
/// Finds the packet to send next. False: there is nothing to send now.
[[nodiscard]] bool next_packet(const RequesterState& s, RequestRing ring, Instant now, NextPacket* out);
/// This packet was sent.
void sent(RequesterState& s, RequestRing ring, Instant now, const NextPacket& packet);

/// Everything in flight goes again.
void rewind(RequesterState& s);

struct Progress {
  uint32_t completed = 0;  // so many requests are complete, from the oldest on
  bool stale = false;      // the answer fits nothing in flight, and changed nothing
  bool gap = false;        // packets are missing: all from the oldest on are sent again, or the queue pair failed
  CrStatus failed = CrStatus::kSuccess;  // else: status of the oldest incomplete request; the queue pair goes to ERROR
};
/// An ACK packet arrived.
[[nodiscard]] Progress on_ack(RequesterState& s, RequestRing ring, Instant now, Psn psn, Aeth aeth);

struct Response {
  Progress progress;
  bool taken = false;    // it is the response that was awaited
  uint32_t request = 0;  // the request that it answers
  uint32_t offset = 0;   // where its bytes go in that request
};
/// A READ response or atomic acknowledgement arrived. `last`: its opcode ends a response.
[[nodiscard]] Response on_response(RequesterState& s, RequestRing ring, Instant now, Psn psn, bool last,
                                   uint32_t payload_bytes);

/// `deadline` has come. A call before it does nothing.
[[nodiscard]] Progress on_timeout(RequesterState& s, Instant now);

}  // namespace ub::roce
