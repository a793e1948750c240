// SPDX-License-Identifier: Apache-2.0
//
// Reads what a CETPH says (UB Base Specification Rev 2.0, 6.2.2). Its form in an acknowledgement is agreed on together
// with the algorithm, when the channel is set up.
#pragma once

#include <span>

#include "lib/transport/cc/signals.h"
#include "lib/transport/wire/congestion_header.h"
#include "lib/transport/wire/control_record.h"

namespace ub::cc {

/// How long the CETPH in acknowledgements of that algorithm is; 0: they have none.
constexpr size_t feedback_size(wire::CcAlgorithm agreed) {
  return agreed == wire::CcAlgorithm::kLdcp   ? wire::CetphLdcp::kSize
         : agreed == wire::CcAlgorithm::kCaqm ? wire::CetphCaqm::kSize
                                              : 0;
}

/// `bytes`: an acknowledgement from its CETPH on. kBadTpOpcode: its algorithm has no CETPH.
inline wire::Drop read_feedback(wire::CcAlgorithm agreed, std::span<const std::byte> bytes, Feedback* out) {
  if (agreed == wire::CcAlgorithm::kLdcp) {
    wire::CetphLdcp h;
    const wire::Drop drop = wire::CetphLdcp::read(bytes.data(), bytes.size(), h);
    *out = {.received_words = h.ack_seq, .marked_words = h.ce_seq};
    return drop;
  }
  if (agreed != wire::CcAlgorithm::kCaqm) return wire::Drop::kBadTpOpcode;
  wire::CetphCaqm h;
  const wire::Drop drop = wire::CetphCaqm::read(bytes.data(), bytes.size(), h);
  *out = {.received_words = h.ack_seq,
          .granted_bytes = h.hint * wire::kCaqmHintUnitBytes,
          .marked_packets = h.marks,
          .may_increase = h.increase,
          .at_last_hop = h.loc};
  return drop;
}

/// `bytes`: a CNP from its CETPH on. A level of 0 is no mark: `*any` is false.
inline wire::Drop read_notification(std::span<const std::byte> bytes, Mark* out, bool* any) {
  wire::CetphCnp h;
  const wire::Drop drop = wire::CetphCnp::read(bytes.data(), bytes.size(), h);
  *any = h.ecn != wire::CetphCnp::kNone;  // if nothing was read, it is none
  *out = {h.ecn == wire::CetphCnp::kSevere, h.loc};
  return drop;
}

}  // namespace ub::cc
