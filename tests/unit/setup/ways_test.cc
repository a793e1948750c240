// SPDX-License-Identifier: Apache-2.0
//
// By which of several pairs of addresses a peer is found, and a channel is set up.
#include "lib/transport/setup/ways.h"

#include <set>
#include <utility>

#include "lib/transport/setup/finding.h"
#include "tests/unit/setup/paths.h"

namespace ub::setup {
namespace {

using Ports = std::vector<uint16_t>;

// The REQs of a channel whose peer does not answer, `rounds` of them: their source ports.
Ports ports_of_requests(Paths& i, int rounds) {
  Ports ports;
  const uint32_t channel = i.connect();
  for (int n = 0; n < rounds; ++n, i.timer(channel)) {
    for (const OutRecord& out : i.sent()) {
      if (out.record.type == RecordType::kReq) ports.push_back(out.local.port);
    }
  }
  return ports;
}

TEST(Ways, asks_on_all_of_them_in_turn) {
  Paths i;
  const uint16_t usual = i.from.local.port;
  i.add_ports(2);
  EXPECT_EQ(ports_of_requests(i, 4), (Ports{usual, 30001, 30002, usual}));
}

TEST(Ways, asks_on_the_usual_one_where_the_channel_may_have_one_only) {
  Paths i(several(1));
  const uint16_t usual = i.from.local.port;
  i.add_ports(2);
  EXPECT_EQ(ports_of_requests(i, 3), (Ports{usual, usual, usual}));
}

TEST(Ways, offers_each_mtu_on_each_of_them_sooner_or_later) {
  CoreConfig patient = several();
  patient.channel_timeout = seconds(1000);
  for (const uint16_t further : {1, 2, 5}) {  // six ways are as many as the REQs of a round
    Paths i(patient);
    i.add_ports(further);
    std::set<std::pair<uint16_t, uint16_t>> offers;
    const uint32_t channel = i.connect();
    for (int n = 0; n < 6 * 6; ++n, i.timer(channel)) {
      for (const OutRecord& out : i.sent()) offers.emplace(out.local.port, out.record.mtu);
    }
    EXPECT_EQ(offers.size(), 3u * (1 + further)) << further;
  }
}

TEST(Ways, takes_the_one_that_the_answer_comes_by_and_asks_about_the_others) {
  Paths i;
  i.add_ports(1);
  const uint32_t channel = i.connect();
  i.sent();
  i.timer(channel);
  EXPECT_EQ(i.only().local, Paths::port(1));
  on_record(*i.s, i.over(Paths::port(1), i.from.remote), i.of(channel, RecordType::kRep));
  ASSERT_TRUE(i.ch(channel).is_up());
  EXPECT_EQ(i.path(channel, 0).local, Paths::port(1));
  const std::vector<OutRecord> pings = i.pings();
  ASSERT_EQ(pings.size(), 1u);
  EXPECT_EQ(pings[0].local, i.from.local);
  i.answer(pings[0]);
  EXPECT_TRUE(i.path(channel, 1).live);
}

TEST(Ways, takes_a_late_answer_by_the_one_before) {
  Paths i;
  i.add_ports(1);
  const uint32_t channel = i.connect();
  i.timer(channel);
  i.sent();
  on_record(*i.s, i.from, i.of(channel, RecordType::kRep));
  ASSERT_TRUE(i.ch(channel).is_up());
  EXPECT_EQ(i.path(channel, 0).local, i.from.local);
}

TEST(Ways, drops_an_answer_from_an_address_of_no_path) {
  Paths i;
  i.add_ports(1);
  const uint32_t channel = i.connect();
  Arrival other = i.from;
  other.remote.ip = wire::IpAddress::from_v4(0x0A000009);
  on_record(*i.s, other, i.of(channel, RecordType::kRep));
  EXPECT_FALSE(i.ch(channel).is_up());
  EXPECT_EQ(i.count(Counter::kRxDropRecordPeer), 1u);
}

// Of the usual address, the peer may have looked up another port, and which of our addresses it answers to is its
// choice. Of any other, both addresses are those of a way.
TEST(Ways, are_those_that_an_answer_may_come_by) {
  const auto at = [](uint32_t host, uint16_t port) { return wire::Endpoint{wire::IpAddress::from_v4(host), port}; };
  const Way usual{at(1, 10), at(2, 20)}, other{at(3, 30), at(4, 40)};
  Ways ways;
  for (const Way& way : {usual, other}) ways.add(way);
  const auto may_come = [&](const wire::Endpoint& local, const wire::Endpoint& remote) {
    return ways.has({1, local, remote});
  };
  EXPECT_TRUE(may_come(usual.local, usual.remote));
  EXPECT_TRUE(may_come(usual.local, at(2, 21)));
  EXPECT_TRUE(may_come(other.local, usual.remote));
  EXPECT_TRUE(may_come(at(9, 90), usual.remote));
  EXPECT_TRUE(may_come(other.local, other.remote));
  EXPECT_TRUE(may_come(other.local, at(4, 41)));
  EXPECT_FALSE(may_come(usual.local, other.remote));
  EXPECT_FALSE(may_come(at(3, 31), other.remote));
  EXPECT_FALSE(may_come(other.local, at(9, 40)));
  EXPECT_FALSE(may_come(usual.local, at(9, 20)));
}

// The peer asks, and then once more by another path.
struct AskedTwice : Paths {
  explicit AskedTwice(const Arrival& second, uint16_t its_mtu = 4096) {
    ControlRecord request = request_of_peer();
    request.several_paths = true;
    channel = half_open(request);
    request.mtu = its_mtu;
    on_record(*s, second, request);
    const OutRecord answer = only();
    EXPECT_EQ(answer.local, second.local);
    EXPECT_EQ(answer.remote, second.remote);
    EXPECT_EQ(ch(channel).local_endpoint, second.local);
    EXPECT_EQ(ch(channel).remote_endpoint, second.remote);
  }
  /// But it has got the first answer, and confirms that.
  void confirm_first() {
    on_record(*s, from, of(channel, RecordType::kConf));
    ASSERT_TRUE(ch(channel).is_up());
    EXPECT_EQ(ch(channel).local_endpoint, from.local);
    EXPECT_EQ(ch(channel).remote_endpoint, from.remote);
  }
  uint32_t channel = 0;
};

const Arrival kUsual = Paths().from;
const wire::Endpoint kOther{wire::IpAddress::from_v4(0x0A000102), 4792};

// The answers on the first path may be lost, so the one that is asked answers where it is asked.
TEST(Ways, answers_a_request_that_comes_again_by_another_on_that) {
  AskedTwice({kUsual.link, kUsual.local, kOther}).confirm_first();
  AskedTwice({kUsual.link, kOther, kUsual.remote}).confirm_first();
}

// Data must not open a channel whose MTU is not known: the peer may have taken the answer to either of its requests.
TEST(Ways, of_which_each_was_asked_with_another_mtu_leave_that_to_the_confirmation) {
  AskedTwice i({kUsual.link, kUsual.local, kOther}, 2048);
  EXPECT_TRUE(i.ch(i.channel).several_mtus);
  i.confirm_first();
  EXPECT_EQ(i.ch(i.channel).mtu, 4096);
}

// Our request wins, but its path may be cut; this end knows no other.
TEST(Ways, of_a_request_that_loses_are_those_of_the_one_that_wins) {
  Paths i;
  const uint32_t channel = i.connect();
  i.sent();
  ControlRecord request = i.request_of_peer();
  request.several_paths = true;
  const Arrival by_another{i.from.link, i.from.local, kOther};
  on_record(*i.s, by_another, request);
  const std::vector<OutRecord> out = i.sent();
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[0].record.reason, RecordReason::kGlare);
  EXPECT_EQ(out[1].record.type, RecordType::kReq);
  EXPECT_EQ(out[1].remote, kOther);
  on_record(*i.s, by_another, request);
  EXPECT_EQ(i.only().record.reason, RecordReason::kGlare) << "it was asked there";
  on_record(*i.s, by_another, i.of(channel, RecordType::kRep));
  ASSERT_TRUE(i.ch(channel).is_up());
  EXPECT_EQ(i.ch(channel).remote_endpoint, kOther);
}

TEST(Ways, of_a_request_that_loses_are_nothing_to_a_channel_with_one_path) {
  for (const bool ours : {false, true}) {
    Paths i(several(ours ? 4 : 1));
    const uint32_t channel = i.connect();
    i.sent();
    ControlRecord request = i.request_of_peer();
    request.several_paths = !ours;
    on_record(*i.s, {i.from.link, i.from.local, kOther}, request);
    EXPECT_EQ(i.only().record.reason, RecordReason::kGlare);
    EXPECT_EQ(i.ch(channel).remote_endpoint, i.from.remote);
  }
}

// ---- finding ---------------------------------------------------------------------------------------------------

// In a daemon each application has channels of its own, and only the peer may know that there are several paths.
TEST(Ways, are_those_too_on_which_other_channels_to_that_instance_live) {
  Paths i;
  const uint32_t channel = i.open();
  for (const uint16_t n : {1, 2}) on_record(*i.s, i.over(Paths::port(n), kOtherHost), i.of(channel, RecordType::kPing));
  ASSERT_EQ(i.paths(channel), 3u);
  // Of another application, and named with another address of the same instance.
  Peer peer = i.s->peers[i.ch(channel).peer];
  peer.path.remote.ip.bytes[15] ^= 0x55;
  EXPECT_EQ(ways_to(*i.s, peer, kSmallLane).size(), 2u) << "those that were learned do not live yet";
  tp::path_answers(*i.s, channel, 2, i.s->now, microseconds(10));
  tp::suspect_path(*i.s, channel, 0, i.s->now);
  const Ways ways = ways_to(*i.s, peer, kSmallLane);
  ASSERT_EQ(ways.size(), 2u);
  EXPECT_EQ(ways[1].local, Paths::port(2));
  EXPECT_EQ(ways[1].remote, kOtherHost);
  EXPECT_EQ(ways_to(*i.s, peer, kSmallLane)[0].remote, peer.path.remote) << "the usual one first";
  EXPECT_EQ(ways_to(*i.s, peer.path, kSmallLane).size(), 1u) << "whoever is there";
  Peer other = peer;
  ++other.instance.uasid;
  EXPECT_EQ(ways_to(*i.s, other, kSmallLane).size(), 1u) << "of another instance there";
  i.ch(channel).state = ChannelState::kClosing;
  EXPECT_EQ(ways_to(*i.s, peer, kSmallLane).size(), 1u);
}

TEST(Ways, has_each_once_and_as_many_as_there_is_room_for) {
  Ways ways;
  for (int round = 0; round < 2; ++round)
    for (uint16_t n = 1; n <= 10; ++n) ways.add({Paths::port(n), kOtherHost});
  EXPECT_EQ(ways.size(), 10u);
  for (uint16_t n = 1; n <= 1000; ++n) ways.add({Paths::port(n), kOtherHost});
  EXPECT_EQ(ways.size(), 1 + kMaxExtraPaths + Ways::kMostPathsOfChannels);
}

TEST(Ways, are_asked_in_turn_for_an_id) {
  Paths i;
  i.add_ports(1);
  FindConfig what;
  what.local_eid = i.s->config.self.eid;
  what.eid = i.peer_id.eid;
  what.id = 4711;
  what.path = {1, i.from.local, i.from.remote};
  uint32_t uasid = 0;
  Ports ports;
  OutRecord last;
  for (int n = 0; n < 3; ++n, i.s->now += milliseconds(100)) {
    ASSERT_EQ(find(*i.s, what, &uasid), Status::kBusy);
    last = i.only();
    ports.push_back(last.local.port);
  }
  EXPECT_EQ(ports, (Ports{i.from.local.port, 30001, i.from.local.port}));
  ControlRecord found;
  found.type = RecordType::kFound;
  found.attempt = last.record.attempt;
  found.object = what.id;
  found.upi = i.s->config.upi;
  found.sender_eid = i.peer_id.eid;
  found.wanted_eid = what.local_eid;
  found.sender_uasid = 77;
  on_record(*i.s, i.over(Paths::port(1), i.from.remote), found);
  EXPECT_EQ(find(*i.s, what, &uasid), Status::kOk);
  EXPECT_EQ(uasid, 77u);
}

}  // namespace
}  // namespace ub::setup
