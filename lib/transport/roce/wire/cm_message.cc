// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/roce/wire/cm_message.h"

#include <algorithm>
#include <cstring>

#include "lib/base/bytes.h"
#include "lib/transport/roce/wire/bth.h"

namespace ub::roce {
namespace {

// The offsets at which private data begins; it reaches to the end of the body.
constexpr size_t kReqData = 140, kRepData = 36, kRtuData = 8, kRejInfo = 12, kRejData = 84, kMraData = 10,
                 kDreqData = 12;
static_assert(kReqData + CmReq::kPrivateDataSize == kCmBodySize);
static_assert(kRepData + CmRep::kPrivateDataSize == kCmBodySize);
static_assert(kRtuData + CmRtu::kPrivateDataSize == kCmBodySize);
static_assert(kRejInfo + CmRej::kInfoSize == kRejData && kRejData + CmRej::kPrivateDataSize == kCmBodySize);
static_assert(kMraData + CmMra::kPrivateDataSize == kCmBodySize);
static_assert(kDreqData + CmDreq::kPrivateDataSize == kCmBodySize);

void put(std::byte* p, size_t room, PrivateData data) {
  if (!data.empty()) std::memcpy(p, data.data(), std::min(room, data.size()));
}

Gid read_gid(const std::byte* p) {
  Gid gid;
  std::memcpy(gid.bytes.data(), p, gid.bytes.size());
  return gid;
}
void write_gid(std::byte* p, const Gid& gid) { std::memcpy(p, gid.bytes.data(), gid.bytes.size()); }

/// Stores a number of 24 bits with an octet behind it.
void store_24_8(std::byte* p, uint32_t upper, uint32_t lower) { store_be32(p, upper << 8 | (lower & 0xFF)); }

void start_body(std::byte* body, uint32_t local_comm_id, uint32_t remote_comm_id) {
  std::memset(body, 0, kCmBodySize);
  store_be32(body, local_comm_id);
  store_be32(body + 4, remote_comm_id);
}

void read_connection(const std::byte* p, CmReq& r) {
  r.local_comm_id = load_be32(p);
  r.service_id = load_be64(p + 8);
  r.ca_guid = load_be64(p + 16);
  r.qkey = load_be32(p + 28);
  r.qpn = load_be24(p + 32);
  r.responder_resources = load_u8(p + 35);
  r.initiator_depth = load_u8(p + 39);
  const uint8_t b43 = load_u8(p + 43);
  r.remote_timeout = b43 >> 3;
  r.transport = b43 >> 1 & 3;
  r.flow_control = (b43 & 1) != 0;
  r.starting_psn = Psn(load_be24(p + 44));
  const uint8_t b47 = load_u8(p + 47);
  r.local_timeout = b47 >> 3;
  r.retry_count = b47 & 7;
  r.pkey = load_be16(p + 48);
  const uint8_t b50 = load_u8(p + 50);
  r.path_mtu_code = b50 >> 4;
  r.rnr_retry = b50 & 7;
  const uint8_t b51 = load_u8(p + 51);
  r.max_cm_retries = b51 >> 4;
  r.srq = (b51 >> 3 & 1) != 0;
}

void read_path(const std::byte* p, CmReq& r) {
  r.local_lid = load_be16(p + 52);
  r.remote_lid = load_be16(p + 54);
  r.local_gid = read_gid(p + 56);
  r.remote_gid = read_gid(p + 72);
  const uint32_t w88 = load_be32(p + 88);
  r.flow_label = w88 >> 12;
  r.rate = w88 & 0x3F;
  r.traffic_class = load_u8(p + 92);
  r.hop_limit = load_u8(p + 93);
  const uint8_t b94 = load_u8(p + 94);
  r.sl = b94 >> 4;
  r.subnet_local = (b94 >> 3 & 1) != 0;
  r.ack_timeout = load_u8(p + 95) >> 3;
}

void write_connection(std::byte* p, const CmReq& r) {
  start_body(p, r.local_comm_id, 0);
  store_be64(p + 8, r.service_id);
  store_be64(p + 16, r.ca_guid);
  store_be32(p + 28, r.qkey);
  store_24_8(p + 32, r.qpn, r.responder_resources);
  store_24_8(p + 36, 0, r.initiator_depth);
  store_24_8(p + 40, 0, (r.remote_timeout & 31u) << 3 | (r.transport & 3u) << 1 | uint32_t{r.flow_control});
  store_24_8(p + 44, r.starting_psn.value(), (r.local_timeout & 31u) << 3 | (r.retry_count & 7u));
  store_be32(p + 48, uint32_t{r.pkey} << 16 | (r.path_mtu_code & 15u) << 12 | (r.rnr_retry & 7u) << 8 |
                         (r.max_cm_retries & 15u) << 4 | uint32_t{r.srq} << 3);
}

void write_path(std::byte* p, const CmReq& r) {
  store_be16(p + 52, r.local_lid);
  store_be16(p + 54, r.remote_lid);
  write_gid(p + 56, r.local_gid);
  write_gid(p + 72, r.remote_gid);
  store_be32(p + 88, (r.flow_label & 0xFFFFF) << 12 | (r.rate & 0x3Fu));
  store_be32(p + 92, uint32_t{r.traffic_class} << 24 | uint32_t{r.hop_limit} << 16 | (r.sl & 15u) << 12 |
                         uint32_t{r.subnet_local} << 11 | (r.ack_timeout & 31u) << 3);
}

}  // namespace

CmReq CmReq::read(const std::byte* body) {
  CmReq r;
  read_connection(body, r);
  read_path(body, r);
  r.private_data = {body + kReqData, kPrivateDataSize};
  return r;
}

void CmReq::write(std::byte* body) const {
  write_connection(body, *this);
  write_path(body, *this);
  put(body + kReqData, kPrivateDataSize, private_data);
}

CmRep CmRep::read(const std::byte* body) {
  CmRep r;
  r.local_comm_id = load_be32(body);
  r.remote_comm_id = load_be32(body + 4);
  r.qkey = load_be32(body + 8);
  r.qpn = load_be24(body + 12);
  r.starting_psn = Psn(load_be24(body + 20));
  r.responder_resources = load_u8(body + 24);
  r.initiator_depth = load_u8(body + 25);
  const uint8_t b26 = load_u8(body + 26), b27 = load_u8(body + 27);
  r.target_ack_delay = b26 >> 3;
  r.failover = b26 >> 1 & 3;
  r.flow_control = (b26 & 1) != 0;
  r.rnr_retry = b27 >> 5;
  r.srq = (b27 >> 4 & 1) != 0;
  r.ca_guid = load_be64(body + 28);
  r.private_data = {body + kRepData, kPrivateDataSize};
  return r;
}

void CmRep::write(std::byte* body) const {
  start_body(body, local_comm_id, remote_comm_id);
  store_be32(body + 8, qkey);
  store_24_8(body + 12, qpn, 0);
  store_24_8(body + 20, starting_psn.value(), 0);
  store_be32(body + 24, uint32_t{responder_resources} << 24 | uint32_t{initiator_depth} << 16 |
                            (target_ack_delay & 31u) << 11 | (failover & 3u) << 9 | uint32_t{flow_control} << 8 |
                            (rnr_retry & 7u) << 5 | uint32_t{srq} << 4);
  store_be64(body + 28, ca_guid);
  put(body + kRepData, kPrivateDataSize, private_data);
}

CmRtu CmRtu::read(const std::byte* body) {
  return {load_be32(body), load_be32(body + 4), {body + kRtuData, kPrivateDataSize}};
}

void CmRtu::write(std::byte* body) const {
  start_body(body, local_comm_id, remote_comm_id);
  put(body + kRtuData, kPrivateDataSize, private_data);
}

CmRej CmRej::read(const std::byte* body) {
  CmRej r;
  r.local_comm_id = load_be32(body);
  r.remote_comm_id = load_be32(body + 4);
  r.about = static_cast<CmAbout>(load_u8(body + 8) >> 6);
  r.info_bytes = load_u8(body + 9) >> 1;
  r.reason = static_cast<RejReason>(load_be16(body + 10));
  r.info = {body + kRejInfo, kInfoSize};
  r.private_data = {body + kRejData, kPrivateDataSize};
  return r;
}

void CmRej::write(std::byte* body) const {
  start_body(body, local_comm_id, remote_comm_id);
  store_u8(body + 8, static_cast<uint8_t>(static_cast<uint8_t>(about) << 6));
  store_u8(body + 9, static_cast<uint8_t>(info_bytes << 1));
  store_be16(body + 10, static_cast<uint16_t>(reason));
  put(body + kRejInfo, kInfoSize, info);
  put(body + kRejData, kPrivateDataSize, private_data);
}

CmMra CmMra::read(const std::byte* body) {
  CmMra m;
  m.local_comm_id = load_be32(body);
  m.remote_comm_id = load_be32(body + 4);
  m.about = static_cast<CmAbout>(load_u8(body + 8) >> 6);
  m.service_timeout = load_u8(body + 9) >> 3;
  m.private_data = {body + kMraData, kPrivateDataSize};
  return m;
}

void CmMra::write(std::byte* body) const {
  start_body(body, local_comm_id, remote_comm_id);
  store_u8(body + 8, static_cast<uint8_t>(static_cast<uint8_t>(about) << 6));
  store_u8(body + 9, static_cast<uint8_t>(service_timeout << 3));
  put(body + kMraData, kPrivateDataSize, private_data);
}

CmDreq CmDreq::read(const std::byte* body) {
  return {load_be32(body), load_be32(body + 4), load_be24(body + 8), {body + kDreqData, kPrivateDataSize}};
}

void CmDreq::write(std::byte* body) const {
  start_body(body, local_comm_id, remote_comm_id);
  store_24_8(body + 8, remote_qpn, 0);
  put(body + kDreqData, kPrivateDataSize, private_data);
}

Drop CmIpHeader::read(PrivateData data, CmIpHeader& out) {
  if (data.size() < kSize) return Drop::kBadCmPrivateData;
  const std::byte* p = data.data();
  const uint8_t ip_version = load_u8(p + 1) >> 4;
  if (load_u8(p) != 0 || (ip_version != 4 && ip_version != 6)) return Drop::kBadCmPrivateData;
  out.source.port = load_be16(p + 2);
  out.source.ip = read_gid(p + 4);
  out.destination = read_gid(p + 20);
  if (ip_version == 4) {
    out.source.ip = wire::IpAddress::from_v4(out.source.ip.v4());
    out.destination = wire::IpAddress::from_v4(out.destination.v4());
  }
  return Drop::kNone;
}

void CmIpHeader::write(std::byte* p) const {
  const bool v4 = source.ip.is_v4() && destination.is_v4();
  std::memset(p, 0, kSize);
  store_u8(p + 1, v4 ? 0x40 : 0x60);
  store_be16(p + 2, source.port);
  if (v4) {
    store_be32(p + 16, source.ip.v4());
    store_be32(p + 32, destination.v4());
  } else {
    write_gid(p + 4, source.ip);
    write_gid(p + 20, destination);
  }
}

const char* cm_type_name(CmType type) {
  switch (type) {
    case CmType::kReq:
      return "REQ";
    case CmType::kMra:
      return "MRA";
    case CmType::kRej:
      return "REJ";
    case CmType::kRep:
      return "REP";
    case CmType::kRtu:
      return "RTU";
    case CmType::kDreq:
      return "DREQ";
    case CmType::kDrep:
      return "DREP";
  }
  return "?";
}

}  // namespace ub::roce
