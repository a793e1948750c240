// SPDX-License-Identifier: Apache-2.0
//
// Every instruction with one memory operand that there is: all opcodes of all maps, with the prefixes that make others
// of them, in the legacy, VEX and EVEX encodings. Each runs on ordinary memory and on a window from the same random
// state; registers, flags, vectors and memory must be the same afterwards. What the CPU does not have, or what faults
// for another reason, is left out. What a window does not support must be told, with its text, and is pinned here.
// SOFTUB_INSTRUCTION_STATES=n: that many states for each encoding.
#include <Zydis/Zydis.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>
#include <set>
#include <span>

#include "arena.h"

namespace ub::aperture::test {
namespace {

constexpr int kRsp = 4;

// Instructions that windows do not support; on memory they are not tried.
const std::set<std::string> kUnsupported = {"fnsave",
                                            "frstor",
                                            "fxsave",
                                            "fxsave64",
                                            "fxrstor",
                                            "fxrstor64",
                                            "xsave",
                                            "xsave64",
                                            "xsavec",
                                            "xsavec64",
                                            "xsaveopt",
                                            "xsaveopt64",
                                            "xrstor",
                                            "xrstor64",
                                            "xsaves",
                                            "xsaves64",
                                            "xrstors",
                                            "xrstors64",
                                            "sgdt",
                                            "sidt",
                                            "sldt",
                                            "smsw",
                                            "str",
                                            "lfs",
                                            "lgs",
                                            "lss",
                                            "aesdec128kl",
                                            "aesdec256kl",
                                            "aesdecwide128kl",
                                            "aesdecwide256kl",
                                            "aesenc128kl",
                                            "aesenc256kl",
                                            "aesencwide128kl",
                                            "aesencwide256kl"};

// They touch no memory, or are no instructions.
const std::set<std::string> kHints = {
    "nop", "prefetch", "prefetchnta", "prefetcht0", "prefetcht1", "prefetcht2", "prefetchw", "prefetchwt1", "ud0",
    "ud1", "bndldx",   "bndstx",      "bndmov",     "bndcl",      "bndcn",      "bndcu",     "bndmk",       "cldemote"};

// They trap, and there is nothing for them to do.
const std::set<std::string> kFlushes = {"clflush", "clflushopt", "clwb"};

struct Encoding {
  std::vector<uint8_t> bytes;
  int base;
  int32_t displacement;
};

// The memory operand: a base register with a displacement of 32 bits.
void put_place(int reg, const Encoding& encoding, std::vector<uint8_t>* to) {
  to->push_back(static_cast<uint8_t>(0x80 | (reg & 7) << 3 | (encoding.base & 7)));
  if ((encoding.base & 7) == kRsp) to->push_back(0x24);
  for (int shift = 0; shift < 32; shift += 8) to->push_back(static_cast<uint8_t>(encoding.displacement >> shift));
}

class EveryInstruction : public testing::Test {
 protected:
  struct Decoded {
    ZydisDecodedInstruction info;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    const ZydisDecodedOperand* memory = nullptr;
    std::string name;
  };

  EveryInstruction() {
    ZydisDecoderInit(&decoder_, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    if (const char* states = std::getenv("SOFTUB_INSTRUCTION_STATES")) states_ = std::atoi(states);
    void* at = ::mmap(nullptr, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    guard_ = reinterpret_cast<uint64_t>(at) + 2 * 4096;
    ::mprotect(reinterpret_cast<void*>(guard_), 4096, PROT_NONE);
  }
  ~EveryInstruction() override {
    std::cout << encodings_ << " encodings, " << compared_.size() << " instructions, " << same_ << " states; "
              << left_out_ << " states left out, " << absent().size() << " instructions that this CPU does not have\n";
    if (std::getenv("SOFTUB_INSTRUCTION_NAMES")) {
      for (const auto& name : absent()) std::cout << "absent " << name << "\n";
      for (const auto& [name, why] : refused_) std::cout << "refused " << name << ": " << why << "\n";
    }
  }

  std::set<std::string> absent() const {
    std::set<std::string> names;
    std::set_difference(tried_.begin(), tried_.end(), compared_.begin(), compared_.end(),
                        std::inserter(names, names.end()));
    for (const auto& [name, why] : refused_) names.erase(name);
    return names;
  }

  Encoding begin() {
    Encoding encoding;
    do encoding.base = static_cast<int>(random_() % 16);
    while (encoding.base == kRsp);
    encoding.displacement = static_cast<int32_t>(random_());
    return encoding;
  }
  void put_immediate(Encoding* encoding) {
    for (int i = 0; i < 8; ++i) encoding->bytes.push_back(static_cast<uint8_t>(random_()));
  }

  // False: not an instruction with one visible memory operand and no other.
  bool decode(Encoding* encoding, Decoded* decoded) {
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder_, encoding->bytes.data(), encoding->bytes.size(), &decoded->info,
                                             decoded->operands)))
      return false;
    encoding->bytes.resize(decoded->info.length);
    decoded->memory = nullptr;
    for (int i = 0; i < decoded->info.operand_count; ++i) {
      const ZydisDecodedOperand& o = decoded->operands[i];
      if (o.type != ZYDIS_OPERAND_TYPE_MEMORY) continue;
      if (decoded->memory != nullptr || o.visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN) return false;
      decoded->memory = &o;
    }
    decoded->name = ZydisMnemonicGetString(decoded->info.mnemonic);
    return decoded->memory != nullptr && decoded->memory->mem.type != ZYDIS_MEMOP_TYPE_AGEN &&
           !kHints.contains(decoded->name) && decoded->info.meta.branch_type == ZYDIS_BRANCH_TYPE_NONE &&
           (decoded->info.attributes & ZYDIS_ATTRIB_IS_PRIVILEGED) == 0;
  }

  static bool is_locked(const Decoded& d) {
    return (d.info.attributes & ZYDIS_ATTRIB_HAS_LOCK) != 0 || d.info.mnemonic == ZYDIS_MNEMONIC_XCHG;
  }
  static bool is_unsupported(const Decoded& d) {
    return kUnsupported.contains(d.name) || d.memory->mem.type == ZYDIS_MEMOP_TYPE_VSIB ||
           (d.info.mnemonic == ZYDIS_MNEMONIC_CMPXCHG16B && is_locked(d)) || has_rsp_in_vex(d);
  }
  // No compiler has the stack pointer in an instruction of BMI, except maybe as its result.
  static bool has_rsp_in_vex(const Decoded& d) {
    bool rsp = false, rsp_in_modrm = false, rbp = false;
    for (int i = 0; i < d.info.operand_count_visible; ++i) {
      if (d.operands[i].type != ZYDIS_OPERAND_TYPE_REGISTER) continue;
      const auto whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, d.operands[i].reg.value);
      const bool in_modrm = d.operands[i].encoding == ZYDIS_OPERAND_ENCODING_MODRM_REG;
      if (whole == ZYDIS_REGISTER_RSP) (in_modrm ? rsp_in_modrm : rsp) = true;
      if (whole == ZYDIS_REGISTER_RBP) rbp = true;
    }
    return rsp || (rsp_in_modrm && rbp);
  }
  static bool is_masked(const Decoded& d) {
    return d.info.avx.mask.mode > ZYDIS_MASK_MODE_DISABLED || d.name.find("maskmov") != std::string::npos;
  }

  uint64_t choose_offset(const Decoded& d) {
    uint64_t offset = 4096 + random_() % 8192;
    if (is_locked(d)) return offset & ~uint64_t{15};
    if (random_() % 2 == 0) offset &= ~uint64_t{63};
    return offset;
  }

  // Values with which the instruction does something that is of interest.
  void prepare(const Encoding& encoding, const Decoded& d, uint64_t offset, Cpu* cpu) {
    const auto operand_at = [&](size_t index) {
      uint64_t value;
      std::memcpy(&value, arena_.contents() + offset + 8 * index, 8);
      return value;
    };
    switch (d.info.mnemonic) {
      case ZYDIS_MNEMONIC_BT:
      case ZYDIS_MNEMONIC_BTC:
      case ZYDIS_MNEMONIC_BTR:
      case ZYDIS_MNEMONIC_BTS: {
        if (!bt_with_register(d)) break;
        const auto bit = static_cast<uint64_t>(static_cast<int64_t>(random_() % 60000) - 30000);
        const uint32_t bits = d.memory->size;
        uint64_t& value = cpu->general[bit_register(d)];
        value = bits == 64 ? bit : (value << bits) | (bit & ((uint64_t{1} << bits) - 1));
        break;
      }
      case ZYDIS_MNEMONIC_CMPXCHG:
      case ZYDIS_MNEMONIC_CMPXCHG8B:
      case ZYDIS_MNEMONIC_CMPXCHG16B:
        if (random_() % 2 == 0) break;
        cpu->general[0] = operand_at(0);
        cpu->general[2] = d.info.mnemonic == ZYDIS_MNEMONIC_CMPXCHG16B ? operand_at(1) : operand_at(0) >> 32;
        break;
      case ZYDIS_MNEMONIC_DIV:
      case ZYDIS_MNEMONIC_IDIV:
        cpu->general[2] = 0;
        if (d.memory->size == 8) cpu->general[0] &= 0xf;
        break;
      case ZYDIS_MNEMONIC_LDMXCSR:
      case ZYDIS_MNEMONIC_VLDMXCSR: {
        const auto value = static_cast<uint32_t>(random_() & 0xffbf);
        std::memcpy(arena_.contents() + offset, &value, sizeof value);
        break;
      }
      default:
        break;
    }
    if (d.memory->mem.type == ZYDIS_MEMOP_TYPE_VSIB) point_all_elements_at_base(d, cpu);
    // What becomes a stack pointer must be an address, as the kernel returns from no handler to another one.
    for (const ZydisDecodedOperand& o : d.operands) {
      if (o.type != ZYDIS_OPERAND_TYPE_REGISTER || o.reg.value != ZYDIS_REGISTER_RSP) continue;
      const uint64_t value = operand_at(0) >> 20;
      std::memcpy(arena_.contents() + offset, &value, sizeof value);
    }
    cpu->general[encoding.base] = arena_.start() + offset - static_cast<uint64_t>(int64_t{encoding.displacement});
  }

  // All indices are 0 and all masks say yes.
  void point_all_elements_at_base(const Decoded& d, Cpu* cpu) {
    set_vectors(cpu, std::byte{0xff});
    clear_vector(cpu, ZydisRegisterGetId(d.memory->mem.index));
  }

  std::string text_of(const Encoding& encoding, const Decoded& d) {
    ZydisFormatter formatter;
    ZydisFormatterInit(&formatter, ZYDIS_FORMATTER_STYLE_INTEL);
    char text[128], byte[4];
    ZydisFormatterFormatInstruction(&formatter, &d.info, d.operands, d.info.operand_count_visible, text, sizeof text, 0,
                                    nullptr);
    std::string result = std::string(text) + " <";
    for (uint8_t b : encoding.bytes) {
      std::snprintf(byte, sizeof byte, " %02x", b);
      result += byte;
    }
    return result + " >";
  }

  void complain(const Encoding& encoding, const Decoded& d, const std::string& what) {
    if (++complaints_ <= 20) ADD_FAILURE() << text_of(encoding, d) << ": " << what;
  }

  void check(Encoding encoding) {
    Decoded d;
    put_immediate(&encoding);
    if (!decode(&encoding, &d)) return;
    ++encodings_;
    tried_.insert(d.name);
    const uint64_t code = arena_.put_code(encoding.bytes);
    arena_.fill(random_);
    bool measured = false;
    for (int i = 0; i < states_; ++i) {
      const uint64_t offset = choose_offset(d);
      Cpu cpu = random_cpu(random_);
      cpu.general[kRsp] = arena_.stack_top();
      prepare(encoding, d, offset, &cpu);
      cpu.ip = code;
      // Its bit is numbered by an address, so it lies anywhere in this process.
      if (bt_with_register(d) && bit_register(d) == encoding.base) {
        ++left_out_;
        continue;
      }
      if (compare(encoding, d, cpu) && !measured && !is_masked(d)) {
        measure(encoding, d, cpu, offset);
        measured = true;
      }
    }
  }

  // True: it ran on both.
  bool compare(const Encoding& encoding, const Decoded& d, const Cpu& cpu) {
    Cpu remote = cpu;
    if (is_unsupported(d)) {
      const Stop stop = arena_.run_on_window(&remote);
      if (arena_.refusal().find(d.name) != std::string::npos) {
        Cpu at_fault = cpu;
        arena_.run_on_nothing(&at_fault, {encoding.base});
        if (stop.signal != SIGSEGV || !difference(at_fault, remote).empty() || remote.ip != cpu.ip)
          complain(encoding, d, "refused, and registers are others: " + difference(at_fault, remote));
        refused_.emplace(d.name, arena_.refusal());
      } else if (stop.signal != SIGILL && !is_of_alignment(stop)) {
        complain(encoding, d, "not refused: " + arena_.refusal());
      }
      return false;
    }
    Cpu local = cpu;
    if (arena_.run_on_memory(&local).signal != SIGTRAP || local.general[kRsp] >> 47 != 0) {
      ++left_out_;
      return false;
    }
    const Stop stop = arena_.run_on_window(&remote);
    if (stop.signal != SIGTRAP) {
      complain(encoding, d,
               "signal " + std::to_string(stop.signal) + ", cause " + std::to_string(arena_.cause()) + " " +
                   arena_.refusal());
      return false;
    }
    compared_.insert(d.name);
    ++same_;
    if (remote.ip != local.ip) complain(encoding, d, "the program goes on at another place");
    if (const std::string what = difference(local, remote); !what.empty()) complain(encoding, d, what);
    if (const ptrdiff_t at = arena_.first_difference(); at >= 0)
      complain(encoding, d, "memory differs at " + std::to_string(at));
    if (arena_.path().has_unfenced()) complain(encoding, d, "a store was not fenced");
    return true;
  }

  // Were the remote accesses of the size that the instruction really has, and did it store if it writes?
  void measure(const Encoding& encoding, const Decoded& d, const Cpu& cpu, uint64_t offset) {
    uint64_t loaded = 0, stored = 0;
    bool by_atomic = false;
    for (const Noted& access : std::span(arena_.path().noted, arena_.path().noted_count)) {
      if (access.kind == Kind::kLoad) loaded += access.bytes;
      if (access.kind == Kind::kStore) stored += access.bytes;
      if (access.kind == Kind::kAtomic) by_atomic = true;
    }
    if (by_atomic != is_locked(d)) complain(encoding, d, by_atomic ? "an atomic" : "no atomic");
    if (loaded != 0 && stored != 0 && loaded != stored) complain(encoding, d, "loads and stores another size");
    if (bt_with_register(d)) return;

    const uint64_t bytes = std::max(loaded, stored);
    if (kFlushes.contains(d.name)) return;
    if (bytes == 0 && !by_atomic) return complain(encoding, d, "no access");
    const bool faults = run_before_guard(encoding, cpu, offset, 64, PROT_READ).signal == SIGSEGV;
    if (faults != (by_atomic || stored != 0)) complain(encoding, d, "writes, or does not");
    if (by_atomic) return;
    const Stop fits = run_before_guard(encoding, cpu, offset, bytes, PROT_READ | PROT_WRITE);
    if (fits.signal == SIGSEGV && !is_of_alignment(fits) && !is_narrow_movsxd(d))
      complain(encoding, d, "is larger than " + std::to_string(bytes));
    const Stop reaches = run_before_guard(encoding, cpu, offset, bytes - 1, PROT_READ | PROT_WRITE);
    if (!is_of_alignment(reaches) && (reaches.signal != SIGSEGV || reaches.address != guard_))
      complain(encoding, d, "is smaller than " + std::to_string(bytes));
  }
  // Some CPUs read two bytes more than they use.
  static bool is_narrow_movsxd(const Decoded& d) {
    return d.info.mnemonic == ZYDIS_MNEMONIC_MOVSXD && d.info.operand_width == 16;
  }
  static bool is_of_alignment(const Stop& stop) { return stop.signal == SIGSEGV && stop.address == 0; }

  // With the operand so many bytes before a page that must not be touched.
  Stop run_before_guard(const Encoding& encoding, const Cpu& from, uint64_t offset, uint64_t bytes, int protection) {
    const uint64_t at = guard_ - bytes;
    std::memcpy(reinterpret_cast<void*>(at), arena_.contents() + offset, std::min<uint64_t>(64, bytes));
    ::mprotect(reinterpret_cast<void*>(guard_ - 4096), 4096, protection);
    Cpu cpu = from;
    cpu.general[encoding.base] = at - static_cast<uint64_t>(int64_t{encoding.displacement});
    const Stop stop = run(&cpu);
    ::mprotect(reinterpret_cast<void*>(guard_ - 4096), 4096, PROT_READ | PROT_WRITE);
    return stop;
  }
  static bool bt_with_register(const Decoded& d) {
    return d.name.starts_with("bt") && d.operands[1].type == ZYDIS_OPERAND_TYPE_REGISTER;
  }
  static int bit_register(const Decoded& d) {
    return ZydisRegisterGetId(ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, d.operands[1].reg.value));
  }

  Arena arena_;
  std::mt19937_64 random_{20240613};
  int states_ = 2;
  ZydisDecoder decoder_;
  uint64_t guard_ = 0;
  uint64_t encodings_ = 0, same_ = 0, left_out_ = 0, complaints_ = 0;
  std::set<std::string> tried_, compared_;
  std::map<std::string, std::string> refused_;
};

bool is_prefix(int map, int opcode) {
  if (map != 0) return false;
  switch (opcode) {
    case 0x0f:
    case 0x26:
    case 0x2e:
    case 0x36:
    case 0x3e:
    case 0x62:
    case 0x64:
    case 0x65:
    case 0x66:
    case 0x67:
    case 0x8f:
    case 0xc4:
    case 0xc5:
    case 0xf0:
    case 0xf2:
    case 0xf3:
      return true;
    default:
      return opcode >= 0x40 && opcode <= 0x4f;
  }
}

TEST_F(EveryInstruction, Legacy) {
  const std::vector<std::vector<uint8_t>> maps = {{}, {0x0f}, {0x0f, 0x38}, {0x0f, 0x3a}};
  const std::vector<std::vector<uint8_t>> prefixes = {{}, {0x66}, {0xf2}, {0xf3}, {0x66, 0xf2}, {0xf0}, {0x66, 0xf0}};
  for (size_t map = 0; map < maps.size(); ++map) {
    for (int opcode = 0; opcode < 256; ++opcode) {
      if (is_prefix(static_cast<int>(map), opcode)) continue;
      for (const auto& prefix : prefixes) {
        for (int wide = 0; wide < 2; ++wide) {
          for (int reg = 0; reg < 8; ++reg) {
            Encoding encoding = begin();
            const bool far_reg = random_() % 2 != 0;
            uint8_t rex = static_cast<uint8_t>(0x40 | wide << 3 | (far_reg ? 4 : 0) | encoding.base >> 3);
            // Without a REX prefix 4 to 7 are ah to bh, with any they are spl to dil.
            const bool has_rex = rex != 0x40 || random_() % 2 == 0;
            encoding.bytes = prefix;
            if (has_rex) encoding.bytes.push_back(rex);
            encoding.bytes.insert(encoding.bytes.end(), maps[map].begin(), maps[map].end());
            encoding.bytes.push_back(static_cast<uint8_t>(opcode));
            put_place(reg, encoding, &encoding.bytes);
            check(encoding);
          }
        }
      }
    }
  }
}

TEST_F(EveryInstruction, Vex) {
  for (int map = 1; map <= 3; ++map) {
    for (int opcode = 0; opcode < 256; ++opcode) {
      for (int bits = 0; bits < 16; ++bits) {  // prefix, length, width
        for (int has_second : {0, 1}) {
          for (int round = 0; round < 4; ++round) {
            Encoding encoding = begin();
            const int reg = static_cast<int>(random_() % 16);
            const int second = has_second != 0 ? static_cast<int>(random_() % 16) : 0;
            const int inverted = ~second & 15;
            // Groups are told by the middle bits of ModRM.
            encoding.bytes = {
                0xc4, static_cast<uint8_t>((reg < 8 ? 0x80 : 0) | 0x40 | (encoding.base < 8 ? 0x20 : 0) | map),
                static_cast<uint8_t>((bits & 8) << 4 | inverted << 3 | (bits & 7)), static_cast<uint8_t>(opcode)};
            put_place(reg, encoding, &encoding.bytes);
            check(encoding);
            if (map != 1 || (bits & 8) != 0 || encoding.base >= 8) continue;
            Encoding two = encoding;  // the same in the short form
            two.bytes = {0xc5, static_cast<uint8_t>((reg < 8 ? 0x80 : 0) | inverted << 3 | (bits & 7)),
                         static_cast<uint8_t>(opcode)};
            put_place(reg, two, &two.bytes);
            if (round == 0) check(two);
          }
        }
      }
    }
  }
}

TEST_F(EveryInstruction, Evex) {
  for (int map : {1, 2, 3, 5, 6}) {
    for (int opcode = 0; opcode < 256; ++opcode) {
      for (int bits = 0; bits < 48; ++bits) {   // prefix, width, broadcast, length
        for (int mask = 0; mask < 3; ++mask) {  // none, merging, zeroing
          for (int has_second : {0, 1}) {
            Encoding encoding = begin();
            const int reg = static_cast<int>(random_() % 32);
            const int second = has_second != 0 ? static_cast<int>(random_() % 32) : 0;
            const int mask_register = mask == 0 ? 0 : static_cast<int>(1 + random_() % 7);
            encoding.bytes = {0x62,
                              static_cast<uint8_t>(((reg & 8) != 0 ? 0 : 0x80) | 0x40 | (encoding.base < 8 ? 0x20 : 0) |
                                                   ((reg & 16) != 0 ? 0 : 0x10) | map),
                              static_cast<uint8_t>((bits & 4) << 5 | (~second & 15) << 3 | 4 | (bits & 3)),
                              static_cast<uint8_t>((mask == 2 ? 0x80 : 0) | (bits >> 4) << 5 | (bits & 8) << 1 |
                                                   ((second & 16) != 0 ? 0 : 8) | mask_register),
                              static_cast<uint8_t>(opcode)};
            put_place(reg, encoding, &encoding.bytes);
            check(encoding);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace ub::aperture::test
