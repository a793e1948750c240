// SPDX-License-Identifier: Apache-2.0
//
// What a kernel left to do in a frame that it hands over (checksum, segmentation), as a tag that goes with the frame:
// so the fabric passes on frames of any kernel as they are, and the next one does it, or leaves it to its NIC.
#pragma once

#include <cstdint>

namespace ub::fabric {

// virtio_net_hdr of the kernel, whose header is not for C++. It stands in front of each frame of a packet socket with
// PACKET_VNET_HDR.
struct Offload {
  uint8_t flags = 0;
  uint8_t segmentation = 0;
  uint16_t header_bytes = 0;  // not in the tag: the kernel finds it again
  uint16_t segment_bytes = 0;
  uint16_t checksum_from = 0;
  uint16_t checksum_at = 0;

  bool operator==(const Offload&) const = default;
};
static_assert(sizeof(Offload) == 10);

constexpr uint64_t tag_of(const Offload& o) {
  return uint64_t{o.flags} << 56 | uint64_t{o.segmentation} << 48 | uint64_t{o.segment_bytes} << 32 |
         uint64_t{o.checksum_from} << 16 | o.checksum_at;
}

constexpr Offload offload_of(uint64_t tag) {
  Offload o;
  o.flags = static_cast<uint8_t>(tag >> 56);
  o.segmentation = static_cast<uint8_t>(tag >> 48);
  o.segment_bytes = static_cast<uint16_t>(tag >> 32);
  o.checksum_from = static_cast<uint16_t>(tag >> 16);
  o.checksum_at = static_cast<uint16_t>(tag);
  return o;
}

}  // namespace ub::fabric
