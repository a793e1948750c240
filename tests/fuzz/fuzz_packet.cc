// SPDX-License-Identifier: Apache-2.0
// fuzz_packet.cc - any frame through every decoder of a received packet, and through the printer.
// A decoder may refuse anything; it may not read outside the frame, point outside it, or decode what it would
// write differently.
#include <bit>
#include <cstring>
#include <memory>
#include <span>

#include "lib/base/assert.h"
#include "lib/transport/wire/congestion_header.h"
#include "lib/transport/wire/entity_header.h"
#include "lib/transport/wire/icrc.h"
#include "lib/transport/wire/network_header.h"
#include "lib/transport/wire/pretty_print.h"
#include "lib/transport/wire/rtp_header.h"
#include "lib/transport/wire/sack.h"
#include "lib/transport/wire/transaction_packet.h"
#include "tests/fuzz/input.h"

namespace {

using namespace ub;
using namespace ub::wire;

/// What was decoded is written to the same bytes again, reserved bits aside: so decoding those gives the
/// same.
void check_rewrite(const TaPacket& t, bool read_meta) {
  std::byte headers[256];
  const size_t n = write_transaction_headers(t, headers);
  UB_ASSERT(n <= kMaxTransactionHeaderSize);
  TaPacket again;
  std::unique_ptr<std::byte[]> packet(new std::byte[n + t.payload_len + 3]);
  std::memcpy(packet.get(), headers, n);
  if (t.payload_len != 0) std::memcpy(packet.get() + n, t.payload, t.payload_len);
  const uint8_t padding = padding_for(n + t.payload_len);
  const std::byte* end = packet.get() + n + t.payload_len + padding;
  std::memset(packet.get() + n + t.payload_len, 0, padding);
  UB_ASSERT(parse_transaction(packet.get(), end, padding, read_meta, again) == Drop::kNone);
  UB_ASSERT(again.payload_len == t.payload_len);
  std::byte headers_again[256];
  UB_ASSERT(write_transaction_headers(again, headers_again) == n);
  UB_ASSERT(std::memcmp(headers, headers_again, n) == 0);
}

void decode_transaction(const std::byte* p, const std::byte* end, uint8_t padding) {
  for (const bool read_meta : {false, true}) {
    TaPacket t;
    if (parse_transaction(p, end, padding, read_meta, t) != Drop::kNone) continue;
    UB_ASSERT(t.payload >= p && t.payload + t.payload_len + padding == end);
    if (t.has_be) UB_ASSERT(t.be.bits >= p && t.be.bits + t.be.size() <= t.payload);
    check_rewrite(t, read_meta);
  }
}

void decode_feedback(const RtpHeader& h, const std::byte* p, const std::byte* end) {
  const auto left = [&] { return static_cast<size_t>(end - p); };
  CetphCnp cnp;
  CetphLdcp ldcp;
  CetphCaqm caqm;
  if (h.opcode == TpOpcode::kCnp) {
    (void)CetphCnp::read(p, left(), cnp);
    return;
  }
  if (h.has_cetph()) {
    if (CetphCaqm::read(p, left(), caqm) != Drop::kNone || CetphLdcp::read(p, left(), ldcp) != Drop::kNone) return;
    p += CetphCaqm::kSize;
  }
  SackView sack;
  if (!h.has_saetph() || SackView::read(p, left(), sack) != Drop::kNone) return;
  uint32_t bits = 0;
  for (uint32_t i = 0; i < sack.bit_count(); ++i) bits += sack.test(i);
  uint32_t counted = 0;
  for (uint32_t i = 0; i < sack.word_count(); ++i) counted += static_cast<uint32_t>(std::popcount(sack.word(i)));
  UB_ASSERT(bits == counted);
}

void decode_transport(const std::byte* p, const std::byte* end) {
  RtpHeader h;
  if (RtpHeader::read(p, static_cast<size_t>(end - p), h) != Drop::kNone) return;
  p += RtpHeader::kSize;
  const bool data = h.is_data() || h.opcode == TpOpcode::kUnreliable;
  if (!data) return decode_feedback(h, p, end);
  EntityHeader entity;
  if (h.nlp == kNlpEntity) {
    if (EntityHeader::read(p, static_cast<size_t>(end - p), entity) != Drop::kNone) return;
    p += EntityHeader::kSize;
  }
  decode_transaction(p, end, h.padding);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 10000) return 0;
  const ub::ExactCopy exact(data, size);
  const std::span<const std::byte> frame = exact.bytes();

  NetHeader net;
  if (parse_network(frame, net) == Drop::kNone) {
    UB_ASSERT(net.l3 >= frame.data() && net.tph > net.l3 && net.end >= net.tph);
    UB_ASSERT(net.end + kIcrcSize <= frame.data() + size);
    (void)icrc_matches(net);
    decode_transport(net.tph, net.end);
  }
  // The transport decoder on its own too: a fuzzer rarely repairs an IP checksum.
  decode_transport(frame.data(), frame.data() + size);

  char line[512];
  const size_t cap = size % (sizeof line + 1);
  const size_t n = format_packet(frame, line, cap, size % 2 == 0);
  UB_ASSERT(cap == 0 ? n == 0 : n < cap && line[n] == '\0');
  return 0;
}
