// SPDX-License-Identifier: Apache-2.0
// fuzz_bypass_packet.cc - any frame through the decoder of loads and stores. It may refuse anything; it may not read
// outside the frame, point outside it, or decode what it would write differently.
#include <cstring>
#include <memory>
#include <span>

#include "lib/base/assert.h"
#include "lib/transport/wire/bypass_packet.h"
#include "tests/fuzz/input.h"

namespace {

using namespace ub::wire;

/// What was decoded is written to the same bytes again, reserved bits and those of congestion aside: so decoding those
/// gives the same.
void check_rewrite(const BypassPacket& packet) {
  const size_t n = bypass_header_size(packet);
  const size_t size = n + packet.payload_len;
  UB_ASSERT(n <= kMaxBypassHeaderSize && packet.payload_len == bypass_payload_size(packet));
  std::unique_ptr<std::byte[]> bytes(new std::byte[size]()), again_bytes(new std::byte[n]());
  UB_ASSERT(write_bypass_headers(packet, bytes.get()) == n);
  BypassPacket again;
  UB_ASSERT(parse_bypass({bytes.get(), size}, again) == Drop::kNone);
  UB_ASSERT(again.route == packet.route && again.is_response == packet.is_response);
  UB_ASSERT(again.payload_len == packet.payload_len && again.payload == bytes.get() + n);
  UB_ASSERT(write_bypass_headers(again, again_bytes.get()) == n);
  UB_ASSERT(std::memcmp(bytes.get(), again_bytes.get(), n) == 0);
}

void decode(std::span<const std::byte> frame) {
  BypassPacket packet;
  const Drop d = parse_bypass(frame, packet);
  UB_ASSERT(drop_name(d) != nullptr);
  if (d != Drop::kNone) return;
  const std::byte* const end = frame.data() + frame.size();
  UB_ASSERT(packet.payload == frame.data() + bypass_header_size(packet));
  UB_ASSERT(packet.payload_len == 0 ? packet.payload <= end : packet.payload + packet.payload_len == end);
  if (packet.has_be) UB_ASSERT(packet.be.bits + packet.be.size() == packet.payload);
  UB_ASSERT((ta_shape(packet.opcode) & kShapeBypass) != 0 && ta_is_request(packet.opcode) != packet.is_response);
  check_rewrite(packet);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 10000) return 0;
  const ub::ExactCopy exact(data, size);
  decode(exact.bytes());
  return 0;
}
