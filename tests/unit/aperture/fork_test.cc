// SPDX-License-Identifier: Apache-2.0
// A child of fork has none of its parent's threads, and must not wait for what they hold.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lib/ipc/memfd.h"
#include "lib/urma/aperture/flusher.h"
#include "lib/urma/aperture/same_host/share_watcher.h"
#include "lib/urma/aperture/same_host/shared_window.h"
#include "tests/unit/aperture/window/fake_memory.h"
#include "tests/unit/threads.h"

namespace ub::aperture {
namespace {

constexpr uint64_t kBytes = 8 * 4096;

// 0 if it ends by itself, and says so, within ten seconds.
template <class Run>
int status_of_child(Run run) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(10);
    ::_exit(run() ? 0 : 1);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

std::shared_ptr<CachedWindow> write_through(test::FakeMemory& memory) {
  CachedWindowOptions options;
  options.segment_bytes = options.bytes = kBytes;
  options.policy = WritePolicy::kWriteThrough;
  std::vector<std::unique_ptr<RemotePath>> paths;
  paths.push_back(std::make_unique<test::FakePath>(memory));
  WindowError error;
  std::shared_ptr<CachedWindow> window = CachedWindow::create(options, std::move(paths), &error);
  EXPECT_NE(window, nullptr) << error.why;
  return window;
}

// Writes to a window of write-through, and waits until it has arrived.
bool is_flushed() {
  test::FakeMemory memory(kBytes);
  const auto window = write_through(memory);
  Flusher::get().add(window);
  *static_cast<volatile std::byte*>(window->data()) = std::byte{9};
  const bool arrived = ub::test::eventually([&] { return memory.get(0) == std::byte{9}; });
  Flusher::get().remove(window.get());
  return arrived;
}

// The thread of the flusher is in the middle of one, which takes as long as the remote end does.
TEST(Fork, child_flushes_while_its_parent_does) {
  test::FakeMemory memory(kBytes);
  const auto window = write_through(memory);
  Flusher::get().add(window);
  memory.fences.shut();
  *static_cast<volatile std::byte*>(window->data()) = std::byte{5};
  ASSERT_TRUE(ub::test::eventually([&] { return memory.fences.waiting() == 1; }));
  EXPECT_EQ(status_of_child(is_flushed), 0);
  memory.fences.open();
  Flusher::get().remove(window.get());
  EXPECT_TRUE(is_flushed());
}

std::shared_ptr<SharedWindow> shared_window(ipc::Fd* nic) {
  int ends[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
  *nic = ipc::Fd(ends[0]);
  std::string why;
  ipc::OpenedShare share;
  share.socket = ipc::Fd(ends[1]);
  share.memory = ipc::create_sealed_memfd("test", kBytes, &why);
  SharedWindowOptions options;
  options.bytes = kBytes;
  auto window = SharedWindow::create(std::move(share), options, &why);
  EXPECT_NE(window, nullptr) << why;
  return window;
}

// Is the end of a right noticed?
bool is_watched() {
  ipc::Fd nic;
  std::string why;
  const auto window = shared_window(&nic);
  if (!ShareWatcher::get().add(window, &why)) return false;
  nic.reset();
  return ub::test::eventually([&] { return window->sync(window->data(), 1, 0) != URMA_CR_SUCCESS; });
}

// Nearly all the time some thread is in the middle of a change; of many children most are born then.
TEST(Fork, child_watches_while_its_parent_changes_what_it_watches) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers do not follow a fork while other threads allocate and lock";
#endif
  std::atomic<bool> stop{false};
  std::thread changes([&stop] {
    ipc::Fd nic;
    std::string why;
    const auto window = shared_window(&nic);
    while (!stop) {
      EXPECT_TRUE(ShareWatcher::get().add(window, &why)) << why;
      ShareWatcher::get().remove(window.get());
    }
  });
  for (int i = 0; i < 30 && !testing::Test::HasFailure(); ++i) EXPECT_EQ(status_of_child(is_watched), 0);
  stop = true;
  changes.join();
  EXPECT_TRUE(is_watched());
}

}  // namespace
}  // namespace ub::aperture
