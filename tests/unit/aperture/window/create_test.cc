// SPDX-License-Identifier: Apache-2.0
//
// Windows that can and cannot be made.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

#include "tests/unit/aperture/window/window_rig.h"

namespace ub::aperture::test {
namespace {

WindowError refusal_of(const CachedWindowOptions& options, size_t paths = 1) {
  FakeMemory memory(16);
  WindowError error;
  EXPECT_EQ(CachedWindow::create(options, paths_to(memory, paths), &error), nullptr);
  return error;
}

void expect_invalid(const CachedWindowOptions& options, const char* sentence, size_t paths = 1) {
  const WindowError error = refusal_of(options, paths);
  EXPECT_EQ(error.status, URMA_EINVAL);
  EXPECT_NE(error.why.find(sentence), std::string::npos) << error.why;
}

TEST(CreateWindow, bytes__must_be_pages_of_the_segment) {
  CachedWindowOptions options = options_of(16, 8);
  options.bytes = 0;
  expect_invalid(options, "0 bytes");
  options.bytes = kPage + 1;
  expect_invalid(options, "whole pages");
  options.bytes = kPage;
  options.offset = 64;
  expect_invalid(options, "whole pages");
  options.offset = 16 * kPage;
  expect_invalid(options, "beyond the segment");
  options.offset = 15 * kPage;
  options.bytes = 2 * kPage;
  expect_invalid(options, "beyond the segment");
  options.offset = kPage;
  options.bytes = UINT64_MAX / kPage * kPage;
  expect_invalid(options, "beyond the segment");
  options.segment_bytes = UINT64_MAX;
  expect_invalid(options, "beyond the segment");
}

TEST(CreateWindow, cache__must_fit_into_memory) {
  CachedWindowOptions options = options_of(16, 8);
  options.cache_bytes = uint64_t{1} << 60;
  expect_invalid(options, "larger than the memory");
}

TEST(CreateWindow, paths__are_one_to_four_and_safe_in_a_handler) {
  expect_invalid(options_of(16, 8), "1 to 4 paths", 0);
  expect_invalid(options_of(16, 8), "1 to 4 paths", 5);
  FakeMemory memory(kPage);
  auto path = std::make_unique<FakePath>(memory);
  path->is_signal_safe_ = false;
  std::vector<std::unique_ptr<RemotePath>> paths;
  paths.push_back(std::move(path));
  WindowError error;
  EXPECT_EQ(CachedWindow::create(options_of(1, 8), std::move(paths), &error), nullptr);
  EXPECT_EQ(error.status, URMA_EINVAL);
}

TEST(CreateWindow, no_room__is_an_error) {
  CachedWindowOptions options = options_of(1, 8);
  options.segment_bytes = options.bytes = uint64_t{1} << 50;
  const WindowError error = refusal_of(options);
  EXPECT_EQ(error.status, URMA_ENOMEM);
  EXPECT_NE(error.why, "");
}

TEST(CreateWindow, small_cache__becomes_eight_pages) {
  Rig rig(options_of(16, 0));
  for (uint64_t page = 0; page < 16; ++page) rig.read(page * kPage);
  EXPECT_EQ(rig.count_present(), 8u);
}

TEST(CreateWindow, many__can_be_there_at_once) {
  std::vector<std::unique_ptr<Rig>> rigs;
  for (int i = 0; i < 20; ++i) rigs.push_back(std::make_unique<Rig>(3, 8));
  for (auto& rig : rigs) EXPECT_EQ(rig->read(kPage + 5), first_value(kPage + 5));
  rigs.erase(rigs.begin() + 3, rigs.begin() + 12);
  for (auto& rig : rigs) EXPECT_EQ(rig->read(2 * kPage), first_value(2 * kPage));
}

// In a child, so that the rule dies with it. Its status: 0, or the line that fails.
int in_child(int (*test)()) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(test());
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool forbid_userfaultfd() {
  sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_userfaultfd, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog program = {std::size(rules), rules};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST(CreateWindow, no_descriptor_for_userfaultfd__is_no_memory) {
  rlimit before;
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none = {0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const WindowError error = refusal_of(options_of(16, 8));
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(error.status, URMA_ENOMEM);
  EXPECT_NE(error.why.find("ulimit -n"), std::string::npos) << error.why;
}

TEST(CreateWindow, refused_userfaultfd__is_named) {
  EXPECT_EQ(in_child([] {
              if (!forbid_userfaultfd()) return 1;
              const WindowError error = refusal_of(options_of(4, 8));
              if (error.status != URMA_ENOPERM) return 2;
              if (error.why.find("vm.unprivileged_userfaultfd") == std::string::npos) return 3;
              return error.why.find("seccomp") == std::string::npos ? 4 : 0;
            }),
            0);
}

// Then the kernel fills all new memory by itself, but must not fill a window.
TEST(CreateWindow, locked_memory__is_loaded_evicted_and_dropped_as_ever) {
  EXPECT_EQ(in_child([] {
              const rlimit none = {RLIM_INFINITY, RLIM_INFINITY};
              ::setrlimit(RLIMIT_MEMLOCK, &none);
              if (::mlockall(MCL_FUTURE) != 0) {
                std::puts("mlockall is not allowed here: nothing is tested");
                return 0;
              }
              Rig rig(16, 8);
              for (uint64_t page = 0; page < 16; ++page) {
                if (rig.read(page * kPage) != first_value(page * kPage)) return 1;
              }
              if (rig.count_present() != 8) return 2;
              return testing::Test::HasFailure() ? 3 : 0;
            }),
            0);
}

}  // namespace
}  // namespace ub::aperture::test
