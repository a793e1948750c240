// SPDX-License-Identifier: Apache-2.0
// instance.h - one instance that sets up channels, in the hands of a test that plays its peer: records in, records out.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "lib/transport/resource/objects.h"
#include "lib/transport/resource/targets.h"
#include "lib/transport/setup/channel_life.h"
#include "lib/transport/setup/handshake.h"
#include "lib/transport/setup/peers.h"
#include "lib/transport/setup/receive_record.h"
#include "lib/transport/setup/send_record.h"
#include "lib/transport/ta/read_jobs.h"
#include "lib/transport/ta/waiting_list.h"
#include "lib/transport/tp/transmit_state.h"
#include "lib/transport/wire/sack.h"
#include "tests/unit/transport/test_state.h"

namespace ub::setup {

using tp::Channel;
using tp::ChannelState;
using wire::ControlRecord;
using wire::RecordReason;
using wire::RecordType;

constexpr uint32_t kPeerTpn = 0x70005;
constexpr uint64_t kOurIncarnation = 50, kPeerIncarnation = 60;

/// What records say where this is configured.
struct ControlTerms {
  cc::Control control;
  wire::CcAlgorithm said;
  bool two_bits;            ///< C-AQM by ECN
  cc::Algorithm algorithm;  ///< of the flow, on a wire that loses nothing
};
constexpr ControlTerms kControls[] = {
    {cc::Control::kNone, wire::CcAlgorithm::kNone, false, cc::Algorithm::kNone},
    {cc::Control::kCaqm, wire::CcAlgorithm::kCaqm, true, cc::Algorithm::kCaqm},
    {cc::Control::kLdcp, wire::CcAlgorithm::kLdcp, false, cc::Algorithm::kLdcp},
    {cc::Control::kDcqcn, wire::CcAlgorithm::kDcqcn, false, cc::Algorithm::kDcqcn},
    {cc::Control::kSwift, wire::CcAlgorithm::kNone, false, cc::Algorithm::kSwift},
};

struct Instance : TestState {
  explicit Instance(const LinkConfig& link = {.mtu = 4096, .lossless = true}, const CoreConfig& c = config())
      : TestState(c) {
    s->eids[s->eid_count++] = s->config.self.eid;
    s->links[s->links.alloc()] = LinkRecord{.up = true, .config = link};
    peer_id.eid.bytes[15] = 2;
    peer_id.uasid = 2;
  }
  static CoreConfig config() {
    CoreConfig c = small_tables();
    c.self.eid.bytes[15] = 1;
    c.incarnation = kOurIncarnation;
    c.max_channels = 4;
    c.slow_memory = true;
    return c;
  }

  // We want to talk: REQ goes out.
  uint32_t connect(Owner owner = 0) {
    TargetConfig t;
    t.instance = peer_id;
    t.path = {1, from.local, from.remote};
    t.owner = owner;
    uint32_t target = 0;
    EXPECT_EQ(add_target(*s, t, &target), Status::kOk);
    return s->peers[s->targets[target].peer].lanes[0].channels[0];
  }
  uint32_t open_as_initiator() {
    const uint32_t channel = connect();
    on_record(*s, from, reply_of_peer(channel, RecordType::kRep));
    s->outbox_head = s->outbox_tail;
    return channel;
  }
  // The peer wants to talk.
  uint32_t half_open(const ControlRecord& request) {
    on_record(*s, from, request);
    return channel_of_tpn(*s, only().record.sender_tpn);
  }
  uint32_t open_as_target(const ControlRecord& request) {
    const uint32_t channel = half_open(request);
    on_record(*s, from, reply_of_peer(channel, RecordType::kConf));
    return channel;
  }
  uint32_t open_as_target() { return open_as_target(request_of_peer()); }
  // A send queue that waits for its turn on a channel.
  uint32_t queue_waiting_for(uint32_t channel) {
    const uint32_t queue = s->queues.alloc();
    s->queues[queue] = SendQueue{};
    s->queues[queue].slots = ring.data();
    s->queues[queue].indices = &indices;
    s->queues[queue].in_use = true;
    ta::join_list(*s, queue, channel);
    return queue;
  }
  // What the peer sends.
  ControlRecord request_of_peer(uint32_t attempt = 9) const {
    ControlRecord r = of_peer(RecordType::kReq);
    r.attempt = attempt;
    return r;
  }
  ControlRecord reply_of_peer(uint32_t channel, RecordType type) const {
    ControlRecord r = of_peer(type);
    r.attempt = s->channels[channel].attempt;
    r.receiver_tpn = s->channels[channel].tpn;
    r.receiver_incarnation = kOurIncarnation;
    return r;
  }
  // What left since the last time.
  std::vector<OutRecord> sent() {
    std::vector<OutRecord> all;
    for (; s->outbox_head != s->outbox_tail; ++s->outbox_head) all.push_back(s->outbox[s->outbox_head % kOutboxRing]);
    return all;
  }
  OutRecord only() {
    const std::vector<OutRecord> all = sent();
    EXPECT_EQ(all.size(), 1u);
    return all.empty() ? OutRecord{} : all[0];
  }
  /// The same of a peer with this congestion control.
  static ControlRecord with(ControlRecord r, const ControlTerms& terms) {
    r.cc = terms.said;
    if (terms.two_bits) r.flags |= wire::kRecordCaqmEcn;
    return r;
  }
  void timer(uint32_t channel) {
    uint32_t object;
    s->now = later(s->now, s->timers.earliest());
    ASSERT_TRUE(s->timers.pop_due(s->now, &object));
    ASSERT_EQ(object, channel);
    on_channel_timer(*s, channel);
  }
  Channel& ch(uint32_t channel) { return s->channels[channel]; }
  Peer& peer_of(uint32_t channel) { return s->peers[ch(channel).peer]; }
  std::vector<Event> events() {
    std::vector<Event> all(16);
    all.resize(drain_events(*s, all.data(), all.size()));
    return all;
  }
  uint32_t channels_alive() const {
    uint32_t n = 0;
    for (uint32_t i = 1; i <= s->channels.high_water(); ++i) n += alive(s->channels[i]);
    return n;
  }

  InstanceId peer_id;
  Arrival from{1,
               {wire::IpAddress::from_v4(0x0A000001), wire::kUbUdpPort},
               {wire::IpAddress::from_v4(0x0A000002), wire::kUbUdpPort}};
  std::vector<Wqe> ring = std::vector<Wqe>(1);
  QueueIndices indices{};

 private:
  ControlRecord of_peer(RecordType type) const {
    ControlRecord r;
    r.type = type;
    r.sender_incarnation = kPeerIncarnation;
    r.flags = wire::kRecordFast | wire::kRecordMarkPsn | wire::kRecordReadMeta;
    r.sender_tpn = kPeerTpn;
    r.selective = true;
    r.initial_psn = Psn(777);
    r.mtu = 4096;
    r.rcv_window = 512;
    r.upi = s->config.upi;
    r.sender_eid = peer_id.eid;
    r.wanted_eid = s->config.self.eid;
    r.sender_uasid = peer_id.uasid;
    r.wanted_uasid = s->config.self.uasid;
    return r;
  }
};

}  // namespace ub::setup
