// SPDX-License-Identifier: Apache-2.0
//
// What every_instruction_test.cc cannot enumerate: forms of addresses, string instructions, those that use the stack,
// atomics that meet others, accesses that cross the ends of the window. On memory and on a window from the same state.
#include <asm/prctl.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "arena.h"

namespace ub::aperture::test {
namespace {

using Code = std::vector<uint8_t>;
constexpr int kRax = 0, kRcx = 1, kRbx = 3, kRsp = 4, kRbp = 5, kRsi = 6, kRdi = 7, kR8 = 8;

Code operator+(Code a, const Code& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
Code bytes_of(uint64_t value, int count) {
  Code code;
  for (int i = 0; i < count; ++i) code.push_back(static_cast<uint8_t>(value >> 8 * i));
  return code;
}
std::string text_of(const Code& code) {
  std::string text;
  char byte[4];
  for (uint8_t b : code) {
    std::snprintf(byte, sizeof byte, "%02x ", b);
    text += byte;
  }
  return text;
}

class Forms : public testing::Test {
 protected:
  Cpu state() {
    Cpu cpu = random_cpu(random_);
    cpu.general[kRsp] = arena_.stack_top();
    return cpu;
  }
  // Any place in the middle of the window.
  uint64_t offset() { return 4096 + random_() % 8192; }
  uint64_t at(uint64_t offset) const { return arena_.start() + offset; }

  // Runs on both and compares everything. False: it did not come to its end on memory.
  bool same(const Code& code, const Cpu& cpu, const std::string& what = "") {
    return same_at(arena_.put_code(code), cpu, what + " " + text_of(code));
  }
  bool same_at(uint64_t code, const Cpu& cpu, const std::string& what) {
    local_ = remote_ = cpu;
    local_.ip = remote_.ip = code;
    std::vector<std::byte> stack(arena_.stack(), arena_.stack() + Arena::kStackBytes);
    const Stop on_memory = arena_.run_on_memory(&local_);
    const std::vector<std::byte> stack_after(arena_.stack(), arena_.stack() + Arena::kStackBytes);
    std::memcpy(arena_.stack(), stack.data(), stack.size());
    const Stop on_window = arena_.run_on_window(&remote_);
    EXPECT_EQ(on_window.signal, on_memory.signal) << what << arena_.refusal();
    EXPECT_EQ(on_window.address, on_memory.address) << what;
    EXPECT_EQ(remote_.ip, local_.ip) << what;
    EXPECT_EQ(difference(local_, remote_), "") << what;
    EXPECT_EQ(arena_.first_difference(), -1) << what;
    EXPECT_EQ(arena_.around_differs(), "") << what;
    EXPECT_EQ(std::memcmp(stack_after.data() + stack_compared_from_, arena_.stack() + stack_compared_from_,
                          stack_after.size() - stack_compared_from_),
              0)
        << what << ": the stack";
    EXPECT_FALSE(arena_.path().has_unfenced()) << what;
    return on_memory.signal == SIGTRAP;
  }

  std::mt19937_64 random_{4711};
  Arena arena_;
  Cpu local_, remote_;
  size_t stack_compared_from_ = 0;
};

// ---- addresses ----

// `mov r8, [base + index * scale + displacement]` in each form that ModRM and SIB have.
TEST_F(Forms, BaseIndexScaleAndDisplacement) {
  arena_.fill(random_);
  for (int base = 0; base < 16; ++base) {
    for (int index = 0; index < 16; ++index) {
      for (int scale = 0; scale < 4; ++scale) {
        for (int mod = 0; mod < 3; ++mod) {
          const bool has_index = index != kRsp;
          const bool has_base = mod != 0 || (base & 7) != kRbp;
          if (!has_base) continue;  // below
          if (base == kRsp && has_index && index == kR8) continue;
          const auto rex = static_cast<uint8_t>(0x4c | (index >= 8 ? 2 : 0) | (base >= 8 ? 1 : 0));
          Code code = {rex, 0x8b, static_cast<uint8_t>(mod << 6 | kRsp),
                       static_cast<uint8_t>(scale << 6 | (index & 7) << 3 | (base & 7))};
          int64_t displacement = 0;
          if (mod == 1) displacement = static_cast<int8_t>(random_());
          if (mod == 2) displacement = static_cast<int32_t>(random_());
          code = code + bytes_of(static_cast<uint64_t>(displacement), mod == 0 ? 0 : mod == 1 ? 1 : 4);
          Cpu cpu = state();
          const uint64_t target = at(offset()) - static_cast<uint64_t>(displacement);
          if (has_index && index == base) {
            cpu.general[base] = target / ((1U << scale) + 1);
          } else {
            // A stack pointer has to be an address, as the kernel returns from no handler to another one.
            if (has_index) cpu.general[index] = base == kRsp ? random_() % 65536 : random_();
            cpu.general[base] = target - (has_index ? cpu.general[index] << scale : 0);
          }
          EXPECT_TRUE(same(code, cpu)) << text_of(code);
          if (HasFailure()) return;
        }
      }
    }
  }
}

TEST_F(Forms, IndexWithoutBase) {
  arena_.fill(random_);
  for (int scale = 0; scale < 4; ++scale) {
    Cpu cpu = state();
    const uint64_t target = (at(offset()) & ~uint64_t{7}) + 8;
    cpu.general[kRcx] = (target - 8) >> scale;
    EXPECT_TRUE(same(Code{0x48, 0x8b, 0x04, static_cast<uint8_t>(scale << 6 | kRcx << 3 | 5)} + bytes_of(8, 4), cpu));
  }
}

// Add and compare with an immediate behind the displacement, which moves the next instruction.
TEST_F(Forms, RelativeToTheInstruction) {
  arena_.fill(random_);
  for (const auto& [code, immediate] : std::vector<std::pair<Code, Code>>{{{0x48, 0x8b, 0x05}, {}},
                                                                          {{0x48, 0x83, 0x05}, {0x12}},
                                                                          {{0x66, 0x81, 0x3d}, {0x34, 0x12}},
                                                                          {{0xc5, 0xfe, 0x6f, 0x05}, {}},
                                                                          {{0x81, 0x05}, {1, 2, 3, 4}}}) {
    const uint64_t begin = arena_.put_code({});
    const uint64_t next = begin + code.size() + 4 + immediate.size();
    const auto distance = static_cast<int64_t>(at(offset()) - next);
    ASSERT_EQ(distance, static_cast<int32_t>(distance));
    EXPECT_TRUE(same(code + bytes_of(static_cast<uint64_t>(distance), 4) + immediate, state()));
  }
}

TEST_F(Forms, SegmentsFsAndGs) {
  arena_.fill(random_);
  uint64_t fs = 0, gs_before = 0;
  ::syscall(SYS_arch_prctl, ARCH_GET_FS, &fs);
  ::syscall(SYS_arch_prctl, ARCH_GET_GS, &gs_before);
  const uint64_t gs = 0x123456789;
  ::syscall(SYS_arch_prctl, ARCH_SET_GS, gs);
  for (const auto& [prefix, base] : {std::pair<uint8_t, uint64_t>{0x64, fs}, {0x65, gs}, {0x3e, 0}, {0x2e, 0}}) {
    Cpu cpu = state();
    cpu.general[kRcx] = at(offset()) - base;
    EXPECT_TRUE(same({prefix, 0x48, 0x8b, 0x01}, cpu, "load"));
    EXPECT_TRUE(same({prefix, 0x48, 0x01, 0x01}, cpu, "add"));
    cpu.general[kRsi] = at(4096) - base;
    cpu.general[kRdi] = at(8192);
    cpu.general[kRcx] = 100;
    EXPECT_TRUE(same({0xf3, prefix, 0xa5}, cpu, "rep movs"));
  }
  ::syscall(SYS_arch_prctl, ARCH_SET_GS, gs_before);
}

// A REX prefix before another one means nothing, also if the other one is left out of the copy.
TEST_F(Forms, RexThatIsNotTheLastPrefix) {
  arena_.fill(random_);
  for (const Code& code : {Code{0x48, 0x66, 0x01, 0x03}, Code{0x4f, 0x3e, 0x8b, 0x03}, Code{0x44, 0x2e, 0x88, 0x23}}) {
    Cpu cpu = state();
    cpu.general[kRbx] = at(offset());
    EXPECT_TRUE(same(code, cpu));
  }
}

TEST_F(Forms, MovOfAnAbsoluteAddress) {
  arena_.fill(random_);
  for (uint8_t opcode = 0xa0; opcode <= 0xa3; ++opcode)
    for (const Code& prefix : {Code{}, Code{0x66}, Code{0x48}})
      EXPECT_TRUE(same(prefix + Code{opcode} + bytes_of(at(offset()), 8), state()));
}

TEST_F(Forms, InstructionAtTheEndOfAPage) {
  arena_.fill(random_);
  for (size_t begin = 4096 - 7; begin <= 4096; ++begin) {
    Cpu cpu = state();
    cpu.general[kRbx] = at(offset()) - 0x1000;
    EXPECT_TRUE(same_at(arena_.put_code({0x48, 0x8b, 0x83, 0, 0x10, 0, 0}, begin), cpu, "crosses"));
  }
  // Behind it there is no page: that is where the program fails afterwards, and not before.
  Cpu cpu = state();
  cpu.general[kRbx] = at(offset());
  const uint64_t code = arena_.put_code({0x48, 0x01, 0x03}, 4096 - 3);
  ::mprotect(reinterpret_cast<void*>(code + 3), 4096, PROT_NONE);
  EXPECT_FALSE(same_at(code, cpu, "ends"));
  EXPECT_EQ(remote_.ip, code + 3);
  ::mprotect(reinterpret_cast<void*>(code + 3), 4096, PROT_READ | PROT_WRITE | PROT_EXEC);
}

// ---- lines and ends of the window ----

TEST_F(Forms, AnAccessAcrossALineIsTwo) {
  arena_.fill(random_);
  Cpu cpu = state();
  for (uint64_t before = 1; before < 32; ++before) {
    cpu.general[kRbx] = at(4096 + 64 - before);
    EXPECT_TRUE(same({0xc5, 0xfe, 0x6f, 0x03}, cpu, "vmovdqu ymm0, [rbx]"));
    const uint64_t place = Arena::kPlace + 4096 + 64 - before;
    EXPECT_EQ(arena_.path().accesses(),
              (std::vector<Noted>{{Kind::kLoad, place, static_cast<uint32_t>(before)},
                                  {Kind::kLoad, place + before, static_cast<uint32_t>(32 - before)}}));
    EXPECT_TRUE(same({0xc5, 0xfe, 0x7f, 0x03}, cpu, "vmovdqu [rbx], ymm0"));
    EXPECT_EQ(arena_.path().accesses(),
              (std::vector<Noted>{{Kind::kStore, place, static_cast<uint32_t>(before)},
                                  {Kind::kStore, place + before, static_cast<uint32_t>(32 - before)}}));
  }
}

TEST_F(Forms, AnAccessOfItsOwnSize) {
  arena_.fill(random_);
  const std::vector<std::pair<Code, std::vector<Noted>>> forms = {
      {{0x8a, 0x03}, {{Kind::kLoad, 0, 1}}},
      {{0x66, 0x8b, 0x03}, {{Kind::kLoad, 0, 2}}},
      {{0x8b, 0x03}, {{Kind::kLoad, 0, 4}}},
      {{0x48, 0x8b, 0x03}, {{Kind::kLoad, 0, 8}}},
      {{0x0f, 0xb7, 0x03}, {{Kind::kLoad, 0, 2}}},  // movzx eax, word
      {{0x88, 0x03}, {{Kind::kStore, 0, 1}}},
      {{0x48, 0xc7, 0x03, 1, 2, 3, 4}, {{Kind::kStore, 0, 8}}},  // mov qword, imm
      {{0x0f, 0x10, 0x03}, {{Kind::kLoad, 0, 16}}},
      {{0x0f, 0x29, 0x03}, {{Kind::kStore, 0, 16}}},
      {{0xdb, 0x2b}, {{Kind::kLoad, 0, 10}}},  // fld tbyte
      {{0x48, 0x01, 0x03}, {{Kind::kLoad, 0, 8}, {Kind::kStore, 0, 8}}},
      {{0xff, 0x03}, {{Kind::kLoad, 0, 4}, {Kind::kStore, 0, 4}}},  // inc dword
      {{0x48, 0x0f, 0x44, 0x03}, {{Kind::kLoad, 0, 8}}},            // cmove reads, whether or not
      {{0x0f, 0x94, 0x03}, {{Kind::kStore, 0, 1}}},                 // sete
      {{0xf0, 0x48, 0x01, 0x03}, {{Kind::kAtomic, 0, 8}}},
      {{0xf0, 0xff, 0x03}, {{Kind::kAtomic, 0, 4}}},
      {{0xf0, 0x0f, 0xba, 0x2b, 3}, {{Kind::kAtomic, 0, 4}}},  // lock bts
      {{0xf0, 0xf7, 0x13}, {{Kind::kAtomic, 0, 4}}},           // lock not
      {{0x87, 0x03}, {{Kind::kAtomic, 0, 4}}},
      {{0xf0, 0x0f, 0xb1, 0x0b}, {{Kind::kAtomic, 0, 4}}},                       // lock cmpxchg
      {{0xf0, 0x48, 0x0f, 0xc1, 0x03}, {{Kind::kAtomic, 0, 8}}},                 // lock xadd
      {{0xf0, 0xf7, 0x1b}, {{Kind::kLoad, 0, 4}, {Kind::kAtomic, 0, 4}}},        // lock neg: compare-and-swap
      {{0xf0, 0x00, 0x43, 0x03}, {{Kind::kLoad, 0, 4}, {Kind::kAtomic, 0, 4}}},  // lock add byte: the word around it
      {{0x0f, 0xae, 0x3b}, {}},                                                  // clflush
  };
  for (const auto& [code, accesses] : forms) {
    Cpu cpu = state();
    cpu.general[kRbx] = at(4096);
    EXPECT_TRUE(same(code, cpu));
    std::vector<Noted> expected = accesses;
    for (Noted& access : expected) access.at += Arena::kPlace + 4096;
    EXPECT_EQ(arena_.path().accesses(), expected) << text_of(code);
  }
}

// Loads, stores and both, some bytes of which lie before or behind the window in ordinary memory.
TEST_F(Forms, AccessesThatCrossTheEnds) {
  const std::vector<std::pair<Code, uint64_t>> forms = {{{0x48, 0x8b, 0x03}, 8},
                                                        {{0x48, 0x89, 0x03}, 8},
                                                        {{0x48, 0x01, 0x03}, 8},
                                                        {{0xc5, 0xfe, 0x6f, 0x03}, 32},
                                                        {{0xc5, 0xfe, 0x7f, 0x03}, 32},
                                                        {{0x0f, 0x58, 0x03}, 16},
                                                        {{0xdb, 0x3b}, 10},
                                                        {{0x66, 0xa5}, 2},
                                                        {{0x48, 0xa5}, 8}};
  for (const auto& [code, bytes] : forms) {
    for (uint64_t inside = 1; inside < bytes; ++inside) {
      for (uint64_t place : {at(0) - (bytes - inside), at(Arena::kBytes) - inside}) {
        arena_.fill(random_);
        Cpu cpu = state();
        cpu.general[kRbx] = cpu.general[kRdi] = place;
        cpu.general[kRsi] = at(4096);
        cpu.flags &= ~uint64_t{0x400};
        same(code, cpu, std::to_string(inside) + " bytes inside");
        std::swap(cpu.general[kRsi], cpu.general[kRdi]);
        same(code, cpu, std::to_string(inside) + " bytes inside");
      }
    }
  }
}

// ---- string instructions ----

struct StringForm {
  Code prefix;
  uint8_t opcode;  // of the form with bytes
};

TEST_F(Forms, Strings) {
  const std::vector<Code> repeats = {{}, {0xf3}, {0xf2}, {0xf2, 0xf3}, {0xf3, 0xf2}};
  const std::vector<std::pair<Code, uint64_t>> widths = {{{}, 1}, {{0x66}, 2}, {{}, 4}, {{0x48}, 8}};
  int finished = 0;
  for (uint8_t opcode : {0xa4, 0xa6, 0xaa, 0xac, 0xae}) {
    for (const Code& repeat : repeats) {
      for (const auto& [width, bytes] : widths) {
        for (int round = 0; round < 40; ++round) {
          arena_.fill(random_);
          // Memory that is often the same, so that comparisons go on for a while.
          const uint64_t source = 4096 + random_() % 2048;
          const uint64_t distance = random_() % 3 == 0 ? random_() % 24 : random_() % 1500;
          const uint64_t destination = random_() % 2 == 0 ? source + distance : source - distance;
          const uint64_t count = random_() % 3 == 0 ? random_() % 4 : random_() % 300;
          Cpu cpu = state();
          if (opcode == 0xa6 || opcode == 0xae) {
            std::memset(arena_.contents() + 4096 - 2048, 7, 8192);
            arena_.contents()[4096 + random_() % 4096] = std::byte{8};
            if (random_() % 2 == 0) cpu.general[kRax] = 0x0707070707070707;
          }
          cpu.general[kRsi] = at(source);
          cpu.general[kRdi] = at(destination);
          cpu.general[kRcx] = count;
          // Backwards it has to have room below.
          const bool backward = random_() % 2 == 0;
          cpu.flags = (cpu.flags & ~uint64_t{0x400}) | (backward ? 0x400 : 0);
          if (backward) {
            cpu.general[kRsi] += 4096;
            cpu.general[kRdi] += 4096;
          }
          // One of the two may lie in ordinary memory.
          const uint64_t elsewhere = arena_.stack_top() + 4096 + random_() % 64;
          if (round % 4 == 1 && opcode != 0xaa && opcode != 0xae) cpu.general[kRdi] = elsewhere;
          if (round % 4 == 2 && opcode != 0xac) cpu.general[kRsi] = elsewhere;
          const auto op = static_cast<uint8_t>(bytes == 1 ? opcode : opcode + 1);
          finished += same(repeat + width + Code{op}, cpu, std::to_string(count) + (backward ? " down" : " up"));
          if (HasFailure()) return;
        }
      }
    }
  }
  EXPECT_EQ(finished, 5 * 5 * 4 * 40);
}

// Out of the window into ordinary memory, and the other way round.
TEST_F(Forms, StringsThatLeaveTheWindow) {
  for (uint8_t opcode : {0xa4, 0xa5, 0xaa, 0xab}) {
    for (const bool wide : {false, true}) {
      for (int round = 0; round < 100; ++round) {
        arena_.fill(random_);
        Cpu cpu = state();
        const bool backward = round % 2 == 0;
        cpu.flags = (cpu.flags & ~uint64_t{0x400}) | (backward ? 0x400 : 0);
        const auto near_end = [&] {
          const uint64_t end = random_() % 2 == 0 ? 0 : Arena::kBytes;
          return at(end) + random_() % 1600 - 800;
        };
        cpu.general[kRdi] = near_end();
        cpu.general[kRsi] = round % 3 == 0 ? at(offset()) : near_end();
        cpu.general[kRcx] = random_() % 200;
        const Code code = wide ? Code{0xf3, 0x48, opcode} : Code{0xf3, opcode};
        EXPECT_TRUE(same(code, cpu));
        if (HasFailure()) return;
      }
    }
  }
}

// Where memory ends, the instruction stops with the registers that say how far it came.
TEST_F(Forms, StringIntoMemoryThatIsNotThere) {
  arena_.fill(random_);
  arena_.protect_around(PROT_NONE);
  Cpu cpu = state();
  cpu.flags &= ~uint64_t{0x400};
  cpu.general[kRdi] = at(Arena::kBytes) - 1000;
  cpu.general[kRcx] = 3000;
  EXPECT_FALSE(same({0xf3, 0xaa}, cpu, "rep stosb"));
  EXPECT_EQ(remote_.general[kRcx], 2000u);
  EXPECT_EQ(remote_.general[kRdi], at(Arena::kBytes));
  arena_.protect_around(PROT_READ | PROT_WRITE);
}

// ---- the stack ----

TEST_F(Forms, PushAndPop) {
  arena_.fill(random_);
  const std::vector<Code> forms = {{0xff, 0x33},       {0x66, 0xff, 0x33},       {0x8f, 0x03},
                                   {0x66, 0x8f, 0x03}, {0x48, 0xff, 0x73, 0x18}, {0x8f, 0x43, 0xf0}};
  for (const Code& code : forms) {
    Cpu cpu = state();
    cpu.general[kRbx] = at(offset());
    EXPECT_TRUE(same(code, cpu));
  }
}

// Addresses that count from the stack pointer, when the window is far from the stack.
TEST_F(Forms, PushAndPopRelativeToTheStackPointer) {
  arena_.fill(random_);
  for (const Code& code : {Code{0xff, 0x34, 0x0c}, Code{0x8f, 0x04, 0x0c}}) {  // [rsp + rcx]
    Cpu cpu = state();
    cpu.general[kRcx] = at(offset()) - cpu.general[kRsp];
    EXPECT_TRUE(same(code, cpu));
  }
}

TEST_F(Forms, CallAndJump) {
  for (const Code& code : {Code{0xff, 0x13}, Code{0xff, 0x23}, Code{0x48, 0xff, 0x13}, Code{0x3e, 0xff, 0x23}}) {
    arena_.fill(random_);
    const uint64_t target = arena_.put_code({}) + 2048;
    std::memcpy(arena_.contents() + 5000, &target, sizeof target);
    Cpu cpu = state();
    cpu.general[kRbx] = at(5000);
    EXPECT_TRUE(same(code, cpu));
    EXPECT_EQ(remote_.ip, target + 1);  // behind the `int3`
  }
}

// Without a signal stack the frame lies below the red zone of the program, which stays as it is.
TEST_F(Forms, TheRedZoneIsKept) {
  use_signal_stack(false);
  stack_compared_from_ = Arena::kStackBytes / 2 - 128;
  arena_.fill(random_);
  for (const Code& code : {Code{0x48, 0x01, 0x03}, Code{0xff, 0x33}, Code{0xc5, 0xfe, 0x6f, 0x03}, Code{0x48, 0xa5}}) {
    Cpu cpu = state();
    cpu.general[kRbx] = cpu.general[kRsi] = at(offset());
    cpu.general[kRdi] = at(offset());
    for (uint64_t i = 0; i < 128; i += 8) {
      const uint64_t value = random_();
      std::memcpy(reinterpret_cast<void*>(cpu.general[kRsp] - 128 + i), &value, 8);
    }
    EXPECT_TRUE(same(code, cpu));
  }
  use_signal_stack(true);
}

// ---- atomics ----

FakePath* g_path = nullptr;
std::byte* g_word = nullptr;
int g_changes = 0;

// Somebody else changes the word between the look at it and the compare-and-swap.
void change_word() {
  if (g_path->loads.load() == 0 || g_changes == 0) return;
  --g_changes;
  __atomic_fetch_add(reinterpret_cast<uint32_t*>(g_word), 0x01010101, __ATOMIC_SEQ_CST);
}

TEST_F(Forms, AtomicsThatMeetOthersTryAgain) {
  arena_.fill(random_);
  Cpu cpu = state();
  cpu.general[kRbx] = at(4096);
  cpu.general[kRax] = 0x55;
  const uint32_t before = 0x10203040;
  std::memcpy(arena_.contents() + 4096, &before, sizeof before);
  g_path = &arena_.path();
  g_word = arena_.remote() + 4096;
  for (const auto& [code, expected] :
       std::vector<std::pair<Code, uint32_t>>{{{0xf0, 0xf7, 0x1b}, 0U - 0x13233343U},  // lock neg dword
                                              {{0xf0, 0x00, 0x43, 0x01}, 0x13238843},  // lock add byte [rbx + 1], al
                                              {{0x86, 0x43, 0x03}, 0x55233343}}) {     // xchg byte [rbx + 3], al
    g_changes = 3;
    arena_.path().inside = change_word;
    Cpu after = cpu;
    after.ip = arena_.put_code(code);
    EXPECT_EQ(arena_.run_on_window(&after).signal, SIGTRAP);
    arena_.path().inside = nullptr;
    uint32_t word;
    std::memcpy(&word, g_word, sizeof word);
    EXPECT_EQ(word, expected) << std::hex << word << " " << text_of(code);
    EXPECT_EQ(arena_.path().atomics.load(), 4u);
  }
}

TEST_F(Forms, AtomicsThatAreNotAlignedButInOneWord) {
  for (int place = 0; place < 8; ++place) {
    for (const auto& [code, bytes] : std::vector<std::pair<Code, int>>{{{0xf0, 0x00, 0x03}, 1},
                                                                       {{0xf0, 0x66, 0x01, 0x03}, 2},
                                                                       {{0xf0, 0x01, 0x03}, 4},
                                                                       {{0xf0, 0x48, 0x01, 0x03}, 8},
                                                                       {{0xf0, 0x0f, 0xc0, 0x03}, 1},
                                                                       {{0x66, 0x87, 0x03}, 2}}) {
      arena_.fill(random_);
      Cpu cpu = state();
      cpu.general[kRbx] = at(4096 + static_cast<uint64_t>(place));
      if (place + bytes <= 8) {
        EXPECT_TRUE(same(code, cpu));
        continue;
      }
      remote_ = cpu;
      remote_.ip = arena_.put_code(code);
      EXPECT_EQ(arena_.run_on_window(&remote_).signal, SIGSEGV);
      EXPECT_NE(arena_.refusal().find("one aligned word"), std::string::npos) << arena_.refusal();
      EXPECT_EQ(difference(cpu, remote_), "");
    }
  }
}

// ---- masks ----

// What a mask leaves out may lie where no memory is.
TEST_F(Forms, MaskedMovesTouchOnlyWhatTheirMaskNames) {
  arena_.fill(random_);
  arena_.protect_around(PROT_NONE);
  int finished = 0;
  for (int round = 0; round < 400; ++round) {
    Cpu cpu = state();
    const bool at_end = round % 2 == 0;
    const uint64_t inside = random_() % 32;
    cpu.general[kRbx] = at_end ? at(Arena::kBytes) - inside : at(0) - 32 + inside;
    // The first or last elements of the mask, and some of these.
    std::array<uint32_t, 8> mask{};
    for (size_t i = 0; i < 8; ++i) {
      const bool is_inside = at_end ? 4 * i + 4 <= inside : 32 - 4 * i <= inside;
      mask[i] = is_inside && random_() % 3 != 0 ? 0x80000000U | static_cast<uint32_t>(random_()) : 0x7fffffffU;
    }
    set_ymm(&cpu, 1, mask.data());
    finished += same({0xc4, 0xe2, 0x75, 0x2c, 0x03}, cpu, "vmaskmovps ymm0, ymm1, [rbx]");
    finished += same({0xc4, 0xe2, 0x75, 0x8e, 0x03}, cpu, "vpmaskmovd [rbx], ymm1, ymm0");
    if (HasFailure()) break;
  }
  EXPECT_EQ(finished, 800);
  arena_.protect_around(PROT_READ | PROT_WRITE);
}

TEST_F(Forms, MaskedMovesOfAvx512TouchOnlyWhatTheirMaskNames) {
  if ((vector_parts_of(plain_cpu()) & 0xe0) != 0xe0) GTEST_SKIP() << "this CPU has no AVX-512";
  arena_.fill(random_);
  arena_.protect_around(PROT_NONE);
  for (int round = 0; round < 400; ++round) {
    Cpu cpu = state();
    const bool at_end = round % 2 == 0;
    const uint64_t inside = random_() % 64;
    cpu.general[kRbx] = at_end ? at(Arena::kBytes) - inside : at(0) - 64 + inside;
    uint64_t bytes = inside == 0 ? 0 : ~uint64_t{0} >> (64 - inside);
    if (!at_end) bytes = inside == 0 ? 0 : ~uint64_t{0} << (64 - inside);
    set_mask(&cpu, 1, bytes & (random_() | random_()));
    EXPECT_TRUE(same({0x62, 0xf1, 0x7f, 0x49, 0x6f, 0x03}, cpu, "vmovdqu8 zmm0 {k1}, [rbx]"));
    EXPECT_TRUE(same({0x62, 0xf1, 0x7f, 0xc9, 0x6f, 0x03}, cpu, "vmovdqu8 zmm0 {k1} {z}, [rbx]"));
    EXPECT_TRUE(same({0x62, 0xf1, 0x7f, 0x49, 0x7f, 0x03}, cpu, "vmovdqu8 [rbx] {k1}, zmm0"));
    if (HasFailure()) break;
  }
  arena_.protect_around(PROT_READ | PROT_WRITE);
}

// All elements, some of which lie in the window and some in ordinary memory.
TEST_F(Forms, MaskedMovesAcrossTheEnds) {
  if ((vector_parts_of(plain_cpu()) & 0xe0) != 0xe0) GTEST_SKIP() << "this CPU has no AVX-512";
  for (uint64_t inside = 1; inside < 64; ++inside) {
    for (const uint64_t place : {at(0) - (64 - inside), at(Arena::kBytes) - inside}) {
      arena_.fill(random_);
      Cpu cpu = state();
      cpu.general[kRbx] = place;
      set_mask(&cpu, 1, inside % 2 == 0 ? ~uint64_t{0} : random_());
      EXPECT_TRUE(same({0x62, 0xf1, 0x7f, 0x49, 0x6f, 0x03}, cpu, "vmovdqu8 zmm0 {k1}, [rbx]"));
      EXPECT_TRUE(same({0x62, 0xf1, 0x7f, 0x49, 0x7f, 0x03}, cpu, "vmovdqu8 [rbx] {k1}, zmm0"));
      // What a mask means for other instructions is not looked at.
      set_mask(&cpu, 1, ~uint64_t{0});  // so that an element in the window is among them
      Cpu refused = cpu;
      refused.ip = arena_.put_code({0x62, 0xf1, 0x7c, 0x49, 0x58, 0x03});
      EXPECT_EQ(arena_.run_on_window(&refused).signal, SIGSEGV);
      EXPECT_NE(arena_.refusal().find("vaddps zmm0 {k1}, zmm0, [rbx]: it has a mask"), std::string::npos)
          << arena_.refusal();
      EXPECT_EQ(difference(cpu, refused), "");
    }
  }
}

// Instructions whose operand is not told by their code alone, or is the stack.
TEST_F(Forms, OthersAreNamed) {
  arena_.fill(random_);
  for (const auto& [code, text] : std::vector<std::pair<Code, std::string>>{
           {{0x50}, "push rax: the place of its operand"},
           {{0xc3}, "ret: the place of its operand"},
           {{0x66, 0x0f, 0xf7, 0xc1}, "maskmovdqu xmm0, xmm1: the place of its operand"},
           {{0xd7}, "xlat: the place of its operand"},
           {{0xff, 0x1b}, "call far [rbx]: it is a far branch"},
           {{0x8e, 0x1b}, "mov ds, [rbx]: it works on special registers"},
           {{0x8e, 0x23}, "mov fs, [rbx]: it works on special registers"},
           {{0xf0, 0x48, 0x0f, 0xc7, 0x0b}, "lock cmpxchg16b [rbx]: a remote atomic concerns one aligned word"}}) {
    Cpu cpu = state();
    set_vectors(&cpu, std::byte{0xff});
    cpu.general[kRbx] = cpu.general[kRdi] = cpu.general[kRsp] = at(4096);
    Cpu refused = cpu;
    refused.ip = arena_.put_code(code);
    const uint64_t begin = refused.ip;
    EXPECT_EQ(arena_.run_on_window(&refused).signal, SIGSEGV);
    EXPECT_EQ(arena_.cause(), URMA_CR_UNSUPPORTED_OPCODE_ERR);
    EXPECT_NE(arena_.refusal().find(text), std::string::npos) << arena_.refusal() << ", not " << text;
    EXPECT_EQ(difference(cpu, refused), "");
    EXPECT_EQ(refused.ip, begin);
  }
}

}  // namespace
}  // namespace ub::aperture::test
