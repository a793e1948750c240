// SPDX-License-Identifier: Apache-2.0
// cm_message.h - the messages by which two NICs connect and part two reliable QPs: REQ, REP, RTU; REJ and MRA; DREQ,
// DREP. InfiniBand Architecture Specification volume 1, 12.6 (layouts), annex A11 (IP addresses in a REQ).
//
// Each of them is the 232-byte body of a CM datagram (mad.h). read() takes a whole body and believes every value;
// whether a value is possible is up to the caller. write() fills a whole body, with zeros where nothing is named.
// Alternate paths, reliable datagrams and end-to-end contexts are written as "none" and not looked at. Each side
// chooses a communication id for itself; `local` is always the id of the sender.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "lib/base/serial.h"
#include "lib/transport/roce/wire/drop.h"
#include "lib/transport/roce/wire/mad.h"
#include "lib/transport/wire/network_header.h"

namespace ub::roce {

using Gid = wire::IpAddress;  ///< on RoCEv2 a GID is an IP address

/// Private data of the application, or of RDMA-CM. When a message is read it is the whole field, inside the datagram.
/// When one is written it is at most as long as the field, and zeros follow.
using PrivateData = std::span<const std::byte>;

/// The service id of RDMA-CM for a connection is this number plus the port.
inline constexpr uint64_t kServiceTcp = 0x0000'0000'0106'0000;
constexpr uint64_t service_id_of_port(uint16_t port) { return kServiceTcp | port; }
constexpr bool is_tcp_service(uint64_t id) { return (id & ~uint64_t{0xFFFF}) == kServiceTcp; }

/// The path MTU of a code of REQ: codes 1 to 5 stand for 256 to 4096.
constexpr uint32_t mtu_of_code(uint8_t code) { return code >= 1 && code <= 5 ? 128u << code : 0; }
constexpr uint8_t code_of_mtu(uint32_t mtu) {
  uint8_t code = 5;
  while (code > 1 && mtu_of_code(code) > mtu) --code;
  return code;
}

/// Asks for a connection.
struct CmReq {
  static constexpr size_t kPrivateDataSize = 92;

  uint32_t local_comm_id = 0;
  uint64_t service_id = 0;
  uint64_t ca_guid = 0;
  uint32_t qkey = 0;
  uint32_t qpn = 0;                 ///< 24 bits
  uint8_t responder_resources = 0;  ///< READs and atomics that the sender serves at a time
  uint8_t initiator_depth = 0;      ///< READs and atomics that the sender would like to have in flight
  uint8_t remote_timeout = 20;      ///< 5 bits: 4.096 us * 2^n is the time in which the receiver must answer
  uint8_t transport = 0;            ///< 2 bits: 0 reliable connection, 1 unreliable connection
  bool flow_control = false;        ///< ACKs of the sender carry credits
  Psn starting_psn;                 ///< first PSN that the receiver of this message will send
  uint8_t local_timeout = 20;       ///< 5 bits: the same time for the sender
  uint8_t retry_count = 7;          ///< 3 bits
  uint16_t pkey = 0xFFFF;
  uint8_t path_mtu_code = 3;    ///< 4 bits
  uint8_t rnr_retry = 7;        ///< 3 bits
  uint8_t max_cm_retries = 15;  ///< 4 bits
  bool srq = false;
  uint16_t local_lid = 0xFFFF;  ///< of InfiniBand; all ones: there is none
  uint16_t remote_lid = 0xFFFF;
  Gid local_gid;
  Gid remote_gid;
  uint32_t flow_label = 0;  ///< 20 bits
  uint8_t rate = 0;         ///< 6 bits
  uint8_t traffic_class = 0;
  uint8_t hop_limit = 64;
  uint8_t sl = 0;  ///< 4 bits
  bool subnet_local = false;
  uint8_t ack_timeout = 0;  ///< 5 bits: 4.096 us * 2^n, of a QP that waits for an acknowledgement
  PrivateData private_data;

  static CmReq read(const std::byte* body);
  void write(std::byte* body) const;
};

/// Accepts a request.
struct CmRep {
  static constexpr size_t kPrivateDataSize = 196;

  uint32_t local_comm_id = 0;
  uint32_t remote_comm_id = 0;
  uint32_t qkey = 0;
  uint32_t qpn = 0;  ///< 24 bits
  Psn starting_psn;
  uint8_t responder_resources = 0;
  uint8_t initiator_depth = 0;
  uint8_t target_ack_delay = 0;  ///< 5 bits
  uint8_t failover = 0;          ///< 2 bits
  bool flow_control = false;
  uint8_t rnr_retry = 7;  ///< 3 bits
  bool srq = false;
  uint64_t ca_guid = 0;
  PrivateData private_data;

  static CmRep read(const std::byte* body);
  void write(std::byte* body) const;
};

/// Says that the connection is ready to use: the third and last message of the handshake.
struct CmRtu {
  static constexpr size_t kPrivateDataSize = 224;

  uint32_t local_comm_id = 0;
  uint32_t remote_comm_id = 0;
  PrivateData private_data;

  static CmRtu read(const std::byte* body);
  void write(std::byte* body) const;
};

/// Which message a REJ or MRA is about.
enum class CmAbout : uint8_t { kReq = 0, kRep = 1, kOther = 2 };

/// The reasons of a REJ that this side gives or distinguishes.
enum class RejReason : uint16_t {
  kNoQp = 1,
  kNoResources = 3,
  kTimeout = 4,
  kUnsupported = 5,
  kInvalidCommId = 6,
  kInvalidServiceId = 8,
  kInvalidTransport = 9,
  kStaleConnection = 10,
  kInvalidMtu = 26,
  kConsumer = 28,  ///< the reason is the application's; private data may say more
  kInvalidClassVersion = 31,
};

/// Refuses a request or reply.
struct CmRej {
  static constexpr size_t kInfoSize = 72;
  static constexpr size_t kPrivateDataSize = 148;

  uint32_t local_comm_id = 0;  ///< 0: none was chosen yet
  uint32_t remote_comm_id = 0;
  CmAbout about = CmAbout::kReq;
  RejReason reason = RejReason::kConsumer;
  uint8_t info_bytes = 0;  ///< 7 bits: how many bytes of `info` count
  PrivateData info;        ///< a better value, for some reasons
  PrivateData private_data;

  static CmRej read(const std::byte* body);
  void write(std::byte* body) const;
};

/// Says that the message was received, but that the answer takes longer than the timeout.
struct CmMra {
  static constexpr size_t kPrivateDataSize = 222;

  uint32_t local_comm_id = 0;
  uint32_t remote_comm_id = 0;
  CmAbout about = CmAbout::kReq;
  uint8_t service_timeout = 0;  ///< 5 bits: 4.096 us * 2^n from now on
  PrivateData private_data;

  static CmMra read(const std::byte* body);
  void write(std::byte* body) const;
};

/// Asks to part.
struct CmDreq {
  static constexpr size_t kPrivateDataSize = 220;

  uint32_t local_comm_id = 0;
  uint32_t remote_comm_id = 0;
  uint32_t remote_qpn = 0;  ///< 24 bits: the QP of the receiver
  PrivateData private_data;

  static CmDreq read(const std::byte* body);
  void write(std::byte* body) const;
};

/// Confirms that both part. It has the layout of RTU.
using CmDrep = CmRtu;

/// The header that RDMA-CM puts in front of the private data of a REQ.
struct CmIpHeader {
  static constexpr size_t kSize = 36;

  wire::Endpoint source;
  wire::IpAddress destination;

  /// kBadCmPrivateData: it is too short, or of another version of the header or of IP.
  static Drop read(PrivateData data, CmIpHeader& out);
  /// Writes kSize bytes. It is IPv4 if both addresses are IPv4, else IPv6.
  void write(std::byte* p) const;
  bool operator==(const CmIpHeader&) const = default;
};

const char* cm_type_name(CmType type);

/// Writes the head and the body of a datagram.
template <class Message>
void write_cm(const CmHead& head, const Message& message, std::span<std::byte, kMadSize> mad) {
  head.write(mad.data());
  message.write(mad.data() + kMadHeadSize);
}

}  // namespace ub::roce
