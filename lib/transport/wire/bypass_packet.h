// SPDX-License-Identifier: Apache-2.0
// bypass_packet.h - a packet of loads and stores (TP bypass) on Ethernet: type 0x88B5, LPH with CFG 9, NTH16, a compact
// transaction header, its extension headers, payload. UB Base Specification Rev 2.0, 7.2, 8.3 and appendix B.2.6. There
// is no transport header and no ICRC, and no length but that of the memory which a request names:
//   request   BTAH 4 | [UDETAH] | MAETAH 12 | [TVETAH] | [BEETAH] | payload
//   response  ATAH 4 | payload
// The requests are Read, Write, Write with byte enables, Writeback, Writeback with byte enables and Prefetch, the
// responses TAACK and Read response. Ethernet may fill a frame up to kMinEthFrame bytes. Only packets without payload
// are so short, so what follows their headers is ignored.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "lib/transport/addresses.h"
#include "lib/transport/wire/drop.h"
#include "lib/transport/wire/extension_headers.h"
#include "lib/transport/wire/link_header.h"
#include "lib/transport/wire/network_header.h"
#include "lib/transport/wire/opcodes.h"
#include "lib/transport/wire/transaction_header.h"

namespace ub::wire {

/// From whom to whom a packet travels.
struct BypassRoute {
  MacAddress to{}, from{};
  uint16_t dcna = 0, scna = 0;
  uint8_t sl = 0;  ///< 4 bits; the virtual lane is the same (SL to VL mapping is one to one here)

  /// The way of the answer.
  BypassRoute back() const { return {from, to, scna, dcna, sl}; }
  bool operator==(const BypassRoute&) const = default;
};

/// A decoded packet. Each byte of its headers was read once, so a sender that changes shared memory meanwhile changes
/// nothing but payload. Only what the flags name is set; the rest is whatever was there before.
struct BypassPacket {
  BypassRoute route;
  bool is_response = false;
  TaOpcode opcode = TaOpcode::kRead;
  Tassn tassn;
  bool poison = false;  ///< payload is known to be bad

  uint8_t status = AtahCompact::kOk;  ///< of a response; others than kOk have no payload

  bool has_ud = false;  ///< of a request, like all that follows but payload
  bool tv = false;      ///< token_value is valid
  bool has_be = false;
  uint32_t ud;
  uint32_t token_value;
  MaetahCompact ma;
  BeetahView be;  ///< into the packet

  const std::byte* payload;  ///< into the packet
  uint32_t payload_len;      ///< of a request ma.length() or 0; of a response 0, or as long as that of a request can be
};

inline constexpr size_t kMinBypassPayload = 64, kMaxBypassPayload = 64 << 7;
inline constexpr size_t kBypassPrefixSize = kEthSize + LinkHeader::kSize + Nth16::kSize;
inline constexpr size_t kBypassAnswerHeaderSize = kBypassPrefixSize + AtahCompact::kSize;
inline constexpr size_t kMaxBypassHeaderSize = kBypassPrefixSize + Btah::kCompactSize + Udetah::kSize +
                                               MaetahCompact::kSize + Tvetah::kSize + BeetahView::kMaxEnables / 8;

/// Is a frame for which has_link_header() holds one of loads and stores? It need not be long enough for any header.
inline bool is_bypass(std::span<const std::byte> eth_frame) {
  LinkHeader link;
  return LinkHeader::read(eth_frame.data() + kEthSize, eth_frame.size() - kEthSize, link) == Drop::kNone &&
         link.cfg == kCfgLoadStore;
}
/// Decodes a frame for which has_link_header() holds (compact_packet.h), whatever else it contains. Whether somebody
/// waits for a response, and for how many bytes, only the caller knows. `opcode` is set unless the result is kTooShort,
/// kBadLinkType, kBadNlp or kManagement.
[[nodiscard]] Drop parse_bypass(std::span<const std::byte> eth_frame, BypassPacket& out);

/// A load whose frame has nothing but what it needs: addresses, SL, hints and flags are 0. Those of lanes are so, and a
/// few comparisons tell.
struct PlainLoad {
  Tassn tassn;
  bool tv;
  uint32_t token_value;
  MaetahCompact ma;
};
inline constexpr std::array<uint8_t, kBypassPrefixSize> kPlainPrefix = {
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, kEtherTypeUb >> 8, kEtherTypeUb & 0xFF, 0, kCfgLoadStore};
/// False: the frame is another one, which parse_bypass() reads.
inline bool read_plain_load(std::span<const std::byte> eth_frame, PlainLoad& out) {
  constexpr size_t kWithoutToken = kBypassPrefixSize + Btah::kCompactSize + MaetahCompact::kSize;
  constexpr uint32_t kHead = 0x0610;  // opcode, version, EE
  constexpr uint32_t kTokenBit = 1 << 3;
  out.tv = eth_frame.size() == kWithoutToken + Tvetah::kSize;
  if (!out.tv && eth_frame.size() != kWithoutToken) return false;
  const std::byte* p = eth_frame.data();
  if (std::memcmp(p, kPlainPrefix.data(), kPlainPrefix.size()) != 0) return false;
  const uint32_t base = load_be32(p + kBypassPrefixSize);
  if (base >> 16 != (kHead | (out.tv ? kTokenBit : 0))) return false;
  out.tassn = Tassn(base & 0xFFFF);
  out.ma = MaetahCompact::read(p + kBypassPrefixSize + Btah::kCompactSize);
  out.token_value = out.tv ? Tvetah::read(p + kWithoutToken).token_value : 0;
  return true;
}
/// The headers of an answer to it.
inline void write_plain_answer(TaOpcode opcode, uint8_t status, Tassn tassn, std::byte* frame) {
  std::memcpy(frame, kPlainPrefix.data(), kPlainPrefix.size());
  AtahCompact{opcode, status, false, tassn}.write(frame + kBypassPrefixSize);
}

/// Bytes of all headers, Ethernet's included, and of the payload, as the other fields of `packet` say.
size_t bypass_header_size(const BypassPacket& packet);
size_t bypass_payload_size(const BypassPacket& packet);
/// Writes bypass_header_size() bytes and returns their number. BEETAH is copied from packet.be; the payload is the
/// caller's.
size_t write_bypass_headers(const BypassPacket& packet, std::byte* frame);

}  // namespace ub::wire
