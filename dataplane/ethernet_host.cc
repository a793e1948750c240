// SPDX-License-Identifier: Apache-2.0
#include "dataplane/ethernet_host.h"

#include <algorithm>
#include <cstring>

#include "lib/base/bytes.h"

namespace ub {
namespace {

using wire::IpAddress;
using wire::kEthSize;
using wire::kIpv4Size;
using wire::kIpv6Size;
using wire::MacAddress;

constexpr uint16_t kEtherTypeArp = 0x0806;
constexpr size_t kArpSize = 28;
constexpr uint16_t kArpRequest = 1, kArpReply = 2;
constexpr uint8_t kIcmp = 1, kUdp = 17, kIcmpv6 = 58;
constexpr uint8_t kEchoRequest = 8, kEchoReply = 0;
constexpr uint8_t kEchoRequest6 = 128, kEchoReply6 = 129, kSolicitation = 135, kAdvertisement = 136;
constexpr uint8_t kSourceLinkOption = 1, kTargetLinkOption = 2;
constexpr size_t kDiscoverySize = 32;  // ICMPv6 header, target, one link-layer option
constexpr MacAddress kBroadcast{0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

MacAddress load_mac(const std::byte* p) {
  MacAddress mac;
  std::memcpy(mac.data(), p, mac.size());
  return mac;
}

void store_mac(std::byte* p, const MacAddress& mac) { std::memcpy(p, mac.data(), mac.size()); }

IpAddress load_ipv6(const std::byte* p) {
  IpAddress ip;
  std::memcpy(ip.bytes.data(), p, 16);
  return ip;
}

void store_ipv6(std::byte* p, const IpAddress& ip) { std::memcpy(p, ip.bytes.data(), 16); }

void write_ethernet(std::byte* frame, const MacAddress& to, const MacAddress& from, uint16_t type) {
  store_mac(frame, to);
  store_mac(frame + 6, from);
  store_be16(frame + 12, type);
}

uint32_t add_words(uint32_t sum, const std::byte* p, size_t bytes) {
  for (; bytes >= 2; p += 2, bytes -= 2) sum += load_be16(p);
  return bytes != 0 ? sum + (uint32_t{load_u8(p)} << 8) : sum;
}

// The Internet checksum (RFC 1071); 0 over a range that contains a right one.
uint16_t checksum(uint32_t sum) {
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<uint16_t>(~sum);
}

uint16_t icmpv6_checksum(const std::byte* ip, size_t payload) {
  uint32_t sum = add_words(0, ip + 8, 32);  // both addresses
  return checksum(add_words(sum + static_cast<uint32_t>(payload) + kIcmpv6, ip + kIpv6Size, payload));
}

// IPv6 and ICMPv6 headers around a payload that is there already.
void finish_icmpv6(std::byte* ip, const IpAddress& from, const IpAddress& to, size_t payload) {
  store_be32(ip, 0x60000000);
  store_be16(ip + 4, static_cast<uint16_t>(payload));
  store_be16(ip + 6, uint16_t{kIcmpv6} << 8 | 255);
  store_ipv6(ip + 8, from);
  store_ipv6(ip + 24, to);
  store_be16(ip + kIpv6Size + 2, 0);
  store_be16(ip + kIpv6Size + 2, icmpv6_checksum(ip, payload));
}

// ff02::1:ffXX:XXXX, and the Ethernet group for it.
IpAddress solicited_node(const IpAddress& ip) {
  IpAddress group{{0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0, 0, 0}};
  std::copy_n(ip.bytes.begin() + 13, 3, group.bytes.begin() + 13);
  return group;
}

MacAddress group_mac(const IpAddress& group) {
  return {0x33, 0x33, group.bytes[12], group.bytes[13], group.bytes[14], group.bytes[15]};
}

// The link-layer address in the options of a discovery message. False: none, or options that cannot be.
bool find_link_option(const std::byte* options, size_t bytes, uint8_t kind, MacAddress* mac) {
  while (bytes >= 8) {
    size_t length = size_t{load_u8(options + 1)} * 8;
    if (length == 0 || length > bytes) return false;
    if (load_u8(options) == kind) {
      *mac = load_mac(options + 2);
      return true;
    }
    options += length;
    bytes -= length;
  }
  return false;
}

}  // namespace

EthernetHost::Verdict EthernetHost::on_frame(Instant now, std::span<const std::byte> frame, std::byte* answer,
                                             size_t* answer_bytes) {
  if (frame.size() < kEthSize) return Verdict::kForeign;
  switch (load_be16(frame.data() + 12)) {
    case wire::kEtherTypeIpv4:
      return on_ipv4(frame, answer, answer_bytes);
    case wire::kEtherTypeIpv6:
      return on_ipv6(now, frame, answer, answer_bytes);
    case kEtherTypeArp:
      return on_arp(now, frame, answer, answer_bytes);
    default:
      return Verdict::kForeign;
  }
}

EthernetHost::Verdict EthernetHost::on_arp(Instant now, std::span<const std::byte> frame, std::byte* answer,
                                           size_t* answer_bytes) {
  const std::byte* arp = frame.data() + kEthSize;
  constexpr uint64_t kEthernetIpv4 = 0x0001'0800'0604;  // types and lengths of the addresses
  if (frame.size() < kEthSize + kArpSize || load_be64(arp) >> 16 != kEthernetIpv4) return Verdict::kForeign;
  uint16_t operation = load_be16(arp + 6);
  MacAddress mac = load_mac(arp + 8);
  IpAddress sender = IpAddress::from_v4(load_be32(arp + 14)), target = IpAddress::from_v4(load_be32(arp + 24));
  bool asks_us = operation == kArpRequest && neighbours_.is_own(target);
  if (sender.v4() != 0) neighbours_.learn(now, sender, mac, asks_us);  // 0: a probe for its own address
  if (!asks_us) return operation == kArpReply ? Verdict::kConsumed : Verdict::kForeign;
  write_ethernet(answer, mac, mac_, kEtherTypeArp);
  std::byte* out = answer + kEthSize;
  store_be64(out, kEthernetIpv4 << 16 | kArpReply);
  store_mac(out + 8, mac_);
  store_be32(out + 14, target.v4());
  store_mac(out + 18, mac);
  store_be32(out + 24, sender.v4());
  *answer_bytes = kEthSize + kArpSize;
  return Verdict::kAnswer;
}

EthernetHost::Verdict EthernetHost::on_ipv4(std::span<const std::byte> frame, std::byte* answer, size_t* answer_bytes) {
  const std::byte* ip = frame.data() + kEthSize;
  if (frame.size() < kEthSize + kIpv4Size || load_u8(ip) != 0x45) return Verdict::kForeign;
  if (!neighbours_.is_own(IpAddress::from_v4(load_be32(ip + 16)))) return Verdict::kForeign;
  if (load_u8(ip + 9) == kUdp) return Verdict::kUdp;
  size_t total = load_be16(ip + 2);
  if (load_u8(ip + 9) != kIcmp || total < kIpv4Size + 8 || total > frame.size() - kEthSize) return Verdict::kForeign;
  const size_t payload = total - kIpv4Size;
  const bool fragment = (load_be16(ip + 6) & 0x3fff) != 0;
  if (fragment || load_u8(ip + kIpv4Size) != kEchoRequest) return Verdict::kConsumed;
  const bool right = checksum(add_words(0, ip, kIpv4Size)) == 0 && checksum(add_words(0, ip + kIpv4Size, payload)) == 0;
  if (!right) return Verdict::kDamaged;
  std::memcpy(answer, frame.data(), kEthSize + total);
  write_ethernet(answer, load_mac(frame.data() + 6), mac_, wire::kEtherTypeIpv4);
  std::byte* out = answer + kEthSize;
  store_be16(out + 8, 64 << 8 | kIcmp);
  store_be16(out + 10, 0);
  std::memcpy(out + 12, ip + 16, 4);
  std::memcpy(out + 16, ip + 12, 4);
  store_be16(out + 10, checksum(add_words(0, out, kIpv4Size)));
  store_be16(out + kIpv4Size, uint16_t{kEchoReply} << 8);
  store_be16(out + kIpv4Size + 2, 0);
  store_be16(out + kIpv4Size + 2, checksum(add_words(0, out + kIpv4Size, payload)));
  *answer_bytes = kEthSize + total;
  return Verdict::kAnswer;
}

EthernetHost::Verdict EthernetHost::on_ipv6(Instant now, std::span<const std::byte> frame, std::byte* answer,
                                            size_t* answer_bytes) {
  const std::byte* ip = frame.data() + kEthSize;
  if (frame.size() < kEthSize + kIpv6Size || load_u8(ip) >> 4 != 6) return Verdict::kForeign;
  IpAddress to = load_ipv6(ip + 24);
  size_t payload = load_be16(ip + 4);
  if (load_u8(ip + 6) == kUdp) return neighbours_.is_own(to) ? Verdict::kUdp : Verdict::kForeign;
  if (load_u8(ip + 6) != kIcmpv6 || payload < 8 || payload > frame.size() - kEthSize - kIpv6Size) {
    return Verdict::kForeign;
  }
  if (icmpv6_checksum(ip, payload) != 0) return Verdict::kDamaged;
  return on_icmpv6(now, frame, payload, answer, answer_bytes);
}

EthernetHost::Verdict EthernetHost::on_icmpv6(Instant now, std::span<const std::byte> frame, size_t payload,
                                              std::byte* answer, size_t* answer_bytes) {
  const std::byte* ip = frame.data() + kEthSize;
  const std::byte* icmp = ip + kIpv6Size;
  const IpAddress from = load_ipv6(ip + 8), to = load_ipv6(ip + 24);
  const uint8_t kind = load_u8(icmp);
  std::byte* out = answer + kEthSize;
  if (kind == kEchoRequest6 && neighbours_.is_own(to)) {
    std::memcpy(out + kIpv6Size, icmp, payload);
    store_u8(out + kIpv6Size, kEchoReply6);
    write_ethernet(answer, load_mac(frame.data() + 6), mac_, wire::kEtherTypeIpv6);
    finish_icmpv6(out, to, from, payload);
    *answer_bytes = kEthSize + kIpv6Size + payload;
    return Verdict::kAnswer;
  }
  const bool discovery = kind == kSolicitation || kind == kAdvertisement;
  if (!discovery || load_u8(ip + 7) != 255 || payload < 24) return Verdict::kForeign;  // 255: no router passed it on
  const IpAddress target = load_ipv6(icmp + 8);
  MacAddress mac;
  const bool has_mac =
      find_link_option(icmp + 24, payload - 24, kind == kSolicitation ? kSourceLinkOption : kTargetLinkOption, &mac);
  if (kind == kAdvertisement) {
    if (has_mac) neighbours_.learn(now, target, mac, false);
    return Verdict::kConsumed;
  }
  if (!neighbours_.is_own(target)) return Verdict::kForeign;
  const bool probe = from == IpAddress{};  // somebody wants our address: all must hear that it is taken
  if (has_mac && !probe) neighbours_.learn(now, from, mac, true);
  const IpAddress all_nodes{{0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}};
  const IpAddress& receiver = probe ? all_nodes : from;
  write_ethernet(answer, probe ? group_mac(all_nodes) : load_mac(frame.data() + 6), mac_, wire::kEtherTypeIpv6);
  std::byte* advertisement = out + kIpv6Size;
  std::memset(advertisement, 0, kDiscoverySize);
  store_u8(advertisement, kAdvertisement);
  store_u8(advertisement + 4, probe ? 0x20 : 0x60);  // override; solicited
  store_ipv6(advertisement + 8, target);
  store_u8(advertisement + 24, kTargetLinkOption);
  store_u8(advertisement + 25, 1);
  store_mac(advertisement + 26, mac_);
  finish_icmpv6(out, target, receiver, kDiscoverySize);
  *answer_bytes = kMaxQuestion;
  return Verdict::kAnswer;
}

size_t EthernetHost::write_question(const IpAddress& wanted, const IpAddress& own, std::byte* frame) const {
  std::byte* out = frame + kEthSize;
  if (wanted.is_v4()) {
    write_ethernet(frame, kBroadcast, mac_, kEtherTypeArp);
    store_be64(out, uint64_t{0x0001'0800'0604} << 16 | kArpRequest);
    store_mac(out + 8, mac_);
    store_be32(out + 14, own.v4());
    store_mac(out + 18, {});
    store_be32(out + 24, wanted.v4());
    return kEthSize + kArpSize;
  }
  const IpAddress group = solicited_node(wanted);
  write_ethernet(frame, group_mac(group), mac_, wire::kEtherTypeIpv6);
  std::byte* solicitation = out + kIpv6Size;
  std::memset(solicitation, 0, kDiscoverySize);
  store_u8(solicitation, kSolicitation);
  store_ipv6(solicitation + 8, wanted);
  store_u8(solicitation + 24, kSourceLinkOption);
  store_u8(solicitation + 25, 1);
  store_mac(solicitation + 26, mac_);
  finish_icmpv6(out, own, group, kDiscoverySize);
  return kMaxQuestion;
}

}  // namespace ub
