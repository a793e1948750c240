// SPDX-License-Identifier: Apache-2.0
//
// What a receiver has heard of the network since the last acknowledgement, and in all (UB Base Specification Rev 2.0,
// 6.6): the CETPH of its acknowledgements says it. The ECN code points of the packets that arrive are what C-AQM has in
// its two-bit form, and what LDCP counts.
#pragma once

#include <algorithm>

#include "lib/transport/wire/congestion_header.h"
#include "lib/transport/wire/control_record.h"
#include "lib/transport/wire/network_header.h"

namespace ub::cc {

struct Heard {
  uint32_t received_words = 0;  ///< total, modulo 2^32
  union {
    uint32_t marked_words = 0;  ///< LDCP: total, modulo 2^32
    struct {                    ///< C-AQM: since the last acknowledgement
      uint16_t hint;            ///< what hops granted, in kCaqmHintUnitBytes
      uint8_t marks;            ///< marked packets; 255: that many or more
      bool increase;            ///< `hint` says something
    };
  };

  /// A packet was accepted whose transport header, payload and ICRC have so many bytes.
  void accepted(wire::CcAlgorithm agreed, uint32_t bytes, uint8_t ecn) {
    const uint32_t words = (bytes + wire::kAckSeqUnitBytes - 1) / wire::kAckSeqUnitBytes;
    received_words += words;
    if (agreed == wire::CcAlgorithm::kLdcp && ecn == wire::kEcnCe) marked_words += words;
  }
  /// C-AQM: a hop marked a packet, or granted it `grant_bytes` more. Even a packet that came before counts.
  void told(uint8_t ecn, uint32_t grant_bytes) {
    if (ecn == wire::kEcnCe) {
      marks += marks != UINT8_MAX;
    } else if (ecn == wire::kEcnEct1) {
      hint = static_cast<uint16_t>(std::min<uint32_t>(hint + grant_bytes / wire::kCaqmHintUnitBytes, UINT16_MAX));
      increase = true;
    }
  }

  wire::CetphLdcp ldcp() const { return {received_words, marked_words}; }
  wire::CetphCaqm caqm() const {
    return {.ack_seq = received_words, .increase = increase, .marks = marks, .hint = hint};
  }
  /// C-AQM: the acknowledgement has left.
  void caqm_said() { marked_words = 0; }
};
static_assert(sizeof(Heard) == 8);

}  // namespace ub::cc
