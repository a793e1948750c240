// SPDX-License-Identifier: Apache-2.0
//
// Ids that the kernel lets one instance of the host have. Instances are IdClaims of their own here: the kernel makes no
// difference between sockets of one process and of several. Ports are taken for moments only; where another program has
// one, tests take the next.
#include "dataplane/id_claims.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "dataplane/eid.h"
#include "dataplane/udp_port.h"
#include "lib/transport/wire/id_port.h"

namespace ub {
namespace {

const wire::IpAddress kHere = wire::IpAddress::from_v4(0x7f030201), kThere = wire::IpAddress::from_v4(0x7f030202);

struct Instance : IdClaims {
  explicit Instance(std::vector<wire::IpAddress> addresses = {kHere}) { set_addresses(std::move(addresses)); }
  bool has_block(uint32_t block) { return has(wire::port_of_block(block)); }
  std::string why;
};

TEST(IdClaims, block__is_one_instances) {
  Instance a, b, elsewhere({kThere});
  const auto block = a.claim_block(0, &a.why);
  ASSERT_TRUE(block) << a.why;
  EXPECT_EQ(a.why, "");
  EXPECT_GE(*block, wire::kFirstIdBlock);
  EXPECT_LT(*block, wire::kIdBlocks);
  EXPECT_TRUE(a.has_block(*block));
  EXPECT_FALSE(b.claim_id(*block * wire::kIdsOfBlock, &b.why));
  EXPECT_EQ(b.why, "") << "simply somebody else's";
  EXPECT_FALSE(b.has_block(*block));
  EXPECT_TRUE(elsewhere.claim_id(*block * wire::kIdsOfBlock + 7, &b.why)) << b.why;
}

TEST(IdClaims, block__that_was_named_and_is_taken_says_what_to_do) {
  Instance a, b;
  const uint32_t block = a.claim_block(0, &a.why).value();
  EXPECT_FALSE(b.claim_block(block, &b.why));
  for (const char* part : {"block ", "UDP port", "127.3.2.1", "device.id_block"}) {
    EXPECT_NE(b.why.find(part), std::string::npos) << part << " in: " << b.why;
  }
  EXPECT_NE(b.why.find(std::to_string(wire::port_of_block(block))), std::string::npos) << b.why;
}

TEST(IdClaims, all_of_a_host__are_given_out_once_and_no_more_than_a_share_to_one) {
  struct rlimit limit;
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  if (limit.rlim_max < 1200) GTEST_SKIP() << "may open only " << limit.rlim_max << " files";
  limit.rlim_cur = limit.rlim_max;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  Instance all[5];
  size_t count = 0;
  std::string why;
  for (Instance& instance : all) {
    while (instance.claim_block(0, &why)) ++count;
    EXPECT_LE(instance.blocks().size(), 256u);
  }
  EXPECT_EQ(all[0].blocks().size(), 256u);
  EXPECT_GE(count, 1000u) << "other programs have the rest";
  EXPECT_LE(count, 1021u);
  EXPECT_NE(why.find("no block of ids"), std::string::npos) << why;
}

TEST(IdClaims, killed_instance__gives_back_what_it_had) {
  int told[2];
  ASSERT_EQ(::pipe(told), 0);
  const pid_t pid = ::fork();
  if (pid == 0) {
    Instance child;
    const uint32_t block = child.claim_block(0, &child.why).value_or(0);
    const bool single = child.claim_id(1717, &child.why);
    const uint32_t had[] = {block, single ? 1717u : 0u};
    if (::write(told[1], had, sizeof had) != sizeof had) ::_exit(1);
    ::pause();
  }
  uint32_t had[2];
  ASSERT_EQ(::read(told[0], had, sizeof had), static_cast<ssize_t>(sizeof had));
  ASSERT_NE(had[0], 0u);
  ASSERT_NE(had[1], 0u);
  Instance heir;
  EXPECT_FALSE(heir.claim_id(1717, &heir.why));
  ::kill(pid, SIGKILL);
  EXPECT_EQ(heir.claim_block(had[0], &heir.why), had[0]) << heir.why;  // waits until the kernel is done with it
  ::waitpid(pid, nullptr, 0);
  EXPECT_TRUE(heir.claim_id(1717, &heir.why)) << heir.why;
  for (int fd : told) ::close(fd);
}

TEST(IdClaims, every_address__or_none) {
  Instance one({kThere}), both({kHere, kThere}), other({kHere});
  const uint32_t block = one.claim_block(0, &one.why).value();
  EXPECT_FALSE(both.claim_id(block * wire::kIdsOfBlock, &both.why));
  EXPECT_TRUE(other.claim_id(block * wire::kIdsOfBlock, &other.why)) << "what was not had is not kept: " << other.why;
}

TEST(IdClaims, ids_asked_for__are_released_with_their_last_claim) {
  Instance a, b;
  EXPECT_TRUE(a.claim_id(1500, &a.why)) << a.why;
  EXPECT_TRUE(a.claim_id(1500, &a.why));
  EXPECT_TRUE(a.claim_id(1501, &a.why));
  EXPECT_FALSE(b.claim_id(1500, &b.why));
  EXPECT_FALSE(a.release_id(1500));
  EXPECT_FALSE(b.claim_id(1500, &b.why));
  EXPECT_TRUE(a.release_id(1500));
  EXPECT_FALSE(a.release_id(1500));
  EXPECT_TRUE(b.claim_id(1500, &b.why)) << b.why;
  EXPECT_FALSE(b.claim_id(1501, &b.why));
  for (uint32_t none : {0u, 1u, 2u, kIdSpace, UINT32_MAX}) EXPECT_FALSE(a.claim_id(none, &a.why)) << none;
}

// Ids that are far apart cost a block each: nobody gets the host's that way.
TEST(IdClaims, blocks_for_single_ids__are_few) {
  Instance a;
  uint32_t had = 0;
  for (uint32_t block = wire::kFirstIdBlock; block < wire::kIdBlocks && a.why.empty(); ++block) {
    had += a.claim_id(block * wire::kIdsOfBlock, &a.why) ? 1 : 0;
  }
  EXPECT_EQ(had, 64u);
  EXPECT_NE(a.why.find("64 blocks"), std::string::npos) << a.why;
  EXPECT_TRUE(a.claim_block(0, &a.why)) << "for its own ids there are more: " << a.why;
}

TEST(IdClaims, no_descriptor__is_an_error_and_not_taken) {
  struct rlimit before, none;
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  none = before;
  none.rlim_cur = 0;
  Instance a;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto block = a.claim_block(0, &a.why);
  std::string why;
  const bool id = a.claim_id(1600, &why);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_FALSE(block);
  EXPECT_NE(a.why.find("open files"), std::string::npos) << a.why;
  EXPECT_FALSE(id);
  EXPECT_NE(why.find("open files"), std::string::npos) << why;
}

// ---- read by the UDP wire -------------------------------------------------------------------------------------

struct Wire : UdpPort {
  bool start(const wire::IpAddress& ip, std::vector<ClaimSocket>* bound, uint16_t port, std::string* error) {
    UdpPortOptions o;
    o.addresses = {ip};
    o.wanted_port = port;
    o.port_required = port != 0;
    const bool ok = open(o, error, nullptr, bound);
    set_link(3);
    return ok;
  }
  // What comes within some thousand looks.
  std::vector<RxFrame> receive() {
    std::vector<RxFrame> all;
    RxFrame frames[32];
    for (int look = 0; look < 4000 && all.empty(); ++look) {
      const size_t count = rx_burst(frames, 32);
      all.assign(frames, frames + count);
    }
    return all;
  }
  void send(const wire::Endpoint& from, const wire::Endpoint& to, uint8_t mark) {
    wire::NetTemplate t;
    t.init({}, {}, from, to, 0);
    std::byte* frame = tx_begin(3, t.size + 4);
    t.write(frame, 4, 0);
    std::memset(frame + t.size, mark, 4);
    tx_commit(3, frame, t.size + 4);
    tx_flush({});
  }
};

TEST(IdClaims, what_comes_to_a_port_of_ids__is_read_and_answered_from_there) {
  Instance holder;
  std::string error;
  ASSERT_TRUE(holder.claim_id(1700, &error) && holder.claim_id(1701, &error)) << error;
  Wire near, far;
  ASSERT_TRUE(near.start(kHere, nullptr, 0, &error) && far.start(kThere, nullptr, 0, &error)) << error;
  near.listen(holder.take_sockets());
  const wire::Endpoint ids{kHere, wire::port_of_id(1701)}, asker = far.local_endpoint(0);
  for (uint8_t mark = 1; mark <= 3; ++mark) far.send(asker, ids, mark);
  uint8_t next_mark = 1;
  while (next_mark <= 3) {
    const auto frames = near.receive();
    ASSERT_FALSE(frames.empty()) << "after " << int{next_mark};
    for (const RxFrame& frame : frames) {
      wire::NetHeader net;
      ASSERT_EQ(wire::parse_network({frame.data, frame.bytes}, net), wire::Drop::kNone);
      EXPECT_EQ(net.dst, ids);
      EXPECT_EQ(net.src, asker);
      EXPECT_EQ(static_cast<uint8_t>(frame.data[frame.bytes - 1]), next_mark++);
    }
  }
  near.send(ids, asker, 9);
  const auto answer = far.receive();
  ASSERT_EQ(answer.size(), 1u);
  wire::NetHeader net;
  ASSERT_EQ(wire::parse_network({answer[0].data, answer[0].bytes}, net), wire::Drop::kNone);
  EXPECT_EQ(net.src, ids);

  near.stop_listening(wire::port_of_id(1701));
  Instance next;
  EXPECT_FALSE(next.claim_id(1700, &error));
  EXPECT_TRUE(next.claim_id(1701, &error)) << "the port is free: " << error;
}

TEST(IdClaims, a_sleeper__is_woken_by_a_question) {
  Instance holder;
  std::string error;
  ASSERT_TRUE(holder.claim_id(1702, &error)) << error;
  Wire near, far;
  ASSERT_TRUE(near.start(kHere, nullptr, 0, &error) && far.start(kThere, nullptr, 0, &error)) << error;
  near.listen(holder.take_sockets());
  std::vector<int> fds;
  near.fds(fds);
  std::vector<pollfd> polled;
  for (int fd : fds) polled.push_back({fd, POLLIN, 0});
  near.prepare_sleep();
  EXPECT_EQ(::poll(polled.data(), polled.size(), 0), 0);
  far.send(far.local_endpoint(0), {kHere, wire::port_of_id(1702)}, 1);
  EXPECT_EQ(::poll(polled.data(), polled.size(), 10'000), 1);
  near.look_at_rare();
  RxFrame frame;
  EXPECT_EQ(near.rx_burst(&frame, 1), 1u) << "the first look finds it";
  EXPECT_EQ(::poll(polled.data(), polled.size(), 0), 0);
}

// An instance that is not the first one of its address has its wire at the port of its block.
TEST(IdClaims, the_wire__takes_a_port_that_is_bound_already) {
  Instance holder;
  std::string error;
  const uint32_t block = holder.claim_block(0, &error).value();
  std::vector<ClaimSocket> bound = holder.take_sockets();
  ASSERT_EQ(bound.size(), 1u);
  Wire near, far;
  ASSERT_TRUE(near.start(kHere, &bound, wire::port_of_block(block), &error)) << error;
  EXPECT_TRUE(bound.empty());
  EXPECT_EQ(near.port(), wire::port_of_block(block));
  ASSERT_TRUE(far.start(kThere, nullptr, 0, &error)) << error;
  far.send(far.local_endpoint(0), near.local_endpoint(0), 5);
  EXPECT_EQ(near.receive().size(), 1u);
}

}  // namespace
}  // namespace ub
