// SPDX-License-Identifier: Apache-2.0
// Peers that speak another version, send nonsense, scribble over the rings or are killed.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>

#include "lib/ipc/unix_socket.h"
#include "tests/unit/dataplane/ports/shm_node.h"

namespace ub {
namespace {

// What a peer of another version would send: the head of the messages never changes.
struct Head {
  uint64_t magic = 0x53'4f'46'54'55'42'73'68;
  uint32_t version;
  uint32_t bytes;
};

TEST(ShmFaults, accept__other_version_is_refused_by_name) {
  TempDir dir;
  Node a;
  ASSERT_TRUE(a.open(dir.path, 1, 0x10001));
  ipc::Rendezvous r;
  ASSERT_TRUE(r.open(dir.path, &a.error));
  for (Head head : {Head{.version = 9, .bytes = 200}, Head{.magic = 1, .version = 1, .bytes = 16}}) {
    ipc::Fd s;
    ASSERT_EQ(ipc::connect_unix(r.path_of({a.id.eid.bytes, 1}), &s, &a.error), ipc::SocketStatus::kOk);
    ASSERT_EQ(ipc::send_message(s.get(), std::as_bytes(std::span(&head, 1)), {}), ipc::SocketStatus::kOk);
    a.control();
    a.control();
    std::byte reply[512];
    size_t bytes, fds;
    ipc::Fd fd[ipc::kMaxMessageFds];
    ASSERT_EQ(ipc::receive_message(s.get(), reply, &bytes, fd, &fds), ipc::SocketStatus::kOk);
    EXPECT_EQ(fds, 0u);
    std::string text(reinterpret_cast<char*>(reply) + 40);
    if (head.version == 9) {
      EXPECT_NE(text.find("version 9"), std::string::npos) << text;
      EXPECT_NE(text.find("version 1"), std::string::npos) << text;
      EXPECT_NE(a.port.take_refusal().find("version 9"), std::string::npos);
    }
    EXPECT_EQ(ipc::receive_message(s.get(), reply, &bytes, fd, &fds), ipc::SocketStatus::kClosed);
  }
  EXPECT_EQ(a.port.link_count(), 0u);
}

TEST(ShmFaults, connect__answer_of_another_version_ends_the_link) {
  TempDir dir;
  Node a;
  ASSERT_TRUE(a.open(dir.path, 1, 0x10001));
  ipc::Rendezvous r;
  ASSERT_TRUE(r.open(dir.path, &a.error));
  ASSERT_EQ(r.publish({test_eid(2).bytes, 5}, &a.error), ipc::Rendezvous::PublishStatus::kOk);
  ASSERT_TRUE(a.port.connect({test_eid(2), 0x10005}, &a.error)) << a.error;
  a.control();
  EXPECT_TRUE(a.port.has_link_to(test_eid(2), 0x10005));
  ipc::Fd s = ipc::accept_unix(r.listener(0));
  Head head{.version = 2, .bytes = 16};
  ASSERT_EQ(ipc::send_message(s.get(), std::as_bytes(std::span(&head, 1)), {}), ipc::SocketStatus::kOk);
  a.control();
  ASSERT_EQ(a.dead.size(), 1u);
  EXPECT_NE(a.dead[0].why.find("version 2"), std::string::npos) << a.dead[0].why;
  EXPECT_FALSE(a.port.has_link_to(test_eid(2), 0x10005));
}

TEST(ShmFaults, accept__garbage_hellos) {
  TempDir dir;
  Node a;
  ASSERT_TRUE(a.open(dir.path, 1, 0x10001));
  ipc::Rendezvous r;
  ASSERT_TRUE(r.open(dir.path, &a.error));
  for (uint32_t i = 0; i < 300; ++i) {
    ipc::Fd s;
    ASSERT_EQ(ipc::connect_unix(r.path_of({a.id.eid.bytes, 1}), &s, &a.error), ipc::SocketStatus::kOk) << a.error;
    // The layout of a hello of version 1 with one thing wrong each.
    alignas(8) std::byte m[80] = {};
    Head head{.version = 1, .bytes = 80};
    std::memcpy(m, &head, 16);
    std::memcpy(m + 32, a.id.eid.bytes.data(), 16);
    uint32_t uasid = i % 7 == 0 ? 0 : 0x10002;
    uint64_t ring = i % 7 == 1 ? 12345 : i % 7 == 2 ? uint64_t{1} << 50 : 1 << 16;
    uint32_t mtu = i % 7 == 3 ? 5000 : 4096, link = i % 7 == 4 ? 100000 : 3;
    std::memcpy(m + 48, &uasid, 4);
    std::memcpy(m + 56, &ring, 8);
    std::memcpy(m + 64, &mtu, 4);
    std::memcpy(m + 68, &link, 4);
    ipc::Fd memory =
        ipc::create_sealed_memfd("x", i % 7 == 5 ? 4096 : 2 * ipc::FrameRing::area_bytes(1 << 16), &a.error);
    ipc::Fd page = ipc::create_sealed_memfd("x", 4096, &a.error);
    int fds[] = {memory.get(), page.get(), page.get()};  // the last is no eventfd
    ipc::send_message(s.get(), {m, i % 11 == 0 ? size_t{40} : sizeof m}, {fds, i % 13 == 0 ? 2u : 3u});
    if (i % 3 == 0) s.reset();
    a.control();
  }
  EXPECT_EQ(a.port.link_count(), 0u);
  Node b;
  ASSERT_TRUE(b.open(dir.path, 2, 0x10001));
  connect(b, a);
}

// Keeps sending and answering until told to stop, or killed.
[[noreturn]] void chatter(const std::string& dir, InstanceId peer, bool scribble) {
  Node b;
  if (!b.open(dir, 1, 0x10002, 1 << 18)) ::_exit(3);
  if (!b.port.connect(peer, &b.error)) ::_exit(4);
  uint64_t value = 0;
  auto start = std::chrono::steady_clock::now();
  for (int64_t i = 0;; ++i) {
    b.control();
    if (scribble && i == 3000) {
      // Everything that is shared with the peer.
      FILE* maps = std::fopen("/proc/self/maps", "r");
      char line[512];
      while (std::fgets(line, sizeof line, maps) != nullptr) {
        if (std::strstr(line, "softub-wire") == nullptr) continue;
        uintptr_t from = 0, to = 0;
        std::sscanf(line, "%zx-%zx", &from, &to);
        for (auto* p = reinterpret_cast<uint64_t*>(from); p < reinterpret_cast<uint64_t*>(to); ++p)
          *p = 0x0123456789abcdef * (reinterpret_cast<uintptr_t>(p) | 1);
      }
      std::fclose(maps);
      ::pause();
    }
    int k = 0;
    for (; k < 8 && b.send(1, value, 8 + value % 3000); ++k) ++value;
    b.port.tx_flush(at_us(i));
    b.receive(100);
    if (k == 0) ::sched_yield();
    if (std::chrono::steady_clock::now() - start > std::chrono::seconds(20)) ::_exit(5);
  }
}

TEST(ShmFaults, peer_killed_in_mid_traffic) {
  for (int run = 0; run < 16; ++run) {
    TempDir dir;
    InstanceId me{test_eid(1), 0x10001};
    int go[2];
    ASSERT_EQ(::pipe(go), 0);
    pid_t pid = ::fork();
    if (pid == 0) {
      char c;
      if (::read(go[0], &c, 1) != 1) ::_exit(2);
      chatter(dir.path, me, false);
    }
    Node a;
    ASSERT_TRUE(a.open(dir.path, 1, 0x10001, 1 << 18));
    ASSERT_EQ(::write(go[1], "x", 1), 1);
    uint64_t got = 0, sent = 0;
    bool killed = false;
    auto start = std::chrono::steady_clock::now();
    while (a.dead.empty()) {
      ASSERT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
      a.control();
      auto values = a.receive(100);
      for (uint64_t v : values) {
        ASSERT_EQ(v, got);
        ++got;
      }
      if (values.empty()) ::sched_yield();
      if (a.port.link_count() != 0)
        for (int k = 0; k < 4 && a.send(1, sent); ++k) ++sent;
      a.port.tx_flush(at_us(static_cast<int64_t>(sent)));
      if (!killed && got > 500 + static_cast<uint64_t>(run) * 97) {
        ::kill(pid, SIGKILL);
        killed = true;
      }
    }
    EXPECT_TRUE(killed);
    EXPECT_EQ(a.port.counters().rx_bad_ring, 0u);
    EXPECT_NE(a.dead[0].why.find("peer process ended"), std::string::npos);
    int status;
    ::waitpid(pid, &status, 0);
    ::close(go[0]);
    ::close(go[1]);
  }
}

TEST(ShmFaults, peer_scribbles_over_the_rings) {
  TempDir dir;
  InstanceId me{test_eid(1), 0x10001};
  int go[2];
  ASSERT_EQ(::pipe(go), 0);
  pid_t pid = ::fork();
  if (pid == 0) {
    char c;
    if (::read(go[0], &c, 1) != 1) ::_exit(2);
    chatter(dir.path, me, true);
  }
  Node a;
  ASSERT_TRUE(a.open(dir.path, 1, 0x10001, 1 << 18));
  ASSERT_EQ(::write(go[1], "x", 1), 1);
  auto start = std::chrono::steady_clock::now();
  uint64_t sent = 0;
  while (a.dead.empty()) {
    ASSERT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
    a.control();
    RxFrame rx[kBurst];
    size_t n = a.port.rx_burst(rx, kBurst);
    for (size_t i = 0; i < n; ++i) ASSERT_LE(rx[i].bytes, 32768u);
    a.port.rx_release();
    if (a.port.link_count() != 0 && a.send(1, sent)) ++sent;
    if (n == 0) ::sched_yield();
    a.port.tx_flush(at_us(static_cast<int64_t>(sent)));
  }
  EXPECT_EQ(a.port.counters().rx_bad_ring, 1u);
  EXPECT_NE(a.dead[0].why.find("nonsense"), std::string::npos);
  ::kill(pid, SIGKILL);
  int status;
  ::waitpid(pid, &status, 0);
  ::close(go[0]);
  ::close(go[1]);
}

// A child that outlives its parent does not keep the parent's links alive.
TEST(ShmFaults, fork__orphan_does_not_hide_the_death) {
  TempDir dir;
  InstanceId me{test_eid(1), 0x10001};
  int go[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, go), 0);
  char c;
  pid_t pid = ::fork();
  if (pid == 0) {
    ::close(go[1]);
    if (::read(go[0], &c, 1) != 1) ::_exit(2);
    Node b;
    if (!b.open(dir.path, 1, 0x10002) || !b.port.connect(me, &b.error)) ::_exit(3);
    if (::fork() == 0) ::_exit(::read(go[0], &c, 1) == 0 ? 0 : 4);  // lives until the test closes its end
    if (::write(go[0], "x", 1) != 1) ::_exit(5);
    for (;;) ::pause();
  }
  Node a;
  ASSERT_TRUE(a.open(dir.path, 1, 0x10001));
  ASSERT_EQ(::write(go[1], "x", 1), 1);
  int status;
  bool killed = false;
  auto start = std::chrono::steady_clock::now();
  while (a.dead.empty()) {
    ASSERT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
    a.control();
    if (!killed && ::recv(go[1], &c, 1, MSG_DONTWAIT) == 1) killed = ::kill(pid, SIGKILL) == 0;
    ::sched_yield();
  }
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  Node b;
  EXPECT_TRUE(b.open(dir.path, 1, 0x10002)) << b.error;
  ::close(go[0]);
  ::close(go[1]);
}

}  // namespace
}  // namespace ub
