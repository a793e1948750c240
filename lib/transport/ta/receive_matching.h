// SPDX-License-Identifier: Apache-2.0
//
// The target's decisions about transactions: which receive a message gets, and what the completion of the receive says.
// target_executor.h copies the bytes.
#pragma once

#include "lib/transport/core_state.h"
#include "lib/transport/wire/transaction_packet.h"

namespace ub::ta {

// The status of an answer, as in ATAH. kSilent: no answer is sent, and the target drops the message.
struct Verdict {
  uint8_t rspst;
  uint8_t rspinfo;
  bool ok() const { return rspst == 0; }
};
constexpr uint8_t kSilent = 7;
constexpr Verdict kAccepted{0, 0};
constexpr uint8_t kSoon = 5;  // RNR code, 64 us: for want of a record, which somebody else gives back at any moment

// Finds the receiver of a message, checks whether the sender may use it, and takes a receive.
Verdict admit_message(CoreState& s, uint32_t channel, tp::OpenMessage& message, const wire::TaPacket& packet);
// Is a message that wants a receive of the JFR to find none, because its owner wants to see that?
bool finds_none_on_purpose(CoreState& s, const Jfr& jfr);
// Does the message carry the token that its receiver requires?
bool token_fits(const AcceptedToken& token, const wire::TaPacket& packet);

// The completion of a receive, without status, length and the sender's EID and uasid.
Cqe receive_completion(const CoreState& s, uint32_t receive, const wire::TaPacket& packet);
// Completes the receive that the message took, if it took one.
void complete_receive(CoreState& s, uint32_t channel, tp::OpenMessage& message, const wire::TaPacket& packet,
                      CrStatus status, uint64_t bytes);
// The rest of the message will not come: its receive goes back to the JFR.
void abandon_message(CoreState& s, tp::OpenMessage& message);

}  // namespace ub::ta
