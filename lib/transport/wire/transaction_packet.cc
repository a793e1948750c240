// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/wire/transaction_packet.h"

#include <cstring>

#include "lib/transport/wire/compact_header.h"
#include "lib/transport/wire/response_status.h"

namespace ub::wire {
namespace {

/// Bytes of the headers of fixed size that a shape has, base header included, UDETAH, TVETAH and BEETAH
/// excluded.
constexpr size_t fixed_size(uint16_t shape, bool read_meta) {
  size_t n = Btah::kSize;
  if ((shape & kShapeMt) != 0) n += Mtetah::kSize;
  if ((shape & kShapeReadMeta) != 0 && read_meta) n += Taidetah::kSize + Ofstetah::kSize;
  if ((shape & kShapeOfst) != 0) n += Ofstetah::kSize;
  if ((shape & kShapeMa) != 0) n += Maetah::kSize;
  if ((shape & kShapeImm) != 0) n += Immetah::kSize;
  if ((shape & kShapeNtf) != 0) n += Ntfetah::kSize;
  if ((shape & kShapeMgmt) != 0) n += Mgmtetah::kSize;
  return n;
}
static_assert(Btah::kSize == Atah::kSize);

/// Checks that `padding` fits behind p and that a payload is admitted, and sets payload.
Drop take_payload(const std::byte* p, const std::byte* end, uint8_t padding, bool admitted, TaPacket& out) {
  const size_t rest = static_cast<size_t>(end - p);
  if (rest < padding) [[unlikely]]
    return Drop::kBadPadding;
  out.payload = p;
  out.payload_len = static_cast<uint32_t>(rest - padding);
  return out.payload_len != 0 && !admitted ? Drop::kUnexpectedPayload : Drop::kNone;
}

Drop parse_byte_enables(const std::byte*& p, const std::byte* end, TaPacket& out) {
  out.be = {p, BeetahView::enables_of(out.ma.length)};
  if (out.be.enables == 0) return Drop::kBadByteEnable;
  if (static_cast<size_t>(end - p) < out.be.size()) return Drop::kTruncatedHeader;
  p += out.be.size();
  return Drop::kNone;
}

/// The walk, instantiated per shape and not per opcode: what an opcode lacks costs nothing, and the flags
/// become one or two constant stores. Not inlined, so that the switch that picks one is a plain jump.
template <uint16_t kShape>
[[gnu::noinline]] Drop parse_request(const std::byte* p, const std::byte* end, uint8_t padding, bool read_meta,
                                     TaPacket& out) {
  const bool meta = (kShape & kShapeReadMeta) != 0 && read_meta;
  const size_t avail = static_cast<size_t>(end - p);
  const Btah& req = out.req;
  const Drop version = Btah::read(p, avail, out.req);
  out.is_response = false;
  out.has_mt = (kShape & kShapeMt) != 0;
  out.has_ma = (kShape & kShapeMa) != 0;
  out.has_imm = (kShape & kShapeImm) != 0;
  out.has_ntf = (kShape & kShapeNtf) != 0;
  out.has_mgmt = (kShape & kShapeMgmt) != 0;
  out.has_be = (kShape & kShapeBe) != 0;
  out.has_taid = meta;
  out.has_ofst = (kShape & kShapeOfst) != 0 || meta;
  out.has_ud = req.ud_flag;
  out.tv = req.tv_en;
  if (version != Drop::kNone) [[unlikely]]
    return version;
  if (kShape == 0) return Drop::kUnknownOpcode;
  if (req.mt_en != ((kShape & kShapeMt) != 0) || (req.tv_en && (kShape & kShapeTv) == 0)) [[unlikely]]
    return Drop::kBadHeaderFlags;
  const size_t optional = (req.ud_flag ? Udetah::kSize : 0) + (req.tv_en ? Tvetah::kSize : 0);
  if (avail < fixed_size(kShape, meta) + optional) [[unlikely]]
    return Drop::kTruncatedHeader;

  // All headers but BEETAH are known to be there; what follows only moves p.
  p += Btah::kSize;
  if (req.ud_flag) {
    out.ud = Udetah::read(p).ud;
    p += Udetah::kSize;
  }
  if constexpr ((kShape & kShapeMt) != 0) {
    out.mt = Mtetah::read(p);
    p += Mtetah::kSize;
  }
  if (meta) {
    out.taid = Taidetah::read(p).taid;
    p += Taidetah::kSize;
  }
  if ((kShape & kShapeOfst) != 0 || meta) {
    out.ofst = Ofstetah::read(p);
    p += Ofstetah::kSize;
  }
  if constexpr ((kShape & kShapeMa) != 0) {
    out.ma = Maetah::read(p);
    p += Maetah::kSize;
  }
  if constexpr ((kShape & kShapeImm) != 0) {
    out.imm = Immetah::read(p);
    p += Immetah::kSize;
  }
  if constexpr ((kShape & kShapeNtf) != 0) {
    out.ntf = Ntfetah::read(p);
    p += Ntfetah::kSize;
  }
  if constexpr ((kShape & kShapeMgmt) != 0) {
    out.mgmt = Mgmtetah::read(p);
    p += Mgmtetah::kSize;
  }
  if (req.tv_en) {
    out.token_value = Tvetah::read(p).token_value;
    p += Tvetah::kSize;
  }
  if constexpr ((kShape & kShapeBe) != 0) {
    if (const Drop d = parse_byte_enables(p, end, out); d != Drop::kNone) return d;
  }
  const Drop d = take_payload(p, end, padding, (kShape & kShapePayload) != 0, out);
  // It is one packet, with as many bytes as the enables were counted for: who applies them need not compare again.
  if ((kShape & kShapeBe) != 0 && d == Drop::kNone && out.payload_len != out.ma.length)
    return Drop::kBadByteEnable;
  return d;
}

template <uint16_t kShape>
[[gnu::noinline]] Drop parse_response(const std::byte* p, const std::byte* end, uint8_t padding, bool read_meta,
                                      TaPacket& out) {
  const bool meta = (kShape & kShapeReadMeta) != 0 && read_meta;
  const size_t avail = static_cast<size_t>(end - p);
  const Drop version = Atah::read(p, avail, out.rsp);
  out.is_response = true;
  out.has_taid = out.has_ofst = meta;
  out.has_ud = out.has_mt = out.has_ma = out.has_imm = out.has_ntf = out.has_mgmt = out.has_be = out.tv = false;
  if (version != Drop::kNone) [[unlikely]]
    return version;
  if (avail < fixed_size(kShape, meta)) [[unlikely]]
    return Drop::kTruncatedHeader;
  p += Atah::kSize;
  if (meta) {
    out.taid = Taidetah::read(p).taid;
    out.ofst = Ofstetah::read(p + Taidetah::kSize);
    p += Taidetah::kSize + Ofstetah::kSize;
  }
  // A response that reports a failure has no data, whatever its opcode.
  return take_payload(p, end, padding, (kShape & kShapePayload) != 0 && says_success(out.rsp.rspst), out);
}

/// `before`: bytes of the transport header that count for the padding, modulo four.
[[gnu::always_inline]] inline Drop parse_behind(size_t before, const std::byte* begin, const std::byte* end,
                                                uint8_t padding, bool read_meta, TaPacket& out) {
  const size_t avail = static_cast<size_t>(end - begin);
  if (avail < Btah::kSize) [[unlikely]]
    return Drop::kTruncatedHeader;
  if ((before + avail) % 4 != 0) [[unlikely]]
    return Drop::kBadPadding;
  switch (static_cast<TaOpcode>(load_u8(begin))) {
#define X(id, code, name, bits)                                           \
  case TaOpcode::k##id: {                                                 \
    constexpr uint16_t kShape = ta_shape(TaOpcode::k##id);                \
    if constexpr (ta_is_response_code(code))                              \
      return parse_response<kShape>(begin, end, padding, read_meta, out); \
    else                                                                  \
      return parse_request<kShape>(begin, end, padding, read_meta, out);  \
  }
    UB_TA_OPCODES(X)
#undef X
  }
  return parse_request<0>(begin, end, padding, read_meta, out);
}

}  // namespace

Drop parse_transaction(const std::byte* begin, const std::byte* end, uint8_t padding, bool read_meta, TaPacket& out) {
  return parse_behind(0, begin, end, padding, read_meta, out);
}

Drop parse_compact_transaction(const std::byte* begin, const std::byte* end, uint8_t padding, TaPacket& out) {
  return parse_behind(CtpHeader::kSize, begin, end, padding, false, out);
}

size_t request_header_size(TaOpcode opcode, RequestShape shape) {
  return fixed_size(ta_shape(opcode), shape.read_meta) + (shape.ud ? Udetah::kSize : 0) +
         (shape.tv ? Tvetah::kSize : 0) + shape.enables / 8;
}

size_t response_header_size(TaOpcode opcode, bool read_meta) { return fixed_size(ta_shape(opcode), read_meta); }

size_t write_transaction_headers(const TaPacket& packet, std::byte* p) {
  std::byte* const begin = p;
  if (packet.is_response) {
    packet.rsp.write(p);
  } else {
    Btah req = packet.req;
    req.ud_flag = packet.has_ud;
    req.mt_en = packet.has_mt;
    req.tv_en = packet.tv;
    req.write(p);
  }
  p += Btah::kSize;
  const auto put = [&p](bool present, const auto& header) {
    if (!present) return;
    header.write(p);
    p += header.kSize;
  };
  put(packet.has_ud, Udetah{packet.ud});
  put(packet.has_mt, packet.mt);
  put(packet.has_taid, Taidetah{packet.taid});
  put(packet.has_ofst, packet.ofst);
  put(packet.has_ma, packet.ma);
  put(packet.has_imm, packet.imm);
  put(packet.has_ntf, packet.ntf);
  put(packet.has_mgmt, packet.mgmt);
  put(packet.tv, Tvetah{packet.token_value});
  if (packet.has_be) {
    std::memcpy(p, packet.be.bits, packet.be.size());
    p += packet.be.size();
  }
  return static_cast<size_t>(p - begin);
}

}  // namespace ub::wire
