// SPDX-License-Identifier: Apache-2.0
//
// The form of a congestion control algorithm: plain state, to which it is told what happens and when, and which changes a
// verdict. An algorithm is one header with a struct that derives from Member and has functions of its own for what it heeds;
// the rest stay as they are here and cost nothing. No function is virtual: flow.cc chooses by number.
//
// To add one: its header, a line in flow.h (UB_CC_MEMBERS), and its test in tests/unit/cc.
#pragma once

#include "lib/transport/cc/signals.h"

namespace ub::cc {

struct Member {
  /// Does it want to hear of each packet that leaves, and the round trip of each that can tell it? Both cost something for
  /// every packet, so who does not need them does not get them.
  static constexpr bool kHearsPackets = false;
  static constexpr bool kHearsRoundTrips = false;

  /// A new flow. `next`: its first packet.
  void begin(Verdict&, const Path&, Psn /*next*/) {}
  /// A packet of so many bytes left, for the first time or again; an answer to a READ is one, too.
  void sent(Verdict&, const Path&, Instant /*now*/, uint32_t /*bytes*/) {}
  /// So many packets are no longer in flight; at least one.
  void acknowledged(Verdict&, const Path&, Instant /*now*/, uint32_t /*packets*/, Psn /*until*/) {}
  /// From the departure of a packet until the peer said that it has it, if it left once (Karn: of one that left again
  /// nobody knows which departure is answered). Of several that one acknowledgement tells of, oldest first, before
  /// acknowledged(). It contains the time that the peer kept the acknowledgement back.
  void round_trip(Verdict&, const Path&, Instant /*now*/, Duration) {}
  /// The network marked packets of this flow.
  void marked(Verdict&, const Path&, Instant /*now*/, const Mark&) {}
  void fed_back(Verdict&, const Path&, Instant /*now*/, const Feedback&) {}
  /// The peer reported packets as missing.
  void lost(Verdict&, const Path&, Instant /*now*/, const Loss&) {}
  /// Nothing was heard for a whole retransmission timeout. `next`: the next new packet.
  void timed_out(Verdict&, const Path&, Instant /*now*/, Psn /*next*/) {}
  /// Verdict::timer_at may have come; early calls do nothing.
  void timer(Verdict&, const Path&, Instant /*now*/) {}
};

}  // namespace ub::cc
