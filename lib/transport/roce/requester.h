// SPDX-License-Identifier: Apache-2.0
// requester.h - what a queue pair of a reliable connection has sent and what became of it: which packet goes next,
// what an acknowledgement or a response means, when to go back and when to give up. InfiniBand Architecture
// Specification volume 1, 9.7 and 9.9. Touches no memory and builds no packet: a packet is named by its request and
// its place there, and is built again if it is lost. Of unreliable connections and datagrams the caller acknowledges
// each packet as it leaves.
//
// Requests are numbered from 0 on; those begun and not complete lie in a ring that the caller owns. The caller begins
// one when next_packet() has nothing and there is room, and completes as many of the oldest as Progress says.
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
  uint32_t psns;    // a READ: of its response
  uint32_t length;  // bytes; at most kMaxRequestBytes
  Msn ssn;
  RequestKind kind;
};
static_assert(sizeof(SentRequest) == 20);

inline constexpr uint8_t kForEver = 7;                  // of rnr_retry
inline constexpr uint32_t kMaxRequestBytes = 1u << 30;  // half of all PSNs are more than its packets

struct RequesterState {
  // Packets [oldest, sent_end) are in flight, [sent_end, end) were never sent; `cursor`, in [oldest, sent_end], is the
  // next to go.
  Psn oldest, cursor, sent_end, end;
  uint32_t head = 0, tail = 0;  // requests begun and not complete
  uint32_t cursor_request = 0;  // the one that `cursor` is in; `tail` if there is none
  Msn last_ssn;                 // of the newest request
  Msn ssn_limit;                // with credits: newest request that may take a receive
  uint16_t mtu = 1024;
  uint16_t window = 128;    // packets in flight
  bool limited = false;     // ssn_limit counts
  bool went_back = false;   // since the last progress: what else the responder reports of the same gap is known
  uint8_t retry_count = 7;  // as configured
  uint8_t rnr_retry = 7;    // as configured; kForEver
  uint8_t retries_left = 7;
  uint8_t rnr_left = 7;
  uint8_t reads_in_flight = 0;
  uint8_t max_reads = 1;                // READs and atomics in flight
  Duration timeout{};                   // for an acknowledgement; 0: none
  Instant deadline = Instant::never();  // of the oldest packet in flight
  Instant wait_until{};                 // RNR: nothing goes before; to be waited for as the deadline is
};
static_assert(sizeof(RequesterState) <= 80);

using RequestRing = std::span<SentRequest>;  // a power of two

/// Is everything begun also sent, and is there room for such a request?
[[nodiscard]] bool may_begin(const RequesterState& s, RequestRing ring, RequestKind kind, uint32_t length);
/// There is room. Packets of requests before this one need not have been sent, if the caller has built them.
void begin(RequesterState& s, RequestRing ring, RequestKind kind, uint32_t length);

struct NextPacket {
  uint32_t request;  // its number
  uint32_t skipped;  // its packets before this one; a READ is asked for from there on
  bool last;         // of its request
  bool must_ask;     // AckReq, or nothing more can go
};
/// False: nothing to send now.
[[nodiscard]] bool next_packet(const RequesterState& s, RequestRing ring, Instant now, NextPacket* out);
/// It went out.
void sent(RequesterState& s, RequestRing ring, Instant now, const NextPacket& packet);

/// Everything in flight goes again.
void rewind(RequesterState& s);

struct Progress {
  uint32_t completed = 0;                // requests, from the oldest on
  bool stale = false;                    // fits nothing in flight, changed nothing
  bool gap = false;                      // packets are missing: all from the oldest on go again, or it failed
  CrStatus failed = CrStatus::kSuccess;  // else: of the oldest not completed; the queue pair is to go to ERROR
};
/// An ACK packet.
[[nodiscard]] Progress on_ack(RequesterState& s, RequestRing ring, Instant now, Psn psn, Aeth aeth);

struct Response {
  Progress progress;
  bool taken = false;    // it is the one that was awaited
  uint32_t request = 0;  // whose it is
  uint32_t offset = 0;   // where its bytes go
};
/// A READ response or atomic acknowledgement. `last`: its opcode ends a response.
[[nodiscard]] Response on_response(RequesterState& s, RequestRing ring, Instant now, Psn psn, bool last,
                                   uint32_t payload_bytes);

/// `deadline` has come. Early calls do nothing.
[[nodiscard]] Progress on_timeout(RequesterState& s, Instant now);

}  // namespace ub::roce
