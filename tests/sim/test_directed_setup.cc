// SPDX-License-Identifier: Apache-2.0
//
// Channels come up, are kept alive, die and come back: lost records, glare, versions, restarts, silence.
#include <algorithm>

#include "tests/sim/directed.h"

namespace ub::sim {
namespace {

using wire::RecordType;

constexpr CrStatus kSuccess = CrStatus::kSuccess;
constexpr uint32_t kMayTimeOut = bit(CrStatus::kAckTimeout);

TEST(Setup, lost_req__is_repeated) {
  Stage s;
  s.world.network.tamper.add(drop(2, record(0, RecordType::kReq)));
  const Wr& w = s.write(100);
  double took = s.finish();
  EXPECT_EQ(w.status, kSuccess);
  EXPECT_GE(took, 0.010);
  EXPECT_LT(took, 0.030);
}

TEST(Setup, lost_rep__is_given_again) {
  Stage s;
  std::vector<uint32_t> tpns;
  s.world.network.tamper.add(watch([&](const PacketInfo& p) {
    if (p.is_record(RecordType::kRep)) tpns.push_back(p.record.sender_tpn);
    return false;
  }));
  s.world.network.tamper.add(drop(1, record(1, RecordType::kRep)));
  const Wr& w = s.write(100);
  s.finish();
  EXPECT_EQ(w.status, kSuccess);
  ASSERT_GE(tpns.size(), 2u);
  EXPECT_EQ(tpns[0], tpns[1]);
  EXPECT_EQ(s.channels(s.a()).size(), 1u);
  EXPECT_EQ(s.channels(s.b()).size(), 1u);
}

TEST(Setup, lost_conf__data_confirms) {
  Stage s;
  s.world.network.tamper.add(drop(kAlways, record(0, RecordType::kConf)));
  const Wr& w = s.write(100);
  s.finish();
  EXPECT_EQ(w.status, kSuccess);
  EXPECT_EQ(s.channels(s.b()).size(), 1u);
}

TEST(Setup, half_open_channel__is_dropped) {
  Stage s;
  s.extra_allowed = kMayTimeOut;
  s.world.network.tamper.add(drop(kAlways, from(1, is_any)));  // REPs never arrive
  s.write(100);
  s.finish();
  s.world.network.tamper.clear();
  s.extra_allowed = 0;
  const Wr& w = s.write(100);
  s.finish();
  EXPECT_EQ(w.status, kSuccess);
  s.world.run_for(seconds(5));
  EXPECT_EQ(s.channels(s.b()).size(), 1u);
}

TEST(Setup, glare__leaves_one_channel) {
  Stage s;
  const Wr& w1 = s.request(s.a(), s.b(), WrOp::kWrite, 100);
  const Wr& w2 = s.request(s.b(), s.a(), WrOp::kWrite, 100);
  s.finish();
  EXPECT_EQ(w1.status, kSuccess);
  EXPECT_EQ(w2.status, kSuccess);
  s.quiet();
  EXPECT_EQ(s.channels(s.a()).size(), 1u);
  EXPECT_EQ(s.channels(s.b()).size(), 1u);
}

TEST(Setup, glare_with_lost_records__leaves_one_channel) {
  for (uint32_t n = 0; n < 6; ++n) {
    Stage s;
    s.world.network.tamper.add(drop(
        1, [](const PacketInfo& p) { return p.has_record; }, n));
    const Wr& w1 = s.request(s.a(), s.b(), WrOp::kWrite, 100);
    const Wr& w2 = s.request(s.b(), s.a(), WrOp::kWrite, 100);
    s.finish();
    EXPECT_EQ(w1.status, kSuccess) << n;
    EXPECT_EQ(w2.status, kSuccess) << n;
    s.world.run_for(seconds(4));
    EXPECT_EQ(s.channels(s.a()).size(), 1u) << n;
    EXPECT_EQ(s.channels(s.b()).size(), 1u) << n;
  }
}

TEST(Setup, other_version__is_refused_at_once) {
  Stage s;
  s.extra_allowed = kMayTimeOut;
  s.world.network.tamper.add(rewrite(kAlways, record(0, RecordType::kReq), [](std::span<std::byte> frame) {
    PacketInfo p = inspect(0, 1, frame);
    frame[static_cast<size_t>(p.ta.payload - frame.data()) + 3] = std::byte{'7'};
  }));
  const Wr& w = s.write(100);
  double took = s.finish();
  EXPECT_EQ(w.status, CrStatus::kAckTimeout);
  EXPECT_LT(took, 0.1);
  EXPECT_GE(s.count(s.b(), Counter::kRxDropBadRecordVersion), 1u);
  EXPECT_GE(s.count(s.a(), Counter::kTpChannelRejected), 1u);
}

TEST(Setup, wrong_uasid__is_refused_at_once) {
  Stage s;
  s.extra_allowed = kMayTimeOut;
  s.b().node->crash();
  s.b().node->boot();
  const Wr& w = s.write(100);  // the target that it names is the former instance
  double took = s.finish();
  EXPECT_EQ(w.status, CrStatus::kAckTimeout);
  EXPECT_LT(took, 0.1);
}

TEST(Setup, stale_reset__does_not_kill) {
  Stage s;
  s.warm_up();
  ChannelInfo before = s.channels(s.a())[0];
  wire::ControlRecord r;
  r.type = RecordType::kReset;
  r.reason = wire::RecordReason::kUnknownTpn;
  r.sender_incarnation = 0x1234567;  // of a former life
  r.receiver_incarnation = s.a().node->config().incarnation;
  r.sender_tpn = before.peer_tpn;
  r.receiver_tpn = before.tpn;
  r.upi = 1;
  r.sender_eid = s.b().node->id().eid;
  r.wanted_eid = s.a().node->id().eid;
  r.sender_uasid = s.b().node->id().uasid;
  r.wanted_uasid = s.a().node->id().uasid;
  for (int i = 0; i < 3; ++i) {
    s.world.network.inject(1, control_frame(r, s.b().node->at(), s.a().node->at()));
    s.world.run_for(milliseconds(10));
  }
  const Wr& w = s.write(100);
  s.finish();
  EXPECT_EQ(w.status, kSuccess);
  EXPECT_GE(s.count(s.a(), Counter::kTpRxReset), 3u);
  ASSERT_EQ(s.channels(s.a()).size(), 1u);
  EXPECT_EQ(s.channels(s.a())[0].tpn, before.tpn);
}

TEST(Setup, peer_restart__is_noticed_by_ping_and_requests_end) {
  Stage s;
  s.warm_up();
  s.extra_allowed = kMayTimeOut;
  s.b().node->crash();
  s.b().node->boot();
  auto& pings = s.world.network.tamper.add(watch(record(0, RecordType::kPing)));
  auto& pongs = s.world.network.tamper.add(watch(record(1, RecordType::kPong)));
  const Wr& w = s.write(100);
  double took = s.finish();
  EXPECT_EQ(w.status, CrStatus::kAckTimeout);
  EXPECT_LT(took, 0.5);
  EXPECT_GE(pings.hits, 1u);
  EXPECT_GE(pongs.hits, 1u);
  // The new instance is reached through a new import.
  End again = s.equip(*s.b().node);
  s.extra_allowed = 0;
  const Wr& second = s.request(s.a(), again, WrOp::kWrite, 100);
  s.finish();
  EXPECT_EQ(second.status, kSuccess);
}

TEST(Setup, restarted_peer_calls_first__old_channel_dies) {
  Stage s;
  s.warm_up();
  s.b().node->crash();
  s.b().node->boot();
  End again = s.equip(*s.b().node);
  const Wr& w = s.request(again, s.a(), WrOp::kWrite, 100);
  s.finish();
  EXPECT_EQ(w.status, kSuccess);
  s.world.run_for(seconds(1));
  for (const ChannelInfo& c : s.channels(s.a())) EXPECT_EQ(c.peer.uasid, s.b().node->id().uasid);
}

TEST(Setup, silence__ends_requests_within_five_seconds) {
  Stage s;
  s.warm_up();
  s.extra_allowed = kMayTimeOut;
  s.world.network.cut(0, 1, true);
  std::vector<const Wr*> all;
  for (int i = 0; i < 20; ++i) all.push_back(&s.write(100));
  all.push_back(&s.write(100'000));
  EXPECT_LE(s.finish(), 5.0);
  for (const Wr* w : all) EXPECT_EQ(w->status, CrStatus::kAckTimeout);
}

TEST(Setup, peer_that_never_was__ends_requests_within_five_seconds) {
  Stage s;
  s.extra_allowed = kMayTimeOut;
  s.world.network.cut(0, 1, true);
  const Wr& w = s.write(100);
  EXPECT_LE(s.finish(), 5.0);
  EXPECT_EQ(w.status, CrStatus::kAckTimeout);
}

// Its retransmissions would kill the silent channel half a second later, and with it what was posted meanwhile.
TEST(Setup, request_after_silence__does_not_share_the_dying_channel) {
  Stage s;
  s.warm_up();
  s.extra_allowed = kMayTimeOut;
  s.world.network.cut(0, 1, true);
  const Wr& lost = s.write(100);
  s.finish();
  EXPECT_EQ(lost.status, CrStatus::kAckTimeout);
  const Wr& next = s.write(100);
  s.world.run_for(milliseconds(600));
  s.world.network.cut(0, 1, false);
  s.finish();
  EXPECT_EQ(next.status, kSuccess);
}

TEST(Setup, short_partition__is_survived) {
  Stage s;
  s.warm_up();
  s.world.network.cut(0, 1, true);
  std::vector<const Wr*> all;
  for (int i = 0; i < 10; ++i) all.push_back(&s.write(3000));
  s.world.run_for(seconds(2));
  s.world.network.cut(0, 1, false);
  s.finish();
  for (const Wr* w : all) EXPECT_EQ(w->status, kSuccess);
  EXPECT_EQ(s.channels(s.a()).size(), 1u);
  s.check_memory();
}

TEST(Setup, keep_alive__finds_a_dead_idle_peer) {
  Options o = directed_options();
  o.core.keepalive_ns = 500'000'000;
  Stage s(o);
  s.warm_up();
  s.world.run_for(seconds(3));
  EXPECT_EQ(s.channels(s.a()).size(), 1u) << "a living idle peer is not dead";
  EXPECT_GE(s.count(s.a(), Counter::kTpTxKeepalive) + s.count(s.b(), Counter::kTpTxKeepalive), 2u);
  s.world.network.cut(0, 1, true);
  s.world.run_for(seconds(7));
  EXPECT_GE(s.count(s.a(), Counter::kTpChannelDead), 1u);
  EXPECT_GE(s.count(s.b(), Counter::kTpChannelDead), 1u);
}

TEST(Setup, big_records_dropped_by_the_path__smaller_mtu_is_agreed) {
  Options o = directed_options();
  o.mtu = 4096;
  o.net.path_mtu = 1500;
  Stage s(o);
  const Wr& w = s.write(20'000);
  s.finish();
  EXPECT_EQ(w.status, kSuccess);
  ASSERT_GE(s.channels(s.a()).size(), 1u);
  for (const ChannelInfo& c : s.channels(s.a())) EXPECT_EQ(c.mtu, 1024);
  s.check_memory();
}

TEST(Setup, wide_path__full_mtu_is_agreed) {
  Options o = directed_options();
  o.mtu = 8192;
  Stage s(o);
  const Wr& w = s.write(20'000);
  s.finish();
  EXPECT_EQ(w.status, kSuccess);
  for (const ChannelInfo& c : s.channels(s.a())) EXPECT_EQ(c.mtu, 8192);
}

TEST(Setup, tpn__is_not_used_again_within_the_rest) {
  Stage s;
  s.extra_allowed = kMayTimeOut;
  struct Use {
    uint32_t tpn, uasid;
    uint64_t last_ns;
  };
  std::vector<Use> used;
  for (int i = 0; i < 30; ++i) {
    s.b().node->crash();
    s.b().node->boot();
    s.write(100);  // to the former instance: its channel is found dead
    s.finish();
    s.ends[1] = s.equip(*s.b().node);
    s.write(100);
    s.finish();
    s.world.run_for(milliseconds(20));
    for (const ChannelInfo& c : s.channels(s.a())) {
      for (const Use& u : used)
        if (u.tpn == c.tpn && u.uasid != c.peer.uasid) {
          EXPECT_GE(s.world.now().ns - u.last_ns, 2'000'000'000u) << c.tpn;
        }
      std::erase_if(used, [&](const Use& u) { return u.tpn == c.tpn; });
      used.push_back({c.tpn, c.peer.uasid, s.world.now().ns});
    }
    if (i % 5 == 4) s.world.run_for(milliseconds(700));
  }
}

TEST(Setup, close__frees_both_ends) {
  Stage s;
  s.warm_up();
  s.a().node->shut_down();
  s.world.run_for(seconds(3));
  EXPECT_EQ(s.channels(s.b()).size(), 0u);
  EXPECT_EQ(s.count(s.b(), Counter::kTpChannelClosed), 1u);
}

TEST(Setup, five_nodes__all_pairs_talk) {
  Stage s(directed_options(), 5);
  std::vector<const Wr*> all;
  for (End& x : s.ends)
    for (End& y : s.ends) all.push_back(&s.request(x, y, WrOp::kWrite, 5000));  // itself included
  s.finish();
  for (const Wr* w : all) EXPECT_EQ(w->status, kSuccess);
  s.check_memory();
}

}  // namespace
}  // namespace ub::sim
