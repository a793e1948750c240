// SPDX-License-Identifier: Apache-2.0
//
// Frames that tests send through a fabric.
#pragma once

#include <cstddef>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/transport/wire/icrc.h"
#include "lib/transport/wire/network_header.h"

namespace ub::fabric {

inline std::vector<std::byte> udp_frame(uint16_t source_port, uint16_t destination_port, size_t payload = 64) {
  wire::NetTemplate headers;
  headers.init({}, {}, {IpAddress::from_v4(0x7f4d0101), source_port},
               {IpAddress::from_v4(0x7f4d0102), destination_port}, 0);
  std::vector<std::byte> frame(headers.size + payload);
  headers.write(frame.data(), payload, 0);
  return frame;
}

// Of 60 bytes, with an Ethernet header; `first`: 2, or 3 to a group.
inline std::vector<std::byte> frame_from_to(uint8_t from, uint8_t to, uint8_t first = 2) {
  std::vector<std::byte> frame(60);
  frame[0] = std::byte{first};
  frame[5] = std::byte{to};
  frame[6] = std::byte{2};
  frame[11] = std::byte{from};
  return frame;
}

}  // namespace ub::fabric
