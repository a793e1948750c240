// SPDX-License-Identifier: Apache-2.0
#include "lib/urma/aperture/uncached/x86_operand.h"

#include <algorithm>
#include <bit>
#include <span>

namespace ub::aperture {
namespace {

std::span<const ZydisDecodedOperand> operands_of(const Instruction& instruction) {
  return {instruction.operands, instruction.info.operand_count};
}

uint64_t parts_of_register(const Instruction& instruction, ZydisRegister name) {
  const bool is_evex = instruction.info.encoding == ZYDIS_INSTRUCTION_ENCODING_EVEX;
  switch (ZydisRegisterGetClass(name)) {
    case ZYDIS_REGCLASS_X87:
    case ZYDIS_REGCLASS_MMX:
      return kX87Part;
    case ZYDIS_REGCLASS_XMM:
    case ZYDIS_REGCLASS_YMM:
      if (is_evex) return kAvx512Parts | kAvxPart | kSsePart;
      return instruction.info.encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY ? kSsePart : kAvxPart | kSsePart;
    case ZYDIS_REGCLASS_ZMM:
    case ZYDIS_REGCLASS_MASK:
      return kAvx512Parts | kAvxPart | kSsePart;
    default:
      break;
  }
  if (name == ZYDIS_REGISTER_MXCSR) return kSsePart;
  if (name == ZYDIS_REGISTER_X87CONTROL || name == ZYDIS_REGISTER_X87STATUS || name == ZYDIS_REGISTER_X87TAG)
    return kX87Part;
  return 0;
}

// Extensions whose instructions know general-purpose registers alone.
bool is_general_extension(ZydisISAExt extension) {
  switch (extension) {
    case ZYDIS_ISA_EXT_ADOX_ADCX:
    case ZYDIS_ISA_EXT_BASE:
    case ZYDIS_ISA_EXT_BMI1:
    case ZYDIS_ISA_EXT_BMI2:
    case ZYDIS_ISA_EXT_LONGMODE:
    case ZYDIS_ISA_EXT_LZCNT:
    case ZYDIS_ISA_EXT_MOVBE:
    case ZYDIS_ISA_EXT_MOVDIR:
    case ZYDIS_ISA_EXT_TBM:
      return true;
    default:
      return false;
  }
}

// General-purpose registers and flags, that is; code and segment registers may be read.
bool is_plain(const ZydisDecodedOperand& o) {
  if (o.type != ZYDIS_OPERAND_TYPE_REGISTER) return true;
  switch (ZydisRegisterGetClass(o.reg.value)) {
    case ZYDIS_REGCLASS_GPR8:
    case ZYDIS_REGCLASS_GPR16:
    case ZYDIS_REGCLASS_GPR32:
    case ZYDIS_REGCLASS_GPR64:
    case ZYDIS_REGCLASS_FLAGS:
    case ZYDIS_REGCLASS_IP:
      return true;
    case ZYDIS_REGCLASS_SEGMENT:
      return (o.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) == 0;
    default:
      return false;
  }
}

// Moves that touch only the elements which their mask names. Others may need elements of which the mask says nothing
// (shuffles), so they load their whole operand.
bool is_masked_move(ZydisMnemonic mnemonic) {
  switch (mnemonic) {
    case ZYDIS_MNEMONIC_VMOVAPD:
    case ZYDIS_MNEMONIC_VMOVAPS:
    case ZYDIS_MNEMONIC_VMOVDQA32:
    case ZYDIS_MNEMONIC_VMOVDQA64:
    case ZYDIS_MNEMONIC_VMOVDQU16:
    case ZYDIS_MNEMONIC_VMOVDQU32:
    case ZYDIS_MNEMONIC_VMOVDQU64:
    case ZYDIS_MNEMONIC_VMOVDQU8:
    case ZYDIS_MNEMONIC_VMOVSD:
    case ZYDIS_MNEMONIC_VMOVSH:
    case ZYDIS_MNEMONIC_VMOVSS:
    case ZYDIS_MNEMONIC_VMOVUPD:
    case ZYDIS_MNEMONIC_VMOVUPS:
      return true;
    default:
      return false;
  }
}

// They store the elements that the mask names one behind the other.
bool is_compression(ZydisMnemonic mnemonic) {
  switch (mnemonic) {
    case ZYDIS_MNEMONIC_VCOMPRESSPD:
    case ZYDIS_MNEMONIC_VCOMPRESSPS:
    case ZYDIS_MNEMONIC_VPCOMPRESSB:
    case ZYDIS_MNEMONIC_VPCOMPRESSD:
    case ZYDIS_MNEMONIC_VPCOMPRESSQ:
    case ZYDIS_MNEMONIC_VPCOMPRESSW:
      return true;
    default:
      return false;
  }
}

bool has_sign_mask(ZydisMnemonic mnemonic) {
  return mnemonic == ZYDIS_MNEMONIC_VMASKMOVPS || mnemonic == ZYDIS_MNEMONIC_VMASKMOVPD ||
         mnemonic == ZYDIS_MNEMONIC_VPMASKMOVD || mnemonic == ZYDIS_MNEMONIC_VPMASKMOVQ;
}

uint64_t enables_of_elements(uint64_t elements, uint32_t count, uint32_t bytes_each) {
  uint64_t enables = 0;
  for (uint32_t i = 0; i < count; ++i)
    if ((elements >> i & 1) != 0) enables |= low_bits(bytes_each) << i * bytes_each;
  return enables;
}

bool is_masked(const Instruction& instruction) {
  const ZydisMaskMode mode = instruction.info.avx.mask.mode;
  return mode != ZYDIS_MASK_MODE_INVALID && mode != ZYDIS_MASK_MODE_DISABLED;
}

// Does it access just the elements of its memory operand that a mask names?
bool is_by_element(const Instruction& instruction, const ZydisDecodedOperand& o) {
  const bool is_store = (o.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0;
  return has_sign_mask(instruction.info.mnemonic) ||
         (is_masked(instruction) && (is_store || is_masked_move(instruction.info.mnemonic)));
}

// The bytes of these elements.
uint64_t find_enables(const Instruction& instruction, const ZydisDecodedOperand& o, const MachineState& state) {
  const uint32_t count = std::max<uint32_t>(o.element_count, 1);
  const uint32_t bytes_each = o.size / 8U / count;
  if (has_sign_mask(instruction.info.mnemonic)) {
    const int mask = ZydisRegisterGetId(instruction.operands[1].reg.value);
    return enables_of_elements(sign_bits(state.vectors, mask, bytes_each, count), count, bytes_each);
  }
  const int mask = ZydisRegisterGetId(instruction.info.avx.mask.reg);
  const uint64_t elements = mask_register(state.vectors, mask) & low_bits(count);
  if (is_compression(instruction.info.mnemonic))
    return low_bits(static_cast<uint32_t>(std::popcount(elements)) * bytes_each);
  return enables_of_elements(elements, count, bytes_each);
}

// MOVSXD to a register of 16 bits uses as many of its operand, which the decoder calls one of 32 bits.
uint32_t bytes_of(const Instruction& instruction, const ZydisDecodedOperand& o) {
  const bool is_narrow = instruction.info.mnemonic == ZYDIS_MNEMONIC_MOVSXD && instruction.info.operand_width == 16;
  return is_narrow ? 2 : o.size / 8U;
}

bool is_visible_memory(const ZydisDecodedOperand& o) {
  return o.type == ZYDIS_OPERAND_TYPE_MEMORY && o.visibility != ZYDIS_OPERAND_VISIBILITY_HIDDEN;
}

// An operand that begins with the word which holds the bit.
void move_to_bit(const Instruction& instruction, const MachineState& state, Operand* operand) {
  const ZydisDecodedOperand* offset = bit_offset(instruction);
  if (offset == nullptr) return;
  const uint64_t bits = operand->bytes * 8U;
  const auto shift = static_cast<int>(64 - bits);
  const auto bit = static_cast<int64_t>(state.general[general_number(offset->reg.value)] << shift) >> shift;
  operand->address += static_cast<uint64_t>(bit >> std::countr_zero(bits)) * operand->bytes;
}

}  // namespace

const char* find_operand(const Instruction& instruction, const MachineState& state, const WindowMemory& memory,
                         Operand* operand) {
  const auto all = operands_of(instruction);
  const auto found = std::find_if(all.begin(), all.end(), is_visible_memory);
  if (found == all.end()) return "the place of its operand is part of its code";
  if (found->mem.type != ZYDIS_MEMOP_TYPE_MEM) return "it accesses many places at a time";
  *operand = {.address = address_of(instruction, *found, state),
              .bytes = bytes_of(instruction, *found),
              .is_read = (found->actions & ZYDIS_OPERAND_ACTION_MASK_READ) != 0,
              .is_written = (found->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0};
  if (operand->bytes == 0 || operand->bytes > kLineBytes) return "its operand has no fixed size, or more than 64 bytes";
  if (is_by_element(instruction, *found)) {
    operand->enables = find_enables(instruction, *found, state);
  } else if (is_masked(instruction) && !memory.contains(operand->address, operand->bytes)) {
    return "it has a mask, and a part of its operand lies outside of the window";
  }
  move_to_bit(instruction, state, operand);
  return nullptr;
}

// A conversion to a general-purpose register has no other register, and yet rounds and raises as MXCSR says.
uint64_t vector_parts(const Instruction& instruction) {
  uint64_t parts = is_general_extension(instruction.info.meta.isa_ext) ? 0 : kSsePart;
  for (const ZydisDecodedOperand& o : operands_of(instruction))
    if (o.type == ZYDIS_OPERAND_TYPE_REGISTER) parts |= parts_of_register(instruction, o.reg.value);
  return parts;
}

// A store changes none, except that x87 pops and counts, that MMX takes over x87, and that a conversion can be inexact.
bool changes_vectors(const Instruction& instruction, const Operand& operand) {
  const uint64_t parts = vector_parts(instruction);
  if (parts == 0) return false;
  return !operand.is_written || (parts & kX87Part) != 0 || instruction.info.mnemonic == ZYDIS_MNEMONIC_VCVTPS2PH;
}

const char* find_obstacle(const Instruction& instruction, const MachineState& state) {
  if (instruction.has(ZYDIS_ATTRIB_IS_PRIVILEGED)) return "it is privileged";
  if (instruction.info.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR) return "it is a far branch";
  for (const ZydisDecodedOperand& o : operands_of(instruction))
    if (!is_plain(o) && parts_of_register(instruction, o.reg.value) == 0) return "it works on special registers";
  const uint64_t saved = state.vectors.parts == 0 ? kX87Part | kSsePart : state.vectors.parts;
  if ((vector_parts(instruction) & ~saved) != 0) return "the kernel did not save the vector registers that it uses";
  return nullptr;
}

const ZydisDecodedOperand* bit_offset(const Instruction& instruction) {
  switch (instruction.info.mnemonic) {
    case ZYDIS_MNEMONIC_BT:
    case ZYDIS_MNEMONIC_BTC:
    case ZYDIS_MNEMONIC_BTR:
    case ZYDIS_MNEMONIC_BTS:
      break;
    default:
      return nullptr;
  }
  const ZydisDecodedOperand& offset = instruction.operands[1];
  return offset.type == ZYDIS_OPERAND_TYPE_REGISTER ? &offset : nullptr;
}

}  // namespace ub::aperture
