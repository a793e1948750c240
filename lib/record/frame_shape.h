// SPDX-License-Identifier: Apache-2.0
//
// Where the payload of a frame lies, and its CRC: a recording keeps neither, unless it is told to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace ub::record {

struct FrameShape {
  enum class Sum : uint8_t { kNone, kUbIp, kUbCna24, kRoce };

  uint32_t payload_at = 0, payload_bytes = 0;
  uint32_t icrc_at = 0;  // with a sum other than kNone
  Sum sum = Sum::kNone;
};

// Of a frame as the Core sees it. One that is no packet, or a control record, has no payload.
FrameShape shape_of(std::span<const std::byte> eth_frame);

constexpr size_t kMostKept = 512;  // bytes of a frame that a recording keeps, payload apart

// What is kept of a frame that was sent: all in front of its payload, or of its CRC.
std::span<const std::byte> header_of(std::span<const std::byte> eth_frame, const FrameShape&);

// The CRC that the frame should have. Its sum is not kNone.
uint32_t right_icrc(std::span<const std::byte> eth_frame, const FrameShape&);
// Has it one, as frames of a wire that may corrupt them have?
bool has_icrc(std::span<const std::byte> eth_frame, const FrameShape&);

}  // namespace ub::record
