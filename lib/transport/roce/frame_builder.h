// SPDX-License-Identifier: Apache-2.0
// frame_builder.h - the frame around a packet of the RoCE engine: its headers down to Ethernet, its padding, its ICRC.
#pragma once

#include <cstring>

#include "lib/transport/core_state.h"
#include "lib/transport/host.h"
#include "lib/transport/roce/wire/icrc.h"
#include "lib/transport/roce/wire/packet.h"
#include "lib/transport/seal_and_commit.h"

namespace ub::roce {

/// A frame with its headers, and where its payload goes.
struct Frame {
  std::byte* begin;
  std::byte* payload;
  uint32_t bytes;
};

template <class Host>
class FrameBuilder {
 public:
  FrameBuilder(CoreState& s, Host& host) : s_(s), host_(host) {}

  /// Writes all but the payload. False: the port has no room.
  bool begin(uint32_t link, const wire::NetTemplate& headers, Packet& packet, uint32_t payload_bytes, uint8_t ecn,
             Frame* out) {
    packet.bth.padding = static_cast<uint8_t>(-payload_bytes & 3);
    const size_t udp_bytes = header_size(packet.bth.opcode) + payload_bytes + packet.bth.padding + wire::kIcrcSize;
    out->bytes = static_cast<uint32_t>(headers.size + udp_bytes);
    out->begin = host_.tx_begin(link, out->bytes);
    if (out->begin == nullptr) return false;
    std::byte* at = out->begin + headers.write(out->begin, udp_bytes, ecn);
    out->payload = at + write_headers(packet, at);
    std::memset(out->payload + payload_bytes, 0, packet.bth.padding);
    return true;
  }

  /// Seals the frame and hands it to the port.
  void commit(uint32_t link, bool v6, std::byte* frame, uint32_t bytes) {
    seal_and_commit(s_, host_, link, frame, bytes,
                    [=](const std::byte* l3, size_t covered) { return icrc_compute(l3, covered, v6); });
  }

 private:
  CoreState& s_;
  Host& host_;
};

}  // namespace ub::roce
