// SPDX-License-Identifier: Apache-2.0
//
// What an IP host must say on an Ethernet that no kernel serves: ARP (RFC 826), neighbour discovery (RFC 4861) and
// echo (RFC 792, RFC 4443) for the addresses of a port. Everything else that is not UDP to one of them is foreign.
// No IO: frames come in and go out as bytes.
//
// Thread: one at a time.
#pragma once

#include <cstddef>
#include <span>

#include "dataplane/neighbours.h"

namespace ub {

class EthernetHost {
 public:
  static constexpr size_t kMaxQuestion = 86;  // Ethernet, IPv6 and a neighbour solicitation

  EthernetHost(const wire::MacAddress& mac, Neighbours* neighbours) : mac_(mac), neighbours_(*neighbours) {}

  enum class Verdict : uint8_t {
    kUdp,       // to one of our addresses: for the Core
    kAnswer,    // `*answer_bytes` of `answer` are to be sent
    kConsumed,  // understood, nothing to send
    kDamaged,   // ICMP with a wrong checksum
    kForeign,   // not for us
  };
  // `answer` has room for as many bytes as the frame has, and kMaxQuestion at least.
  Verdict on_frame(Instant now, std::span<const std::byte> frame, std::byte* answer, size_t* answer_bytes);

  // Asks who has an address, in the name of `own` (of the same family). Returns the bytes of the frame.
  size_t write_question(const wire::IpAddress& wanted, const wire::IpAddress& own, std::byte* frame) const;

  const wire::MacAddress& mac() const { return mac_; }

 private:
  Verdict on_arp(Instant now, std::span<const std::byte> frame, std::byte* answer, size_t* answer_bytes);
  Verdict on_ipv4(std::span<const std::byte> frame, std::byte* answer, size_t* answer_bytes);
  Verdict on_ipv6(Instant now, std::span<const std::byte> frame, std::byte* answer, size_t* answer_bytes);
  Verdict on_icmpv6(Instant now, std::span<const std::byte> frame, size_t payload, std::byte* answer,
                    size_t* answer_bytes);

  wire::MacAddress mac_;
  Neighbours& neighbours_;
};

}  // namespace ub
