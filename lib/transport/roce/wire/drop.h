// SPDX-License-Identifier: Apache-2.0
// drop.h - why a received RoCE packet or management datagram was not taken: one name for each reason, and the counter
// that belongs to it. What is wrong with Ethernet, IP or UDP is named by wire::Drop, because those are checked first,
// in the same way for all.
#pragma once

#include <cstdint>

#include "lib/base/counters.h"

namespace ub::roce {

#define UB_ROCE_DROPS(X)                                                                       \
  X(TooShort)          /* ends before the end of BTH */                                        \
  X(BadIcrc)           /* ICRC mismatch */                                                     \
  X(BadBthVersion)     /* TVer is not 0 */                                                     \
  X(UnknownOpcode)     /* reserved, or of a transport that is not spoken */                    \
  X(TruncatedHeader)   /* ends inside an extended header that its opcode requires */           \
  X(BadPadding)        /* the pad count does not fit, or does not align */                     \
  X(UnexpectedPayload) /* payload where none belongs */                                        \
  X(BadPayloadLength)  /* no first, middle or last packet is so long */                        \
  X(BadDmaLength)      /* RETH: more than a message may have, or not what the packet brings */ \
  X(MisalignedAtomic)  /* AtomicETH: the address is no multiple of eight */                    \
  X(BadSyndrome)       /* AETH: reserved syndrome, or a NAK on a packet with data */           \
  X(BadMad)            /* not 256 bytes, another base version, class or method */              \
  X(BadCmVersion)      /* another version of the CM class; answer REJ if it was a REQ */       \
  X(UnknownCmMessage)  /* a CM attribute that is not known */                                  \
  X(BadCmPrivateData)  /* REQ without the IP addresses that RDMA-CM puts there */

enum class Drop : uint8_t {
  kNone,
#define X(name) k##name,
  UB_ROCE_DROPS(X)
#undef X
};

/// The counter of a drop. Not for kNone.
constexpr Counter drop_counter(Drop d) {
  switch (d) {
#define X(name)       \
  case Drop::k##name: \
    return Counter::kRoceRxDrop##name;
    UB_ROCE_DROPS(X)
#undef X
    case Drop::kNone:
      break;
  }
  return Counter::kRoceRxDropTooShort;
}

/// "none", "too_short", ...
constexpr const char* drop_name(Drop d) {
  if (d == Drop::kNone) return "none";
  return counter_name(drop_counter(d)) + sizeof("roce.rx.drop.") - 1;
}

}  // namespace ub::roce
