// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/wire/network_header.h"

#include <cstring>

#include "lib/base/bytes.h"
#include "lib/transport/wire/cna_packet.h"
#include "lib/transport/wire/icrc.h"

namespace ub::wire {
namespace {

constexpr uint8_t kProtocolUdp = 17;
constexpr uint8_t kNextHeaderFragment = 44;
constexpr uint8_t kTtl = 64;

/// Sum of the ten words of an IPv4 header, not yet folded. Order of bytes does not matter to a one's
/// complement sum as long as it is the same throughout (RFC 1071), so words are added in pairs and as they
/// lie in memory.
uint64_t ipv4_sum(const std::byte* p) {
  return uint64_t{load_le32(p)} + load_le32(p + 4) + load_le32(p + 8) + load_le32(p + 12) + load_le32(p + 16);
}

/// Folding is reduction modulo 2^16 - 1; a header whose checksum is right sums to a multiple of it.
bool ipv4_checksum_ok(const std::byte* p) { return ipv4_sum(p) % 0xFFFF == 0; }

uint16_t fold16(uint64_t sum) {
  sum = (sum & 0xFFFFFFFF) + (sum >> 32);
  for (int i = 0; i < 3; ++i) sum = (sum & 0xFFFF) + (sum >> 16);
  return static_cast<uint16_t>(sum);
}

/// Two whole stores, so that a reader of the sixteen bytes need not wait for smaller ones to be merged.
void read_v4_address(const std::byte* p, IpAddress& a) {
  auto* bytes = reinterpret_cast<std::byte*>(a.bytes.data());
  store_le64(bytes, 0);
  store_le64(bytes + 8, uint64_t{load_le32(p)} << 32 | 0xFFFF0000u);
}

/// UDP at p with `avail` bytes, as the IP header says; they must be exactly the datagram.
Drop parse_udp(const std::byte* p, size_t avail, NetHeader& out) {
  if (avail < kUdpSize + kIcrcSize || load_be16(p + 4) != avail) return Drop::kBadUdpLength;
  out.src.port = load_be16(p);
  out.dst.port = load_be16(p + 2);
  out.tph = p + kUdpSize;
  out.end = p + avail - kIcrcSize;
  return Drop::kNone;
}

Drop parse_ipv4(const std::byte* p, size_t avail, NetHeader& out) {
  if (avail < kIpv4Size) return Drop::kTooShort;
  if (load_u8(p) != 0x45) return Drop::kBadIpHeader;
  const size_t total = load_be16(p + 2);
  if (total < kIpv4Size || total > avail || !ipv4_checksum_ok(p)) return Drop::kBadIpHeader;
  if ((load_be16(p + 6) & 0x3FFF) != 0) return Drop::kFragment;
  if (load_u8(p + 9) != kProtocolUdp) return Drop::kNotUdp;
  out.tos = load_u8(p + 1);
  out.v6 = false;
  out.l3 = p;
  read_v4_address(p + 12, out.src.ip);
  read_v4_address(p + 16, out.dst.ip);
  return parse_udp(p + kIpv4Size, total - kIpv4Size, out);
}

Drop parse_ipv6(const std::byte* p, size_t avail, NetHeader& out) {
  if (avail < kIpv6Size) return Drop::kTooShort;
  const uint32_t w = load_be32(p);
  const size_t payload = load_be16(p + 4);
  if (w >> 28 != 6 || payload > avail - kIpv6Size) return Drop::kBadIpHeader;
  const uint8_t next = load_u8(p + 6);
  if (next != kProtocolUdp) return next == kNextHeaderFragment ? Drop::kFragment : Drop::kNotUdp;
  out.tos = static_cast<uint8_t>(w >> 20);
  out.v6 = true;
  out.l3 = p;
  std::memcpy(out.src.ip.bytes.data(), p + 8, 16);
  std::memcpy(out.dst.ip.bytes.data(), p + 24, 16);
  return parse_udp(p + kIpv6Size, payload, out);
}

}  // namespace

Drop parse_network(std::span<const std::byte> eth_frame, NetHeader& out) {
  const std::byte* p = eth_frame.data();
  size_t avail = eth_frame.size();
  if (avail < kEthSize) return Drop::kTooShort;
  uint16_t ether_type = load_be16(p + 12);
  p += kEthSize;
  avail -= kEthSize;
  if (ether_type == kEtherTypeVlan) [[unlikely]] {
    if (avail < kVlanSize) return Drop::kTooShort;
    ether_type = load_be16(p + 2);
    p += kVlanSize;
    avail -= kVlanSize;
  }
  if (ether_type == kEtherTypeIpv4) return parse_ipv4(p, avail, out);
  if (ether_type == kEtherTypeIpv6) return parse_ipv6(p, avail, out);
  return Drop::kNotIp;
}

bool icrc_matches(const NetHeader& net) {
  return icrc_compute(net.l3, static_cast<size_t>(net.end - net.l3), net.v6) == icrc_load(net.end);
}

void NetTemplate::init(const MacAddress& src_mac, const MacAddress& dst_mac, const Endpoint& src, const Endpoint& dst,
                       uint8_t dscp) {
  bytes = {};
  std::byte* eth = bytes.data();
  std::byte* ip = eth + kEthSize;
  std::memcpy(eth, dst_mac.data(), dst_mac.size());
  std::memcpy(eth + 6, src_mac.data(), src_mac.size());
  const uint8_t tos = static_cast<uint8_t>(dscp << 2);
  if (src.ip.is_v4() && dst.ip.is_v4()) {
    size = kSizeV4;
    form = NetForm::kIpv4;
    store_be16(eth + 12, kEtherTypeIpv4);
    store_u8(ip, 0x45);
    store_u8(ip + 1, tos);
    store_be16(ip + 6, 0x4000);  // DF
    store_u8(ip + 8, kTtl);
    store_u8(ip + 9, kProtocolUdp);
    std::memcpy(ip + 12, &src.ip.bytes[12], 4);
    std::memcpy(ip + 16, &dst.ip.bytes[12], 4);
    checksum_partial = fold16(ipv4_sum(ip));
  } else {
    size = kMaxSize;
    form = NetForm::kIpv6;
    store_be16(eth + 12, kEtherTypeIpv6);
    store_be32(ip, 0x60000000u | uint32_t{tos} << 20);
    store_u8(ip + 6, kProtocolUdp);
    store_u8(ip + 7, kTtl);
    std::memcpy(ip + 8, src.ip.bytes.data(), 16);
    std::memcpy(ip + 24, dst.ip.bytes.data(), 16);
    checksum_partial = 0;
  }
  std::byte* udp = eth + size - kUdpSize;
  store_be16(udp, src.port);
  store_be16(udp + 2, dst.port);
}

uint8_t NetTemplate::dscp() const {
  const std::byte* ip = bytes.data() + kEthSize;
  return v6() ? static_cast<uint8_t>(load_be16(ip) >> 6 & 63) : static_cast<uint8_t>(load_u8(ip + 1) >> 2);
}

size_t NetTemplate::write(std::byte* frame, size_t udp_payload_len, uint8_t ecn) const {
  const size_t udp_len = kUdpSize + udp_payload_len;
  std::byte* ip = frame + kEthSize;
  if (form == NetForm::kIpv4) [[likely]] {
    std::memcpy(frame, bytes.data(), kSizeV4);
    const size_t total = kIpv4Size + udp_len;
    const uint8_t tos = static_cast<uint8_t>(load_u8(ip + 1) | (ecn & 3));
    store_u8(ip + 1, tos);
    store_be16(ip + 2, static_cast<uint16_t>(total));
    // The template's ToS is in the partial sum and its low two bits are 0, so adding the ECN adds the new
    // word.
    const uint16_t sum = fold16(uint64_t{checksum_partial} + (uint32_t{ecn & 3u} << 8) + load_le16(ip + 2));
    store_le16(ip + 10, static_cast<uint16_t>(~sum));
    store_be16(frame + kSizeV4 - kUdpSize + 4, static_cast<uint16_t>(udp_len));
    return kSizeV4;
  }
  if (form == NetForm::kCna24) {
    std::memcpy(frame, bytes.data(), kCnaHeadersSize);
    if (ecn != kEcnNotCapable) write_cci(frame, {.mode = CciMode::kFecn, .fecn = ecn});
    return kCnaHeadersSize;
  }
  std::memcpy(frame, bytes.data(), kMaxSize);
  store_be32(ip, load_be32(ip) | uint32_t{ecn & 3u} << 20);
  store_be16(ip + 4, static_cast<uint16_t>(udp_len));
  store_be16(frame + kMaxSize - kUdpSize + 4, static_cast<uint16_t>(udp_len));
  return kMaxSize;
}

}  // namespace ub::wire
