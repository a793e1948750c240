// SPDX-License-Identifier: Apache-2.0
//
// Channels of ROL in set-up (UB Base Specification Rev 2.0, 7.3.3; docs/wire.md): both ends must want one, it has a
// lane of its own, and where the peer refuses it, queues keep their order themselves.
#include "tests/unit/setup/instance.h"

namespace ub::setup {
namespace {

struct Rol : Instance {
  explicit Rol(bool on = true) { s->config.rol = on; }
  // We want one: REQ goes out.
  uint32_t ask() {
    const uint32_t small = connect();
    const uint32_t channel = channel_to(*s, ch(small).peer, kOrderedLane);
    asked = sent().back().record;
    return channel;
  }
  ControlRecord rol_of_peer(ControlRecord r) const {
    r.flags |= wire::kRecordRol;
    return r;
  }
  ControlRecord asked;
};

TEST(RolChannel, is_asked_for_on_a_lane_of_its_own) {
  Rol i;
  const uint32_t channel = i.ask();
  EXPECT_EQ(i.asked.type, RecordType::kReq);
  EXPECT_NE(i.asked.flags & wire::kRecordRol, 0);
  EXPECT_EQ(i.asked.flags & wire::kRecordBulk, 0);
  const Peer& peer = i.peer_of(channel);
  EXPECT_EQ(peer.lanes[kOrderedLane].channels[0], channel);
  EXPECT_NE(peer.lanes[kSmallLane].channels[0], channel);
}

TEST(RolChannel, is_one_if_the_peer_agrees) {
  Rol i;
  const uint32_t channel = i.ask();
  on_record(*i.s, i.from, i.reply_of_peer(channel, RecordType::kRep));
  EXPECT_FALSE(i.ch(channel).is_up()) << "a reply without ROL is none to this request";
  EXPECT_EQ(i.s->counters[Counter::kRxDropRecordParameter], 1u);
  on_record(*i.s, i.from, i.rol_of_peer(i.reply_of_peer(channel, RecordType::kRep)));
  EXPECT_TRUE(i.ch(channel).is_up() && i.ch(channel).rol);
}

TEST(RolChannel, of_the_peer_is_accepted_where_rol_is_on) {
  Rol i;
  const uint32_t channel = i.open_as_target(i.request_of_peer());
  EXPECT_FALSE(i.ch(channel).rol);
  on_record(*i.s, i.from, i.rol_of_peer(i.request_of_peer(10)));
  const ControlRecord reply = i.sent().back().record;
  EXPECT_EQ(reply.type, RecordType::kRep);
  EXPECT_NE(reply.flags & wire::kRecordRol, 0);
  const uint32_t rol = channel_of_tpn(*i.s, reply.sender_tpn);
  EXPECT_EQ(i.peer_of(rol).lanes[kOrderedLane].accepted[0], rol);
  on_record(*i.s, i.from, i.reply_of_peer(rol, RecordType::kConf));
  EXPECT_FALSE(i.ch(rol).is_up()) << "a confirmation of another service";
  on_record(*i.s, i.from, i.rol_of_peer(i.reply_of_peer(rol, RecordType::kConf)));
  EXPECT_TRUE(i.ch(rol).is_up() && i.ch(rol).rol);
}

TEST(RolChannel, for_long_messages_is_another_one) {
  Rol i;
  const uint32_t channel = i.ask();
  const uint32_t bulk = channel_to(*i.s, i.ch(channel).peer, kOrderedBulkLane);
  EXPECT_NE(bulk, channel);
  const uint8_t asked = i.sent().back().record.flags;
  EXPECT_EQ(asked & (wire::kRecordRol | wire::kRecordBulk), wire::kRecordRol | wire::kRecordBulk);

  Rol target;
  ControlRecord request = target.rol_of_peer(target.request_of_peer());
  request.flags |= wire::kRecordBulk;
  on_record(*target.s, target.from, request);
  const uint32_t accepted = channel_of_tpn(*target.s, target.sent().back().record.sender_tpn);
  EXPECT_EQ(target.peer_of(accepted).lanes[kOrderedBulkLane].accepted[0], accepted);
}

TEST(RolChannel, is_refused_where_it_is_off) {
  for (const uint8_t bulk : {uint8_t{0}, uint8_t{wire::kRecordBulk}}) {
    Rol i(false);
    ControlRecord request = i.rol_of_peer(i.request_of_peer());
    request.flags |= bulk;
    on_record(*i.s, i.from, request);
    const ControlRecord answer = i.only().record;
    EXPECT_EQ(answer.type, RecordType::kRej);
    EXPECT_EQ(answer.reason, RecordReason::kParameter);
    EXPECT_EQ(i.channels_alive(), 0u);
  }
}

TEST(RolChannel, for_long_messages_that_the_peer_refuses_is_not_asked_for_again) {
  Rol i;
  const uint32_t peer = i.ch(i.ask()).peer;
  ControlRecord refusal = i.reply_of_peer(channel_to(*i.s, peer, kOrderedBulkLane), RecordType::kRej);
  refusal.reason = RecordReason::kParameter;
  on_record(*i.s, i.from, refusal);
  EXPECT_TRUE(i.s->peers[peer].refuses_rol);
}

TEST(RolChannel, that_the_peer_refuses_is_not_asked_for_again) {
  Rol i;
  const uint32_t channel = i.ask();
  const uint32_t peer = i.ch(channel).peer;
  const uint32_t queue = i.queue_waiting_for(channel);
  i.events();
  ControlRecord refusal = i.reply_of_peer(channel, RecordType::kRej);
  refusal.reason = RecordReason::kParameter;
  on_record(*i.s, i.from, refusal);
  EXPECT_TRUE(i.s->peers[peer].refuses_rol);
  EXPECT_FALSE(alive(i.ch(channel)));
  EXPECT_EQ(i.s->peers[peer].lanes[kOrderedLane].channels[0], 0u);
  EXPECT_EQ(i.s->queues[queue].waits_for, 0u) << "it chooses again";
  EXPECT_TRUE(i.events().empty()) << "nobody lost anything";
}

TEST(RolChannel, that_the_peer_refuses_keeps_no_queue) {
  Rol i;
  const uint32_t channel = i.ask();
  const uint32_t queues[] = {i.queue_waiting_for(channel), i.queue_waiting_for(channel), i.queue_waiting_for(channel)};
  ControlRecord refusal = i.reply_of_peer(channel, RecordType::kRej);
  refusal.reason = RecordReason::kParameter;
  on_record(*i.s, i.from, refusal);
  for (const uint32_t queue : queues) EXPECT_EQ(i.s->queues[queue].waits_for, 0u);
}

// Requests that were posted meanwhile go by a new channel, even if the peer has none at the time of the refusal.
TEST(RolChannel, that_the_peer_refuses_fails_no_request) {
  Rol i;
  const uint32_t channel = i.ask();
  Peer& peer = i.peer_of(channel);
  kill_channel(*i.s, peer.lanes[kSmallLane].channels[0]);
  const uint32_t queue = i.queue_waiting_for(channel);
  WrState work{};
  i.s->queues[queue].rol = true;
  i.s->queues[queue].state = QueueState::kReady;
  i.s->queues[queue].work = &work;
  i.ring[0].op = WrOp::kWrite;
  i.ring[0].slots = i.ring[0].sge_count = 1;
  i.ring[0].target = 1;
  ASSERT_EQ(i.s->targets[1].peer, i.ch(channel).peer);
  i.indices.produced.store(1);
  ControlRecord refusal = i.reply_of_peer(channel, RecordType::kRej);
  refusal.reason = RecordReason::kParameter;
  on_record(*i.s, i.from, refusal);
  EXPECT_EQ(i.ring[0].flags & kWrDead, 0);
  const uint32_t small = peer.lanes[kSmallLane].channels[0];
  ASSERT_NE(small, 0u);
  EXPECT_EQ(i.s->queues[queue].waits_for, small);
}

TEST(RolChannel, that_is_refused_for_another_reason_is_refused_as_any_other) {
  Rol i;
  const uint32_t channel = i.ask();
  const uint32_t peer = i.ch(channel).peer;
  ControlRecord refusal = i.reply_of_peer(channel, RecordType::kRej);
  refusal.reason = RecordReason::kUnknownEntity;
  on_record(*i.s, i.from, refusal);
  EXPECT_FALSE(i.s->peers[peer].refuses_rol);
  EXPECT_FALSE(alive(i.ch(channel)));
}

}  // namespace
}  // namespace ub::setup
