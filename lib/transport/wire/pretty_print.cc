// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/wire/pretty_print.h"

#include <cinttypes>
#include <cstdarg>
#include <cstdio>

#include "lib/base/bytes.h"
#include "lib/transport/wire/bypass_packet.h"
#include "lib/transport/wire/compact_header.h"
#include "lib/transport/wire/congestion_header.h"
#include "lib/transport/wire/control_record.h"
#include "lib/transport/wire/entity_header.h"
#include "lib/transport/wire/icrc.h"
#include "lib/transport/wire/link_header.h"
#include "lib/transport/wire/network_header.h"
#include "lib/transport/wire/response_status.h"
#include "lib/transport/wire/rtp_header.h"
#include "lib/transport/wire/sack.h"
#include "lib/transport/wire/transaction_packet.h"

namespace ub::wire {
namespace {

/// A line of text in a buffer that may be too small: what does not fit is left out.
class Line {
 public:
  Line(char* out, size_t cap) : out_(out), cap_(cap) {
    if (cap_ > 0) out_[0] = '\0';
  }

  [[gnu::format(printf, 2, 3)]] void add(const char* format, ...) {
    if (len_ + 1 >= cap_) return;
    va_list args;
    va_start(args, format);
    const int n = std::vsnprintf(out_ + len_, cap_ - len_, format, args);
    va_end(args);
    if (n <= 0) return;
    const size_t room = cap_ - len_ - 1;
    len_ += static_cast<size_t>(n) < room ? static_cast<size_t>(n) : room;
  }

  size_t size() const { return len_; }

 private:
  char* out_;
  size_t cap_;
  size_t len_ = 0;
};

void add_ip(Line& line, const IpAddress& a, bool v6) {
  if (!v6) {
    line.add("%u.%u.%u.%u", a.bytes[12], a.bytes[13], a.bytes[14], a.bytes[15]);
    return;
  }
  // The longest run of zero groups becomes "::".
  int best = -1, best_len = 1;
  for (int i = 0; i < 8; ++i) {
    int n = 0;
    while (i + n < 8 && a.bytes[2 * (i + n)] == 0 && a.bytes[2 * (i + n) + 1] == 0) ++n;
    if (n > best_len) best = i, best_len = n;
  }
  line.add("[");
  for (int i = 0; i < 8; ++i) {
    if (i == best) {
      line.add("::");
      i += best_len - 1;
      continue;
    }
    line.add("%s%x", i > 0 && i != best + best_len ? ":" : "", a.bytes[2 * i] << 8 | a.bytes[2 * i + 1]);
  }
  line.add("]");
}

const char* tp_opcode_name(const RtpHeader& h) {
  switch (h.opcode) {
    case TpOpcode::kUnreliable:
      return "utp";
    case TpOpcode::kData:
      return h.fake ? "fake" : "data";
    case TpOpcode::kAck:
      return h.rspst == kRspError && h.rspinfo == kErrPsn ? "tpnak" : "tpack";
    case TpOpcode::kAckCc:
      return h.rspst == kRspError && h.rspinfo == kErrPsn ? "tpnak-cc" : "tpack-cc";
    case TpOpcode::kSack:
      return "tpsack";
    case TpOpcode::kSackCc:
      return "tpsack-cc";
    case TpOpcode::kCnp:
      return "cnp";
  }
  return "?";
}

void add_status(Line& line, uint8_t rspst, uint8_t rspinfo) {
  switch (rspst) {
    case kRspOk:
      line.add(rspinfo != 0 ? " ok +%u" : " ok", rspinfo);
      break;
    case kRspRnr:
      line.add(" rnr %u", rspinfo);
      break;
    case kRspPageFault:
      line.add(" page_fault %u", rspinfo);
      break;
    case kRspError:
      line.add(" error %u", rspinfo);
      break;
    case kRspFused:
      line.add(" fused %u", rspinfo);
      break;
    default:
      line.add(" status %u/%u", rspst, rspinfo);
      break;
  }
}

void add_request(Line& line, const Btah& b) {
  static constexpr const char* kOrder[] = {"no", "ro", "so", "odr3"};
  line.add(" %s tassn %u %s%s %s %05x", ta_opcode_name(b.opcode), b.tassn.value(), kOrder[b.odr & kOdrExecutionMask],
           (b.odr & kOdrCompletion) != 0 ? "+tco" : "", b.rc_type == kRcTypeSequenceContext ? "sc" : "rc", b.rc_id);
  if (b.fce) line.add(" fce");
  if (b.retry) line.add(" retry");
  if (b.alloc) line.add(" alloc");
  if (b.e_bit) line.add(" excl");
  if (b.no_taack) line.add(" noack");
  if (b.poison) line.add(" poison");
}

void add_extensions(Line& line, const TaPacket& t) {
  if (t.has_ud) line.add(" ud %08x", t.ud);
  if (t.has_mt) line.add(" %s %05x", t.mt.tc_type == kTcTypeGroup ? "group" : "tc", t.mt.tc_id);
  if (t.has_taid) line.add(" taid %u", t.taid);
  if (t.has_ofst) line.add(" ofst %uK", t.ofst.offset_kib);
  if (t.has_ma) line.add(" addr %" PRIx64 " id %05x len %u", t.ma.address, t.ma.token_id, t.ma.length);
  if (t.has_imm) line.add(" imm %" PRIx64, t.imm.immediate);
  if (t.has_ntf) line.add(" notify %" PRIx64 " id %05x = %" PRIx64, t.ntf.address, t.ntf.token_id, t.ntf.data);
  if (t.has_mgmt) line.add(" mgmt %u.%u%s", t.mgmt.code, t.mgmt.sub_code, t.mgmt.rsp ? " rsp" : "");
  if (t.tv) line.add(" tv %08x", t.token_value);
  if (t.has_be) line.add(" be %u", t.be.enables);
}

void add_record(Line& line, const TaPacket& t) {
  ControlRecord r;
  const Drop d = read_control_record({t.payload, t.payload_len}, r);
  if (d != Drop::kNone) {
    line.add(" record drop %s", drop_name(d));
    return;
  }
  line.add(" %s attempt %08x", record_type_name(r.type), r.attempt);
  if (r.reason != RecordReason::kNone) line.add(" (%s)", record_reason_name(r.reason));
  line.add(" tpn %06x>%06x psn %u mtu %u flags %02x", r.sender_tpn, r.receiver_tpn, r.initial_psn.value(), r.mtu,
           r.flags);
  if (r.application != 0) line.add(" application %u", r.application);
}

/// A Read request has no payload, so its length says whether it has the meta headers.
bool guess_read_meta(const std::byte* p, const std::byte* end, uint8_t padding, bool hint) {
  TaPacket t;
  if (p == end || load_u8(p) != static_cast<uint8_t>(TaOpcode::kRead)) return hint;
  return parse_transaction(p, end, padding, true, t) == Drop::kNone;
}

void add_transaction(Line& line, const std::byte* p, const std::byte* end, uint8_t padding, bool read_meta,
                     bool unreliable) {
  TaPacket t;
  Drop d = parse_transaction(p, end, padding, guess_read_meta(p, end, padding, read_meta), t);
  if (d != Drop::kNone && read_meta && end - p >= 8 && load_u8(p) == static_cast<uint8_t>(TaOpcode::kReadResponse))
    d = parse_transaction(p, end, padding, false, t);
  if (d != Drop::kNone) {
    line.add(" ta %02x drop %s", p < end ? load_u8(p) : 0, drop_name(d));
    return;
  }
  if (t.is_response) {
    line.add(" %s tassn %u rc %05x%s", ta_opcode_name(t.rsp.opcode), t.rsp.tassn.value(), t.rsp.rc_id,
             t.rsp.sv ? " sv" : "");
    add_status(line, t.rsp.rspst, t.rsp.rspinfo);
  } else {
    add_request(line, t.req);
  }
  add_extensions(line, t);
  if (unreliable && !t.is_response && t.has_mt && t.mt.tc_id == 0) add_record(line, t);
  line.add(" | %u B", t.payload_len);
  if (padding != 0) line.add(" pad %u", padding);
}

void add_feedback(Line& line, const RtpHeader& h, const std::byte* p, const std::byte* end) {
  const auto left = [&] { return static_cast<size_t>(end - p); };
  if (h.opcode == TpOpcode::kCnp) {
    CetphCnp c;
    if (CetphCnp::read(p, left(), c) == Drop::kNone) line.add(" ecn %u%s", c.ecn, c.loc ? " loc" : "");
    return;
  }
  if (h.has_cetph()) {
    // LDCP or CAQM: the channel knows, we do not. The first word means the same in both.
    CetphCaqm c;
    if (CetphCaqm::read(p, left(), c) != Drop::kNone) return line.add(" drop truncated_header");
    line.add(" ackseq %u cc %08x", c.ack_seq, load_be32(p + 4));
    p += CetphCaqm::kSize;
  }
  if (h.has_saetph()) {
    SackView s;
    if (const Drop d = SackView::read(p, left(), s); d != Drop::kNone) return line.add(" drop %s", drop_name(d));
    line.add(" max %u got", s.max_rcv_psn.value());
    for (uint32_t i = 0; i < s.bit_count(); ++i) {
      if (!s.test(i)) continue;
      uint32_t n = 1;
      while (i + n < s.bit_count() && s.test(i + n)) ++n;
      line.add(n > 1 ? " %u-%u" : " %u", (h.psn + i).value(), (h.psn + (i + n - 1)).value());
      i += n;
    }
  }
}

/// Transport header to the last pad byte.
void add_transport(Line& line, const std::byte* p, const std::byte* end, bool read_meta) {
  RtpHeader h;
  if (const Drop d = RtpHeader::read(p, static_cast<size_t>(end - p), h); d != Drop::kNone) {
    line.add(" drop %s", drop_name(d));
    return;
  }
  p += RtpHeader::kSize;
  line.add(" %s", tp_opcode_name(h));
  const bool unreliable = h.opcode == TpOpcode::kUnreliable;
  if (!unreliable) {
    if (h.last) line.add(" L");
    if (h.ack_req) line.add(" A");
    line.add(" tpn %06x>%06x psn %u msn %u", h.src_tpn, h.dst_tpn, h.psn.value(), h.tpmsn.value());
    if (h.rspst != 0 || h.rspinfo != 0) add_status(line, h.rspst, h.rspinfo);
  }
  if (!unreliable && !h.is_data()) return add_feedback(line, h, p, end);
  if (h.fake && !unreliable) return;
  if (h.nlp == kNlpEntity) {
    EntityHeader e;
    if (EntityHeader::read(p, static_cast<size_t>(end - p), e) != Drop::kNone)
      return line.add(" drop truncated_header");
    line.add(" upi %u sub %05x>%05x", e.upi, e.src.sub_id(), e.dst.sub_id());
    p += EntityHeader::kSize;
  }
  add_transaction(line, p, end, h.padding, read_meta, unreliable);
}

void add_icrc(Line& line, uint32_t computed, uint32_t stored) {
  line.add(stored == computed ? " icrc ok" : stored == 0 ? " icrc off" : " icrc BAD");
}

void add_compact_transport(Line& line, const std::byte* p, const std::byte* end) {
  CtpHeader c;
  if (const Drop d = CtpHeader::read(p, static_cast<size_t>(end - p), c); d != Drop::kNone)
    return line.add(" ctp drop %s", drop_name(d));
  line.add(" ctp %s pad %u nlp %u", c.opcode == CtpOpcode::kCnp ? "cnp" : "data", c.padding, c.nlp);
}

void add_load_store(Line& line, std::span<const std::byte> eth_frame) {
  BypassPacket b;
  const Drop d = parse_bypass(eth_frame, b);
  if (d == Drop::kTooShort || d == Drop::kBadNlp || d == Drop::kManagement)  // before a transaction header was seen
    return line.add(" drop %s", drop_name(d));
  if (d != Drop::kNone) return line.add(" ta %02x drop %s", static_cast<uint8_t>(b.opcode), drop_name(d));
  line.add(" %s tassn %u", ta_opcode_name(b.opcode), b.tassn.value());
  if (b.is_response) {
    line.add(" status %u", b.status);
  } else {
    line.add(" %s addr %" PRIx64 " id %05x len %u", b.ma.strong_order ? "so" : "ro", b.ma.address, b.ma.token_id,
             b.ma.length());
  }
  if (b.poison) line.add(" poison");
  if (b.has_ud) line.add(" ud %08x", b.ud);
  if (b.tv) line.add(" tv %08x", b.token_value);
  if (b.has_be) line.add(" be %u", b.be.enables);
  line.add(" | %u B", b.payload_len);
}

/// What the network said, and may say.
void add_cci(Line& line, uint16_t bits) {
  Cci cci;
  if (bits == 0) return;
  if (!Cci::unpack(bits, cci)) return line.add(" cci %04x", bits);
  if (cci.mode == CciMode::kCaqm) {
    line.add(" c-aqm%s%s", cci.enable ? "" : " off", cci.congested ? " congested" : "");
    if (cci.increase) line.add(" asks %u B", cci.hint * kCaqmHintUnitBytes);
  } else {
    line.add(" fecn %u", cci.fecn);
    if (cci.mode == CciMode::kFecnRtt) line.add(" time %u", cci.timestamp);
  }
  if (cci.loc) line.add(" at the last hop");
}

/// EtherType 0x88B5: LPH, NTH. Lengths are not on the wire there; a frame of 60 bytes may be padded.
void add_link(Line& line, std::span<const std::byte> eth_frame, bool read_meta) {
  const std::byte* p = eth_frame.data() + kEthSize;
  const std::byte* const end = eth_frame.data() + eth_frame.size();
  LinkHeader l;
  if (LinkHeader::read(p, static_cast<size_t>(end - p), l) != Drop::kNone) return line.add("drop too_short");
  p += LinkHeader::kSize;
  line.add("lph cfg %u vl %u", l.cfg, l.vl);
  const size_t avail = static_cast<size_t>(end - p);
  if (l.cfg == kCfgLoadStore || l.cfg == kCfgNoncoherent) {
    Nth16 n;
    if (const Drop d = Nth16::read(p, avail, n); d != Drop::kNone) return line.add(" drop %s", drop_name(d));
    line.add(" cna %04x > %04x", n.scna, n.dcna);
    if (l.cfg == kCfgLoadStore) return add_load_store(line, eth_frame);
    if (n.nlp != 0) return line.add(" nlp %u", n.nlp);
    return add_compact_transport(line, p + Nth16::kSize, end);
  }
  if (l.cfg != kCfgCna24) return;
  Nth24 n;
  if (const Drop d = Nth24::read(p, avail, n); d != Drop::kNone) return line.add(" drop %s", drop_name(d));
  line.add(" cna %06x > %06x", n.scna, n.dcna);
  if (n.sl != 0) line.add(" sl %u", n.sl);
  add_cci(line, n.cci);
  if (avail < Nth24::kSize + kIcrcSize) return line.add(" drop too_short");
  const std::byte* tph = p + Nth24::kSize;
  const std::byte* icrc = end - kIcrcSize;
  if (n.nlp == Nth24::kNlpCtp) return add_compact_transport(line, tph, icrc);
  add_transport(line, tph, icrc, read_meta);
  const bool maybe_padded = eth_frame.size() <= kMinEthFrame;
  if (!maybe_padded) add_icrc(line, icrc_compute_nth24(p, static_cast<size_t>(icrc - p)), icrc_load(icrc));
}

}  // namespace

size_t format_packet(std::span<const std::byte> eth_frame, char* out, size_t cap, bool read_meta) {
  Line line(out, cap);
  NetHeader net;
  const Drop d = parse_network(eth_frame, net);
  const std::byte* p = eth_frame.data();
  if (d == Drop::kNone) {
    add_ip(line, net.src.ip, net.v6);
    line.add(":%u > ", net.src.port);
    add_ip(line, net.dst.ip, net.v6);
    line.add(":%u", net.dst.port);
    if (net.ecn() == kEcnCe) line.add(" CE");
    add_transport(line, net.tph, net.end, read_meta);
    add_icrc(line, icrc_compute(net.l3, static_cast<size_t>(net.end - net.l3), net.v6), icrc_load(net.end));
  } else if (d == Drop::kNotIp && load_be16(p + 12) == kEtherTypeUb) {
    add_link(line, eth_frame, read_meta);
  } else {
    line.add("drop %s", drop_name(d));
    if (d == Drop::kNotIp) line.add(" ethertype %04x", load_be16(p + 12));
    line.add(", %zu B", eth_frame.size());
  }
  return line.size();
}

}  // namespace ub::wire
