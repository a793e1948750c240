// SPDX-License-Identifier: Apache-2.0
//
// The table of instances that we know: who is the same, by which path it is reached, and when it is forgotten.
#include <set>

#include "tests/unit/setup/instance.h"

namespace ub::setup {
namespace {

struct Known : Instance {
  TargetConfig target(uint32_t uasid = 2) const {
    TargetConfig t;
    t.instance = peer_id;
    t.instance.uasid = uasid;
    t.path = {1, from.local, from.remote};
    return t;
  }
  uint32_t find(const TargetConfig& t) { return find_or_add_peer(*s, t); }
  uint32_t asks(const TargetConfig& t, uint32_t visitor = 0) { return find_or_add_asking_peer(*s, t, visitor); }
  // As the Core says it.
  void link_down(uint32_t link) {
    s->links[link].up = false;
    setup::link_down(*s, link);
  }
};

TEST(Peers, are_the_same_if_both_ends_and_both_applications_are) {
  Known k;
  const uint32_t first = k.find(k.target());
  ASSERT_NE(first, 0u);
  EXPECT_EQ(k.find(k.target()), first);
  TargetConfig t = k.target();
  t.local_eid = k.s->config.self.eid;
  EXPECT_EQ(k.find(t), first) << "ours by its name";
  std::set<uint32_t> all = {first};
  t.local_eid.bytes[0] = 7;
  EXPECT_TRUE(all.insert(k.find(t)).second) << "another EID of ours";
  EXPECT_TRUE(all.insert(k.find(k.target(3))).second);
  t = k.target();
  t.instance.eid.bytes[0] = 7;
  EXPECT_TRUE(all.insert(k.find(t)).second);
  t = k.target();
  t.owner = 5;
  EXPECT_TRUE(all.insert(k.find(t)).second);
  EXPECT_TRUE(all.insert(k.asks(k.target(), 5)).second);
  EXPECT_EQ(k.s->peers.in_use(), 6u);
}

TEST(Peers, a_new_record_begins_empty) {
  Known k;
  k.s->peers[k.s->peers.alloc()].users = 9;
  k.s->peers[1].lanes[0].channels[7] = k.s->peers[1].lanes[1].accepted[0] = 9;
  k.s->peers.free(1);
  TargetConfig t = k.target();
  t.owner = 5;
  const Peer& peer = k.s->peers[k.asks(t, 6)];
  EXPECT_EQ(peer.users, 0u);
  EXPECT_EQ(peer.lanes[0], Lane{});
  EXPECT_EQ(peer.lanes[1], Lane{});
  EXPECT_EQ(peer.local_eid, k.s->config.self.eid);
  EXPECT_EQ(peer.instance, t.instance);
  EXPECT_EQ(peer.owner, 5);
  EXPECT_EQ(peer.visitor, 6u);
  EXPECT_EQ(peer.path.link, 1u);
  EXPECT_EQ(peer.path.remote, k.from.remote);
  EXPECT_TRUE(peer.in_use);
}

// Of two that lie in the same bucket each is found.
TEST(Peers, of_different_eids_of_ours_are_different_wherever_they_lie) {
  Known k;
  const uint32_t first = k.find(k.target());
  TargetConfig t = k.target();
  uint32_t other = 0;
  for (int n = 0; n < 1 << 24; ++n) {
    for (size_t byte : {0, 1, 2}) t.local_eid.bytes[byte] = static_cast<uint8_t>(n >> 8 * byte);
    t.local_eid.bytes[3] = 1;
    other = k.find(t);
    if (k.s->peers[other].next_in_bucket == first) break;
    drop_unused_peer(*k.s, other);
  }
  ASSERT_EQ(k.s->peers[other].next_in_bucket, first);
  EXPECT_EQ(k.find(k.target()), first);
  EXPECT_EQ(k.find(t), other);
}

TEST(Peers, there_are_no_more_than_records) {
  Known k;
  for (uint32_t uasid = 2; uasid < 10; ++uasid) EXPECT_NE(k.find(k.target(uasid)), 0u);
  EXPECT_EQ(k.find(k.target(10)), 0u);
  EXPECT_NE(k.find(k.target(9)), 0u) << "the last one is found";
}

// A path is the newest that somebody named, while no channel uses it.
TEST(Peers, the_path_of_a_peer_without_channels_is_the_newest_one) {
  Known k;
  const uint32_t peer = k.find(k.target());
  TargetConfig t = k.target();
  t.path.remote.port = 5555;
  k.find(t);
  EXPECT_EQ(k.s->peers[peer].path.remote.port, 5555);
  for (uint32_t lane : {0u, 1u}) {
    k.s->peers[peer].lanes[lane].channels[0] = 7;
    t.path.remote.port = 6666;
    k.find(t);
    EXPECT_EQ(k.s->peers[peer].path.remote.port, 5555) << "lane " << lane << " uses it";
    k.s->peers[peer].path.link = 0;
    k.find(t);
    EXPECT_EQ(k.s->peers[peer].path.remote.port, 6666) << "there was none";
    k.s->peers[peer].lanes[lane].channels[0] = 0;
    t.path.remote.port = 5555;
    k.find(t);
  }
}

// Datagrams take it, and say by its address who sent them: of several paths that has to be the one of the EIDs.
TEST(Peers, the_path_that_an_application_names_is_better_than_one_that_a_request_came_by) {
  for (const bool has_channel : {false, true}) {
    Known k;
    TargetConfig other = k.target();
    other.path.remote.ip.bytes[15] ^= 1;
    const uint32_t peer = k.asks(other);
    const auto remote = [&] { return k.s->peers[peer].path.remote; };
    if (has_channel) k.s->peers[peer].lanes[0].channels[0] = 7;
    EXPECT_EQ(remote(), other.path.remote) << "none is known that is better";
    ASSERT_EQ(k.find(k.target()), peer);
    EXPECT_EQ(remote(), k.target().path.remote);
    EXPECT_EQ(k.asks(other), peer);
    EXPECT_EQ(remote(), k.target().path.remote);
    k.s->peers[peer].path.link = 0;
    k.asks(other);
    EXPECT_EQ(remote(), other.path.remote) << "its wire is gone";
    k.s->peers[peer].lanes[0] = {};
  }
}

TEST(Peers, a_request_over_another_wire_counts_while_no_channel_uses_the_former) {
  Known k;
  const uint32_t peer = k.find(k.target());
  TargetConfig other = k.target();
  ++other.path.link;
  k.s->peers[peer].lanes[0].channels[0] = 7;
  k.asks(other);
  EXPECT_EQ(k.s->peers[peer].path.link, k.target().path.link);
  k.s->peers[peer].lanes[0] = {};
  k.asks(other);
  EXPECT_EQ(k.s->peers[peer].path.link, other.path.link);
}

// Those of one EID share a bucket.
TEST(Peers, any_of_a_bucket_may_be_forgotten) {
  for (uint32_t forgotten : {2u, 3u, 4u}) {
    Known fresh;
    uint32_t of[5] = {};
    for (uint32_t uasid : {2u, 3u, 4u}) of[uasid] = fresh.find(fresh.target(uasid));
    drop_unused_peer(*fresh.s, of[forgotten]);
    EXPECT_FALSE(fresh.s->peers[of[forgotten]].in_use);
    EXPECT_EQ(fresh.s->peers.in_use(), 2u);
    for (uint32_t uasid : {2u, 3u, 4u}) {
      if (uasid == forgotten) continue;
      EXPECT_EQ(fresh.find(fresh.target(uasid)), of[uasid]);
    }
    EXPECT_EQ(fresh.s->peers.in_use(), 2u);
  }
}

TEST(Peers, one_that_somebody_uses_is_not_forgotten) {
  Known k;
  const uint32_t peer = k.find(k.target());
  k.s->peers[peer].users = 1;
  drop_unused_peer(*k.s, peer);
  EXPECT_TRUE(k.s->peers[peer].in_use);
}

// Whoever looks for a peer must not walk past all the others.
TEST(Peers, of_different_eids_lie_in_different_buckets) {
  Known k;
  const uint32_t *begin = k.s->peer_buckets, *end = begin + kPeerBuckets;
  for (bool remote : {false, true}) {
    for (size_t byte : {0, 7, 15}) {
      std::set<const uint32_t*> buckets;
      for (int n = 1; n < 256; ++n) {
        TargetConfig t = k.target();
        (remote ? t.instance.eid : t.local_eid).bytes[byte] ^= static_cast<uint8_t>(n);
        const uint32_t peer = k.find(t);
        buckets.insert(std::find(begin, end, peer));
        drop_unused_peer(*k.s, peer);
      }
      EXPECT_GE(buckets.size(), 220u) << remote << " " << byte;
    }
  }
}

TEST(Peers, of_eids_that_differ_in_two_places_lie_in_different_buckets) {
  Known k;
  const uint32_t *begin = k.s->peer_buckets, *end = begin + kPeerBuckets;
  for (bool remote : {false, true}) {
    std::set<const uint32_t*> buckets;
    for (int n = 0; n < 256; ++n) {
      TargetConfig t = k.target();
      Eid& eid = remote ? t.instance.eid : t.local_eid;
      eid.bytes[4] = static_cast<uint8_t>(1 + n / 16);
      eid.bytes[9] = static_cast<uint8_t>(1 + n % 16);
      const uint32_t peer = k.find(t);
      buckets.insert(std::find(begin, end, peer));
      drop_unused_peer(*k.s, peer);
    }
    EXPECT_GE(buckets.size(), 220u) << remote;
  }
}

// Sequence contexts of a peer end with its last channel, whoever asked for that.
TEST(Peers, are_connected_while_there_is_a_channel_to_them_or_from_them) {
  Known k;
  Peer& peer = k.s->peers[k.find(k.target())];
  EXPECT_FALSE(is_connected(peer));
  for (const uint32_t lane : {0u, kLanes - 1}) {
    for (const uint32_t place : {0u, kChannelsOfLane - 1}) {
      for (uint32_t* channel : {&peer.lanes[lane].channels[place], &peer.lanes[lane].accepted[place]}) {
        *channel = 7;
        EXPECT_TRUE(is_connected(peer)) << lane << " " << place;
        *channel = 0;
      }
    }
  }
}

// ---- links -----------------------------------------------------------------------------------------------------

TEST(LinkDown, ends_every_channel_of_the_link_and_no_path_leads_there) {
  Known k;
  const uint32_t first = k.open_as_initiator();
  k.peer_id.uasid = 3;
  const uint32_t second = k.connect();
  k.find(k.target(4));
  k.link_down(1);
  EXPECT_FALSE(alive(k.ch(first)));
  EXPECT_FALSE(alive(k.ch(second)));
  EXPECT_EQ(k.count(Counter::kTpChannelDead), 1u);
  for (uint32_t peer = 1; peer <= 3; ++peer) EXPECT_EQ(k.s->peers[peer].path.link, 0u);
}

TEST(LinkDown, takes_the_last_channel_too_and_leaves_those_of_other_links) {
  Known k;
  k.s->links[k.s->links.alloc()] = LinkRecord{.up = true, .config = {.mtu = 4096}};
  std::vector<uint32_t> channels;
  for (uint32_t uasid : {2u, 3u, 4u}) {
    k.peer_id.uasid = uasid;
    channels.push_back(k.open_as_initiator());
  }
  k.ch(channels[0]).link = k.ch(channels[2]).link = 2;
  k.peer_of(channels[2]).path.link = 2;
  k.link_down(2);
  EXPECT_FALSE(alive(k.ch(channels[0])));
  EXPECT_TRUE(alive(k.ch(channels[1])));
  EXPECT_FALSE(alive(k.ch(channels[2])));
  EXPECT_EQ(k.peer_of(channels[2]).path.link, 0u);
  EXPECT_EQ(k.peer_of(channels[1]).path.link, 1u);
}

}  // namespace
}  // namespace ub::setup
