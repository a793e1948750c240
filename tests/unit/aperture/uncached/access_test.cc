// SPDX-License-Identifier: Apache-2.0
//
// Instructions carried out without a signal, on a window at an address that no kernel would give: registers of 32 bits
// in addresses, frames without AVX, a table of code that is full.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <thread>

#include "fake_path.h"
#include "lib/urma/aperture/uncached/access_paths.h"
#include "lib/urma/aperture/uncached/x86_access.h"

namespace ub::aperture::test {
namespace {

constexpr uint64_t kStart = 0x10000, kBytes = 0x4000;

class WithoutSignal : public testing::Test {
 protected:
  WithoutSignal() : memory_bytes_(kBytes), pool_(make_path()), memory_(kStart, kBytes, 0, false, pool_) {
    std::string error;
    code_ = CodeTable::open(&error);
    EXPECT_NE(code_, nullptr) << error;
    // x87 and MXCSR as they are when a program begins.
    const uint16_t control = 0x37f;
    const uint32_t mxcsr = 0x1f80;
    std::memcpy(area_, &control, sizeof control);
    std::memcpy(area_ + 24, &mxcsr, sizeof mxcsr);
    state_.vectors = {area_, 0};
    for (uint64_t i = 0; i < kBytes; ++i) memory_bytes_.data()[i] = static_cast<std::byte>(i * 7 + i / 256);
  }

  std::vector<std::unique_ptr<RemotePath>> make_path() {
    std::vector<std::unique_ptr<RemotePath>> paths;
    paths.push_back(std::make_unique<FakePath>(memory_bytes_));
    return paths;
  }
  Outcome carry_out_code(const std::vector<uint8_t>& code) {
    std::memcpy(program_, code.data(), code.size());
    state_.ip = reinterpret_cast<uint64_t>(program_);
    Instruction instruction;
    EXPECT_TRUE(decode(state_.ip, &instruction));
    const Outcome outcome = carry_out(instruction, &state_, memory_, *code_);
    if (outcome.ok()) {
      EXPECT_EQ(state_.ip, reinterpret_cast<uint64_t>(program_) + code.size());
    }
    return outcome;
  }
  uint64_t remote_word(uint64_t at) {
    uint64_t word;
    std::memcpy(&word, memory_bytes_.data() + at, sizeof word);
    return word;
  }

  FakeMemory memory_bytes_;
  AccessPaths pool_;
  WindowMemory memory_;
  CodeTable* code_ = nullptr;
  alignas(64) std::byte area_[4096] = {};
  uint8_t program_[64] = {};
  MachineState state_{};
};

TEST_F(WithoutSignal, AddressesOf32Bits) {
  state_.general[kRbx] = 0xdeadbeef00010000;
  state_.general[kRcx] = 0xffffffff00000010;
  EXPECT_TRUE(carry_out_code({0x67, 0x48, 0x8b, 0x44, 0x4b, 0x08}).ok());  // mov rax, [ebx + 2 * ecx + 8]
  EXPECT_EQ(state_.general[kRax], remote_word(0x28));
  // The sum is cut, not each part.
  state_.general[kRbx] = 0xfffffff0;
  state_.general[kRcx] = 0x10100;
  EXPECT_TRUE(carry_out_code({0x67, 0x48, 0x8b, 0x04, 0x0b}).ok());
  EXPECT_EQ(state_.general[kRax], remote_word(0xf0));
}

TEST_F(WithoutSignal, StringsWithRegistersOf32Bits) {
  state_.general[kRsi] = 0x1122334400010100;
  state_.general[kRdi] = 0x5566778800012000;
  state_.general[kRcx] = 0x9900000000000021;
  const auto expected = memory_bytes_.data()[0x120];
  EXPECT_TRUE(carry_out_code({0x67, 0xf3, 0xa4}).ok());
  EXPECT_EQ(std::memcmp(memory_bytes_.data() + 0x100, memory_bytes_.data() + 0x2000, 0x21), 0);
  EXPECT_EQ(memory_bytes_.data()[0x2020], expected);
  EXPECT_EQ(state_.general[kRsi], 0x10121u);
  EXPECT_EQ(state_.general[kRdi], 0x12021u);
  EXPECT_EQ(state_.general[kRcx], 0u);
}

TEST_F(WithoutSignal, AFrameWithoutAvx) {
  const float ones[4] = {1, 2, 3, 4};
  std::memcpy(area_ + 160, ones, sizeof ones);
  const float others[4] = {10, 20, 30, 40};
  std::memcpy(memory_bytes_.data() + 0x40, others, sizeof others);
  state_.general[kRbx] = kStart + 0x40;
  EXPECT_TRUE(carry_out_code({0x0f, 0x58, 0x03}).ok());  // addps xmm0, [rbx]
  float sums[4];
  std::memcpy(sums, area_ + 160, sizeof sums);
  EXPECT_EQ(sums[0], 11);
  EXPECT_EQ(sums[3], 44);
  EXPECT_TRUE(carry_out_code({0x0f, 0x29, 0x43, 0x10}).ok());  // movaps [rbx + 16], xmm0
  EXPECT_EQ(std::memcmp(memory_bytes_.data() + 0x50, sums, sizeof sums), 0);
  EXPECT_TRUE(carry_out_code({0xd9, 0x03}).ok());  // fld dword [rbx]
  EXPECT_EQ(area_[4], std::byte{0x80});            // one register of x87 is in use

  const std::vector<std::vector<uint8_t>> need_more = {
      {0xc5, 0xfe, 0x6f, 0x03},                    // vmovdqu ymm0, [rbx]
      {0xc5, 0xf8, 0x58, 0x03},                    // vaddps xmm0, xmm0, [rbx]
      {0xc5, 0xf8, 0x90, 0x0b},                    // kmovw k1, [rbx]
      {0x62, 0xf1, 0x7c, 0x48, 0x10, 0x03}};       // vmovups zmm0, [rbx]
  for (const auto& code : need_more) {
    const Outcome outcome = carry_out_code(code);
    EXPECT_EQ(outcome.cause, URMA_CR_UNSUPPORTED_OPCODE_ERR);
    EXPECT_STREQ(outcome.why, "the kernel did not save the vector registers that it uses");
  }
  // AVX without AVX-512.
  state_.vectors.parts = kX87Part | kSsePart | kAvxPart;
  EXPECT_TRUE(carry_out_code(need_more[0]).ok());
  EXPECT_FALSE(carry_out_code(need_more[2]).ok());
  EXPECT_FALSE(carry_out_code(need_more[3]).ok());
}

// Each immediate makes another instruction. When no room is left, that is told, and what is there still works.
TEST_F(WithoutSignal, AFullTableOfCode) {
  state_.general[kRbx] = kStart;
  Outcome outcome;
  uint32_t number = 0;
  for (; number <= CodeTable::kPlaces && outcome.ok(); ++number)
    outcome = carry_out_code({0xc7, 0x03, static_cast<uint8_t>(number), static_cast<uint8_t>(number >> 8),
                              static_cast<uint8_t>(number >> 16), 0x77});
  EXPECT_GT(number, CodeTable::kPlaces - 1000);
  EXPECT_STREQ(outcome.why, kNoRoom);
  EXPECT_TRUE(carry_out_code({0xc7, 0x03, 0x34, 0x12, 0x00, 0x77}).ok());
  EXPECT_EQ(remote_word(0) & 0xffffffff, 0x77001234u);
}

// A program's own handler of faults, which calls softub_serve_fault(), may be interrupted by others: whoever has all
// paths already would wait for itself.
TEST(AccessPaths, NobodyWaitsForHimself) {
  FakeMemory memory(64);
  std::vector<std::unique_ptr<RemotePath>> two;
  for (int i = 0; i < 2; ++i) two.push_back(std::make_unique<FakePath>(memory));
  AccessPaths paths(std::move(two));
  std::optional<AccessPaths::Claim> first(paths), second(paths);
  EXPECT_TRUE(*first && *second);
  EXPECT_FALSE(AccessPaths::Claim(paths));
  std::thread other([&] { EXPECT_TRUE(AccessPaths::Claim(paths)); });
  second.reset();
  other.join();
  EXPECT_TRUE(AccessPaths::Claim(paths));
}

}  // namespace
}  // namespace ub::aperture::test
