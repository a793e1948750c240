// SPDX-License-Identifier: Apache-2.0
// When a memif client tries to connect, and how it learns that its server hung up: without DPDK and without waiting.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <utility>

#include "dataplane/dpdk/reconnect.h"
#include "dataplane/dpdk/server_connection.h"

namespace ub::dpdk {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr Reconnect::Time kBegin{std::chrono::hours(7)};

TEST(Reconnect, the_first_try_is_due_at_once) {
  Reconnect reconnect;
  EXPECT_TRUE(reconnect.is_due(Reconnect::Time{}, false));
  EXPECT_TRUE(reconnect.is_due(kBegin, false));
}

TEST(Reconnect, nobody_is_tried_soon_again_and_so_is_whoever_hung_up) {
  Reconnect reconnect;
  reconnect.tried(kBegin);
  EXPECT_FALSE(reconnect.is_due(kBegin + Reconnect::kPause - nanoseconds(1), false));
  EXPECT_TRUE(reconnect.is_due(kBegin + Reconnect::kPause, false));
}

TEST(Reconnect, a_server_that_has_the_connection_is_left_time_to_answer) {
  Reconnect reconnect;
  reconnect.tried(kBegin);
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(reconnect.is_due(kBegin + milliseconds(19) * i, true)) << i;
  EXPECT_TRUE(reconnect.is_due(kBegin + Reconnect::kAnswerPatience, true));
  EXPECT_TRUE(reconnect.is_due(kBegin + Reconnect::kPause, false));  // it hung up meanwhile
}

// A server, and the driver of a client.
struct ServerConnectionTest : testing::TestWithParam<bool> {
  std::string name = "softub-test-" + std::to_string(getpid());
  int listener = -1, client = -1, other = -1;

  sockaddr_un address() const {
    sockaddr_un a{};
    a.sun_family = AF_UNIX;
    std::memcpy(a.sun_path + (GetParam() ? 1 : 0), name.data(), name.size());
    return a;
  }
  void SetUp() override {
    if (!GetParam()) name = testing::TempDir() + name;
    ASSERT_LT(name.size(), sizeof(sockaddr_un{}.sun_path) - 1);
    sockaddr_un a = address();
    listener = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&a), sizeof a), 0);
    ASSERT_EQ(listen(listener, 8), 0);
  }
  void TearDown() override {
    for (int fd : {listener, client, other}) close(fd);
    if (!GetParam()) unlink(name.c_str());
  }
  int connected() const {
    sockaddr_un a = address();
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&a), sizeof a), 0);
    return fd;
  }
};

TEST_P(ServerConnectionTest, is_open_until_the_driver_closes_it) {
  ServerConnection connection(name);
  EXPECT_FALSE(connection.is_open());
  connection.begin();
  client = connected();
  connection.end(true);
  EXPECT_TRUE(connection.is_open());
  const int number = client;
  close(client);
  EXPECT_FALSE(connection.is_open());
  client = open("/dev/null", O_RDONLY);
  EXPECT_EQ(client, number);  // somebody else's now
  EXPECT_FALSE(connection.is_open());
  connection.begin();
  other = connected();
  connection.end(true);
  EXPECT_TRUE(connection.is_open());
}

TEST_P(ServerConnectionTest, a_device_beside_it_has_its_own) {
  other = connected();
  ServerConnection connection(name);
  connection.begin();
  client = connected();
  connection.end(true);
  close(std::exchange(client, -1));
  EXPECT_FALSE(connection.is_open());
}

TEST_P(ServerConnectionTest, without_a_server_there_is_none) {
  ServerConnection connection(name);
  connection.begin();
  connection.end(false);
  EXPECT_FALSE(connection.is_open());
}

TEST_P(ServerConnectionTest, one_that_cannot_be_found_is_believed) {
  ServerConnection connection("softub-test-elsewhere");
  connection.begin();
  client = connected();
  connection.end(true);
  EXPECT_TRUE(connection.is_open());
}

INSTANTIATE_TEST_SUITE_P(PathsAndAbstractNames, ServerConnectionTest, testing::Bool());

}  // namespace
}  // namespace ub::dpdk
