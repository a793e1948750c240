// SPDX-License-Identifier: Apache-2.0
//
// What a receiver has heard of the network since the last acknowledgement, and in all (UB Base Specification Rev 2.0,
// 6.6): the CETPH of its acknowledgements says it. The ECN code points of the packets that arrive, or the FECN in their
// CCI, are what LDCP counts. C-AQM has the same two bits, or the whole CCI.
#pragma once

#include <algorithm>

#include "lib/transport/wire/congestion_header.h"
#include "lib/transport/wire/control_record.h"
#include "lib/transport/wire/link_header.h"
#include "lib/transport/wire/network_header.h"

namespace ub::cc {

struct Heard {
  uint32_t received_words = 0;  ///< total, modulo 2^32
  union {
    uint32_t marked_words = 0;  ///< LDCP: total, modulo 2^32
    struct {                    ///< C-AQM: since the last acknowledgement
      uint16_t hint;            ///< what hops granted, in kCaqmHintUnitBytes
      uint8_t marks;            ///< marked packets; 255: that many or more
      bool increase : 1;        ///< `hint` says something
      bool at_last_hop : 1;     ///< a packet met congestion at the last hop
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
      marked();
    } else if (ecn == wire::kEcnEct1) {
      granted(grant_bytes / wire::kCaqmHintUnitBytes);
    }
  }
  /// The same of a packet with a CCI.
  void told(const wire::Cci& cci) {
    at_last_hop |= cci.loc;
    if (cci.congested) {
      marked();
    } else if (cci.increase) {
      granted(cci.hint);
    }
  }

  wire::CetphLdcp ldcp() const { return {received_words, marked_words}; }
  wire::CetphCaqm caqm() const {
    return {.ack_seq = received_words, .loc = at_last_hop, .increase = increase, .marks = marks, .hint = hint};
  }
  /// C-AQM: the acknowledgement has left.
  void caqm_said() { marked_words = 0; }

 private:
  void marked() { marks += marks != UINT8_MAX; }
  void granted(uint32_t units) {
    hint = static_cast<uint16_t>(std::min<uint32_t>(hint + units, UINT16_MAX));
    increase = true;
  }
};
static_assert(sizeof(Heard) == 8);

}  // namespace ub::cc
