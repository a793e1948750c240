// SPDX-License-Identifier: Apache-2.0
// While an application polls, datagrams wake no sleeper of the NIC; whoever goes to sleep is woken again.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <string>

#include "dataplane/eid.h"
#include "dataplane/port_set.h"
#include "dataplane/socket_address.h"

namespace ub {
namespace {

class MutedUdp : public testing::Test {
 protected:
  void SetUp() override {
    UdpPortOptions options;
    options.addresses = {*parse_ip("127.0.0.1")};
    options.wanted_port = 0;
    std::string error;
    ASSERT_TRUE(ports_.udp.open(options, &error)) << error;
    for (SleepSet* each : {&first_, &second_}) {
      ASSERT_TRUE(each->create(&error)) << error;
      ASSERT_TRUE(ports_.watch_frames(*each));
    }
  }
  void send_datagram() {
    const ipc::Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    SocketAddress to;
    const wire::Endpoint port = ports_.udp.local_endpoint(0);
    const socklen_t bytes = fill(&to, port.ip, port.port);
    ASSERT_EQ(::sendto(socket.get(), "x", 1, 0, &to.base, bytes), 1);
  }
  static bool wakes(SleepSet& set) { return set.sleep(Duration{}).by(Waker::kUdp); }

  PortSet ports_;
  SleepSet first_, second_;
};

TEST_F(MutedUdp, a_datagram_wakes_nobody) {
  ports_.mute_udp();
  send_datagram();
  EXPECT_FALSE(wakes(first_));
  EXPECT_FALSE(wakes(second_));
  EXPECT_TRUE(ports_.must_be_polled());
}

TEST_F(MutedUdp, who_sleeps_is_woken_again_also_by_what_came_before) {
  for (const bool naps : {false, true}) {
    ports_.mute_udp();
    send_datagram();
    naps ? ports_.prepare_nap(true) : ports_.prepare_sleep();
    EXPECT_TRUE(wakes(first_)) << naps;
    EXPECT_TRUE(wakes(second_)) << naps;
    EXPECT_FALSE(ports_.must_be_polled());
    ports_.finish_sleep();
  }
}

}  // namespace
}  // namespace ub
