// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/roce/wire/packet.h"

#include <algorithm>
#include <cstring>

namespace ub::roce {
namespace {

constexpr size_t extended_size(uint16_t shape) {
  size_t n = 0;
  if ((shape & kShapeDeth) != 0) n += Deth::kSize;
  if ((shape & kShapeReth) != 0) n += Reth::kSize;
  if ((shape & kShapeAtomicEth) != 0) n += AtomicEth::kSize;
  if ((shape & kShapeAeth) != 0) n += Aeth::kSize;
  if ((shape & kShapeAtomicAckEth) != 0) n += kAtomicAckEthSize;
  if ((shape & kShapeImm) != 0) n += kImmSize;
  if ((shape & kShapeIeth) != 0) n += kIethSize;
  if ((shape & kShapeCnp) != 0) n += kCnpReservedSize;
  return n;
}

constexpr size_t largest_header() {
  size_t n = 0;
#define X(id, code, name, shape) n = std::max(n, Bth::kSize + extended_size(packet_shape(Opcode::k##id)));
  UB_ROCE_OPCODES(X)
#undef X
  return n;
}
static_assert(largest_header() == kMaxHeaderSize);

/// Are the lengths right? A first or middle packet is as long as some path MTU, the last one carries something, and
/// none is longer than the largest path MTU (9.7).
template <uint16_t kShape>
bool payload_length_possible(uint32_t bytes) {
  constexpr bool kLast = (kShape & kShapeLast) != 0, kOnly = kLast && (kShape & kShapeFirst) != 0;
  if (!kLast) return is_path_mtu(bytes);
  return bytes <= kMaxPathMtu && (kOnly || bytes != 0);
}

template <uint16_t kShape>
bool dma_length_possible(const Packet& packet) {
  if (packet.reth.length > kMaxMessageBytes) return false;
  if ((kShape & kShapeWrite) == 0) return true;
  const bool only = (kShape & kShapeLast) != 0;
  return only ? packet.reth.length == packet.payload_bytes : packet.reth.length > packet.payload_bytes;
}

/// Only an ACK reports what went wrong; a header that comes with data must say that it went well.
template <uint16_t kShape>
bool syndrome_possible(Syndrome syndrome) {
  const bool plain_ack = (kShape & (kShapePayload | kShapeAtomicAckEth)) == 0;
  return plain_ack ? syndrome.kind() != AckKind::kReserved : syndrome.kind() == AckKind::kAck;
}

template <uint16_t kShape>
Drop check_fields(const Packet& packet) {
  if constexpr ((kShape & kShapePayload) != 0) {
    if (!payload_length_possible<kShape>(packet.payload_bytes)) [[unlikely]]
      return Drop::kBadPayloadLength;
  }
  if constexpr ((kShape & kShapeReth) != 0) {
    if (!dma_length_possible<kShape>(packet)) [[unlikely]]
      return Drop::kBadDmaLength;
  }
  if constexpr ((kShape & kShapeAtomicEth) != 0) {
    if (packet.atomic.address % 8 != 0) [[unlikely]]
      return Drop::kMisalignedAtomic;
  }
  if constexpr ((kShape & kShapeAeth) != 0) {
    if (!syndrome_possible<kShape>(packet.aeth.syndrome)) [[unlikely]]
      return Drop::kBadSyndrome;
  }
  return Drop::kNone;
}

/// Reads what follows BTH. There is an instance for each shape, so headers that an opcode lacks cost nothing. It is not
/// inlined, so that the switch that picks an instance is a plain jump.
template <uint16_t kShape>
[[gnu::noinline]] Drop parse_rest(const std::byte* p, const std::byte* end, Packet& out) {
  const size_t avail = static_cast<size_t>(end - p);
  if (avail < extended_size(kShape)) [[unlikely]]
    return Drop::kTruncatedHeader;
  const size_t rest = avail - extended_size(kShape);
  // All headers are multiples of four bytes, so with its padding the rest is one, too.
  if (rest % 4 != 0 || rest < out.bth.padding) [[unlikely]]
    return Drop::kBadPadding;

  if constexpr ((kShape & kShapeDeth) != 0) {
    out.deth = Deth::read(p);
    p += Deth::kSize;
  }
  if constexpr ((kShape & kShapeReth) != 0) {
    out.reth = Reth::read(p);
    p += Reth::kSize;
  }
  if constexpr ((kShape & kShapeAtomicEth) != 0) {
    out.atomic = AtomicEth::read(p);
    p += AtomicEth::kSize;
  }
  if constexpr ((kShape & kShapeAeth) != 0) {
    out.aeth = Aeth::read(p);
    p += Aeth::kSize;
  }
  if constexpr ((kShape & kShapeAtomicAckEth) != 0) {
    out.original = load_be64(p);
    p += kAtomicAckEthSize;
  }
  if constexpr ((kShape & kShapeImm) != 0) {
    out.immediate = load_be32(p);
    p += kImmSize;
  }
  if constexpr ((kShape & kShapeIeth) != 0) {
    out.invalidated_rkey = load_be32(p);
    p += kIethSize;
  }
  if constexpr ((kShape & kShapeCnp) != 0) p += kCnpReservedSize;
  out.payload = p;
  out.payload_bytes = static_cast<uint32_t>(rest - out.bth.padding);
  if ((kShape & kShapePayload) == 0 && rest != 0) [[unlikely]]
    return Drop::kUnexpectedPayload;
  return check_fields<kShape>(out);
}

}  // namespace

Drop parse_packet(const std::byte* begin, const std::byte* end, Packet& out) {
  const Drop d = Bth::read(begin, static_cast<size_t>(end - begin), out.bth);
  if (d == Drop::kTooShort) [[unlikely]]
    return d;
  out.shape = packet_shape(out.bth.opcode);
  if (d != Drop::kNone) [[unlikely]]
    return d;
  begin += Bth::kSize;
  switch (out.bth.opcode) {
#define X(id, code, name, bits) \
  case Opcode::k##id:           \
    return parse_rest<packet_shape(Opcode::k##id)>(begin, end, out);
    UB_ROCE_OPCODES(X)
#undef X
  }
  return Drop::kUnknownOpcode;
}

bool is_invalid_request(Drop d, const Packet& packet) {
  if (transport_of(packet.bth.opcode) != Transport::kRc) return false;
  switch (d) {
    case Drop::kUnknownOpcode:
    case Drop::kBadDmaLength:
    case Drop::kMisalignedAtomic:
      return true;
    case Drop::kUnexpectedPayload:
    case Drop::kBadPayloadLength:
      return packet.has(kShapeRequest);
    default:
      return false;
  }
}

size_t header_size(Opcode opcode) { return Bth::kSize + extended_size(packet_shape(opcode)); }

size_t write_headers(const Packet& packet, std::byte* p) {
  std::byte* const begin = p;
  const uint16_t shape = packet_shape(packet.bth.opcode);
  packet.bth.write(p);
  p += Bth::kSize;
  const auto put = [&](PacketShape bit, const auto& header) {
    if ((shape & bit) == 0) return;
    header.write(p);
    p += header.kSize;
  };
  put(kShapeDeth, packet.deth);
  put(kShapeReth, packet.reth);
  put(kShapeAtomicEth, packet.atomic);
  put(kShapeAeth, packet.aeth);
  if ((shape & kShapeAtomicAckEth) != 0) {
    store_be64(p, packet.original);
    p += kAtomicAckEthSize;
  }
  if ((shape & kShapeImm) != 0) {
    store_be32(p, packet.immediate);
    p += kImmSize;
  }
  if ((shape & kShapeIeth) != 0) {
    store_be32(p, packet.invalidated_rkey);
    p += kIethSize;
  }
  if ((shape & kShapeCnp) != 0) {
    std::memset(p, 0, kCnpReservedSize);
    p += kCnpReservedSize;
  }
  return static_cast<size_t>(p - begin);
}

}  // namespace ub::roce
