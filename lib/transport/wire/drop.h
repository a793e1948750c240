// SPDX-License-Identifier: Apache-2.0
// drop.h - why a received frame was not taken: one name for each reason, and the counter that belongs to it. Decoders
// return one of these names and never assert, because whatever arrives was made by a peer or by the wire.
#pragma once

#include <cstdint>

#include "lib/base/counters.h"

namespace ub::wire {

#define UB_WIRE_DROPS(X)                                                                         \
  X(TooShort)          /* ends before its network or transport header */                         \
  X(NotIp)             /* EtherType is neither IPv4 nor IPv6 (ARP, say) */                       \
  X(BadIpHeader)       /* version, IHL, total length, checksum */                                \
  X(Fragment)          /* IP fragment */                                                         \
  X(NotUdp)            /* IP, not UDP */                                                         \
  X(BadUdpLength)      /* UDP length disagrees with IP's */                                      \
  X(BadIcrc)           /* ICRC mismatch */                                                       \
  X(BadLinkType)       /* LPH of a type (CFG) that is not read */                                \
  X(BadTpVersion)      /* TPVer is not 0 */                                                      \
  X(BadTpOpcode)       /* reserved TPOpcode */                                                   \
  X(BadNlp)            /* reserved or unsupported NLP */                                         \
  X(BadTaVersion)      /* TAver is not 0 */                                                      \
  X(UnknownOpcode)     /* reserved TAOpcode; answer 011/1 */                                     \
  X(TruncatedHeader)   /* ends inside a header its opcode requires */                            \
  X(BadHeaderFlags)    /* MT_EN or TV_EN does not fit the operation; answer 011/1 */             \
  X(BadByteEnable)     /* BEETAH for an impossible length; answer 011/1 */                       \
  X(UnexpectedPayload) /* payload where none belongs; answer 011/1 if it is a request */         \
  X(NotLoadStore)      /* operation that TP bypass does not carry */                             \
  X(BadLength)         /* payload of TP bypass is not as long as its operation says */           \
  X(Management)        /* Mgmt bit of NTH16 in a packet of TP bypass */                          \
  X(BadPadding)        /* padding does not fit or does not align */                              \
  X(BadSackSize)       /* reserved BitMapSize */                                                 \
  X(BadRecordMagic)    /* control record without our magic, or too short for its length */       \
  X(BadRecordVersion)  /* control record of another version; bytes 0-27 are valid, answer REJ */ \
  X(BadRecordType)     /* control record of an unknown type */                                   \
  X(UnknownTpn)        /* DstTPN names no channel */                                             \
  X(WrongPeer)         /* SrcTPN or source address is not the channel's */

enum class Drop : uint8_t {
  kNone,
#define X(name) k##name,
  UB_WIRE_DROPS(X)
#undef X
};

/// The counter of a drop. `d` must not be kNone.
constexpr Counter drop_counter(Drop d) {
  switch (d) {
#define X(name)       \
  case Drop::k##name: \
    return Counter::kRxDrop##name;
    UB_WIRE_DROPS(X)
#undef X
    case Drop::kNone:
      break;
  }
  return Counter::kRxDropTooShort;
}

/// "none", "too_short", ...
constexpr const char* drop_name(Drop d) {
  if (d == Drop::kNone) return "none";
  return counter_name(drop_counter(d)) + sizeof("rx.drop.") - 1;
}

/// Is the packet an undamaged request, whose BTAH was decoded, that asks for something unsupported? On a reliable
/// channel it is answered with RSPST 011, RSPINFO 1 (unsupported request), and not with silence.
constexpr bool drop_is_unsupported_request(Drop d) {
  return d == Drop::kUnknownOpcode || d == Drop::kBadHeaderFlags || d == Drop::kBadByteEnable ||
         d == Drop::kUnexpectedPayload;
}

}  // namespace ub::wire
