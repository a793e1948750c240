// SPDX-License-Identifier: Apache-2.0
// packet.h - everything between UDP and the ICRC: BTH, the extended headers of the opcode in their fixed order,
// payload, padding. InfiniBand Architecture Specification volume 1, 9.2 to 9.4. Each opcode leaves out what it lacks:
//   BTH DETH RETH AtomicETH AETH AtomicAckETH ImmDt IETH payload padding
// Not checked here: whether the payload fits the path MTU of the QP, PSNs, keys and states (the engine knows the QP).
#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/transport/roce/wire/bth.h"
#include "lib/transport/roce/wire/drop.h"
#include "lib/transport/roce/wire/extended_headers.h"

namespace ub::roce {

inline constexpr uint32_t kMinPathMtu = 256;
inline constexpr uint32_t kMaxPathMtu = 4096;
inline constexpr uint32_t kMaxMessageBytes = 1u << 31;

constexpr bool is_path_mtu(uint32_t bytes) {
  return bytes >= kMinPathMtu && bytes <= kMaxPathMtu && (bytes & (bytes - 1)) == 0;
}

/// A decoded packet. Of the extended headers only those of the shape are set; the rest is whatever was there before.
struct Packet {
  Bth bth;
  uint16_t shape = 0;  ///< PacketShape bits of bth.opcode
  Deth deth;
  Reth reth;
  AtomicEth atomic;
  Aeth aeth;
  uint64_t original;          ///< AtomicAckETH
  uint32_t immediate;         ///< ImmDt
  uint32_t invalidated_rkey;  ///< IETH
  uint32_t payload_bytes;     ///< without padding
  const std::byte* payload;   ///< it points into the packet; valid whenever the result is kNone

  bool has(PacketShape what) const { return (shape & what) != 0; }
  bool is_only() const { return has(kShapeFirst) && has(kShapeLast); }
};

/// Decodes [begin, end): begin is the first byte behind UDP, end the first ICRC byte. bth and shape are set for every
/// result but kTooShort.
[[nodiscard]] Drop parse_packet(const std::byte* begin, const std::byte* end, Packet& out);

/// Is the packet an undamaged request of a reliable connection that asks for something impossible? If its PSN is the
/// expected one, it is answered by a NAK (invalid request), and not by silence (9.9).
[[nodiscard]] bool is_invalid_request(Drop d, const Packet& packet);

/// Bytes of all headers of a packet, BTH included.
[[nodiscard]] size_t header_size(Opcode opcode);

/// The largest value of header_size, which is that of an atomic.
inline constexpr size_t kMaxHeaderSize = Bth::kSize + AtomicEth::kSize;

/// Writes the headers of packet.bth.opcode, which must be a known one, and returns their size. The caller writes the
/// payload, the padding (which bth.padding counts) and the ICRC.
size_t write_headers(const Packet& packet, std::byte* p);

}  // namespace ub::roce
