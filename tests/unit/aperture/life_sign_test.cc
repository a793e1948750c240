// SPDX-License-Identifier: Apache-2.0
// A process that has died is known as dead at once (lib/ipc/life_sign.h), and no gate of its is passed any more.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <thread>

#include "lib/ipc/access_gate.h"
#include "lib/ipc/life_sign.h"

namespace ub::ipc {
namespace {

// What another process sees of a sign.
struct Reader {
  explicit Reader(int descriptor) {
    std::string why;
    EXPECT_TRUE(page.map(descriptor, LifePage::kBytes, &why, false)) << why;
  }
  const LifePage& operator*() const { return *reinterpret_cast<const LifePage*>(page.data()); }
  Mapping page;
};

TEST(LifeSign, a_process_that_was_killed_is_dead_when_waitpid_returns) {
  for (int round = 0; round < 50; ++round) {
    int pipe[2];
    ASSERT_EQ(::pipe(pipe), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      LifeSign sign;
      std::string why;
      std::thread([&] {
        const bool begun = sign.begin(&why);
        const int reader = begun ? sign.reader() : -1;
        if (::write(pipe[1], &reader, sizeof reader) != sizeof reader) ::_exit(1);
        for (;;) ::pause();
      }).join();
    }
    int reader = -1;
    ASSERT_EQ(::read(pipe[0], &reader, sizeof reader), static_cast<ssize_t>(sizeof reader));
    ASSERT_GE(reader, 0);
    const std::string path = "/proc/" + std::to_string(child) + "/fd/" + std::to_string(reader);
    const Fd opened(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    ASSERT_TRUE(opened);
    const Reader seen(opened.get());
    EXPECT_FALSE((*seen).is_dead());
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    EXPECT_TRUE((*seen).is_dead()) << "round " << round;
    for (const int end : pipe) ::close(end);
  }
}

TEST(LifeSign, nothing_is_entered_after_the_end_of_its_thread) {
  LifeSign sign;
  std::string why;
  AccessGate gate{};
  std::unique_ptr<Reader> reader;
  AccessWay way;
  std::thread([&] {
    ASSERT_TRUE(sign.begin(&why)) << why;
    reader = std::make_unique<Reader>(sign.reader());
    way = {&gate, &**reader};
    EXPECT_TRUE(way.enter());
    EXPECT_TRUE(gate.is_inside());
    gate.leave();
  }).join();
  ASSERT_NE(reader, nullptr);
  EXPECT_TRUE((**reader).is_dead());
  EXPECT_FALSE(way.enter());
  EXPECT_FALSE(gate.is_inside());
}

TEST(LifeSign, others_cannot_write_to_it) {
  LifeSign sign;
  std::string why;
  EXPECT_LT(sign.reader(), 0);
  ASSERT_TRUE(sign.begin(&why)) << why;
  Mapping writable;
  EXPECT_FALSE(writable.map(sign.reader(), LifePage::kBytes, &why));
}

}  // namespace
}  // namespace ub::ipc
