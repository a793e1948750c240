// SPDX-License-Identifier: Apache-2.0
#include "lib/urma/aperture/uncached/rewrite.h"

#include <initializer_list>

namespace ub::aperture {
namespace {

constexpr uint8_t kOperandSize = 0x66, kRexW = 0x48;
constexpr uint8_t kRexOfAddress = 3;     // X and B of a REX prefix
constexpr uint8_t kVexOfAddress = 0x60;  // the same, inverted, in the second byte of VEX and EVEX

bool is_left_out(uint8_t prefix) {
  switch (prefix) {
    case 0x26:
    case 0x2e:
    case 0x36:
    case 0x3e:
    case 0x64:
    case 0x65:  // segments
    case 0x67:  // address size
    case 0xf0:  // lock
      return true;
    default:
      return false;
  }
}
bool is_rex(uint8_t prefix) { return (prefix & 0xf0) == 0x40; }

class Writer {
 public:
  explicit Writer(Rewritten& to) : to_(to) {}
  void put(uint8_t byte) {
    if (to_.length == sizeof to_.bytes)
      too_long_ = true;
    else
      to_.bytes[to_.length++] = byte;
  }
  // In the form "without SIB byte and displacement".
  void put_modrm(uint8_t reg) { put(static_cast<uint8_t>(reg << 3 | to_.pointer)); }
  bool is_too_long() const { return too_long_; }

 private:
  Rewritten& to_;
  bool too_long_ = false;
};

// A REX prefix counts only as the last one.
void put_prefixes(const Instruction& from, Writer& to) {
  const uint8_t count = from.info.raw.prefix_count;
  for (uint8_t i = 0; i < count; ++i) {
    uint8_t prefix = from.bytes[i];
    if (is_left_out(prefix)) continue;
    if (is_rex(prefix)) {
      if (i + 1 != count) continue;
      prefix &= static_cast<uint8_t>(~kRexOfAddress);
    }
    to.put(prefix);
  }
}

// VEX and EVEX, if there are, and the opcode.
void put_opcode(const Instruction& from, Writer& to) {
  const uint8_t begin = from.info.raw.prefix_count;
  const uint8_t lead = from.bytes[begin];
  const bool has_address_bits = from.info.encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY &&
                                from.info.encoding != ZYDIS_INSTRUCTION_ENCODING_3DNOW && lead != 0xc5;
  for (uint8_t i = begin; i < from.info.raw.modrm.offset; ++i) {
    uint8_t byte = from.bytes[i];
    if (i == begin + 1 && has_address_bits) byte |= kVexOfAddress;
    to.put(byte);
  }
}

// What follows the place of the operand: immediates, and the opcode of 3DNow!.
void put_tail(const Instruction& from, Writer& to) {
  const auto& raw = from.info.raw;
  uint8_t begin = static_cast<uint8_t>(raw.modrm.offset + 1 + raw.disp.size / 8);
  if (from.has(ZYDIS_ATTRIB_HAS_SIB)) ++begin;
  for (uint8_t i = begin; i < from.info.length; ++i) to.put(from.bytes[i]);
}

// `mov` of rax with an address of 8 bytes has no ModRM byte: the general form of mov takes its place.
void put_mov_of_absolute(const Instruction& from, Writer& to) {
  const bool is_load = (from.info.opcode & 2) == 0;
  to.put(static_cast<uint8_t>(0x88 | (from.info.opcode & 1) | (is_load ? 2 : 0)));
  to.put_modrm(kRax);
}
bool is_mov_of_absolute(const Instruction& from) {
  return from.info.encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY && from.info.opcode_map == ZYDIS_OPCODE_MAP_DEFAULT &&
         (from.info.opcode & 0xfc) == 0xa0;
}

// One of those that need neither a REX prefix nor a displacement to be pointed with.
bool choose_pointer(const Instruction& from, Rewritten* to) {
  for (uint8_t candidate : {kRdi, kRsi, kRbx}) {
    if (uses_register(from, candidate)) continue;
    to->pointer = candidate;
    return true;
  }
  return false;
}

bool is_rsp_in_modrm(const ZydisDecodedOperand& o) {
  return o.type == ZYDIS_OPERAND_TYPE_REGISTER && o.encoding == ZYDIS_OPERAND_ENCODING_MODRM_REG &&
         general_number(o.reg.value) == kRsp;
}

// False: rsp is used in a way in which no other register can take its place.
bool replace_rsp(const Instruction& from, Rewritten* to) {
  bool elsewhere = false;
  for (uint8_t i = 0; i < from.info.operand_count; ++i) {
    const ZydisDecodedOperand& o = from.operands[i];
    if (is_rsp_in_modrm(o))
      to->rbp_is_rsp = true;
    else if (o.type == ZYDIS_OPERAND_TYPE_REGISTER && general_number(o.reg.value) == kRsp)
      elsewhere = true;
  }
  return !elsewhere && !(to->rbp_is_rsp && uses_register(from, kRbp));
}

}  // namespace

const char* rewrite(const Instruction& from, Rewritten* to) {
  *to = {};
  if (!choose_pointer(from, to)) return "it leaves no register free";
  if (!replace_rsp(from, to)) return "it works on the stack pointer";
  Writer writer(*to);
  put_prefixes(from, writer);
  if (is_mov_of_absolute(from)) {
    put_mov_of_absolute(from, writer);
  } else if (from.has(ZYDIS_ATTRIB_HAS_MODRM)) {
    put_opcode(from, writer);
    writer.put_modrm(to->rbp_is_rsp ? uint8_t{kRbp} : from.info.raw.modrm.reg);
    put_tail(from, writer);
  } else {
    return "the place of its operand is part of its code";
  }
  return writer.is_too_long() ? "it is too long" : nullptr;
}

Rewritten write_with_rax(WithRax what, uint32_t bytes) {
  Rewritten to;
  Writer writer(to);
  if (bytes == 2) writer.put(kOperandSize);
  if (bytes == 8) writer.put(kRexW);
  writer.put(static_cast<uint8_t>(static_cast<uint8_t>(what) | (bytes > 1 ? 1 : 0)));
  writer.put_modrm(kRax);
  return to;
}

}  // namespace ub::aperture
