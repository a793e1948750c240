// SPDX-License-Identifier: Apache-2.0
// opcodes.h - the transaction opcodes and, for each, which headers and properties it has. The decoder, the
// writers and the printer all read this one table. UB Base Specification Rev 2.0, tables 7-2 and 7-4. 0x02 is
// reserved there; here it is Send with invalidate, in the layout of Send with immediate.
#pragma once

#include <cstdint>

namespace ub::wire {

/// Headers an opcode carries, in wire order, and what kind of operation it is. UDETAH follows UD_Flag alone
/// and TVETAH follows TV_EN where kShapeTv admits it, so neither needs a bit.
enum TaShape : uint16_t {
  kShapeMt = 1 << 0,        ///< MTETAH; exactly these opcodes have MT_EN set
  kShapeReadMeta = 1 << 1,  ///< TAIDETAH and OFSTETAH on channels with the read-meta attribute
  kShapeOfst = 1 << 2,      ///< OFSTETAH
  kShapeMa = 1 << 3,        ///< MAETAH
  kShapeImm = 1 << 4,       ///< IMMETAH
  kShapeNtf = 1 << 5,       ///< NTFETAH
  kShapeMgmt = 1 << 6,      ///< MGMTETAH
  kShapeTv = 1 << 7,        ///< TVETAH admitted
  kShapeBe = 1 << 8,        ///< BEETAH
  kShapePayload = 1 << 9,   ///< payload admitted
  kShapeRequest = 1 << 10,  ///< has a BTAH; otherwise an ATAH
  kShapeReceive = 1 << 11,  ///< takes a receive at the target
  kShapeAtomic = 1 << 12,
  kShapeBypass = 1 << 13,  ///< TP bypass carries it, in the compact form of its headers
  kShapeKnown = 1 << 15,
};

// X(enumerator, code, name, shape)
#define UB_TA_OPCODES(X)                                                                          \
  X(Send, 0x00, "SEND", kSend_)                                                                   \
  X(SendImmediate, 0x01, "SEND_IMM", kSend_ | kShapeImm)                                          \
  X(SendInvalidate, 0x02, "SEND_INV", kSend_ | kShapeImm)                                         \
  X(Write, 0x03, "WRITE", kStore_)                                                                \
  X(WriteImmediate, 0x04, "WRITE_IMM", kWrite_ | kShapeMt | kShapeImm | kShapeReceive)            \
  X(WriteNotify, 0x05, "WRITE_NOTIFY", kWrite_ | kShapeNtf)                                       \
  X(Read, 0x06, "READ", kRequest_ | kShapeReadMeta | kShapeMa | kShapeTv | kShapeBypass)          \
  X(AtomicCompareSwap, 0x07, "CAS", kAtomic_)                                                     \
  X(AtomicSwap, 0x08, "SWAP", kAtomic_)                                                           \
  X(AtomicStore, 0x09, "ATOMIC_STORE", kAtomic_)                                                  \
  X(AtomicLoad, 0x0A, "ATOMIC_LOAD", kAtomic_)                                                    \
  X(AtomicFetchAdd, 0x0B, "FETCH_ADD", kAtomic_)                                                  \
  X(AtomicFetchSub, 0x0C, "FETCH_SUB", kAtomic_)                                                  \
  X(AtomicFetchAnd, 0x0D, "FETCH_AND", kAtomic_)                                                  \
  X(AtomicFetchOr, 0x0E, "FETCH_OR", kAtomic_)                                                    \
  X(AtomicFetchXor, 0x0F, "FETCH_XOR", kAtomic_)                                                  \
  X(Management, 0x10, "MGMT", kRequest_ | kShapeMgmt | kShapePayload)                             \
  X(Taack, 0x11, "TAACK", kShapeKnown | kShapeBypass)                                             \
  X(ReadResponse, 0x12, "READ_RESP", kShapeKnown | kShapeReadMeta | kShapePayload | kShapeBypass) \
  X(AtomicResponse, 0x13, "ATOMIC_RESP", kShapeKnown | kShapePayload)                             \
  X(WriteByteEnable, 0x14, "WRITE_BE", kStore_ | kShapeBe)                                        \
  X(Prefetch, 0x15, "PREFETCH", kRequest_ | kShapeMa | kShapeBypass)                              \
  X(Writeback, 0x17, "WRITEBACK", kStore_)                                                        \
  X(WritebackByteEnable, 0x18, "WRITEBACK_BE", kStore_ | kShapeBe)

enum class TaOpcode : uint8_t {
#define X(id, code, name, shape) k##id = code,
  UB_TA_OPCODES(X)
#undef X
};

namespace detail {
inline constexpr uint32_t kTaOpcodeSlots = 32;

struct TaOpcodeTable {
  uint16_t shape[kTaOpcodeSlots] = {};
  const char* name[kTaOpcodeSlots] = {};

  constexpr TaOpcodeTable() {
    constexpr uint16_t kRequest_ = kShapeKnown | kShapeRequest;
    constexpr uint16_t kSend_ = kRequest_ | kShapeMt | kShapeOfst | kShapeTv | kShapePayload | kShapeReceive;
    constexpr uint16_t kWrite_ = kRequest_ | kShapeMa | kShapeTv | kShapePayload;
    constexpr uint16_t kStore_ = kWrite_ | kShapeBypass;
    constexpr uint16_t kAtomic_ = kRequest_ | kShapeMa | kShapeTv | kShapePayload | kShapeAtomic;
#define X(id, code, text, bits) \
  shape[code] = bits;           \
  name[code] = text;
    UB_TA_OPCODES(X)
#undef X
  }
};
inline constexpr TaOpcodeTable kTaOpcodes{};
}  // namespace detail

/// TaShape bits of a code as it came from the wire; 0 for a reserved one.
constexpr uint16_t ta_shape(uint8_t code) {
  return code < detail::kTaOpcodeSlots ? detail::kTaOpcodes.shape[code] : uint16_t{0};
}
constexpr uint16_t ta_shape(TaOpcode op) { return ta_shape(static_cast<uint8_t>(op)); }

/// "WRITE", ...; "?" for a reserved code.
constexpr const char* ta_opcode_name(TaOpcode op) {
  return ta_shape(op) != 0 ? detail::kTaOpcodes.name[static_cast<uint8_t>(op)] : "?";
}

constexpr bool ta_is_known(uint8_t code) { return ta_shape(code) != 0; }
constexpr bool ta_is_request(TaOpcode op) { return (ta_shape(op) & kShapeRequest) != 0; }
/// Decided by the code alone, as the layout of the header is: reserved codes read as requests.
constexpr bool ta_is_response_code(uint8_t code) { return code >= 0x11 && code <= 0x13; }
constexpr bool ta_consumes_receive(TaOpcode op) { return (ta_shape(op) & kShapeReceive) != 0; }
constexpr bool ta_has_payload(TaOpcode op) { return (ta_shape(op) & kShapePayload) != 0; }
constexpr bool ta_has_address(TaOpcode op) { return (ta_shape(op) & kShapeMa) != 0; }
constexpr bool ta_has_target(TaOpcode op) { return (ta_shape(op) & kShapeMt) != 0; }
constexpr bool ta_is_atomic(TaOpcode op) { return (ta_shape(op) & kShapeAtomic) != 0; }

/// ALU functions of Atomic_store and Atomic_load, UDETAH[23:20]. CLR is mem & ~op, EOR is mem ^ op.
enum class AtomicAlu : uint8_t {
  kAdd = 0,
  kClr = 1,
  kEor = 2,
  kSet = 3,
  kSmax = 4,
  kSmin = 5,
  kUmax = 6,
  kUmin = 7,
};
inline constexpr int kUdAluShift = 20;

}  // namespace ub::wire
