// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "dataplane/eid.h"
#include "dataplane/id_claims.h"
#include "dataplane/loopback_port.h"
#include "dataplane/udp_port.h"
#include "lib/transport/roce/wire/bth.h"
#include "lib/transport/wire/id_port.h"
#include "tests/unit/dataplane/ports/udp_pair.h"

// A full socket buffer cannot be had on loopback (the kernel does not count what it delivered), so these two
// stand in for the C library's and refuse when told to.
namespace {
int refuse_after = -1;  // so many datagrams still pass; -1: no limit
int refuse_with = 0;
bool refused(unsigned* count) {
  if (refuse_after < 0) return false;
  if (refuse_after == 0) {
    errno = refuse_with;
    return true;
  }
  *count = std::min(*count, static_cast<unsigned>(refuse_after));
  refuse_after -= static_cast<int>(*count);
  return false;
}
}  // namespace

extern "C" ssize_t sendto(int fd, const void* data, size_t bytes, int flags, const sockaddr* to, socklen_t to_bytes) {
  unsigned one = 1;
  if (refused(&one)) return -1;
  return ::syscall(SYS_sendto, fd, data, bytes, flags, to, to_bytes);
}
extern "C" int sendmmsg(int fd, mmsghdr* messages, unsigned count, int flags) {
  if (refused(&count)) return -1;
  return static_cast<int>(::syscall(SYS_sendmmsg, fd, messages, count, flags));
}

namespace ub {
namespace {

void frame_in_is_frame_out(const char* ip, uint8_t ecn) {
  Pair p;
  ASSERT_TRUE(p.open(ip)) << p.error;
  EXPECT_EQ(p.a.mtu(), 4096u);
  size_t longest = 4096 + 150;
  for (size_t payload : {size_t{20}, size_t{64}, size_t{1024}, longest}) {
    Bytes f = make_frame(p.a.local_endpoint(0), p.b.local_endpoint(0), payload, 3, 46, ecn);
    ASSERT_TRUE(send(p.a, f));
    p.a.tx_flush({});
    RxFrame rx[kBurst];
    ASSERT_EQ(receive(p.b, rx, kBurst), 1u) << payload;
    EXPECT_EQ(rx[0].link, 6u);
    // What it synthesizes is what the sender's template wrote, with no Ethernet addresses.
    ASSERT_EQ(rx[0].bytes, f.size());
    EXPECT_EQ(Bytes(rx[0].data, rx[0].data + rx[0].bytes), f);
    wire::NetHeader net;
    EXPECT_EQ(wire::parse_network({rx[0].data, rx[0].bytes}, net), wire::Drop::kNone);
    EXPECT_EQ(net.ecn(), ecn);
    p.b.rx_release();
  }
  EXPECT_EQ(p.a.counters().tx_frames, 4u);
  EXPECT_EQ(p.b.counters().rx_frames, 4u);
}

// A path of its own: what leaves from there has its port, and what comes there is received.
TEST(UdpPort, source_ports_are_used_by_the_frames_that_name_them) {
  Pair p;
  ASSERT_TRUE(p.open("127.0.0.1")) << p.error;
  const wire::Endpoint usual = p.a.local_endpoint(0);
  std::set<uint16_t> ports = {usual.port};
  for (int n = 0; n < 3; ++n) {
    uint16_t port = 0;
    ASSERT_TRUE(p.a.open_source_port(usual.ip, &port, &p.error)) << p.error;
    EXPECT_TRUE(ports.insert(port).second) << port;
  }
  for (const uint16_t port : ports) {
    const wire::Endpoint source{usual.ip, port};
    const Bytes there = make_frame(source, p.b.local_endpoint(0), 64, 3);
    const Bytes back = make_frame(p.b.local_endpoint(0), source, 80, 7);
    ASSERT_TRUE(send(p.a, there));
    p.a.tx_flush({});
    RxFrame rx[kBurst];
    ASSERT_EQ(receive(p.b, rx, kBurst), 1u);
    EXPECT_EQ(Bytes(rx[0].data, rx[0].data + rx[0].bytes), there);
    p.b.rx_release();
    ASSERT_TRUE(send(p.b, back));
    p.b.tx_flush({});
    ASSERT_EQ(receive(p.a, rx, kBurst), 1u);
    EXPECT_EQ(Bytes(rx[0].data, rx[0].data + rx[0].bytes), back);
    p.a.rx_release();
  }
  EXPECT_EQ(p.a.local_endpoint(0), usual);
}

TEST(UdpPort, source_ports_of_an_address_of_another_host_cannot_be_had) {
  Pair p;
  ASSERT_TRUE(p.open("127.0.0.1")) << p.error;
  uint16_t port = 0;
  EXPECT_FALSE(p.a.open_source_port(*parse_ip("192.0.2.77"), &port, &p.error));
  EXPECT_NE(p.error.find("192.0.2.77"), std::string::npos) << p.error;
}

TEST(UdpPort, frame_in_is_frame_out__ipv4) { frame_in_is_frame_out("127.0.0.1", 0); }
TEST(UdpPort, frame_in_is_frame_out__ipv4_ecn) { frame_in_is_frame_out("127.0.0.1", wire::kEcnEct0); }
TEST(UdpPort, frame_in_is_frame_out__ipv6) {
  if (!has_ipv6()) GTEST_SKIP() << "no IPv6 here";
  frame_in_is_frame_out("::1", wire::kEcnEct1);
}

// ---- ECN -----------------------------------------------------------------------------------------------------------

// Frames of one sender, each with a code point of its own.
class UdpPortEcn : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const bool v6 = std::strchr(GetParam(), ':') != nullptr;
    if (v6 && !has_ipv6()) GTEST_SKIP() << "no IPv6 here";
    ASSERT_TRUE(p.open(GetParam())) << p.error;
  }
  void commit(uint8_t ecn) {
    const auto seed = static_cast<uint8_t>(sent.size());
    sent.push_back(make_frame(p.a.local_endpoint(0), p.b.local_endpoint(0), 100, seed, 46, ecn));
    ASSERT_TRUE(send(p.a, sent.back()));
  }
  // All arrive in order, with code point and DSCP: a frame in is a frame out.
  void expect_all() {
    std::vector<Bytes> got;
    RxFrame rx[kBurst];
    while (got.size() < sent.size()) {
      const size_t n = receive(p.b, rx, kBurst);
      ASSERT_GT(n, 0u);
      for (size_t i = 0; i < n; ++i) got.emplace_back(rx[i].data, rx[i].data + rx[i].bytes);
      p.b.rx_release();
    }
    EXPECT_EQ(got, sent);
    EXPECT_EQ(p.a.counters().tx_frames, sent.size());
  }

  Pair p;
  std::vector<Bytes> sent;
};

TEST_P(UdpPortEcn, of_a_frame_alone) {
  for (const uint8_t ecn : {0, 1, 0, 2, 3, 3, 0}) {
    commit(ecn);
    p.a.tx_flush({});
  }
  expect_all();
}

TEST_P(UdpPortEcn, of_the_frames_of_one_burst) {
  for (const uint8_t ecn : {0, 1, 2, 3, 0, 3, 2, 1, 0, 0}) commit(ecn);
  p.a.tx_flush({});
  expect_all();
}

TEST_P(UdpPortEcn, of_the_last_frame_of_a_burst) {
  for (const uint8_t last : {0, 1, 2, 3}) {
    for (const uint8_t ecn : {uint8_t{2}, uint8_t{0}, last}) commit(ecn);
    p.a.tx_flush({});
  }
  expect_all();
}

// A slot is used again, and the next burst has nothing of the one before.
TEST_P(UdpPortEcn, of_many_bursts) {
  for (int burst = 0; burst < 40; ++burst) {
    for (int i = 0; i < 7; ++i) commit(static_cast<uint8_t>((burst * 3 + i * i) & 3));
    p.a.tx_flush({});
  }
  expect_all();
}

TEST_P(UdpPortEcn, of_frames_that_found_no_room_at_first) {
  for (const uint8_t ecn : {1, 2, 3, 0, 2, 0}) commit(ecn);
  refuse_with = EAGAIN;
  for (int passing : {2, 0, 1, 2}) {  // what is left at last goes alone
    refuse_after = passing;
    p.a.tx_flush({});
    EXPECT_TRUE(p.a.has_unsent());
  }
  refuse_after = -1;
  p.a.tx_flush({});
  expect_all();
}

INSTANTIATE_TEST_SUITE_P(Families, UdpPortEcn, testing::Values("127.0.0.1", "::1"),
                         [](const auto& ip) { return std::strchr(ip.param, ':') != nullptr ? "ipv6" : "ipv4"; });

TEST(UdpPort, receive_tos__off_reads_zero) {
  UdpPortOptions o;
  o.addresses = {*parse_ip("127.0.0.1")};
  o.wanted_port = 0;
  o.dscp = 46;
  UdpPort a, b;
  std::string error;
  ASSERT_TRUE(a.open(o, &error) && b.open(o, &error)) << error;
  RxFrame rx[kBurst];
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(send(a, make_frame(a.local_endpoint(0), b.local_endpoint(0), 40, 1)));
    a.tx_flush({});
    ASSERT_EQ(receive(b, rx, kBurst), 1u);
    Bytes expected = make_frame(a.local_endpoint(0), b.local_endpoint(0), 40, 1, 0);
    EXPECT_EQ(Bytes(rx[0].data, rx[0].data + rx[0].bytes), expected);
    EXPECT_EQ(b.rx_burst(rx, kBurst), 0u);
  }
}

TEST(UdpPort, bursts_and_order) {
  Pair p;
  ASSERT_TRUE(p.open("127.0.0.1"));
  int sent = 0, got = 0;
  RxFrame rx[kBurst];
  while (got < 500) {
    for (int i = 0; i < 40 && sent < 500; ++i, ++sent) {
      Bytes f = make_frame(p.a.local_endpoint(0), p.b.local_endpoint(0), 100, static_cast<uint8_t>(sent));
      ASSERT_TRUE(send(p.a, f));
    }
    p.a.tx_flush({});
    size_t n = receive(p.b, rx, kBurst);
    ASSERT_GT(n, 0u);
    for (size_t i = 0; i < n; ++i, ++got) ASSERT_EQ(static_cast<uint8_t>(rx[i].data[42]), got & 0xff);
    p.b.rx_release();
  }
  EXPECT_EQ(got, 500);
}

TEST(UdpPort, tx_begin__null_when_all_slots_are_open_and_back_after_abort) {
  Pair p;
  ASSERT_TRUE(p.open("127.0.0.1"));
  std::set<std::byte*> open;
  while (std::byte* f = p.a.tx_begin(5, 200)) ASSERT_TRUE(open.insert(f).second);
  EXPECT_EQ(open.size(), 64u);
  EXPECT_EQ(p.a.counters().tx_no_room, 1u);
  for (std::byte* f : open) p.a.tx_abort(5, f);
  EXPECT_NE(p.a.tx_begin(5, 200), nullptr);
  EXPECT_EQ(p.a.tx_begin(5, 100000), nullptr);
}

TEST(UdpPort, tx_flush__full_socket_buffer_keeps_the_rest_in_order) {
  Pair p;
  ASSERT_TRUE(p.open("127.0.0.1"));
  int sent = 0, got = 0;
  RxFrame rx[kBurst];
  auto fill = [&] {
    while (sent < 300 &&
           send(p.a, make_frame(p.a.local_endpoint(0), p.b.local_endpoint(0), 100, static_cast<uint8_t>(sent))))
      ++sent;
  };
  refuse_with = EAGAIN;
  refuse_after = 10;
  fill();
  // The batch is 64: it left by itself as far as it could, then there was no room.
  EXPECT_EQ(sent, 74);
  EXPECT_EQ(p.a.counters().tx_again, 1u);
  EXPECT_EQ(p.a.tx_begin(5, 100), nullptr);
  p.a.tx_flush({});
  EXPECT_TRUE(p.a.has_unsent());
  EXPECT_EQ(p.a.counters().tx_again, 2u);
  // While it sleeps, room wakes it.
  std::vector<int> fds;
  p.a.fds(fds);
  p.a.prepare_sleep();
  pollfd poll_fd{fds[0], POLLIN, 0};
  EXPECT_EQ(::poll(&poll_fd, 1, 1000), 1);
  for (int round = 0; round < 1000 && got < 300; ++round) {
    refuse_after = round % 5;
    p.a.tx_flush({});
    fill();
    size_t n = p.b.rx_burst(rx, kBurst);
    for (size_t i = 0; i < n; ++i, ++got) ASSERT_EQ(static_cast<uint8_t>(rx[i].data[42]), got & 0xff);
  }
  refuse_after = -1;
  EXPECT_EQ(got, 300);
}

TEST(UdpPort, tx_flush__an_error_costs_one_frame) {
  Pair p;
  ASSERT_TRUE(p.open("127.0.0.1"));
  for (uint8_t i = 0; i < 5; ++i)
    ASSERT_TRUE(send(p.a, make_frame(p.a.local_endpoint(0), p.b.local_endpoint(0), 100, i)));
  refuse_with = EMSGSIZE;
  refuse_after = 0;
  p.a.tx_flush({});
  refuse_after = -1;
  EXPECT_EQ(p.a.counters().tx_drop_too_long, 5u);
  EXPECT_FALSE(p.a.has_unsent());
}

// A pair whose first port listens to an id, too. What is sent from there is refused for want of room until told
// otherwise.
struct IdPair : Pair {
  IdPair(const char* ip, uint32_t id) : ids{*parse_ip(ip), wire::port_of_id(id)} {
    EXPECT_TRUE(open(ip));
    claims.set_addresses({ids.ip});
    EXPECT_TRUE(claims.claim_id(id, &error)) << error;
    a.listen(claims.take_sockets());
  }
  void refuse(const wire::Endpoint& from, uint8_t frames) {
    refuse_with = EAGAIN;
    refuse_after = 0;
    for (uint8_t i = 0; i < frames; ++i) ASSERT_TRUE(send(a, make_frame(from, b.local_endpoint(0), 100, i)));
    a.tx_flush({});
    refuse_after = -1;
    EXPECT_TRUE(a.has_unsent());
  }
  bool wakes_who_sleeps() const {
    pollfd sleeper{a.rare_fd(), POLLIN, 0};
    return ::poll(&sleeper, 1, 0) == 1;
  }
  IdClaims claims;
  const wire::Endpoint ids;
};

TEST(UdpPort, stop_listening__takes_back_what_did_not_leave) {
  IdPair p("127.3.2.3", 1703);
  p.refuse(p.ids, 5);
  EXPECT_FALSE(p.wakes_who_sleeps());
  p.a.prepare_sleep();
  EXPECT_TRUE(p.wakes_who_sleeps()) << "room does";
  p.a.stop_listening(p.ids.port);
  EXPECT_FALSE(p.a.has_unsent());
  std::set<std::byte*> open;
  while (std::byte* f = p.a.tx_begin(5, 200)) ASSERT_TRUE(open.insert(f).second);
  EXPECT_EQ(open.size(), 64u);
}

// Who does not sleep any longer is not woken for room, whether the frames left meanwhile or not.
TEST(UdpPort, finish_sleep__room_wakes_nobody) {
  IdPair p("127.3.2.4", 1704);
  for (const wire::Endpoint& from : {p.a.local_endpoint(0), p.ids}) {
    p.refuse(from, 1);
    p.a.prepare_sleep();
    EXPECT_TRUE(p.wakes_who_sleeps());
    p.a.finish_sleep();
    EXPECT_FALSE(p.wakes_who_sleeps());
    p.a.tx_flush({});
    EXPECT_FALSE(p.a.has_unsent());
  }
}

// Room in a socket of ids is noticed once by who drives on without sleeping.
TEST(UdpPort, rx_burst__room_in_a_rare_socket_is_not_looked_at_for_ever) {
  IdPair p("127.3.2.5", 1705);
  p.refuse(p.ids, 1);
  p.a.prepare_sleep();
  EXPECT_TRUE(p.wakes_who_sleeps());
  RxFrame rx[kBurst];
  p.a.look_at_rare();
  EXPECT_EQ(p.a.rx_burst(rx, kBurst), 0u);
  EXPECT_FALSE(p.wakes_who_sleeps());
}

// What was committed and not yet flushed finds room whenever it is flushed: it wakes nobody.
TEST(UdpPort, prepare_sleep__frames_that_were_not_refused_wake_nobody) {
  Pair p;
  ASSERT_TRUE(p.open("127.0.0.1"));
  ASSERT_TRUE(send(p.a, make_frame(p.a.local_endpoint(0), p.b.local_endpoint(0), 64, 1)));
  p.a.prepare_sleep();
  EXPECT_FALSE(rings(p.a, 0));
  p.a.tx_flush({});
  EXPECT_TRUE(rings(p.b, 1000));
}

TEST(UdpPort, drops_have_names) {
  Pair p;
  ASSERT_TRUE(p.open("127.0.0.1"));
  // From an address that is not ours; not IP; lengths that lie.
  wire::Endpoint stranger{*parse_ip("10.9.8.7"), 1};
  ASSERT_TRUE(send(p.a, make_frame(stranger, p.b.local_endpoint(0), 64, 1)));
  Bytes bad = make_frame(p.a.local_endpoint(0), p.b.local_endpoint(0), 64, 1);
  bad[12] = std::byte{0x88};
  ASSERT_TRUE(send(p.a, bad));
  bad = make_frame(p.a.local_endpoint(0), p.b.local_endpoint(0), 64, 1);
  bad[38] = std::byte{0x77};
  ASSERT_TRUE(send(p.a, bad));
  bad[38] = bad[39] = std::byte{0};
  ASSERT_TRUE(send(p.a, bad));
  EXPECT_EQ(p.a.counters().tx_drop_bad_frame, 4u);
  // An address that a socket bound to loopback cannot reach.
  ASSERT_TRUE(send(p.a, make_frame(p.a.local_endpoint(0), stranger, 64, 1)));
  p.a.tx_flush({});
  EXPECT_EQ(p.a.counters().tx_drop_unreachable, 1u);
  EXPECT_FALSE(p.a.has_unsent());
  // Longer than the receiver's port allows.
  UdpPort small;
  UdpPortOptions o;
  o.addresses = {*parse_ip("127.0.0.1")};
  o.wanted_port = 0;
  o.mtu = 1024;
  ASSERT_TRUE(small.open(o, &p.error));
  ASSERT_TRUE(send(p.a, make_frame(p.a.local_endpoint(0), small.local_endpoint(0), 4000, 1)));
  p.a.tx_flush({});
  RxFrame rx[kBurst];
  for (int i = 0; i < 1000 && small.counters().rx_drop_too_long == 0; ++i) EXPECT_EQ(small.rx_burst(rx, kBurst), 0u);
  EXPECT_EQ(small.counters().rx_drop_too_long, 1u);
}

TEST(UdpPort, open__same_port_on_all_addresses_and_the_next_instance_takes_another) {
  UdpPortOptions o;
  o.addresses = {*parse_ip("127.0.0.1"), *parse_ip("127.0.0.2"), *parse_ip("127.0.0.3")};
  o.wanted_port = 0;
  UdpPort a, b, c;
  std::string error;
  ASSERT_TRUE(a.open(o, &error)) << error;
  EXPECT_NE(a.port(), 0);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(a.local_endpoint(i).port, a.port());
  o.wanted_port = a.port();
  ASSERT_TRUE(b.open(o, &error)) << error;
  EXPECT_NE(b.port(), a.port());
  o.port_required = true;
  EXPECT_FALSE(c.open(o, &error));
  EXPECT_NE(error.find(std::to_string(a.port())), std::string::npos) << error;
  o.addresses = {*parse_ip("192.0.2.1")};
  EXPECT_FALSE(c.open(o, &error));
  EXPECT_NE(error.find("not one of this host"), std::string::npos) << error;
  // Several sockets: each is heard.
  RxFrame rx[kBurst];
  for (size_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(send(b, make_frame(b.local_endpoint(1), a.local_endpoint(i), 64, static_cast<uint8_t>(i), 0)));
    b.tx_flush({});
    ASSERT_EQ(receive(a, rx, kBurst), 1u);
    EXPECT_EQ(static_cast<uint8_t>(rx[0].data[42]), i);
  }
}

TEST(UdpPort, prepare_sleep__a_packet_wakes_a_sleeper) {
  Pair p;
  ASSERT_TRUE(p.open("127.0.0.1"));
  EXPECT_FALSE(p.b.prepare_sleep());
  EXPECT_FALSE(rings(p.b, 0));
  Bytes f = make_frame(p.a.local_endpoint(0), p.b.local_endpoint(0), 64, 1);
  ASSERT_TRUE(send(p.a, f));
  p.a.tx_flush({});
  EXPECT_TRUE(rings(p.b, 1000));
  // Waiting already when it goes to sleep.
  EXPECT_FALSE(p.b.prepare_sleep());
  EXPECT_TRUE(rings(p.b, 1000));
  p.b.finish_sleep();
  RxFrame rx[kBurst];
  EXPECT_EQ(receive(p.b, rx, kBurst), 1u);
}

// Room is news for who sleeps, so a port that is mute has to be unmuted before.
TEST(UdpPort, mute__room_wakes_nobody_until_it_is_unmuted) {
  Pair p;
  ASSERT_TRUE(p.open("127.0.0.1"));
  refuse_after = 0;
  refuse_with = EAGAIN;
  ASSERT_TRUE(send(p.a, make_frame(p.a.local_endpoint(0), p.b.local_endpoint(0), 100, 1)));
  p.a.tx_flush({});
  ASSERT_TRUE(p.a.has_unsent());
  pollfd room{p.a.rare_fd(), POLLIN, 0};
  p.a.mute();
  p.a.prepare_sleep();
  EXPECT_EQ(::poll(&room, 1, 0), 0);
  for (int again = 0; again < 2; ++again) EXPECT_TRUE(p.a.unmute());
  p.a.prepare_sleep();
  EXPECT_EQ(::poll(&room, 1, 1000), 1);
  refuse_after = -1;
}

TEST(UdpPort, mtu) {
  Pair p;
  ASSERT_TRUE(p.open("127.0.0.1", 8192));
  EXPECT_EQ(p.a.mtu(), 8192u);
  EXPECT_EQ(p.a.link_config().mtu, 8192u);
  EXPECT_FALSE(p.a.link_config().lossless);
  EXPECT_FALSE(p.open("127.0.0.1", 1500));
  EXPECT_NE(p.error.find("1500"), std::string::npos);
}

// ---- RoCE ----------------------------------------------------------------------------------------------------------

// Ports of RoCE at addresses of loopback that no other process of these tests has.
class UdpPortRoce : public testing::TestWithParam<bool> {
 protected:
  static wire::IpAddress address(uint8_t last) {
    const auto pid = static_cast<uint32_t>(::getpid());
    return wire::IpAddress::from_v4(127U << 24 | (pid & 0x3fff) << 8 | last);
  }
  bool open(UdpPort& port, const wire::IpAddress& ip, uint32_t link) {
    UdpPortOptions o;
    o.addresses = {ip};
    o.wanted_port = 0;
    o.mtu = 1024;
    if (!port.open(o, &error)) return false;
    port.set_link(link);
    port.open_roce([this](const std::string& sentence) { notices.push_back(sentence); });
    return true;
  }
  void SetUp() override {
    if (GetParam()) {  // there is one address only
      here = there = *parse_ip("::1");
      if (!open(a, here, 5)) GTEST_SKIP() << "no IPv6 here: " << error;
    } else {
      here = address(1), there = address(2);
      ASSERT_TRUE(open(a, here, 5)) << error;
      ASSERT_TRUE(open(b, there, 6)) << error;
    }
    if (!notices.empty()) GTEST_SKIP() << notices[0];
  }
  static wire::Endpoint roce_at(const wire::IpAddress& ip) { return {ip, roce::kUdpPort}; }

  UdpPort a, b;
  wire::IpAddress here, there;
  std::string error;
  std::vector<std::string> notices;
  RxFrame rx[kBurst];
};

TEST_P(UdpPortRoce, both_protocols_keep_their_ports) {
  UdpPort& other = GetParam() ? a : b;
  EXPECT_EQ(a.link_config().roce_port, roce::kUdpPort);
  EXPECT_TRUE(a.link_config().identification_lost);
  EXPECT_TRUE(a.has_roce(here));
  EXPECT_FALSE(a.has_roce(address(3)));
  EXPECT_NE(a.port(), roce::kUdpPort);
  const Bytes roce = make_frame(roce_at(here), roce_at(there), 100, 1, 0);
  const Bytes ub = make_frame(a.local_endpoint(0), other.local_endpoint(0), 200, 2, 0);
  for (const Bytes& f : {roce, ub, roce, ub}) {
    ASSERT_TRUE(send(a, f));
    a.tx_flush({});
    ASSERT_EQ(receive(other, rx, kBurst), 1u);
    EXPECT_EQ(rx[0].link, other.link());
    EXPECT_EQ(Bytes(rx[0].data, rx[0].data + rx[0].bytes), f);
  }
  EXPECT_EQ(a.counters().tx_frames, 4u);
  EXPECT_EQ(other.counters().rx_frames, 4u);
}

TEST_P(UdpPortRoce, a_packet_wakes_a_sleeper) {
  UdpPort& other = GetParam() ? a : b;
  EXPECT_FALSE(other.prepare_sleep());
  EXPECT_FALSE(rings(other, 0));
  ASSERT_TRUE(send(a, make_frame(roce_at(here), roce_at(there), 64, 1)));
  a.tx_flush({});
  EXPECT_TRUE(rings(other, 1000));
}

TEST_P(UdpPortRoce, somebody_else_has_the_port) {
  UdpPort late;
  ASSERT_TRUE(open(late, here, 7)) << error;
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_NE(notices[0].find(to_text(here)), std::string::npos) << notices[0];
  EXPECT_NE(notices[0].find("4791"), std::string::npos) << notices[0];
  EXPECT_FALSE(late.has_roce(here));
  ASSERT_TRUE(send(late, make_frame(roce_at(here), roce_at(there), 64, 1)));
  EXPECT_EQ(late.counters().tx_drop_bad_frame, 1u);
  // UB goes on.
  ASSERT_TRUE(send(late, make_frame(late.local_endpoint(0), a.local_endpoint(0), 64, 1)));
  late.tx_flush({});
  EXPECT_EQ(receive(a, rx, kBurst), 1u);
}

// Who opens anew gets a port for UB only until it asks for RoCE again, and leaves 4791 to others.
TEST_P(UdpPortRoce, close_gives_the_port_back) {
  a.close();
  EXPECT_FALSE(a.has_roce(here));
  UdpPort next;
  ASSERT_TRUE(open(next, here, 7)) << error;
  EXPECT_TRUE(notices.empty());
  EXPECT_TRUE(next.has_roce(here));
}

INSTANTIATE_TEST_SUITE_P(Families, UdpPortRoce, testing::Bool(),
                         [](const auto& v6) { return v6.param ? "ipv6" : "ipv4"; });

TEST(LoopbackPort, echoes_at_the_next_burst) {
  LoopbackPort port;
  ASSERT_TRUE(port.ok());
  port.set_link(9);
  EXPECT_TRUE(port.link_config().lossless);
  RxFrame rx[kBurst];
  for (int i = 0; i < 5000; ++i) {
    EXPECT_EQ(port.rx_burst(rx, kBurst), 0u);
    std::byte* f = port.tx_begin(9, 4200);
    ASSERT_NE(f, nullptr);
    std::memset(f, i, 4200);
    port.tx_commit(9, f, 100 + i % 4000);
    port.tx_flush({});
    EXPECT_TRUE(port.prepare_sleep());
    ASSERT_EQ(port.rx_burst(rx, kBurst), 1u);
    EXPECT_EQ(rx[0].bytes, 100u + i % 4000);
    EXPECT_EQ(rx[0].link, 9u);
    EXPECT_EQ(rx[0].data[50], static_cast<std::byte>(i));
    port.rx_release();
    EXPECT_FALSE(port.prepare_sleep());
  }
}

}  // namespace
}  // namespace ub
