// SPDX-License-Identifier: Apache-2.0
//
// The sender of C-AQM (UB Base Specification Rev 2.0, 6.6). Over IP it has two bits, the ECN code point: a packet asks
// the hops for one packet more (01) or for nothing (10), and a hop refuses (01 becomes 10) or marks (11). With a CCI
// (5.3.5) a packet asks for any number of bytes (I and Hint), and a hop grants all or some of them, refuses or marks.
// The receiver reports what came, and the sender has the window that this leaves it. Hops that know nothing of C-AQM
// only mark; then each wish is granted that no mark meets.
//
// In slow start the sender asks for as many bytes as it sends. It ends with the first mark or refusal, and comes back
// after some round trips without either. Otherwise the sender asks for a part of a packet in each round trip: with
// hints each packet asks for its share of that, else one of many for a packet. It asks only while it uses its window.
// The window counts bytes, and the packets that it allows are of the mean size of those that left lately.
#pragma once

#include "lib/transport/cc/member.h"

namespace ub::cc {

struct Caqm : Member {
  static constexpr bool kHearsPackets = true;

  uint32_t window_bytes = 0;
  uint32_t unasked_bytes = 0;    ///< bytes that were sent since the last wish
  uint32_t sixteen_packets = 0;  ///< bytes of 16 packets of the mean size of those that left lately
  Psn round_until;               ///< the round trip ends when this packet is acknowledged
  uint8_t calm_round_trips = 0;  ///< without a mark or a refusal
  uint8_t hint = 0;              ///< if Path::has_hints: what the next packet asks for, in kCaqmHintUnitBytes
  /// 0: no wish waits for its answer. 1: one left in this round trip. 2: one has waited for longer.
  uint8_t wish_round_trips : 2 = 0;
  bool slow_start : 1 = true;
  bool disturbed : 1 = false;  ///< something of this round trip was marked, refused or lost
  bool cut : 1 = false;        ///< a loss reduced the window in this round trip

  void begin(Verdict& v, const Path& path, Psn next);
  void sent(Verdict& v, const Path& path, Instant, uint32_t bytes);
  void acknowledged(Verdict& v, const Path& path, Instant, uint32_t packets, Psn until);
  void fed_back(Verdict& v, const Path& path, Instant, const Feedback& feedback);
  void lost(Verdict& v, const Path& path, Instant, const Loss& loss);
  void timed_out(Verdict& v, const Path& path, Instant, Psn next);

 private:
  uint32_t mean_bytes() const { return sixteen_packets / 16; }
  uint32_t most_bytes(const Path& path) const;
  uint32_t bytes_per_wish(const Path& path) const;
  void ask(Verdict& v, const Path& path, uint32_t per_wish);
  void end_round_trip(const Path& path, Psn next);
  void disturb();
  void begin_anew(Psn next);
  void shrink(Verdict& v, const Path& path, uint32_t bytes);
  void set_window(Verdict& v, const Path& path, uint32_t bytes);
};

}  // namespace ub::cc
