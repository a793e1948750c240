// SPDX-License-Identifier: Apache-2.0
// A window of memory that a NIC granted, and how its right ends; the test plays the NIC.
#include <gtest/gtest.h>
#include <setjmp.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <memory>
#include <span>
#include <string>
#include <utility>

#include "lib/ipc/memfd.h"
#include "lib/ipc/pause.h"
#include "lib/ipc/unix_socket.h"
#include "lib/urma/aperture/same_host/share_watcher.h"
#include "lib/urma/aperture/same_host/shared_window.h"
#include "tests/unit/threads.h"

namespace ub::aperture {
namespace {

constexpr size_t kBytes = 4 * 4096;

class SharedWindowTest : public testing::Test {
 protected:
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    nic = ipc::Fd(ends[0]);
    ipc::OpenedShare share;
    share.socket = ipc::Fd(ends[1]);
    share.memory = ipc::create_sealed_memfd("test", kBytes, &why);
    share.writable = true;
    ASSERT_TRUE(owner.map(share.memory.get(), kBytes, &why)) << why;
    SharedWindowOptions options;
    options.offset = 4096;
    options.bytes = kBytes - 4096;
    window = SharedWindow::create(std::move(share), options, &why);
    ASSERT_NE(window, nullptr) << why;
    ASSERT_TRUE(ShareWatcher::get().add(window, &why)) << why;
  }
  void TearDown() override {
    if (window != nullptr) ShareWatcher::get().remove(window.get());
  }
  urma_cr_status_t state() const { return window->sync(window->data(), 1, 0); }
  // The memory gives way before.
  bool is_hung_up() const {
    std::byte message[8];
    size_t bytes;
    bool had_fds;
    return ipc::receive_plain(nic.get(), message, &bytes, &had_fds) == ipc::SocketStatus::kClosed;
  }
  void say(uint64_t magic) const {
    const ipc::ShareNotice notice{magic};
    ASSERT_EQ(ipc::send_message(nic.get(), std::as_bytes(std::span(&notice, 1)), {}), ipc::SocketStatus::kOk);
  }

  ipc::Fd nic;
  ipc::Mapping owner;
  std::shared_ptr<SharedWindow> window;
  std::string why;
};

TEST_F(SharedWindowTest, is_the_memory_itself) {
  owner.data()[4096 + 7] = std::byte{7};
  EXPECT_EQ(window->data()[7], std::byte{7});
  window->data()[8] = std::byte{8};
  EXPECT_EQ(owner.data()[4096 + 8], std::byte{8});
  EXPECT_EQ(state(), URMA_CR_SUCCESS);
  EXPECT_EQ(window->sync(window->data(), kBytes, 0), URMA_CR_LOC_LEN_ERR);
  EXPECT_EQ(window->sync(window->data(), 1, 1u << 30), URMA_CR_LOC_OPERATION_ERR);
  EXPECT_FALSE(is_hung_up());
}

TEST_F(SharedWindowTest, lets_go_when_it_is_told) {
  say(ipc::kShareMagic);
  ASSERT_TRUE(test::eventually([this] { return is_hung_up(); }));
  EXPECT_EQ(state(), URMA_CR_REM_ACCESS_ABORT_ERR);
}

// Where the kernel refuses to take the memory away, the NIC goes on to count the holder, who still reaches it.
TEST_F(SharedWindowTest, hangs_up_only_when_the_memory_is_gone) {
  rlimit former;
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &former), 0);
  const rlimit no_room{4096, former.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &no_room), 0);
  say(ipc::kShareMagic);
  const bool is_told = test::eventually([this] { return state() != URMA_CR_SUCCESS; });
  ipc::pause_for(milliseconds(20));
  const bool is_counted = !is_hung_up();
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &former), 0);
  EXPECT_TRUE(is_told);
  EXPECT_TRUE(is_counted);
  owner.data()[4096 + 7] = std::byte{7};
  EXPECT_EQ(window->data()[7], std::byte{7});
}

TEST_F(SharedWindowTest, ends_with_its_nic) {
  nic.reset();
  ASSERT_TRUE(test::eventually([this] { return state() != URMA_CR_SUCCESS; }));
  EXPECT_EQ(state(), URMA_CR_ACK_TIMEOUT_ERR);
}

TEST_F(SharedWindowTest, minds_nothing_else_that_is_said) {
  say(1);
  say(ipc::kShareMagic);
  ASSERT_TRUE(test::eventually([this] { return is_hung_up(); }));
  EXPECT_EQ(state(), URMA_CR_REM_ACCESS_ABORT_ERR);
}

TEST_F(SharedWindowTest, tells_the_nic_when_it_is_unmapped) {
  EXPECT_FALSE(is_hung_up());
  ShareWatcher::get().remove(window.get());
  window.reset();
  EXPECT_TRUE(is_hung_up());
}

sigjmp_buf g_jump;

TEST_F(SharedWindowTest, handler_may_jump) {
  say(ipc::kShareMagic);
  ASSERT_TRUE(test::eventually([this] { return is_hung_up(); }));
  window->on_fault([](const softub_fault_t*, void*) -> bool { siglongjmp(g_jump, 1); }, nullptr);
  if (sigsetjmp(g_jump, 1) == 0) {
    static_cast<void>(*static_cast<volatile std::byte*>(window->data()));
    ADD_FAILURE() << "a byte of memory that is not there";
  }
  ShareWatcher::get().remove(window.get());
  window.reset();  // waits for nobody
}

}  // namespace
}  // namespace ub::aperture
