// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/wire/control_record.h"

#include <cstring>

#include "lib/base/bytes.h"

namespace ub::wire {
namespace {

constexpr uint32_t kMagicPrefix = 0x554243;  // "UBC"; the digit behind it is the version
constexpr uint8_t kSelective = 1 << 7;
constexpr uint8_t kOor = 1 << 6;
constexpr uint8_t kCompact = 1 << 7;
constexpr uint8_t kRepeats = 1 << 6;
constexpr uint8_t kSeveralPaths = 1 << 5;
constexpr uint8_t kCna = 1 << 4;
constexpr int kPlaceShift = 3;

/// Bytes 4-27 of every version.
void read_prefix(const std::byte* p, ControlRecord& r) {
  r.type = static_cast<RecordType>(load_u8(p + 4));
  r.reason = static_cast<RecordReason>(load_u8(p + 5));
  r.sender_incarnation = load_be64(p + 8);
  r.receiver_incarnation = load_be64(p + 16);
  r.attempt = load_be32(p + 24);
}

}  // namespace

Drop read_control_record(std::span<const std::byte> bytes, ControlRecord& out) {
  const std::byte* p = bytes.data();
  if (bytes.size() < kControlRecordPrefixSize || load_be24(p) != kMagicPrefix) return Drop::kBadRecordMagic;
  const uint8_t digit = load_u8(p + 3);
  if (digit < '0' || digit > '9') return Drop::kBadRecordMagic;
  out.version = static_cast<uint8_t>(digit - '0');
  read_prefix(p, out);
  if (out.version != kControlRecordVersion) return Drop::kBadRecordVersion;
  const size_t length = load_be16(p + 6);
  if (length < kControlRecordSize || length > bytes.size()) return Drop::kBadRecordMagic;

  out.flags = load_u8(p + 28);
  out.sender_tpn = load_be24(p + 29);
  const uint8_t retransmission = load_u8(p + 32);
  out.selective = (retransmission & kSelective) != 0;
  out.oor = (retransmission & kOor) != 0;
  out.sack_size_code = retransmission & 7;
  out.place = retransmission >> kPlaceShift & 7;
  const bool names_object = out.type == RecordType::kFind || out.type == RecordType::kFound;
  out.receiver_tpn = names_object ? 0 : load_be24(p + 33);
  out.object = names_object ? load_be24(p + 33) : 0;
  const uint8_t congestion = load_u8(p + 36);
  out.compact = (congestion & kCompact) != 0;
  out.repeats = (congestion & kRepeats) != 0;
  out.several_paths = (congestion & kSeveralPaths) != 0;
  out.cna = (congestion & kCna) != 0;
  out.cc = static_cast<CcAlgorithm>(congestion & ~(kCompact | kRepeats | kSeveralPaths | kCna));
  out.initial_psn = Psn(load_be24(p + 37));
  out.mtu = load_be16(p + 40);
  out.rcv_window = load_be16(p + 42);
  out.rto_base_us = load_be32(p + 44);
  out.rto_growth_n = load_u8(p + 48) >> 4;
  out.retry_limit = load_u8(p + 48) & 15;
  out.so_credit = load_u8(p + 49);
  out.keepalive_10ms = load_be16(p + 50);
  out.upi = load_be32(p + 52);
  std::memcpy(out.sender_eid.bytes.data(), p + 56, 16);
  std::memcpy(out.wanted_eid.bytes.data(), p + 72, 16);
  const bool sc_free = out.type == RecordType::kScFree;
  out.sender_uasid = sc_free ? 0 : load_be32(p + 88);
  out.wanted_uasid = sc_free ? 0 : load_be32(p + 92);
  out.scid = sc_free ? load_be24(p + 88) : 0;
  out.application = length >= kControlRecordMaxSize ? load_be32(p + 96) : 0;
  const bool known = out.type >= RecordType::kReq && out.type <= RecordType::kFound;
  return known ? Drop::kNone : Drop::kBadRecordType;
}

void write_control_record(const ControlRecord& r, std::byte* p) {
  store_be32(p, kMagicPrefix << 8 | static_cast<uint32_t>('0' + r.version));
  store_u8(p + 4, static_cast<uint8_t>(r.type));
  store_u8(p + 5, static_cast<uint8_t>(r.reason));
  store_be16(p + 6, static_cast<uint16_t>(control_record_size(r)));
  store_be64(p + 8, r.sender_incarnation);
  store_be64(p + 16, r.receiver_incarnation);
  store_be32(p + 24, r.attempt);
  store_u8(p + 28, r.flags);
  store_be24(p + 29, r.sender_tpn);
  store_u8(p + 32, static_cast<uint8_t>((r.selective ? kSelective : 0) | (r.oor ? kOor : 0) |
                                        (r.place & 7) << kPlaceShift | (r.sack_size_code & 7)));
  const bool names_object = r.type == RecordType::kFind || r.type == RecordType::kFound;
  store_be24(p + 33, names_object ? r.object : r.receiver_tpn);
  store_u8(p + 36, static_cast<uint8_t>(static_cast<uint8_t>(r.cc) | (r.compact ? kCompact : 0) |
                                        (r.repeats ? kRepeats : 0) | (r.several_paths ? kSeveralPaths : 0) |
                                        (r.cna ? kCna : 0)));
  store_be24(p + 37, r.initial_psn.value());
  store_be16(p + 40, r.mtu);
  store_be16(p + 42, r.rcv_window);
  store_be32(p + 44, r.rto_base_us);
  store_u8(p + 48, static_cast<uint8_t>((r.rto_growth_n & 15) << 4 | (r.retry_limit & 15)));
  store_u8(p + 49, r.so_credit);
  store_be16(p + 50, r.keepalive_10ms);
  store_be32(p + 52, r.upi);
  std::memcpy(p + 56, r.sender_eid.bytes.data(), 16);
  std::memcpy(p + 72, r.wanted_eid.bytes.data(), 16);
  if (r.type == RecordType::kScFree) {
    store_be64(p + 88, uint64_t{r.scid & 0xFFFFFF} << 40);
  } else {
    store_be32(p + 88, r.sender_uasid);
    store_be32(p + 92, r.wanted_uasid);
  }
  if (r.application != 0) store_be32(p + 96, r.application);
}

const char* record_type_name(RecordType type) {
  switch (type) {
    case RecordType::kReq:
      return "REQ";
    case RecordType::kRep:
      return "REP";
    case RecordType::kConf:
      return "CONF";
    case RecordType::kRej:
      return "REJ";
    case RecordType::kClose:
      return "CLOSE";
    case RecordType::kClosed:
      return "CLOSED";
    case RecordType::kPing:
      return "PING";
    case RecordType::kPong:
      return "PONG";
    case RecordType::kReset:
      return "RESET";
    case RecordType::kScFree:
      return "SC_FREE";
    case RecordType::kFind:
      return "FIND";
    case RecordType::kFound:
      return "FOUND";
  }
  return "?";
}

const char* record_reason_name(RecordReason reason) {
  switch (reason) {
    case RecordReason::kNone:
      return "none";
    case RecordReason::kNoResources:
      return "no resources";
    case RecordReason::kParameter:
      return "parameter";
    case RecordReason::kGlare:
      return "glare";
    case RecordReason::kUnknownEntity:
      return "unknown entity";
    case RecordReason::kUnknownTpn:
      return "unknown TPN";
    case RecordReason::kRestarted:
      return "restarted";
    case RecordReason::kAdmin:
      return "admin";
  }
  return "?";
}

}  // namespace ub::wire
