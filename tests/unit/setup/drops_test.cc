// SPDX-License-Identifier: Apache-2.0
//
// Records that are not believed: each has a name under which it is counted, and changes nothing (docs/wire.md).
#include "lib/transport/ta/sequence_contexts.h"
#include "tests/unit/setup/instance.h"

namespace ub::setup {
namespace {

constexpr Counter kDrops[] = {Counter::kRxDropRecordStale,    Counter::kRxDropRecordState,
                              Counter::kRxDropRecordPeer,     Counter::kRxDropRecordParameter,
                              Counter::kRxDropRecordTooOften, Counter::kRxDropRecordScFree};

// Gives the record to the instance, which counts it under that name and no other.
void expect_drop(Instance& i, const ControlRecord& r, Counter name) {
  uint64_t before[std::size(kDrops)];
  for (size_t n = 0; n < std::size(kDrops); ++n) before[n] = i.count(kDrops[n]);
  on_record(*i.s, i.from, r);
  for (size_t n = 0; n < std::size(kDrops); ++n) {
    EXPECT_EQ(i.count(kDrops[n]) - before[n], kDrops[n] == name ? 1u : 0u) << n;
  }
}

constexpr RecordType kAboutChannels[] = {RecordType::kRep,    RecordType::kConf, RecordType::kRej,
                                         RecordType::kClosed, RecordType::kPong, RecordType::kReset};

TEST(Drops, records_about_a_channel_that_nobody_has_are_stale) {
  for (RecordType type : kAboutChannels) {
    Instance i;
    const uint32_t channel = i.connect();
    i.sent();
    ControlRecord r = i.reply_of_peer(channel, type);
    r.receiver_tpn ^= 1u << tp::kTpnIndexBits;
    expect_drop(i, r, Counter::kRxDropRecordStale);
    EXPECT_TRUE(i.sent().empty());
    EXPECT_EQ(i.ch(channel).state, ChannelState::kReqSent);
  }
}

TEST(Drops, records_of_another_attempt_are_stale) {
  for (RecordType type :
       {RecordType::kRep, RecordType::kConf, RecordType::kRej, RecordType::kClosed, RecordType::kPong}) {
    Instance i;
    ControlRecord r = i.reply_of_peer(i.connect(), type);
    ++r.attempt;
    expect_drop(i, r, Counter::kRxDropRecordStale);
  }
}

TEST(Drops, records_that_a_channel_does_not_wait_for) {
  Instance i;
  const uint32_t asking = i.connect();
  for (RecordType type : {RecordType::kConf, RecordType::kClosed, RecordType::kPong, RecordType::kReset}) {
    expect_drop(i, i.reply_of_peer(asking, type), Counter::kRxDropRecordState);
  }
  EXPECT_EQ(i.ch(asking).state, ChannelState::kReqSent);
  Instance open;
  const uint32_t channel = open.open_as_initiator();
  for (RecordType type : {RecordType::kConf, RecordType::kRej, RecordType::kClosed}) {
    expect_drop(open, open.reply_of_peer(channel, type), Counter::kRxDropRecordState);
  }
  EXPECT_EQ(open.ch(channel).state, ChannelState::kOpen);
}

// REP answers a REQ of ours alone.
TEST(Drops, a_reply_to_a_channel_that_the_peer_asked_for) {
  Instance i;
  const uint32_t channel = i.half_open(i.request_of_peer());
  expect_drop(i, i.reply_of_peer(channel, RecordType::kRep), Counter::kRxDropRecordState);
  on_record(*i.s, i.from, i.reply_of_peer(channel, RecordType::kConf));
  ASSERT_TRUE(i.ch(channel).is_up());
  expect_drop(i, i.reply_of_peer(channel, RecordType::kRep), Counter::kRxDropRecordState);
  EXPECT_TRUE(i.sent().empty());
}

TEST(Drops, a_reply_to_a_channel_that_closes) {
  Instance i;
  const uint32_t channel = i.open_as_initiator();
  close_all(*i.s);
  i.sent();
  expect_drop(i, i.reply_of_peer(channel, RecordType::kRep), Counter::kRxDropRecordState);
  EXPECT_TRUE(i.sent().empty());
}

TEST(Drops, a_reply_that_names_no_channel) {
  Instance i;
  ControlRecord rep = i.reply_of_peer(i.connect(), RecordType::kRep);
  i.sent();
  rep.sender_tpn = 0;
  expect_drop(i, rep, Counter::kRxDropRecordParameter);
  EXPECT_TRUE(i.sent().empty());
}

TEST(Drops, a_repeated_reply_of_another_channel_is_not_confirmed) {
  Instance i;
  const uint32_t channel = i.open_as_initiator();
  ControlRecord rep = i.reply_of_peer(channel, RecordType::kRep);
  ++rep.sender_tpn;
  expect_drop(i, rep, Counter::kRxDropRecordState);
  EXPECT_TRUE(i.sent().empty());
}

TEST(Drops, a_reply_from_another_address) {
  Instance i;
  const uint32_t channel = i.connect();
  i.from.remote.ip = wire::IpAddress::from_v4(0x0A000003);
  expect_drop(i, i.reply_of_peer(channel, RecordType::kRep), Counter::kRxDropRecordPeer);
  EXPECT_EQ(i.ch(channel).state, ChannelState::kReqSent);
}

TEST(Drops, a_reply_with_terms_that_cannot_be) {
  Instance i;
  const uint32_t channel = i.connect();
  ControlRecord rep = i.reply_of_peer(channel, RecordType::kRep);
  rep.mtu = 3000;
  expect_drop(i, rep, Counter::kRxDropRecordParameter);
  EXPECT_EQ(i.ch(channel).state, ChannelState::kReqSent);
}

TEST(Drops, confirmations_of_another_channel_or_with_terms_that_cannot_be) {
  Instance i({.mtu = 2048});
  const uint32_t channel = i.half_open(i.request_of_peer());
  ControlRecord conf = i.reply_of_peer(channel, RecordType::kConf);
  conf.mtu = 2048;
  ++conf.sender_tpn;
  expect_drop(i, conf, Counter::kRxDropRecordPeer);
  --conf.sender_tpn;
  conf.mtu = 3000;
  expect_drop(i, conf, Counter::kRxDropRecordParameter);
  conf.mtu = 4096;
  expect_drop(i, conf, Counter::kRxDropRecordParameter);
  EXPECT_EQ(i.ch(channel).state, ChannelState::kHalfOpen);
  conf.mtu = 2048;
  on_record(*i.s, i.from, conf);
  EXPECT_TRUE(i.ch(channel).is_up());
}

TEST(Drops, a_close_of_another_channel) {
  Instance i;
  ControlRecord close = i.reply_of_peer(i.open_as_initiator(), RecordType::kClose);
  ++close.sender_tpn;
  expect_drop(i, close, Counter::kRxDropRecordPeer);
  EXPECT_EQ(i.count(Counter::kTpChannelClosed), 0u);
}

TEST(Drops, resets_of_another_channel_and_those_that_come_too_often) {
  Instance i;
  ControlRecord reset = i.reply_of_peer(i.open_as_initiator(), RecordType::kReset);
  ++reset.sender_tpn;
  expect_drop(i, reset, Counter::kRxDropRecordPeer);
  --reset.sender_tpn;
  on_record(*i.s, i.from, reset);
  i.s->now += milliseconds(10) - nanoseconds(1);
  expect_drop(i, reset, Counter::kRxDropRecordTooOften);
  EXPECT_EQ(i.sent().size(), 1u);
  EXPECT_EQ(i.count(Counter::kTpRxReset), 3u);
}

TEST(Drops, records_about_sequence_contexts) {
  Instance i;
  const uint32_t channel = i.open_as_initiator();
  const uint32_t peer = i.ch(channel).peer;
  const uint32_t scid = ta::open_context(*i.s, peer, 77);
  ControlRecord r = i.reply_of_peer(channel, RecordType::kScFree);
  r.scid = scid + 1;
  expect_drop(i, r, Counter::kRxDropRecordScFree);
  r.scid = scid;
  r.receiver_tpn ^= 1u << tp::kTpnIndexBits;
  expect_drop(i, r, Counter::kRxDropRecordStale);
  r = i.reply_of_peer(channel, RecordType::kScFree);
  r.scid = scid;
  ++r.sender_tpn;
  expect_drop(i, r, Counter::kRxDropRecordPeer);
  EXPECT_EQ(i.s->contexts.in_use(), 1u);
  --r.sender_tpn;
  on_record(*i.s, i.from, r);
  EXPECT_EQ(i.s->contexts.in_use(), 0u);
  expect_drop(i, r, Counter::kRxDropRecordScFree);
}

}  // namespace
}  // namespace ub::setup
