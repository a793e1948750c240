// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/roce/qp_states.h"

namespace ub::roce {
namespace {

constexpr uint8_t kRc = 1, kUc = 2, kUd = 4, kAny = 7;

struct Step {
  uint8_t types;
  QpState from, to;
  uint32_t needed, admitted;
};

constexpr uint32_t kSendLimits = kQpTimeout | kQpRetries | kQpRnrRetries | kQpReadsInFlight;

// RESET and ERROR can be reached from every state, without attributes.
constexpr Step kSteps[] = {
    {kRc | kUc, QpState::kReset, QpState::kInit, kQpPkey | kQpPort | kQpAccess, 0},
    {kUd, QpState::kReset, QpState::kInit, kQpPkey | kQpPort | kQpQkey, 0},
    {kRc | kUc, QpState::kInit, QpState::kInit, 0, kQpPkey | kQpPort | kQpAccess},
    {kUd, QpState::kInit, QpState::kInit, 0, kQpPkey | kQpPort | kQpQkey},
    {kRc, QpState::kInit, QpState::kRtr,
     kQpPath | kQpMtu | kQpDestination | kQpReceivePsn | kQpReadsServed | kQpRnrTimer, kQpPkey | kQpAccess},
    {kUc, QpState::kInit, QpState::kRtr, kQpPath | kQpMtu | kQpDestination | kQpReceivePsn, kQpPkey | kQpAccess},
    {kUd, QpState::kInit, QpState::kRtr, 0, kQpPkey | kQpQkey},
    {kRc, QpState::kRtr, QpState::kRts, kSendLimits | kQpSendPsn, kQpAccess | kQpRnrTimer},
    {kUc, QpState::kRtr, QpState::kRts, kQpSendPsn, kQpAccess},
    {kUd, QpState::kRtr, QpState::kRts, kQpSendPsn, kQpQkey},
    {kRc, QpState::kRts, QpState::kRts, 0, kQpAccess | kQpRnrTimer},
    {kUc, QpState::kRts, QpState::kRts, 0, kQpAccess},
    {kUd, QpState::kRts, QpState::kRts, 0, kQpQkey},
    {kAny, QpState::kRts, QpState::kSqd, 0, 0},
    {kRc, QpState::kSqd, QpState::kRts, 0, kQpAccess | kQpRnrTimer},
    {kUc, QpState::kSqd, QpState::kRts, 0, kQpAccess},
    {kUd, QpState::kSqd, QpState::kRts, 0, kQpQkey},
    {kRc, QpState::kSqd, QpState::kSqd, 0,
     kSendLimits | kQpReadsServed | kQpPkey | kQpPort | kQpPath | kQpAccess | kQpRnrTimer},
    {kUc, QpState::kSqd, QpState::kSqd, 0, kQpPkey | kQpPath | kQpAccess},
    {kUd, QpState::kSqd, QpState::kSqd, 0, kQpPkey | kQpQkey},
    {kUc, QpState::kSqe, QpState::kRts, 0, kQpAccess},
    {kUd, QpState::kSqe, QpState::kRts, 0, kQpQkey},
};

constexpr uint8_t bit_of(QpType type) { return static_cast<uint8_t>(1u << static_cast<uint8_t>(type)); }
static_assert(bit_of(QpType::kRc) == kRc && bit_of(QpType::kUc) == kUc && bit_of(QpType::kUd) == kUd);

}  // namespace

bool step_is_allowed(QpType type, QpState from, QpState to, uint32_t attributes) {
  if (to == QpState::kReset || to == QpState::kError) return attributes == 0;
  for (const Step& s : kSteps) {
    if ((s.types & bit_of(type)) == 0 || s.from != from || s.to != to) continue;
    return (attributes & s.needed) == s.needed && (attributes & ~(s.needed | s.admitted)) == 0;
  }
  return false;
}

const char* qp_state_name(QpState s) {
  constexpr const char* kNames[kQpStates] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERROR"};
  const auto at = static_cast<uint32_t>(s);
  return at < kQpStates ? kNames[at] : "?";
}

}  // namespace ub::roce
