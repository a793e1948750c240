// SPDX-License-Identifier: Apache-2.0
// fuzz_roce_packet.cc - any frame through the RoCE decoder. It may refuse anything; it may not read outside the
// frame, point outside it, or decode what it would write differently.
#include <cstring>
#include <memory>
#include <span>

#include "lib/base/assert.h"
#include "lib/transport/roce/wire/icrc.h"
#include "lib/transport/roce/wire/packet.h"
#include "lib/transport/wire/network_header.h"
#include "tests/fuzz/input.h"

namespace {

using namespace ub::roce;

/// What was decoded is written to the same bytes again, reserved bits aside: so decoding those gives the same.
void check_rewrite(const Packet& packet) {
  const size_t n = header_size(packet.bth.opcode);
  const size_t size = n + packet.payload_bytes + packet.bth.padding;
  UB_ASSERT(n <= kMaxHeaderSize);
  std::unique_ptr<std::byte[]> bytes(new std::byte[size]()), again_bytes(new std::byte[size]());
  UB_ASSERT(write_headers(packet, bytes.get()) == n);
  if (packet.payload_bytes != 0) std::memcpy(bytes.get() + n, packet.payload, packet.payload_bytes);
  Packet again{};
  UB_ASSERT(parse_packet(bytes.get(), bytes.get() + size, again) == Drop::kNone);
  UB_ASSERT(again.bth == packet.bth && again.shape == packet.shape && again.payload_bytes == packet.payload_bytes);
  UB_ASSERT(write_headers(again, again_bytes.get()) == n);
  UB_ASSERT(std::memcmp(bytes.get(), again_bytes.get(), n) == 0);
}

void decode(const std::byte* p, const std::byte* end) {
  Packet packet{};
  const Drop d = parse_packet(p, end, packet);
  UB_ASSERT(drop_name(d) != nullptr && opcode_name(packet.bth.opcode) != nullptr);
  if (is_invalid_request(d, packet)) UB_ASSERT(transport_of(packet.bth.opcode) == Transport::kRc);
  if (d != Drop::kNone) return;
  UB_ASSERT(packet.payload >= p && packet.payload + packet.payload_bytes + packet.bth.padding == end);
  check_rewrite(packet);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 10000) return 0;
  const ub::ExactCopy exact(data, size);
  const std::span<const std::byte> frame = exact.bytes();

  ub::wire::NetHeader net;
  if (ub::wire::parse_network(frame, net) == ub::wire::Drop::kNone) {
    (void)icrc_fits(net);
    decode(net.tph, net.end);
  }
  // The decoder on its own too: a fuzzer rarely repairs an IP checksum.
  decode(frame.data(), frame.data() + frame.size());
  return 0;
}
