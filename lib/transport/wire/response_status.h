// SPDX-License-Identifier: Apache-2.0
// response_status.h - RSPST and RSPINFO, the 3 + 5 bits in which transport responses (RTPH) and transaction
// responses (ATAH) say how it went, and the RNR timer code. UB Base Specification Rev 2.0, 6.2.1, 7.2.2.
#pragma once

#include <cstdint>

#include "lib/base/time.h"

namespace ub::wire {

inline constexpr uint8_t kRspOk = 0;         ///< RSPINFO: in ATAH the number of further TAACKs it stands for
inline constexpr uint8_t kRspRnr = 1;        ///< RSPINFO: RNR timer code
inline constexpr uint8_t kRspPageFault = 2;  ///< RSPINFO: RNR timer code
inline constexpr uint8_t kRspError = 3;      ///< RSPINFO: one of kErr*
inline constexpr uint8_t kRspFused = 5;      ///< RTPH: TPACK carrying a TAACK, RSPINFO one of kFused*
inline constexpr uint8_t kRspReceived = 5;   ///< ATAH: as kRspOk, but the bytes may not be in their medium yet

inline constexpr uint8_t kErrPsn = 0;                 ///< RTPH only: this is a TPNAK, PSN is the first missing
inline constexpr uint8_t kErrUnsupportedRequest = 1;  ///< malformed or not implemented
inline constexpr uint8_t kErrRemoteAbort = 2;         ///< token, range, permission, unknown target

inline constexpr uint8_t kFusedRetry = 0;  ///< failed, a transaction retry may succeed
inline constexpr uint8_t kFusedFatal = 1;  ///< failed for good
inline constexpr uint8_t kFusedOk = 2;     ///< executed

inline constexpr uint8_t kRspInfoMax = 31;
inline constexpr uint8_t kRnrTimerMax = 19;  ///< larger codes are reserved

/// Does an ATAH with this RSPST say that the request succeeded?
constexpr bool says_success(uint8_t rspst) { return rspst == kRspOk || rspst == kRspReceived; }

/// 2 us x 2^code; reserved codes count as the largest.
constexpr Duration rnr_duration(uint8_t code) {
  return microseconds(int64_t{2} << (code < kRnrTimerMax ? code : kRnrTimerMax));
}

/// After how long a refused request may go again. A page fault with code 0 is already resolved.
constexpr Duration refusal_duration(uint8_t rspst, uint8_t code) {
  return rspst == kRspPageFault && code == 0 ? Duration{} : rnr_duration(code);
}

/// The smallest code whose time is at least `d` (the largest code if none is).
constexpr uint8_t rnr_code_at_least(Duration d) {
  uint8_t code = 0;
  while (code < kRnrTimerMax && rnr_duration(code) < d) ++code;
  return code;
}

}  // namespace ub::wire
