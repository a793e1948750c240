// SPDX-License-Identifier: Apache-2.0
// roce_test_util.h - RoCE packets at random, and whole frames from them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "lib/transport/roce/wire/icrc.h"
#include "lib/transport/roce/wire/packet.h"
#include "tests/unit/wire/wire_test_util.h"

namespace ub::roce {

using wire::Bytes;
using wire::Exact;
using wire::hex;
using wire::to_hex;

inline constexpr Opcode kAllOpcodes[] = {
#define X(id, code, name, shape) Opcode::k##id,
    UB_ROCE_OPCODES(X)
#undef X
};

inline wire::NetTemplate net_template(bool v6) {
  const auto at = [v6](uint8_t last) {
    return v6 ? wire::v6_address(last) : wire::IpAddress::from_v4(0x0A000000 | last);
  };
  wire::NetTemplate t;
  t.init({2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 2}, {at(1), 0xC001}, {at(2), kUdpPort}, 0);
  return t;
}

/// Headers, payload and padding. The pad count is set to what the payload needs.
inline Bytes packet_bytes(Packet packet, const Bytes& payload = {}) {
  packet.bth.padding = wire::padding_for(payload.size());
  Bytes b(kMaxHeaderSize);
  b.resize(write_headers(packet, b.data()));
  b.insert(b.end(), payload.begin(), payload.end());
  b.resize(b.size() + packet.bth.padding);
  return b;
}

/// Ethernet, IP and UDP around a packet, sealed.
inline Bytes frame_of(const Bytes& packet, bool v6 = false) {
  const wire::NetTemplate net = net_template(v6);
  Bytes f(net.size + packet.size() + wire::kIcrcSize);
  net.write(f.data(), packet.size() + wire::kIcrcSize, 0);
  std::copy(packet.begin(), packet.end(), f.begin() + net.size);
  const size_t covered = f.size() - wire::kEthSize - wire::kIcrcSize;
  wire::icrc_store(f.data() + f.size() - wire::kIcrcSize, icrc_compute(f.data() + wire::kEthSize, covered, v6));
  return f;
}

/// Payload lengths that a packet of this opcode may have.
inline std::vector<size_t> payload_lengths(Opcode op) {
  const uint16_t shape = packet_shape(op);
  if ((shape & kShapePayload) == 0) return {0};
  if ((shape & kShapeLast) == 0) return {256, 512, 1024, 2048, 4096};
  if ((shape & kShapeFirst) == 0) return {1, 2, 3, 4, 5, 1000, 1023, 4095, 4096};
  return {0, 1, 2, 3, 4, 5, 64, 1023, 4096};
}

/// A packet of the given opcode that passes every check, the rest of it random. reth.length fits the payload.
inline Packet random_packet(Opcode op, size_t payload_bytes, Prng& rng) {
  const auto bits = [&rng](int n) { return static_cast<uint32_t>(rng.below(uint64_t{1} << n)); };
  Packet p{};
  p.bth = {.opcode = op,
           .solicited = rng.chance(0.5),
           .migrated = rng.chance(0.5),
           .pkey = static_cast<uint16_t>(bits(16)),
           .fecn = rng.chance(0.5),
           .becn = rng.chance(0.5),
           .dest_qp = bits(24),
           .ack_req = rng.chance(0.5),
           .psn = Psn(bits(24))};
  p.shape = packet_shape(op);
  p.deth = {rng.next_u32(), bits(24)};
  p.reth = {rng.next_u64(), rng.next_u32(), bits(31)};
  if (p.has(kShapeWrite)) p.reth.length = static_cast<uint32_t>(payload_bytes) + (p.is_only() ? 0 : 1 + bits(20));
  p.atomic = {rng.next_u64() & ~uint64_t{7}, rng.next_u32(), rng.next_u64(), rng.next_u64()};
  p.aeth = {Syndrome::ack(static_cast<uint8_t>(bits(5))), Msn(bits(24))};
  p.original = rng.next_u64();
  p.immediate = rng.next_u32();
  p.invalidated_rkey = rng.next_u32();
  return p;
}

inline Bytes random_bytes(size_t n, Prng& rng) {
  Bytes b(n);
  for (std::byte& x : b) x = static_cast<std::byte>(rng.next_u32());
  return b;
}

/// Of an IPv4 frame; its checksum is right again then.
inline void set_identification(Bytes* frame, uint16_t identification) {
  std::byte* ip = frame->data() + wire::kEthSize;
  store_be16(ip + 4, identification);
  store_be16(ip + 10, 0);
  uint32_t sum = 0;
  for (size_t at = 0; at < wire::kIpv4Size; at += 2) sum += load_be16(ip + at);
  sum = (sum & 0xFFFF) + (sum >> 16);
  store_be16(ip + 10, static_cast<uint16_t>(~(sum + (sum >> 16))));
}

}  // namespace ub::roce
