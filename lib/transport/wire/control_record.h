// SPDX-License-Identifier: Apache-2.0
// control_record.h - the record, of 96 or 100 bytes, by which two instances agree on a channel, check that the other is
// alive, and part. The UB Base Specification leaves set-up open (6.3); this form is SoftUB's own: the payload
// of an unreliable Send to Jetty 0, big-endian. Bytes 0-27 stay the same in every version of the record.
//
//   0-3 "UBC" and the version digit     40-41 MTU, 42-43 receive window of the sender
//   4 type, 5 reason, 6-7 length        44-47 RTO base in us
//   8-15 incarnation of the sender      48 N (4), retry limit (4); 49 SO credit; 50-51 keep-alive in 10 ms
//   16-23 of the receiver, 0 unknown    52-55 UPI
//   24-27 attempt                       56-71 sender's EID
//   28 flags; 29-31 sender's TPN        72-87 wanted EID
//   32 retransmission; 33-35 peer TPN   88-91 sender's uasid, 92-95 wanted uasid
//   36 compact (1), repeats (1), several paths (1), CNA (1), CC (4); 37-39 first PSN of sender
//   SC_FREE: 88-90 SCID instead of the uasids
//   96-99 sender's application, in records of 100 bytes
//   FIND and FOUND: 33-35 an id of the wanted EID instead of a TPN
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "lib/base/serial.h"
#include "lib/transport/wire/drop.h"
#include "lib/transport/wire/entity_header.h"

namespace ub::wire {

inline constexpr size_t kControlRecordSize = 96;
inline constexpr size_t kControlRecordMaxSize = 100;    ///< with an application
inline constexpr size_t kControlRecordPrefixSize = 28;  ///< the part common to all versions
inline constexpr uint8_t kControlRecordVersion = 1;

enum class RecordType : uint8_t {
  kReq = 1,
  kRep = 2,
  kConf = 3,
  kRej = 4,
  kClose = 5,
  kClosed = 6,
  kPing = 7,
  kPong = 8,
  kReset = 9,
  kScFree = 10,
  kFind = 11,   ///< who has that id of the wanted EID?
  kFound = 12,  ///< the sender, if the reason is kNone; else it is asked for it, and has not
};

enum class RecordReason : uint8_t {
  kNone = 0,
  kNoResources = 1,
  kParameter = 2,
  kGlare = 3,
  kUnknownEntity = 4,  ///< EID, uasid, UPI or id
  kUnknownTpn = 5,
  kRestarted = 6,
  kAdmin = 7,
};

enum class CcAlgorithm : uint8_t { kNone = 0, kCaqm = 1, kLdcp = 2, kDcqcn = 3 };

// ControlRecord::flags
inline constexpr uint8_t kRecordRol = 1 << 0;  ///< lower-layer ordered channel
inline constexpr uint8_t kRecordFast = 1 << 1;
inline constexpr uint8_t kRecordMarkPsn = 1 << 2;
inline constexpr uint8_t kRecordReadMeta = 1 << 3;
inline constexpr uint8_t kRecordCaqmEcn = 1 << 4;
inline constexpr uint8_t kRecordIcrcOff = 1 << 5;
inline constexpr uint8_t kRecordBypass = 1 << 6;  ///< the wire carries loads and stores (LinkConfig::bypass)
inline constexpr uint8_t kRecordBulk = 1 << 7;  ///< bulk lane
// of FIND
inline constexpr uint8_t kRecordTokenId = 1 << 0;  ///< the id is a token id

struct ControlRecord {
  uint8_t version = kControlRecordVersion;
  RecordType type = RecordType::kReq;
  RecordReason reason = RecordReason::kNone;
  uint64_t sender_incarnation = 0;
  uint64_t receiver_incarnation = 0;  ///< as last seen by the sender; 0 unknown
  uint32_t attempt = 0;               ///< chosen by the REQ, echoed by all about that channel

  uint8_t flags = 0;           ///< kRecord*
  uint32_t sender_tpn = 0;     ///< 24 bits
  bool selective = false;      ///< selective retransmission
  bool oor = false;            ///< out-of-order visibility is fine
  uint8_t sack_size_code = 0;  ///< BitMapSize, sack.h
  uint8_t place = 0;           ///< of the channel in its lane, 3 bits
  uint32_t receiver_tpn = 0;   ///< 24 bits; 0 unknown
  bool compact = false;        ///< the channel is one of CTP
  bool repeats = false;        ///< of CTP: its wire may lose packets, so requests are repeated and results are kept
  bool several_paths = false;  ///< the channel may have several; of PING and PONG: they are about a path
  bool cna = false;            ///< of RTP: the channel may go over UB's own network header (cna_packet.h)
  CcAlgorithm cc = CcAlgorithm::kNone;
  Psn initial_psn;          ///< of the sender's direction; PING and PONG about a path: which question that is
  uint16_t mtu = 0;         ///< bytes of payload per packet
  uint16_t rcv_window = 0;  ///< packets the sender of the record can hold out of order
  uint32_t rto_base_us = 0;
  uint8_t rto_growth_n = 0;  ///< 4 bits
  uint8_t retry_limit = 0;   ///< 4 bits
  uint8_t so_credit = 0;
  uint16_t keepalive_10ms = 0;  ///< 0 off
  uint32_t upi = 0;
  Eid sender_eid;
  Eid wanted_eid;
  uint32_t sender_uasid = 0;  ///< not in SC_FREE
  uint32_t wanted_uasid = 0;  ///< not in SC_FREE
  uint32_t scid = 0;          ///< SC_FREE only, 24 bits
  uint32_t object = 0;        ///< FIND and FOUND only, 24 bits
  /// REQ: for whom of those that the sender serves the channel is; 0: for all that have none of their own.
  uint32_t application = 0;

  bool operator==(const ControlRecord&) const = default;
};

/// kBadRecordMagic: not a record, or shorter than its length or than a record. kBadRecordVersion: out.version
/// and the fields of bytes 4-27 are set, enough to answer REJ. kBadRecordType: the whole record is set. Bytes
/// behind the length are ignored: REQ and REP are padded to probe the path.
[[nodiscard]] Drop read_control_record(std::span<const std::byte> bytes, ControlRecord& out);

/// 96, or 100 if the record names an application.
constexpr size_t control_record_size(const ControlRecord& record) {
  return record.application == 0 ? kControlRecordSize : kControlRecordMaxSize;
}

/// Writes control_record_size() bytes.
void write_control_record(const ControlRecord& record, std::byte* p);

const char* record_type_name(RecordType type);
const char* record_reason_name(RecordReason reason);

}  // namespace ub::wire
