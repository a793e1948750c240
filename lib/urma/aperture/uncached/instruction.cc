// SPDX-License-Identifier: Apache-2.0
#include "lib/urma/aperture/uncached/instruction.h"

#include <algorithm>
#include <cstring>

namespace ub::aperture {
namespace {

constexpr size_t kPageBytes = 4096;

ZyanStatus decode_bytes(size_t count, Instruction* out) {
  std::memcpy(out->bytes, reinterpret_cast<const void*>(out->address), count);
  ZydisDecoder decoder;
  ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  return ZydisDecoderDecodeFull(&decoder, out->bytes, count, &out->info, out->operands);
}

uint64_t value_in_address(const Instruction& instruction, ZydisRegister name, const MachineState& state) {
  if (name == ZYDIS_REGISTER_NONE) return 0;
  if (name == ZYDIS_REGISTER_RIP || name == ZYDIS_REGISTER_EIP) return instruction.next();
  return state.general[general_number(name)];
}

}  // namespace

// The page behind the instruction may not be there, so it is read only if the instruction goes on in it.
bool decode(uint64_t address, Instruction* out) {
  out->address = address;
  const size_t in_page = std::min(kPageBytes - address % kPageBytes, sizeof out->bytes);
  ZyanStatus status = decode_bytes(in_page, out);
  if (status == ZYDIS_STATUS_NO_MORE_DATA && in_page < sizeof out->bytes) status = decode_bytes(sizeof out->bytes, out);
  return ZYAN_SUCCESS(status);
}

void write_text(const Instruction& instruction, char* to, size_t room) {
  ZydisFormatter formatter;
  ZydisFormatterInit(&formatter, ZYDIS_FORMATTER_STYLE_INTEL);
  const auto status =
      ZydisFormatterFormatInstruction(&formatter, &instruction.info, instruction.operands,
                                      instruction.info.operand_count_visible, to, room, instruction.address, nullptr);
  if (!ZYAN_SUCCESS(status)) *to = '\0';
}

int general_number(ZydisRegister name) {
  const ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, name);
  if (ZydisRegisterGetClass(whole) != ZYDIS_REGCLASS_GPR64) return -1;
  return ZydisRegisterGetId(whole);
}

bool uses_register(const Instruction& instruction, int number) {
  return std::any_of(instruction.operands, instruction.operands + instruction.info.operand_count, [&](const auto& o) {
    return o.type == ZYDIS_OPERAND_TYPE_REGISTER && general_number(o.reg.value) == number;
  });
}

uint64_t address_of(const Instruction& instruction, const ZydisDecodedOperand& operand, const MachineState& state) {
  const ZydisDecodedOperandMem& memory = operand.mem;
  uint64_t address = value_in_address(instruction, memory.base, state) +
                     value_in_address(instruction, memory.index, state) * memory.scale +
                     static_cast<uint64_t>(memory.disp.value);
  if (instruction.info.address_width == 32) address = static_cast<uint32_t>(address);
  if (memory.segment == ZYDIS_REGISTER_FS) address += fs_base();
  if (memory.segment == ZYDIS_REGISTER_GS) address += gs_base();
  return address;
}

bool is_string_instruction(const Instruction& instruction) {
  if (instruction.info.encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY) return false;
  if (instruction.info.opcode_map != ZYDIS_OPCODE_MAP_DEFAULT) return false;
  const uint8_t opcode = instruction.info.opcode;
  return (opcode >= 0xa4 && opcode <= 0xa7) || (opcode >= 0xaa && opcode <= 0xaf);
}

}  // namespace ub::aperture
