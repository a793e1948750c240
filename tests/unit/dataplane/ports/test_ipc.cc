// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "lib/ipc/barrier.h"
#include "lib/ipc/doorbell.h"
#include "lib/ipc/memfd.h"
#include "lib/ipc/not_cancelled.h"
#include "lib/ipc/rendezvous.h"
#include "lib/ipc/unix_socket.h"

namespace ub::ipc {
namespace {

struct TempDir {
  std::string path = "/tmp/softub-test-XXXXXX";
  TempDir() { EXPECT_NE(mkdtemp(path.data()), nullptr); }
  ~TempDir() { EXPECT_EQ(std::system(("rm -rf " + path).c_str()), 0); }
};

TEST(Memfd, sealed_and_checked) {
  std::string error;
  Fd fd = create_sealed_memfd("test", 8192, &error);
  ASSERT_TRUE(fd) << error;
  EXPECT_NE(::ftruncate(fd.get(), 100), 0);
  EXPECT_NE(::ftruncate(fd.get(), 100000), 0);
  EXPECT_TRUE(::fcntl(fd.get(), F_GETFD) & FD_CLOEXEC);
  EXPECT_TRUE(check_sealed_memfd(fd.get(), 8192, &error));
  EXPECT_FALSE(check_sealed_memfd(fd.get(), 4096, &error));
  Fd open(::memfd_create("open", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(open.get(), 8192), 0);
  EXPECT_FALSE(check_sealed_memfd(open.get(), 8192, &error));
  EXPECT_NE(error.find("sealed"), std::string::npos);
  EXPECT_FALSE(is_eventfd(open.get()));
  Mapping m;
  ASSERT_TRUE(m.map(fd.get(), 8192, &error));
  m.data()[8191] = std::byte{1};
}

TEST(Fd, child_of_a_fork_has_none) {
  std::string error;
  Fd fd = create_sealed_memfd("test", 4096, &error);
  Mapping m;
  ASSERT_TRUE(m.map(fd.get(), 4096, &error));
  pid_t pid = ::fork();
  if (pid == 0) {
    bool closed = ::fcntl(fd.get(), F_GETFD) == -1;
    int reused = ::open("/dev/null", O_RDONLY);  // gets the number again
    fd.reset();
    m.reset();
    bool kept = reused < 0 || ::fcntl(reused, F_GETFD) != -1;
    ::_exit(closed && kept ? 0 : 1);
  }
  int status;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
  EXPECT_NE(::fcntl(fd.get(), F_GETFD), -1);
}

int cancel_state() {
  int state = -1;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
  pthread_setcancelstate(state, nullptr);
  return state;
}

// Guards lie within guards, and in threads that are never cancelled.
TEST(NotCancelled, leaves_the_thread_as_it_found_it) {
  std::thread([] {
    for (int before : {PTHREAD_CANCEL_ENABLE, PTHREAD_CANCEL_DISABLE}) {
      pthread_setcancelstate(before, nullptr);
      {
        const NotCancelled outer;
        {
          const NotCancelled inner;
          EXPECT_EQ(cancel_state(), PTHREAD_CANCEL_DISABLE);
        }
        EXPECT_EQ(cancel_state(), PTHREAD_CANCEL_DISABLE);
      }
      EXPECT_EQ(cancel_state(), before);
    }
  }).join();
}

TEST(UnixSocket, message_with_descriptors_and_hang_up) {
  TempDir dir;
  std::string error, path = dir.path + "/s";
  Fd listener = listen_unix(path, &error);
  ASSERT_TRUE(listener) << error;
  EXPECT_FALSE(accept_unix(listener.get()));
  Fd a;
  ASSERT_EQ(connect_unix(path, &a, &error), SocketStatus::kOk);
  Fd b = accept_unix(listener.get());
  ASSERT_TRUE(b);
  Fd memory = create_sealed_memfd("x", 4096, &error);
  int fds[] = {memory.get(), memory.get()};
  ASSERT_EQ(send_message(a.get(), std::as_bytes(std::span("hello", 5)), fds), SocketStatus::kOk);
  std::byte buffer[64];
  size_t bytes, count;
  Fd got[kMaxMessageFds];
  ASSERT_EQ(receive_message(b.get(), buffer, &bytes, got, &count), SocketStatus::kOk);
  EXPECT_EQ(bytes, 5u);
  EXPECT_EQ(count, 2u);
  EXPECT_TRUE(check_sealed_memfd(got[1].get(), 4096, &error));
  EXPECT_TRUE(::fcntl(got[0].get(), F_GETFD) & FD_CLOEXEC);
  EXPECT_EQ(receive_message(b.get(), buffer, &bytes, got, &count), SocketStatus::kAgain);
  PeerCredentials who;
  ASSERT_TRUE(peer_credentials(b.get(), &who));
  EXPECT_EQ(who.pid, ::getpid());
  a.reset();
  EXPECT_EQ(receive_message(b.get(), buffer, &bytes, got, &count), SocketStatus::kClosed);
  EXPECT_EQ(connect_unix(dir.path + "/nobody", &a, &error), SocketStatus::kClosed);
  EXPECT_EQ(connect_unix(std::string(200, 'x'), &a, &error), SocketStatus::kFailed);
  EXPECT_NE(error.find("too long"), std::string::npos);
}

TEST(Rendezvous, names) {
  TempDir dir;
  std::string error;
  Rendezvous a, b;
  ASSERT_TRUE(a.open(dir.path + "/d", &error)) << error;
  ASSERT_TRUE(b.open(dir.path + "/d/", &error)) << error;
  struct stat st;
  ASSERT_EQ(::stat((dir.path + "/d").c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777, 0700u);
  Rendezvous::Name name{{1, 2, 3}, 4792};
  ASSERT_EQ(a.publish(name, &error), Rendezvous::PublishStatus::kOk) << error;
  EXPECT_EQ(b.publish(name, &error), Rendezvous::PublishStatus::kTaken);
  EXPECT_NE(error.find("taken"), std::string::npos);
  ASSERT_EQ(b.publish({{1, 2, 3}, 4793}, &error), Rendezvous::PublishStatus::kOk);
  EXPECT_EQ(a.list().size(), 2u);
  EXPECT_TRUE(a.listed(name));
  EXPECT_FALSE(a.remove_if_stale(name));
  a.withdraw();
  EXPECT_FALSE(b.listed(name));
  EXPECT_EQ(b.list(), (std::vector<Rendezvous::Name>{{{1, 2, 3}, 4793}}));
}

TEST(Rendezvous, open__refuses_what_others_can_write) {
  TempDir dir;
  std::string error, path = dir.path + "/open";
  ASSERT_EQ(::mkdir(path.c_str(), 0700), 0);
  ASSERT_EQ(::chmod(path.c_str(), 0777), 0);
  Rendezvous r;
  EXPECT_FALSE(r.open(path, &error));
  EXPECT_NE(error.find("0700"), std::string::npos) << error;
  EXPECT_FALSE(r.open("/dev/null", &error));
  EXPECT_FALSE(r.open(dir.path + "/none/x", &error));
  ASSERT_EQ(::symlink(dir.path.c_str(), (dir.path + "/link").c_str()), 0);
  EXPECT_FALSE(r.open(dir.path + "/link", &error));
}

TEST(Rendezvous, stale_socket_of_a_killed_process) {
  TempDir dir;
  std::string error;
  Rendezvous::Name name{{9}, 7};
  Rendezvous earlier;
  ASSERT_TRUE(earlier.open(dir.path, &error));
  pid_t pid = ::fork();
  if (pid == 0) {
    Rendezvous r;
    bool ok = r.open(dir.path, &error) && r.publish(name, &error) == Rendezvous::PublishStatus::kOk;
    ::kill(::getpid(), ok ? SIGKILL : SIGTERM);
  }
  int status;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  ASSERT_EQ(WTERMSIG(status), SIGKILL);
  EXPECT_TRUE(earlier.listed(name));
  Fd fd;
  EXPECT_EQ(connect_unix(earlier.path_of(name), &fd, &error), SocketStatus::kClosed);
  Rendezvous r;
  ASSERT_TRUE(r.open(dir.path, &error));  // clears up
  EXPECT_FALSE(r.listed(name));
  EXPECT_EQ(r.publish(name, &error), Rendezvous::PublishStatus::kOk) << error;
}

// Who has a port of ids: the last who said so, until he takes it back or nobody listens for him any more.
TEST(Rendezvous, holder__is_who_announced_last) {
  TempDir dir;
  std::string error;
  const Rendezvous::Name ids{{1}, 61500}, other{{2}, 61500};
  Rendezvous a, b;
  ASSERT_TRUE(a.open(dir.path, &error) && b.open(dir.path, &error)) << error;
  ASSERT_EQ(a.publish({{1}, 4792}, &error), Rendezvous::PublishStatus::kOk);
  ASSERT_EQ(b.publish({{1}, 61600}, &error), Rendezvous::PublishStatus::kOk);
  EXPECT_EQ(a.holder(ids), std::nullopt);
  a.announce(ids, 0x1234'12b8);
  a.announce(ids, 0x1234'12b8);
  EXPECT_EQ(b.holder(ids), 0x1234'12b8u);
  EXPECT_EQ(b.holder(other), std::nullopt);
  EXPECT_EQ(a.list().size(), 2u) << "what is announced is no instance";
  b.announce(ids, 0x5678'f0a0);
  EXPECT_EQ(a.holder(ids), 0x5678'f0a0u);
  a.retract(ids);  // it is b's by now
  EXPECT_EQ(a.holder(ids), 0x5678'f0a0u);
  a.forget_holder(ids, 0x1234'12b8);
  EXPECT_EQ(a.holder(ids), 0x5678'f0a0u);
  a.forget_holder(ids, 0x5678'f0a0);
  EXPECT_EQ(a.holder(ids), std::nullopt);
  b.announce({{1}, 61501}, 0x5678'f0a0);
  b.withdraw();
  EXPECT_EQ(a.holder({{1}, 61501}), std::nullopt);
}

TEST(Rendezvous, holder__of_a_killed_process_is_forgotten_at_the_next_start) {
  TempDir dir;
  std::string error;
  const Rendezvous::Name ids{{9}, 61500}, living{{9}, 61501};
  Rendezvous earlier;
  ASSERT_TRUE(earlier.open(dir.path, &error)) << error;
  ASSERT_EQ(earlier.publish({{9}, 8}, &error), Rendezvous::PublishStatus::kOk);
  earlier.announce(living, 0x10008);
  const pid_t pid = ::fork();
  if (pid == 0) {
    Rendezvous r;
    const bool ok = r.open(dir.path, &error) && r.publish({{9}, 7}, &error) == Rendezvous::PublishStatus::kOk;
    r.announce(ids, 0x10007);
    ::kill(::getpid(), ok ? SIGKILL : SIGTERM);
  }
  int status;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  ASSERT_EQ(WTERMSIG(status), SIGKILL);
  EXPECT_EQ(earlier.holder(ids), 0x10007u);
  Rendezvous next;
  ASSERT_TRUE(next.open(dir.path, &error)) << error;
  EXPECT_EQ(next.holder(ids), std::nullopt);
  EXPECT_EQ(next.holder(living), 0x10008u);
}

TEST(Rendezvous, a_port_of_ids__can_be_announced_again) {
  TempDir dir;
  std::string error;
  Rendezvous r;
  ASSERT_TRUE(r.open(dir.path, &error)) << error;
  for (const uint16_t port : {uint16_t{62500}, uint16_t{62501}, uint16_t{62500}}) {
    r.announce({{1}, port}, 0x1234'12b8);
    EXPECT_EQ(r.holder({{1}, port}), 0x1234'12b8u);
    r.retract({{1}, port});
    EXPECT_EQ(r.holder({{1}, port}), std::nullopt);
  }
}

// Its descriptors are closed; what lies in the directory is its parent's.
TEST(Rendezvous, a_forked_child__takes_nothing_of_its_parents_back) {
  TempDir dir;
  std::string error;
  const Rendezvous::Name name{{9}, 7}, ids{{9}, 61500};
  Rendezvous r;
  ASSERT_TRUE(r.open(dir.path, &error)) << error;
  ASSERT_EQ(r.publish(name, &error), Rendezvous::PublishStatus::kOk) << error;
  r.announce(ids, 0x10007);
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::close_range(3, ~0U, 0);
    r.withdraw();
    ::_exit(0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(r.listed(name));
  EXPECT_EQ(r.holder(ids), 0x10007u);
}

TEST(Rendezvous, holder__is_nobody_where_the_link_says_nonsense) {
  TempDir dir;
  std::string error;
  Rendezvous r;
  ASSERT_TRUE(r.open(dir.path, &error)) << error;
  const Rendezvous::Name ids{{}, 61500};
  const std::string path = dir.path + "/" + std::string(32, '0') + "-61500.id";
  for (const char* text : {"0", "00000000", "1234567", "123456789", "1234567x", "../../etc/passwd", "-1234567"}) {
    ::unlink(path.c_str());
    ASSERT_EQ(::symlink(text, path.c_str()), 0);
    EXPECT_EQ(r.holder(ids), std::nullopt) << text;
  }
  ::unlink(path.c_str());
  ASSERT_EQ(::symlink("0001f0a0", path.c_str()), 0);
  EXPECT_EQ(r.holder(ids), 0x1f0a0u);
}

TEST(Doorbell, rings_a_sleeper_once) {
  Doorbell bell;
  std::string error;
  ASSERT_TRUE(bell.create(&error));
  PeerDoorbell peer;
  ASSERT_TRUE(peer.attach(Fd(::dup(bell.page_fd())), Fd(::dup(bell.event_fd())), 70, &error)) << error;
  EXPECT_EQ(peer.after_publish(), Consumer::kAwake);
  bell.begin_sleep();
  EXPECT_EQ(peer.after_publish(), Consumer::kAsleep);
  peer.ring();
  EXPECT_EQ(peer.after_publish(), Consumer::kAwake);
  uint64_t count = 0;
  EXPECT_EQ(::read(bell.event_fd(), &count, 8), 8);
  EXPECT_EQ(count, 1u);
  bell.drain();
  bell.begin_doze();
  EXPECT_EQ(peer.after_publish(/*hurries=*/false), Consumer::kDozing);
  EXPECT_EQ(peer.after_publish(), Consumer::kAsleep);
  EXPECT_EQ(peer.after_publish(), Consumer::kAwake);
  EXPECT_EQ(bell.rung_from(), ::sched_getcpu());
  // A sleep after a doze is a sleep.
  bell.begin_doze();
  bell.begin_sleep();
  EXPECT_EQ(peer.after_publish(/*hurries=*/false), Consumer::kAsleep);
  bell.start_scan();
  EXPECT_EQ(peer.after_publish(), Consumer::kAwake);
  EXPECT_EQ(bell.active_word(1), uint64_t{1} << 6);
  bell.clear_active(70);
  EXPECT_EQ(bell.active_word(1), 0u);
  PeerDoorbell bad;
  EXPECT_FALSE(bad.attach(Fd(::dup(bell.page_fd())), Fd(::dup(bell.page_fd())), 0, &error));
  EXPECT_FALSE(bad.attach(Fd(::dup(bell.event_fd())), Fd(::dup(bell.event_fd())), 0, &error));
  EXPECT_FALSE(bad.attach(Fd(::dup(bell.page_fd())), Fd(::dup(bell.event_fd())), 4096, &error));
}

struct Bells {
  Doorbell consumer;
  std::vector<PeerDoorbell> producers;

  explicit Bells(uint32_t count) : producers(count) {
    std::string error;
    EXPECT_TRUE(consumer.create(&error)) << error;
    for (uint32_t i = 0; i < count; ++i) {
      EXPECT_TRUE(producers[i].attach(Fd(::dup(consumer.page_fd())), Fd(::dup(consumer.event_fd())), i, &error));
    }
  }
  uint64_t rings() {
    uint64_t count = 0;
    return ::read(consumer.event_fd(), &count, sizeof count) == sizeof count ? count : 0;
  }
};

TEST(Doorbell, doze__what_can_wait_leaves_it_for_what_hurries) {
  Bells b(2);
  b.consumer.begin_doze();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(b.producers[0].after_publish(false), Consumer::kDozing);
    EXPECT_EQ(b.producers[1].after_publish(false), Consumer::kDozing);
  }
  EXPECT_EQ(b.consumer.rung_from(), -1) << "nobody rang";
  EXPECT_EQ(b.producers[1].after_publish(true), Consumer::kAsleep);
  EXPECT_EQ(b.producers[0].after_publish(true), Consumer::kAwake) << "it is being rung";
  EXPECT_EQ(b.producers[0].after_publish(false), Consumer::kAwake);
  EXPECT_EQ(b.rings(), 0u) << "to ring is the caller's part";
}

TEST(Doorbell, doze__ends_and_becomes_a_sleep_and_again) {
  Bells b(1);
  PeerDoorbell& peer = b.producers[0];
  b.consumer.begin_doze();
  b.consumer.end_sleep();
  EXPECT_EQ(peer.after_publish(false), Consumer::kAwake);
  EXPECT_EQ(peer.after_publish(true), Consumer::kAwake);
  b.consumer.begin_doze();
  b.consumer.begin_sleep();
  EXPECT_EQ(peer.after_publish(false), Consumer::kAsleep);
  b.consumer.begin_sleep();
  b.consumer.begin_doze();
  EXPECT_EQ(peer.after_publish(false), Consumer::kDozing);
  b.consumer.end_sleep();
  b.consumer.begin_sleep();
  EXPECT_EQ(peer.after_publish(false), Consumer::kAsleep) << "nothing of the doze is left";
}

TEST(Doorbell, scan__outlives_sleep_and_doze) {
  Bells b(1);
  b.consumer.start_scan();
  b.consumer.begin_doze();
  EXPECT_EQ(b.producers[0].after_publish(false), Consumer::kDozing);
  EXPECT_EQ(b.consumer.active_word(0), 1u) << "the ring is alive also for who dozes";
  b.consumer.clear_active(0);
  EXPECT_EQ(b.producers[0].after_publish(true), Consumer::kAsleep);
  b.consumer.begin_sleep();
  b.consumer.end_sleep();
  b.consumer.clear_active(0);
  EXPECT_EQ(b.producers[0].after_publish(true), Consumer::kAwake);
  EXPECT_EQ(b.consumer.active_word(0), 1u);
}

TEST(Doorbell, polled__is_seen_by_producers_and_wakes_nobody) {
  Bells b(2);
  EXPECT_FALSE(b.producers[0].polled());
  b.consumer.set_polled(true);
  EXPECT_TRUE(b.producers[0].polled() && b.producers[1].polled());
  b.consumer.begin_sleep();
  EXPECT_TRUE(b.producers[0].polled());
  EXPECT_EQ(b.producers[0].after_publish(), Consumer::kAsleep);
  b.consumer.set_polled(false);
  EXPECT_FALSE(b.producers[1].polled());
}

TEST(Doorbell, rung_from__is_the_cpu_of_who_rang) {
  Bells b(1);
  EXPECT_EQ(b.producers[0].after_publish(), Consumer::kAwake);
  EXPECT_EQ(b.consumer.rung_from(), -1);
  cpu_set_t all;
  ASSERT_EQ(::sched_getaffinity(0, sizeof all, &all), 0);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(static_cast<size_t>(cpu), &all)) continue;
    b.consumer.begin_doze();
    std::thread([&] {
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(static_cast<size_t>(cpu), &one);
      ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
      EXPECT_EQ(b.producers[0].after_publish(), Consumer::kAsleep);
    }).join();
    EXPECT_EQ(b.consumer.rung_from(), cpu);
  }
}

// One producer is to ring, though both see the sleeper.
TEST(Doorbell, sleeper__is_rung_by_exactly_one_of_two_producers) {
  constexpr uint32_t kSleeps = 10'000;
  Bells b(2);
  std::atomic<uint32_t> sleeps{0}, answers{0}, asleep{0};
  // Looks for a while, so that both are quick, and then sleeps: on a busy machine the other one may have no CPU.
  auto wait_for = [](const std::atomic<uint32_t>& counter, uint32_t value) {
    uint32_t looks = 0;
    for (uint32_t seen = counter.load(); seen < value; seen = counter.load())
      if (++looks > 64) counter.wait(seen);
  };
  std::thread other([&] {
    for (uint32_t n = 1; n <= kSleeps; ++n) {
      wait_for(sleeps, n);
      asleep += b.producers[1].after_publish() == Consumer::kAsleep;
      ++answers;
      answers.notify_one();
    }
  });
  uint32_t wrong = 0;
  for (uint32_t n = 1; n <= kSleeps; ++n) {
    n % 2 == 0 ? b.consumer.begin_sleep() : b.consumer.begin_doze();
    sleeps.store(n);
    sleeps.notify_one();
    for (std::atomic<uint32_t> pause{n % 256}; pause.load() != 0; --pause) {  // so that both look at the same time
    }
    asleep += b.producers[0].after_publish() == Consumer::kAsleep;
    wait_for(answers, n);
    wrong += asleep.exchange(0) != 1;
    EXPECT_EQ(b.consumer.page()->mode.load(), 0u) << "awake, and nothing of the doze is left";
  }
  other.join();
  EXPECT_EQ(wrong, 0u);
}

TEST(Doorbell, bell__is_good_when_its_doorbell_is_gone) {
  auto b = std::make_unique<Bells>(1);
  Fd event(::dup(b->consumer.event_fd()));
  PeerDoorbell::Bell bell = b->producers[0].bell();
  b->producers.clear();
  PeerDoorbell::ring(bell);
  EXPECT_EQ(b->rings(), 1u);
  b.reset();
  PeerDoorbell::ring(bell);
  PeerDoorbell::ring(bell);
  uint64_t count = 0;
  EXPECT_EQ(::read(event.get(), &count, sizeof count), 8);
  EXPECT_EQ(count, 2u);
  PeerDoorbell::ring(PeerDoorbell::Bell());  // none
  PeerDoorbell().ring();
}

}  // namespace
}  // namespace ub::ipc
