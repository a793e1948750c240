// SPDX-License-Identifier: Apache-2.0
//
// The target's side of transactions: the decisions, without the copying (receiver.h does that). Which receive a
// message gets, whether an access is allowed, what the completion at the target says.
#pragma once

#include "lib/transport/core_state.h"
#include "lib/transport/wire/transaction_packet.h"

namespace ub::ta {

// An answer status, as in ATAH; kSilent: none is sent (the target drops what it gets).
struct Verdict {
  uint8_t rspst;
  uint8_t rspinfo;
  bool ok() const { return rspst == 0; }
};
constexpr uint8_t kSilent = 7;
constexpr Verdict kAccepted{0, 0};

// Takes a receive for a message that needs one.
Verdict admit_message(CoreState& s, uint32_t channel, tp::OpenMessage& message, const wire::TaPacket& packet);
// Has the message the token that its receiver asks for?
bool token_fits(const Token& token, const wire::TaPacket& packet);

// The completion of a receive: all but status, length and whom the message is from.
Cqe receive_completion(const CoreState& s, uint32_t receive, const wire::TaPacket& packet);
// Completes the receive that the message took, if it took one.
void complete_receive(CoreState& s, uint32_t channel, tp::OpenMessage& message, const wire::TaPacket& packet,
                      CrStatus status, uint64_t bytes);
// The message vanished: its receive goes back.
void abandon_message(CoreState& s, tp::OpenMessage& message);

}  // namespace ub::ta
