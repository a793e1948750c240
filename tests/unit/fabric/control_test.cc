// SPDX-License-Identifier: Apache-2.0
//
// Clients of the control socket: what they may do without keeping the fabric, or each other, from going on.
#include "tools/fabric/control.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <thread>

#include "tests/unit/fabric/two_nics.h"
#include "tools/fabric/control_socket.h"
#include "tools/fabric/tell.h"

namespace ub::fabric {
namespace {

constexpr Instant kStart{1'000'000'000};
const std::string kLargeAnswer = std::string(4 << 20, 'x') + "\nok\n";

class FabricControl : public testing::Test {
 protected:
  // All that is ready.
  void serve(Instant now = kStart) {
    for (bool any = true; any;) {
      any = false;
      for (const Control::Watched& w : control_.watched()) {
        if (!is_ready(w)) continue;
        any = true;
        control_.serve(now, w.fd, [this](std::string_view line) {
          obeyed_.emplace_back(line);
          return line == "json" ? kLargeAnswer : "ok\n";
        });
      }
    }
  }
  static bool is_ready(const Control::Watched& w) {
    pollfd p{w.fd, static_cast<short>(w.for_writing ? POLLOUT : POLLIN), 0};
    return ::poll(&p, 1, 0) == 1;
  }

  ipc::Fd connect(Instant now = kStart) {
    const sockaddr_un address = control_address(path_);
    ipc::Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    serve(now);
    return fd;
  }
  static void say(const ipc::Fd& fd, const std::string& text) {
    EXPECT_EQ(::send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
  }
  // What is there for the client; the fabric gets no turn.
  static std::string read(const ipc::Fd& fd) {
    std::string text(1 << 20, '\0');
    const ssize_t bytes = ::read(fd.get(), text.data(), text.size());
    text.resize(static_cast<size_t>(std::max<ssize_t>(bytes, 0)));
    return text;
  }
  static bool is_closed(const ipc::Fd& fd) {
    char byte;
    return ::recv(fd.get(), &byte, 1, MSG_PEEK) == 0;
  }

  const std::string path_ = testing::TempDir() + "/fabric-control-" + std::to_string(::getpid()) + ".sock";
  Control control_{path_, false};
  std::vector<std::string> obeyed_;
};

TEST_F(FabricControl, an_answer_that_is_larger_than_the_buffer_of_the_socket_arrives_as_a_whole) {
  const ipc::Fd client = connect();
  say(client, "json\n");
  std::string answer;
  for (int turns = 0; turns < 10'000 && answer.size() < kLargeAnswer.size(); ++turns) {
    serve();
    answer += read(client);
  }
  EXPECT_TRUE(answer == kLargeAnswer) << answer.size();
  EXPECT_TRUE(control_.next_due().is_never());
}

TEST_F(FabricControl, a_client_that_does_not_read_its_answer_is_not_obeyed_any_more_until_it_does) {
  const ipc::Fd client = connect();
  say(client, "json\njson\nshow\n");
  serve();
  EXPECT_EQ(obeyed_, (std::vector<std::string>{"json"}));
  for (int turns = 0; turns < 10'000 && obeyed_.size() < 3; ++turns) {
    read(client);
    serve();
  }
  EXPECT_EQ(obeyed_, (std::vector<std::string>{"json", "json", "show"}));
}

TEST_F(FabricControl, a_client_that_reads_nothing_for_some_seconds_is_dropped) {
  const ipc::Fd slow = connect(), idle = connect();
  say(slow, "json\n");
  serve();
  EXPECT_EQ(control_.next_due(), kStart + Control::kPatience);
  control_.drop_slow(kStart + Control::kPatience - nanoseconds(1));
  EXPECT_EQ(control_.watched().size(), 3u);
  control_.drop_slow(kStart + Control::kPatience);
  EXPECT_EQ(control_.watched().size(), 2u);
  EXPECT_FALSE(is_closed(idle));
}

TEST_F(FabricControl, a_client_that_reads_slowly_is_not_dropped) {
  const ipc::Fd client = connect();
  say(client, "json\n");
  serve();
  for (int i = 0; i < 3; ++i) read(client);
  serve(kStart + seconds(4));
  EXPECT_EQ(control_.next_due(), kStart + seconds(4) + Control::kPatience);
}

TEST_F(FabricControl, the_client_that_was_idle_longest_gives_way_to_one_more_than_there_can_be) {
  std::deque<ipc::Fd> clients;
  for (size_t i = 0; i < Control::kMostClients; ++i) {
    clients.push_back(connect(kStart + seconds(static_cast<int64_t>(i))));
  }
  say(clients[0], "show\n");
  serve(kStart + seconds(100));
  const ipc::Fd another = connect(kStart + seconds(101));
  EXPECT_TRUE(is_closed(clients[1]));
  EXPECT_FALSE(is_closed(clients[0]));
  EXPECT_FALSE(is_closed(clients[2]));
  say(another, "show\n");
  serve();
  EXPECT_EQ(read(another), "ok\n");
}

// ---- the other end ----

TEST_F(FabricControl, tell_ends_with_an_error_if_no_answer_comes) {
  const std::string said = complaint([&] { tell(path_, {"show"}, milliseconds(50)); });
  EXPECT_TRUE(has(said, {path_, "50 ms", "\"show\""}));
}

TEST_F(FabricControl, tell_ends_with_an_error_if_it_is_not_even_connected) {
  const sockaddr_un address = control_address(path_);
  std::deque<ipc::Fd> waiting;  // until the kernel lets no more wait
  do {
    waiting.emplace_back(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  } while (::connect(waiting.back().get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  EXPECT_TRUE(has(complaint([&] { tell(path_, {"show"}, milliseconds(50)); }), {path_, "connected"}));
}

TEST_F(FabricControl, tell_takes_a_large_answer) {
  std::string said;
  testing::internal::CaptureStdout();
  std::thread other([&] { said = complaint([&] { EXPECT_TRUE(tell(path_, {"json"})); }); });
  while (obeyed_.empty() || !control_.next_due().is_never()) serve();
  other.join();
  EXPECT_EQ(testing::internal::GetCapturedStdout().size(), kLargeAnswer.size() - 3);  // without "ok"
  EXPECT_EQ(said, "");
}

}  // namespace
}  // namespace ub::fabric
