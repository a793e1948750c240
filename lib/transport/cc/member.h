// SPDX-License-Identifier: Apache-2.0
//
// The form of a congestion control algorithm: plain state, which is told what happens and when, and which changes a
// verdict. An algorithm is one header with a struct that derives from Member. It has functions of its own for the
// signals that it uses; all others stay as they are here and cost nothing. No function is virtual: flow.cc chooses by
// number.
//
// To add an algorithm, write its header, a line in flow.h (UB_CC_MEMBERS), and its test in tests/unit/cc.
#pragma once

#include "lib/transport/cc/signals.h"

namespace ub::cc {

struct Member {
  /// Does the algorithm want to hear of each packet that leaves, and of each round trip that can be measured? Both cost
  /// something for every packet, so only the algorithms that need them get them.
  static constexpr bool kHearsPackets = false;
  static constexpr bool kHearsRoundTrips = false;
  /// A peer delays the acknowledgement of a packet that does not ask for one. Does such a round trip say nothing?
  static constexpr bool kOnlyAsked = false;

  /// A flow begins. `next`: its first PSN.
  void begin(Verdict&, const Path&, Psn /*next*/) {}
  /// Behind begin(): the flow takes the place of `before`, another one between the same two. What the peer counts in
  /// all goes on; PSNs are others.
  template <class Type>
  void take_over(const Type& /*before*/) {}
  /// A packet of so many bytes left, for the first time or again. It may also be an answer to a READ.
  void sent(Verdict&, const Path&, Instant /*now*/, uint32_t /*bytes*/) {}
  /// So many packets, at least one, are no longer in flight.
  void acknowledged(Verdict&, const Path&, Instant /*now*/, uint32_t /*packets*/, Psn /*until*/) {}
  /// The time from the departure of a packet until the peer said that it has the packet. Only packets that left once
  /// are measured (Karn), because nobody knows which departure of the others is answered. If one acknowledgement tells
  /// of several packets, they come oldest first, before acknowledged(). The time includes how long the peer delayed the
  /// acknowledgement.
  void round_trip(Verdict&, const Path&, Instant /*now*/, Duration) {}
  /// The network marked packets of this flow.
  void marked(Verdict&, const Path&, Instant /*now*/, const Mark&) {}
  void fed_back(Verdict&, const Path&, Instant /*now*/, const Feedback&) {}
  /// The peer reported packets as missing.
  void lost(Verdict&, const Path&, Instant /*now*/, const Loss&) {}
  /// Nothing was heard for a whole retransmission timeout. `next`: the PSN of the next new packet.
  void timed_out(Verdict&, const Path&, Instant /*now*/, Psn /*next*/) {}
  /// Verdict::timer_at may have come. A call before it does nothing.
  void timer(Verdict&, const Path&, Instant /*now*/) {}
};

}  // namespace ub::cc
