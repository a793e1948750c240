// SPDX-License-Identifier: Apache-2.0
//
// Programs as compilers make them, with and without optimization, for several CPUs: their functions give the same
// numbers on a window as on ordinary memory, and leave the same bytes.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <memory>
#include <string>
#include <tuple>

#include "fake_path.h"
#include "lib/urma/aperture/uncached/uncached_window.h"
#include "program.h"

namespace ub::aperture::test {

#define PROGRAM_OF(name) extern const Program name;
PROGRAMS(PROGRAM_OF)

namespace {

#define ADDRESS_OF(name) &name,
const Program* const kPrograms[] = {PROGRAMS(ADDRESS_OF)};

// The instructions that a program was compiled for.
bool can_run(const std::string& how) {
  if (how.find("x86-64-v4") != std::string::npos) return __builtin_cpu_supports("avx512vl") != 0;
  if (how.find("x86-64-v3") != std::string::npos) return __builtin_cpu_supports("avx2") != 0;
  return true;
}

class Programs : public testing::TestWithParam<const Program*> {
 protected:
  void SetUp() override {
    if (!can_run(GetParam()->how)) GTEST_SKIP() << "this CPU cannot run " << GetParam()->how;
    auto path = std::make_unique<FakePath>(memory_);
    path_ = path.get();
    std::vector<std::unique_ptr<RemotePath>> paths;
    paths.push_back(std::move(path));
    WindowError error;
    window_ = UncachedWindow::create({.bytes = kProgramBytes}, std::move(paths), &error);
    ASSERT_NE(window_, nullptr) << error.why;
  }

  FakeMemory memory_{kProgramBytes};
  FakePath* path_ = nullptr;
  std::unique_ptr<UncachedWindow> window_;
};

TEST_P(Programs, GiveTheSameNumbers) {
  std::vector<std::byte> expected_bytes(kProgramBytes);
  for (const ProgramFunction& function : GetParam()->functions) {
    std::byte* const at = window_->data();
    // For once the window is ordinary memory, so that pointers are the same.
    ASSERT_EQ(::mprotect(at, kProgramBytes, PROT_READ | PROT_WRITE), 0);
    std::memset(at, 0, kProgramBytes);
    GetParam()->begin();
    const uint64_t expected = function.run(at);
    std::memcpy(expected_bytes.data(), at, kProgramBytes);
    ASSERT_EQ(::mprotect(at, kProgramBytes, PROT_NONE), 0);

    std::memset(memory_.data(), 0, kProgramBytes);
    path_->forget();
    GetParam()->begin();
    EXPECT_EQ(function.run(at), expected) << function.name;
    EXPECT_EQ(std::memcmp(memory_.data(), expected_bytes.data(), kProgramBytes), 0) << function.name;
    EXPECT_GT(path_->loads.load() + path_->stores.load(), 10u) << function.name;
  }
}

INSTANTIATE_TEST_SUITE_P(, Programs, testing::ValuesIn(kPrograms), [](const auto& tested) {
  std::string name = tested.param->how;
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name;
});

}  // namespace
}  // namespace ub::aperture::test
