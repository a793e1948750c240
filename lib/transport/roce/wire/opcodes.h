// SPDX-License-Identifier: Apache-2.0
// opcodes.h - the opcodes of BTH and, for each of them, which headers and properties its packets have. Decoder, writer
// and engine read this one table. InfiniBand Architecture Specification volume 1, 9.2.1 (table of BTH opcodes); annex
// A17 (RoCEv2) for CNP. The upper three bits of a code name the transport. Reliable datagrams, XRC, FLUSH and ATOMIC
// WRITE are not supported, so their codes are unknown here.
#pragma once

#include <cstdint>

namespace ub::roce {

/// The headers behind BTH, in the order of the wire, and the kind of the packet.
enum PacketShape : uint16_t {
  kShapeDeth = 1 << 0,
  kShapeReth = 1 << 1,
  kShapeAtomicEth = 1 << 2,
  kShapeAeth = 1 << 3,
  kShapeAtomicAckEth = 1 << 4,
  kShapeImm = 1 << 5,         ///< ImmDt
  kShapeIeth = 1 << 6,        ///< SEND with invalidate
  kShapeCnp = 1 << 7,         ///< sixteen reserved bytes
  kShapePayload = 1 << 8,     ///< it may have a payload
  kShapeFirst = 1 << 9,       ///< it begins a message
  kShapeLast = 1 << 10,       ///< it ends a message; an ONLY packet does both
  kShapeRequest = 1 << 11,    ///< it is for the responder, others are for the requester
  kShapeSend = 1 << 12,       ///< it belongs to a SEND
  kShapeWrite = 1 << 13,      ///< it belongs to a WRITE
  kShapeReadReply = 1 << 14,  ///< it belongs to a READ response
  kShapeKnown = 1 << 15,
};

// X(enumerator, code, name, shape)
#define UB_ROCE_OPCODES(X)                                                                      \
  X(RcSendFirst, 0x00, "RC_SEND_FIRST", kSend_ | kShapeFirst)                                   \
  X(RcSendMiddle, 0x01, "RC_SEND_MIDDLE", kSend_)                                               \
  X(RcSendLast, 0x02, "RC_SEND_LAST", kSend_ | kShapeLast)                                      \
  X(RcSendLastImm, 0x03, "RC_SEND_LAST_IMM", kSend_ | kShapeLast | kShapeImm)                   \
  X(RcSendOnly, 0x04, "RC_SEND_ONLY", kSend_ | kOnly_)                                          \
  X(RcSendOnlyImm, 0x05, "RC_SEND_ONLY_IMM", kSend_ | kOnly_ | kShapeImm)                       \
  X(RcWriteFirst, 0x06, "RC_WRITE_FIRST", kWrite_ | kShapeFirst | kShapeReth)                   \
  X(RcWriteMiddle, 0x07, "RC_WRITE_MIDDLE", kWrite_)                                            \
  X(RcWriteLast, 0x08, "RC_WRITE_LAST", kWrite_ | kShapeLast)                                   \
  X(RcWriteLastImm, 0x09, "RC_WRITE_LAST_IMM", kWrite_ | kShapeLast | kShapeImm)                \
  X(RcWriteOnly, 0x0A, "RC_WRITE_ONLY", kWrite_ | kOnly_ | kShapeReth)                          \
  X(RcWriteOnlyImm, 0x0B, "RC_WRITE_ONLY_IMM", kWrite_ | kOnly_ | kShapeReth | kShapeImm)       \
  X(RcReadRequest, 0x0C, "RC_READ_REQUEST", kRequest_ | kOnly_ | kShapeReth)                    \
  X(RcReadReplyFirst, 0x0D, "RC_READ_RESPONSE_FIRST", kReply_ | kShapeFirst | kShapeAeth)       \
  X(RcReadReplyMiddle, 0x0E, "RC_READ_RESPONSE_MIDDLE", kReply_)                                \
  X(RcReadReplyLast, 0x0F, "RC_READ_RESPONSE_LAST", kReply_ | kShapeLast | kShapeAeth)          \
  X(RcReadReplyOnly, 0x10, "RC_READ_RESPONSE_ONLY", kReply_ | kOnly_ | kShapeAeth)              \
  X(RcAck, 0x11, "RC_ACK", kShapeKnown | kOnly_ | kShapeAeth)                                   \
  X(RcAtomicAck, 0x12, "RC_ATOMIC_ACK", kShapeKnown | kOnly_ | kShapeAeth | kShapeAtomicAckEth) \
  X(RcCompareSwap, 0x13, "RC_COMPARE_SWAP", kRequest_ | kOnly_ | kShapeAtomicEth)               \
  X(RcFetchAdd, 0x14, "RC_FETCH_ADD", kRequest_ | kOnly_ | kShapeAtomicEth)                     \
  X(RcSendLastInv, 0x16, "RC_SEND_LAST_INV", kSend_ | kShapeLast | kShapeIeth)                  \
  X(RcSendOnlyInv, 0x17, "RC_SEND_ONLY_INV", kSend_ | kOnly_ | kShapeIeth)                      \
  X(UcSendFirst, 0x20, "UC_SEND_FIRST", kSend_ | kShapeFirst)                                   \
  X(UcSendMiddle, 0x21, "UC_SEND_MIDDLE", kSend_)                                               \
  X(UcSendLast, 0x22, "UC_SEND_LAST", kSend_ | kShapeLast)                                      \
  X(UcSendLastImm, 0x23, "UC_SEND_LAST_IMM", kSend_ | kShapeLast | kShapeImm)                   \
  X(UcSendOnly, 0x24, "UC_SEND_ONLY", kSend_ | kOnly_)                                          \
  X(UcSendOnlyImm, 0x25, "UC_SEND_ONLY_IMM", kSend_ | kOnly_ | kShapeImm)                       \
  X(UcWriteFirst, 0x26, "UC_WRITE_FIRST", kWrite_ | kShapeFirst | kShapeReth)                   \
  X(UcWriteMiddle, 0x27, "UC_WRITE_MIDDLE", kWrite_)                                            \
  X(UcWriteLast, 0x28, "UC_WRITE_LAST", kWrite_ | kShapeLast)                                   \
  X(UcWriteLastImm, 0x29, "UC_WRITE_LAST_IMM", kWrite_ | kShapeLast | kShapeImm)                \
  X(UcWriteOnly, 0x2A, "UC_WRITE_ONLY", kWrite_ | kOnly_ | kShapeReth)                          \
  X(UcWriteOnlyImm, 0x2B, "UC_WRITE_ONLY_IMM", kWrite_ | kOnly_ | kShapeReth | kShapeImm)       \
  X(UdSendOnly, 0x64, "UD_SEND_ONLY", kSend_ | kOnly_ | kShapeDeth)                             \
  X(UdSendOnlyImm, 0x65, "UD_SEND_ONLY_IMM", kSend_ | kOnly_ | kShapeDeth | kShapeImm)          \
  X(Cnp, 0x81, "CNP", kShapeKnown | kOnly_ | kShapeCnp)

enum class Opcode : uint8_t {
#define X(id, code, name, shape) k##id = code,
  UB_ROCE_OPCODES(X)
#undef X
};

enum class Transport : uint8_t { kRc = 0, kUc = 1, kRd = 2, kUd = 3, kCnp = 4, kXrc = 5 };  // 6, 7: reserved

/// The transport of any code, known or not.
constexpr Transport transport_of(Opcode op) { return static_cast<Transport>(static_cast<uint8_t>(op) >> 5); }

namespace detail {
struct OpcodeTable {
  uint16_t shape[256] = {};
  const char* name[256] = {};

  constexpr OpcodeTable() {
    constexpr uint16_t kRequest_ = kShapeKnown | kShapeRequest;
    constexpr uint16_t kSend_ = kRequest_ | kShapePayload | kShapeSend;
    constexpr uint16_t kWrite_ = kRequest_ | kShapePayload | kShapeWrite;
    constexpr uint16_t kReply_ = kShapeKnown | kShapePayload | kShapeReadReply;
    constexpr uint16_t kOnly_ = kShapeFirst | kShapeLast;
#define X(id, code, text, bits) \
  shape[code] = bits;           \
  name[code] = text;
    UB_ROCE_OPCODES(X)
#undef X
  }
};
inline constexpr OpcodeTable kOpcodes{};
}  // namespace detail

/// The code by which an unreliable connection sends what a reliable one does: SENDs without invalidate, and WRITEs.
constexpr Opcode unreliable(Opcode rc) {
  return static_cast<Opcode>(static_cast<uint8_t>(rc) | static_cast<uint8_t>(Transport::kUc) << 5);
}

/// PacketShape bits; 0 for a code that is not known.
constexpr uint16_t packet_shape(Opcode op) { return detail::kOpcodes.shape[static_cast<uint8_t>(op)]; }

/// "RC_SEND_ONLY", ...; "?" for a code that is not known.
constexpr const char* opcode_name(Opcode op) {
  return packet_shape(op) != 0 ? detail::kOpcodes.name[static_cast<uint8_t>(op)] : "?";
}

}  // namespace ub::roce
