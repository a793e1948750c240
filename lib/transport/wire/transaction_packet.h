// SPDX-License-Identifier: Apache-2.0
// transaction_packet.h - everything between the transport header and the ICRC: BTAH or ATAH, the extension
// headers of the opcode in their fixed order, payload, padding. UB Base Specification Rev 2.0, 7.2 and tables
// 7-2, 7-4. The order is the same for all opcodes, each leaving out what it lacks:
//   UDETAH MTETAH TAIDETAH OFSTETAH MAETAH IMMETAH NTFETAH MGMTETAH TVETAH BEETAH payload padding
// Not here: whether payload and Length fit the MTU and each other (the core knows the channel), fake packets
// (they have no transaction header), compact packets of the load/store path.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/transport/wire/drop.h"
#include "lib/transport/wire/extension_headers.h"
#include "lib/transport/wire/transaction_header.h"

namespace ub::wire {

/// A decoded packet. Only what the flags name is set; the rest is whatever was there before.
struct TaPacket {
  bool is_response = false;  ///< rsp is valid, else req
  bool has_ud = false;
  bool has_mt = false;
  bool has_taid = false;
  bool has_ofst = false;
  bool has_ma = false;
  bool has_imm = false;
  bool has_ntf = false;
  bool has_mgmt = false;
  bool tv = false;  ///< token_value is valid
  bool has_be = false;
  uint16_t taid;
  uint32_t ud;
  uint32_t token_value;
  uint32_t payload_len;      ///< without padding
  const std::byte* payload;  ///< into the packet; valid whenever the result is kNone
  Btah req;
  Atah rsp;
  Mtetah mt;
  Ofstetah ofst;
  Maetah ma;
  Immetah imm;
  Ntfetah ntf;
  Mgmtetah mgmt;
  BeetahView be;

  TaOpcode opcode() const { return is_response ? rsp.opcode : req.opcode; }
};

/// Decodes [begin, end): begin is the byte after the transport (and entity) header, end the first ICRC byte.
/// `padding` is that of the transport header, `read_meta` the channel's attribute. The span must be a
/// multiple of four bytes, as padding makes it under RTPH and UTPH. For results that
/// drop_is_unsupported_request() names, is_response and req or rsp are valid.
[[nodiscard]] Drop parse_transaction(const std::byte* begin, const std::byte* end, uint8_t padding, bool read_meta,
                                     TaPacket& out);
/// The same behind CTPH, whose one byte counts for the padding (6.2.1). There is no read_meta.
[[nodiscard]] Drop parse_compact_transaction(const std::byte* begin, const std::byte* end, uint8_t padding,
                                             TaPacket& out);

/// Bytes of all headers of a request, BTAH included; BEETAH has a bit for each of the `enables`.
struct RequestShape {
  bool ud = false;
  bool tv = false;
  bool read_meta = false;
  uint32_t enables = 0;
};
size_t request_header_size(TaOpcode opcode, RequestShape shape);
/// The same for a response, ATAH included.
size_t response_header_size(TaOpcode opcode, bool read_meta);

/// Largest value of request_header_size: Write with byte enables for 1024 bytes.
inline constexpr size_t kMaxTransactionHeaderSize = 8 + 4 + 16 + 4 + 128;

/// Writes the headers of `packet` as its flags say (req.ud_flag, req.mt_en, req.tv_en follow has_ud, has_mt,
/// tv) and returns their size; payload and padding are the caller's. BEETAH is copied from packet.be.
size_t write_transaction_headers(const TaPacket& packet, std::byte* p);

}  // namespace ub::wire
