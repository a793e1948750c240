// SPDX-License-Identifier: Apache-2.0
//
// An instruction that fails leaves no trace, so that it can be made again, or be left to the program: whatever it would
// have done to registers, to x87 and to the stack.
#include <gtest/gtest.h>

#include "arena.h"

namespace ub::aperture::test {
namespace {

using Code = std::vector<uint8_t>;
constexpr int kRcx = 1, kRbx = 3, kRsp = 4, kRsi = 6, kRdi = 7;

struct Form {
  const char* text;
  Code code;
  bool loads, stores, is_atomic;
};

const Form kForms[] = {
    {"mov rax, [rbx]", {0x48, 0x8b, 0x03}, true, false, false},
    {"mov [rbx], rax", {0x48, 0x89, 0x03}, false, true, false},
    {"add [rbx], rax", {0x48, 0x01, 0x03}, true, true, false},
    {"xadd [rbx], rax", {0x48, 0x0f, 0xc1, 0x03}, true, true, false},
    {"cmpxchg [rbx], rcx", {0x48, 0x0f, 0xb1, 0x0b}, true, true, false},
    {"cmpxchg16b [rbx]", {0x48, 0x0f, 0xc7, 0x0b}, true, true, false},
    {"bts [rbx], ecx", {0x0f, 0xab, 0x0b}, true, true, false},
    {"push [rbx]", {0xff, 0x33}, true, false, false},
    {"pop [rbx]", {0x8f, 0x03}, false, true, false},
    {"fld [rbx]", {0xdb, 0x2b}, true, false, false},
    {"fstp [rbx]", {0xdb, 0x3b}, false, true, false},
    {"fisttp [rbx]", {0xdd, 0x0b}, false, true, false},
    {"fnstsw [rbx]", {0xdd, 0x3b}, false, true, false},
    {"movq [rbx], mm0", {0x0f, 0x7f, 0x03}, false, true, false},
    {"vcvtps2ph [rbx], xmm0, 4", {0xc4, 0xe3, 0x79, 0x1d, 0x03, 0x04}, false, true, false},
    {"addps xmm0, [rbx]", {0x0f, 0x58, 0x03}, true, false, false},
    {"vmovdqu [rbx], ymm0", {0xc5, 0xfe, 0x7f, 0x03}, false, true, false},
    {"mov rsp, [rbx]", {0x48, 0x8b, 0x23}, true, false, false},
    {"movsq", {0x48, 0xa5}, true, true, false},
    {"lock add [rbx], eax", {0xf0, 0x01, 0x03}, false, false, true},
    {"lock xadd [rbx], rax", {0xf0, 0x48, 0x0f, 0xc1, 0x03}, false, false, true},
    {"lock cmpxchg [rbx], ecx", {0xf0, 0x0f, 0xb1, 0x0b}, false, false, true},
    {"lock neg word [rbx]", {0xf0, 0x66, 0xf7, 0x1b}, true, false, true},
    {"xchg [rbx], al", {0x86, 0x03}, true, false, true},
    {"lock bts [rbx], rcx", {0xf0, 0x48, 0x0f, 0xab, 0x0b}, false, false, true},
};

class Failing : public testing::Test {
 protected:
  void fail_next(int what) {
    FakePath& path = arena_.path();
    path.failing_loads = what == 0 ? 1 : 0;
    path.failing_stores = what == 1 ? 1 : 0;
    path.failing_fences = what == 2 ? 1 : 0;
    path.failing_atomics = what == 3 ? 1 : 0;
  }
  Cpu state() {
    Cpu cpu = random_cpu(random_);
    cpu.general[kRsp] = arena_.stack_top();
    cpu.general[kRbx] = cpu.general[kRsi] = arena_.start() + 4096;
    cpu.general[kRdi] = arena_.start() + 8192;
    cpu.general[kRcx] %= 64;
    return cpu;
  }
  std::mt19937_64 random_{99};
  Arena arena_;
};

class Retry : public Failing, public testing::WithParamInterface<Form> {};

TEST_P(Retry, LeavesNoTraceAndCanBeMadeAgain) {
  const Form& form = GetParam();
  const bool fails_at[] = {form.loads, form.stores, form.stores, form.is_atomic};
  int failures = 0;
  for (int what = 0; what < 4; ++what) {
    if (!fails_at[what]) continue;
    for (int round = 0; round < 5; ++round) {
      arena_.fill(random_);
      const uint64_t low = random_() >> 20;  // what becomes the stack pointer is an address
      std::memcpy(arena_.contents() + 4096, &low, sizeof low);
      const Cpu before = [&] {
        Cpu cpu = state();
        cpu.ip = arena_.put_code(form.code);
        return cpu;
      }();
      Cpu expected = before;
      ASSERT_EQ(arena_.run_on_memory(&expected).signal, SIGTRAP);

      Cpu at_fault = before;
      ASSERT_EQ(arena_.run_on_nothing(&at_fault, {kRbx, kRsi, kRdi}).signal, SIGSEGV);
      Cpu refused = before;
      fail_next(what);
      const Stop stop = arena_.run_on_window(&refused);
      EXPECT_EQ(stop.signal, SIGSEGV);
      EXPECT_EQ(arena_.cause(), URMA_CR_REM_ACCESS_ABORT_ERR);
      EXPECT_EQ(refused.ip, before.ip);
      EXPECT_EQ(difference(at_fault, refused), "");
      EXPECT_EQ(std::memcmp(arena_.contents(), arena_.remote(), Arena::kBytes), 0);
      EXPECT_FALSE(arena_.path().in_use.load());

      Cpu again = before;
      fail_next(what);
      arena_.retry(1);
      EXPECT_EQ(arena_.run_on_window(&again).signal, SIGTRAP);
      EXPECT_EQ(again.ip, expected.ip);
      EXPECT_EQ(difference(expected, again), "");
      EXPECT_EQ(arena_.first_difference(), -1);
      ++failures;
    }
  }
  EXPECT_GT(failures, 0);
}

INSTANTIATE_TEST_SUITE_P(, Retry, testing::ValuesIn(kForms));

// A string instruction says in its registers how far it came, and goes on from there.
TEST_F(Failing, AStringGoesOnWhereItFailed) {
  for (const Code& code : {Code{0xf3, 0xa4}, Code{0xf3, 0xaa}, Code{0xf3, 0x48, 0xa5}}) {
    for (const bool backward : {false, true}) {
      arena_.fill(random_);
      Cpu before = state();
      before.flags = (before.flags & ~uint64_t{0x400}) | (backward ? 0x400 : 0);
      before.general[kRcx] = code.size() == 3 ? 200 : 1600;
      before.general[kRsi] += 1000;
      before.general[kRdi] += 2000;
      before.ip = arena_.put_code(code);
      Cpu expected = before;
      ASSERT_EQ(arena_.run_on_memory(&expected).signal, SIGTRAP);
      for (const int what : {1, 2}) {
        static FakePath* path;
        static int countdown, kind;
        path = &arena_.path();
        kind = what;
        countdown = 7;  // in the third piece
        path->inside = [] {
          if (--countdown == 0) (kind == 1 ? path->failing_stores : path->failing_fences) = 1;
        };
        Cpu stopped = before;
        EXPECT_EQ(arena_.run_on_window(&stopped).signal, SIGSEGV);
        EXPECT_EQ(stopped.ip, before.ip);
        const uint64_t done = before.general[kRcx] - stopped.general[kRcx];
        EXPECT_GT(done, 0u);
        EXPECT_LT(done, before.general[kRcx]);
        const int64_t bytes = static_cast<int64_t>(done) * (code.size() == 3 ? 8 : 1) * (backward ? -1 : 1);
        EXPECT_EQ(static_cast<int64_t>(stopped.general[kRdi] - before.general[kRdi]), bytes);
        path->inside = nullptr;
        path->failing_stores = path->failing_fences = 0;
        // The program makes it again from its registers.
        EXPECT_EQ(arena_.go_on(&stopped).signal, SIGTRAP);
        EXPECT_EQ(difference(expected, stopped), "");
        EXPECT_EQ(arena_.first_difference(), -1);
      }
    }
  }
}

}  // namespace
}  // namespace ub::aperture::test
