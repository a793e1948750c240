// SPDX-License-Identifier: Apache-2.0
//
// What is wrong with one direction of a link, as values: the parsed form of the text of docs/impair.md (text.h). Link
// (link.h) carries it out.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "lib/base/time.h"
#include "lib/impair/packet_kind.h"

namespace ub::impair {

// Congestion marks as RED makes them: none while fewer bytes than `none_below` wait in the queue, from `all_from` on on
// every frame that may be marked, and between them with a chance that grows from 0 to `most`. all_from 0: no marks.
struct Marking {
  uint64_t none_below = 0;  // bytes
  uint64_t all_from = 0;    // bytes
  double most = 0;          // 0..1

  bool operator==(const Marking&) const = default;
};

// What a hop that speaks C-AQM goes by (caqm_hop.h). target_bytes 0: it does not.
struct CaqmTarget {
  uint64_t target_bytes = 0;  // of the queue
  // About that of the senders, without queues. With too small a value a part of the line stays unused. With too large a
  // one the shares of the senders become equal more slowly.
  Duration round_trip = microseconds(10);

  bool operator==(const CaqmTarget&) const = default;
};

// Shares are 0..1. Bytes are those of whole Ethernet frames without preamble, check sequence and gap.
struct Spec {
  // ---- the line: every frame
  uint64_t rate = 0;          // bits per second; 0: no limit, and frames do not wait for each other
  Duration delay{};           // from the end of a frame's sending to its arrival
  Duration jitter{};          // each frame is later by up to so much; the order stays
  uint32_t queue_frames = 0;  // a frame that finds so many in front of it is dropped; 0: no limit
  uint64_t queue_bytes = 0;   // a frame with which more than so many would wait is dropped; 0: no limit
  Marking mark;
  CaqmTarget caqm;    // instead of `mark`
  bool down = false;  // cut: no frame enters; those under way arrive

  // ---- faults of single frames, of these kinds only
  Kinds kinds = kAllKinds;
  double loss = 0;       // share of the frames that is lost
  double burst = 0;      // mean length of a run of losses, at least 1 (Gilbert's model); 0: independent losses
  uint32_t every = 0;    // each n-th frame is lost; 0: none
  double duplicate = 0;  // share that comes twice
  double corrupt = 0;    // share in which one bit flips, behind the headers with addresses
  uint32_t reorder = 0;  // a late frame is overtaken by 1 to so many later ones; 0: none is late
  double late = 0;       // share that is late; 0: every second frame
  Duration wait{};       // a late frame leaves after so long in any case; 0: after the time of `reorder` such
                         // frames at the rate, but not before 100 us

  bool operator==(const Spec&) const = default;
};

// A spec, and others that replace it as time goes on.
struct Script {
  struct Change {
    Duration at{};  // since the script began
    Spec spec;
    bool operator==(const Change&) const = default;
  };

  Spec first;
  std::vector<Change> changes;  // in the order of their times

  Script() = default;
  Script(const Spec& spec) : first(spec) {}  // one that stays as it is
  bool operator==(const Script&) const = default;
};

// Can a frame be lost, doubled, damaged or overtaken? Then the link is no lossless wire, and what needs one (CTP) must
// not use it.
constexpr bool can_harm(const Spec& s) {
  return s.down || s.loss > 0 || s.every != 0 || s.duplicate > 0 || s.corrupt > 0 || s.reorder != 0 ||
         s.queue_frames != 0 || s.queue_bytes != 0;
}
constexpr bool can_corrupt(const Spec& s) { return s.corrupt > 0; }

inline bool can_harm(const Script& script) {
  return can_harm(script.first) || std::any_of(script.changes.begin(), script.changes.end(),
                                               [](const auto& change) { return can_harm(change.spec); });
}
inline bool can_corrupt(const Script& script) {
  return can_corrupt(script.first) || std::any_of(script.changes.begin(), script.changes.end(),
                                                  [](const auto& change) { return can_corrupt(change.spec); });
}

}  // namespace ub::impair
