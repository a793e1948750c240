// SPDX-License-Identifier: Apache-2.0
//
// The border between those who send packets and those who know how many packets the network bears (UB Base
// Specification Rev 2.0, 6.6). A flow is what one sender, a channel of UB (tp/congestion.h) or a queue pair of RoCE
// (roce/congestion.h), keeps of its way through the network. The sender calls the functions below to tell the flow what
// happens, and when. Afterwards it obeys the Verdict. When a flow begins, its algorithm is chosen.
//
// If the flow has no algorithm, or one that does not use what would be told, the sender need not tell it: see
// `algorithm`, hears_packets() and Verdict::send_times. Thread: the owner of the Core.
#pragma once

#include "lib/transport/cc/caqm.h"
#include "lib/transport/cc/dcqcn.h"
#include "lib/transport/cc/ldcp.h"
#include "lib/transport/cc/listener.h"
#include "lib/transport/cc/loss_window.h"
#include "lib/transport/cc/send_times.h"
#include "lib/transport/cc/signals.h"
#include "lib/transport/cc/swift.h"

namespace ub::cc {

/// The algorithms: the type of each, and the name of its state.
#define UB_CC_MEMBERS(X)     \
  X(Listener, listener)      \
  X(LossWindow, loss_window) \
  X(Dcqcn, dcqcn)            \
  X(Caqm, caqm)              \
  X(Ldcp, ldcp)              \
  X(Swift, swift)

#define UB_CC_NUMBER(Type, name) k##Type,
enum class Algorithm : uint8_t { kNone, UB_CC_MEMBERS(UB_CC_NUMBER) };
#undef UB_CC_NUMBER

struct Flow : Verdict {
  constexpr Flow() : nothing(0) {}

  Algorithm algorithm = Algorithm::kNone;
  union {
    uint64_t nothing;
#define UB_CC_STATE(Type, name) Type name;
    UB_CC_MEMBERS(UB_CC_STATE)
#undef UB_CC_STATE
  };
};
static_assert(sizeof(Flow) == 48, "every channel and queue pair has one");

/// "none", "listener", "loss_window", "dcqcn", "caqm", "ldcp" or "swift".
const char* name_of(Algorithm algorithm);
/// 0: no rate limits it.
constexpr uint32_t rate_of(const Flow& f) {
  return f.algorithm == Algorithm::kDcqcn ? f.dcqcn.rate_kbytes_per_second : 0;
}
/// How much the feedback says of marks that the flow has not heard of: C-AQM tells packets, and of LDCP each feedback
/// with newly marked bytes counts once. To be asked before fed_back().
constexpr uint32_t new_marks(const Flow& f, const Feedback& feedback) {
  if (f.algorithm != Algorithm::kLdcp) return feedback.marked_packets;
  return feedback.marked_words != f.ldcp.marked_words ? 1 : 0;
}

/// `next`: the first PSN. A flow that wants round trips takes a block of `times`, which end() gives back.
void begin(Flow& f, SendTimes& times, Algorithm algorithm, const Path& path, Psn next);
/// The same for an owner that measures round trips itself: round_trip() tells them.
void begin(Flow& f, Algorithm algorithm, const Path& path, Psn next);
/// The flow, which begins, takes the place of another one between the same two: what the peer counts in all goes on. If
/// their algorithms differ, nothing does.
void take_over(Flow& f, const Flow& before);
void end(Flow& f, SendTimes& times);

/// Must the flow be told of each packet that leaves?
bool hears_packets(const Flow& f);
struct Departure {
  bool again = false;  ///< the packet has left before
  bool asked = true;   ///< it asks for an acknowledgement, so that the peer does not delay that
};
/// A data packet leaves.
void sent(Flow& f, SendTimes& times, const Path& path, Instant now, Psn psn, uint32_t bytes, Departure departure);
/// The same for a packet that nobody acknowledges.
void sent(Flow& f, const Path& path, Instant now, uint32_t bytes);
/// The peer has this packet, but does not acknowledge it yet, because others before it are missing.
void arrived(Flow& f, SendTimes& times, const Path& path, Instant now, Psn psn);
/// The packets in [from, to) are no longer in flight. Nothing happens if there are none.
void acknowledged(Flow& f, SendTimes& times, const Path& path, Instant now, Psn from, Psn to);
/// So many packets are no longer in flight, of those before `until`.
void acknowledged(Flow& f, const Path& path, Instant now, uint32_t packets, Psn until);
void round_trip(Flow& f, const Path& path, Instant now, Duration sample);
void marked(Flow& f, const Path& path, Instant now, const Mark& mark);
void fed_back(Flow& f, const Path& path, Instant now, const Feedback& feedback);
void lost(Flow& f, const Path& path, Instant now, const Loss& loss);
/// A whole retransmission timeout has passed. `next`: the PSN of the next new packet.
void timed_out(Flow& f, const Path& path, Instant now, Psn next);
/// Verdict::timer_at may have come. A call before it does nothing.
void timer(Flow& f, const Path& path, Instant now);

/// May a packet leave?
constexpr bool may_leave(const Verdict& v, Instant now) { return v.next_packet <= now; }
/// When the sender has to look at the flow again, because a packet may leave then or its timer fires.
constexpr Instant deadline(const Verdict& v, Instant now) {
  return may_leave(v, now) ? v.timer_at : earlier(v.next_packet, v.timer_at);
}

}  // namespace ub::cc
