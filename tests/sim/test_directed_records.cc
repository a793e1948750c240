// SPDX-License-Identifier: Apache-2.0
//
// A set-up record that is not taken has a name and a counter, and changes nothing.
#include <map>

#include "tests/sim/directed.h"

namespace ub::sim {
namespace {

using tp::ChannelState;
using wire::ControlRecord;
using wire::RecordReason;
using wire::RecordType;

constexpr Counter kNames[] = {Counter::kRxDropRecordStale,     Counter::kRxDropRecordState, Counter::kRxDropRecordPeer,
                              Counter::kRxDropRecordParameter, Counter::kRxDropRecordUpi,   Counter::kRxDropRecordBusy,
                              Counter::kRxDropRecordTooOften,  Counter::kRxDropRecordScFree};

// Two nodes whose records are known, and a third one that may lie.
struct Records : Stage {
  Records() : Stage(directed_options(), 3) {
    world.network.tamper.add(watch([this](const PacketInfo& p) {
      if (p.has_record && p.from < 2) heard[{p.from, p.record.type}] = p.record;
      return false;
    }));
  }

  const ControlRecord& last(uint32_t from, RecordType type) { return heard[{from, type}]; }
  // A begins a channel, and nothing else.
  void begin() { a().node->import(a().app->owner, b().receiver(), Mode::kRm), a().node->drive(); }
  ChannelState state(const End& e) {
    const auto all = channels(e);
    return all.empty() ? ChannelState::kDead : static_cast<ChannelState>(all[0].state);
  }

  // The record comes from that node to `to`.
  void hear(uint32_t sender, const End& to, const ControlRecord& r) {
    world.network.inject(sender, control_frame(r, world.node(sender).at(), to.node->at()));
    world.run_for(microseconds(200));
  }
  // It is dropped by that name and by no other, and the channel stays as it is.
  void drops(uint32_t sender, const End& to, const ControlRecord& r, Counter name) {
    std::map<Counter, uint64_t> before;
    for (Counter c : kNames) before[c] = count(to, c);
    const ChannelState state_before = state(to);
    hear(sender, to, r);
    for (Counter c : kNames) EXPECT_EQ(count(to, c) - before[c], c == name ? 1u : 0u) << counter_name(c);
    EXPECT_EQ(state(to), state_before);
  }

  std::map<std::pair<uint32_t, RecordType>, ControlRecord> heard;
};

ControlRecord with(ControlRecord r, RecordType type) {
  r.type = type;
  return r;
}

// What one end says about its open channel.
ControlRecord about_open(Records& s, RecordType type) {
  ControlRecord r = with(s.last(1, RecordType::kRep), type);
  r.reason = RecordReason::kNone;
  return r;
}

TEST(Records, rep_about_nothing__is_stale) {
  Records s;
  s.warm_up();
  ControlRecord r = s.last(1, RecordType::kRep);
  r.attempt ^= 1;
  s.drops(1, s.a(), r, Counter::kRxDropRecordStale);
}

TEST(Records, rep_that_is_not_waited_for__is_dropped_by_state) {
  Records s;
  s.warm_up();
  ControlRecord r = s.last(1, RecordType::kRep);
  r.sender_tpn ^= 1u << tp::kTpnIndexBits;
  s.drops(1, s.a(), r, Counter::kRxDropRecordState);
}

TEST(Records, rep_of_another_address_or_with_bad_parameters__is_dropped) {
  Records s;
  auto& lost = s.world.network.tamper.add(drop(kAlways, record(1, RecordType::kRep)));
  s.begin();
  s.world.run_for(milliseconds(1));
  ASSERT_EQ(s.state(s.a()), ChannelState::kReqSent);
  const ControlRecord good = s.last(1, RecordType::kRep);
  lost.count = 0;
  s.drops(2, s.a(), good, Counter::kRxDropRecordPeer);
  ControlRecord r = good;
  r.mtu = 1000;
  s.drops(1, s.a(), r, Counter::kRxDropRecordParameter);
  s.hear(1, s.a(), good);
  EXPECT_EQ(s.state(s.a()), ChannelState::kOpen);
}

TEST(Records, conf__is_dropped_by_name) {
  Records s;
  auto& lost = s.world.network.tamper.add(drop(kAlways, record(0, RecordType::kConf)));
  s.begin();
  s.world.run_for(milliseconds(1));
  ASSERT_EQ(s.state(s.b()), ChannelState::kHalfOpen);
  const ControlRecord good = s.last(0, RecordType::kConf);
  lost.count = 0;
  ControlRecord r = good;
  r.attempt ^= 1;
  s.drops(0, s.b(), r, Counter::kRxDropRecordStale);
  r = good;
  r.sender_tpn ^= 1;
  s.drops(0, s.b(), r, Counter::kRxDropRecordPeer);
  r = good;
  r.rcv_window = 1;
  s.drops(0, s.b(), r, Counter::kRxDropRecordParameter);
  r = good;
  r.mtu = 8192;  // more than the link has
  s.drops(0, s.b(), r, Counter::kRxDropRecordParameter);
  s.hear(0, s.b(), good);
  ASSERT_EQ(s.state(s.b()), ChannelState::kOpen);
  s.drops(0, s.b(), good, Counter::kRxDropRecordState);
}

TEST(Records, rej__is_dropped_by_name_and_some_refusals_are_waited_out) {
  Records s;
  auto& lost = s.world.network.tamper.add(drop(kAlways, record(1, RecordType::kRep)));
  s.begin();
  s.world.run_for(milliseconds(1));
  ASSERT_EQ(s.state(s.a()), ChannelState::kReqSent);
  ControlRecord r = about_open(s, RecordType::kRej);
  r.attempt ^= 1;
  r.reason = RecordReason::kParameter;
  s.drops(1, s.a(), r, Counter::kRxDropRecordStale);
  r.receiver_tpn = 0;
  s.drops(1, s.a(), r, Counter::kRxDropRecordStale);
  r = about_open(s, RecordType::kRej);
  for (RecordReason reason : {RecordReason::kGlare, RecordReason::kNoResources}) {
    r.reason = reason;
    const uint64_t before = Stage::count(s.a(), Counter::kTpChannelDeferred);
    s.hear(1, s.a(), r);
    EXPECT_EQ(Stage::count(s.a(), Counter::kTpChannelDeferred), before + 1);
    EXPECT_EQ(s.state(s.a()), ChannelState::kReqSent);
  }
  lost.count = 0;
  s.warm_up();
  r.reason = RecordReason::kParameter;
  s.drops(1, s.a(), r, Counter::kRxDropRecordState);
}

TEST(Records, close_of_another_tpn__is_answered_and_counted) {
  Records s;
  s.warm_up();
  ControlRecord r = about_open(s, RecordType::kClose);
  r.sender_tpn ^= 1;
  auto& answers = s.world.network.tamper.add(watch(record(0, RecordType::kClosed)));
  s.drops(1, s.a(), r, Counter::kRxDropRecordPeer);
  EXPECT_EQ(answers.hits, 1u);
}

TEST(Records, closed_and_pong__are_dropped_by_name) {
  Records s;
  s.warm_up();
  ControlRecord r = about_open(s, RecordType::kClosed);
  s.drops(1, s.a(), r, Counter::kRxDropRecordState);
  for (RecordType type : {RecordType::kClosed, RecordType::kPong}) {
    r = about_open(s, type);
    r.attempt ^= 1;
    s.drops(1, s.a(), r, Counter::kRxDropRecordStale);
  }
}

TEST(Records, pong_before_the_channel_is_open__is_dropped_by_state) {
  Records s;
  s.world.network.tamper.add(drop(kAlways, record(1, RecordType::kRep)));
  s.begin();
  s.world.run_for(milliseconds(1));
  s.drops(1, s.a(), about_open(s, RecordType::kPong), Counter::kRxDropRecordState);
}

TEST(Records, reset__is_dropped_by_name) {
  Records s;
  s.warm_up();
  const ControlRecord good = about_open(s, RecordType::kReset);
  ControlRecord r = good;
  r.receiver_tpn ^= 1u << tp::kTpnIndexBits;
  s.drops(1, s.a(), r, Counter::kRxDropRecordStale);
  r = good;
  r.sender_tpn ^= 1;
  s.drops(1, s.a(), r, Counter::kRxDropRecordPeer);
  auto& pings = s.world.network.tamper.add(watch(record(0, RecordType::kPing)));
  s.hear(1, s.a(), good);
  EXPECT_EQ(pings.hits, 1u);
  s.drops(1, s.a(), good, Counter::kRxDropRecordTooOften);
  EXPECT_EQ(pings.hits, 1u);
}

TEST(Records, reset_before_the_channel_is_open__is_dropped_by_state) {
  Records s;
  s.world.network.tamper.add(drop(kAlways, record(1, RecordType::kRep)));
  s.begin();
  s.world.run_for(milliseconds(1));
  s.drops(1, s.a(), about_open(s, RecordType::kReset), Counter::kRxDropRecordState);
}

TEST(Records, find__is_dropped_by_name) {
  Records s;
  s.warm_up();
  ControlRecord ask = s.last(0, RecordType::kReq);
  ask.type = RecordType::kFind;
  ask.object = s.b().queue->id;
  ControlRecord r = ask;
  r.upi = 2;
  s.drops(0, s.b(), r, Counter::kRxDropRecordUpi);
  const auto frame = control_frame(ask, s.a().node->at(), s.b().node->at());
  const Instant now = s.world.now();
  for (uint32_t i = 0; i < kOutboxRing / 4; ++i) s.b().node->core().on_packet(now, s.b().node->link(), frame);
  EXPECT_EQ(Stage::count(s.b(), Counter::kRxDropRecordBusy), 0u);
  s.b().node->core().on_packet(now, s.b().node->link(), frame);
  EXPECT_EQ(Stage::count(s.b(), Counter::kRxDropRecordBusy), 1u);
}

TEST(Records, found__is_dropped_by_name) {
  Records s;
  s.warm_up();
  s.world.network.tamper.add(drop(kAlways, record(1, RecordType::kFound)));
  FindConfig what;
  what.local_eid = s.a().node->id().eid;
  what.eid = s.b().node->id().eid;
  what.id = s.b().queue->id;
  what.path = {s.a().node->link(), s.a().node->at(), s.b().node->at()};
  uint32_t uasid = 0;
  ASSERT_EQ(s.a().node->core().find(s.world.now(), what, &uasid), Status::kBusy);
  s.a().node->drive();
  s.world.run_for(microseconds(100));
  const ControlRecord good = s.last(1, RecordType::kFound);
  s.world.network.tamper.clear();
  ControlRecord r = good;
  r.upi = 2;
  s.drops(1, s.a(), r, Counter::kRxDropRecordUpi);
  r = good;
  r.sender_uasid = 0;
  s.drops(1, s.a(), r, Counter::kRxDropRecordParameter);
  r = good;
  r.attempt ^= 1;
  s.drops(1, s.a(), r, Counter::kRxDropRecordStale);
  s.drops(2, s.a(), good, Counter::kRxDropRecordPeer);
  r = good;
  r.sender_eid.bytes[15] ^= 1;
  s.drops(1, s.a(), r, Counter::kRxDropRecordPeer);
  s.hear(1, s.a(), good);
  EXPECT_EQ(s.a().node->core().find(s.world.now(), what, &uasid), Status::kOk);
}

TEST(Records, sc_free__of_nothing_that_was_given_out) {
  Records s;
  s.warm_up();
  ControlRecord r = about_open(s, RecordType::kScFree);
  s.drops(1, s.a(), r, Counter::kRxDropRecordScFree);
}

}  // namespace
}  // namespace ub::sim
