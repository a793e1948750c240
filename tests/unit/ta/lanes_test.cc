// SPDX-License-Identifier: Apache-2.0
//
// Which lane a request takes, and when a queue changes it (docs/wire.md, "Lanes").
#include <algorithm>
#include <initializer_list>

#include "tests/unit/ta/requests.h"
#include "tests/unit/transport/looking.h"

namespace ub::ta {
namespace {

struct Lanes : Requests {
  explicit Lanes(bool pinned = false, bool rol = false)
      : Requests({.mode = rol ? Mode::kRc : Mode::kRm, .pinned = pinned, .lanes = 2, .rol = rol}) {
    bulk = setup::channel_to(*s, s->targets[target].peer, rol ? kOrderedBulkLane : kBulkLane);
    s->channels[bulk].rol = rol;
    open(bulk);
  }
  uint32_t bulk;
};

TEST(Lane, messages_longer_than_the_limit_are_bulk) {
  Lanes l;
  l.post(WrOp::kWrite, l.s->config.lane_bulk_bytes);
  EXPECT_EQ(l.sent().size(), 1u);
  l.post(WrOp::kWrite, l.s->config.lane_bulk_bytes + 1);
  EXPECT_TRUE(l.sent().empty());
  EXPECT_EQ(l.sent(l.bulk).size(), 1u);
}

TEST(Lane, with_one_lane_all_are_small) {
  Requests r;
  r.post(WrOp::kWrite, 100 * kMtu);
  EXPECT_EQ(r.sent().size(), 2u);
  EXPECT_EQ(r.peer().lanes[1].channels[0], 0u);
}

// They would arrive in any order.
TEST(Lane, messages_that_take_a_receive_change_it_when_the_others_are_answered) {
  Lanes l;
  l.post(WrOp::kSend, 8);
  l.post(WrOp::kSend, 20 * kMtu);
  EXPECT_EQ(l.sent().size(), 1u);
  EXPECT_TRUE(l.sent(l.bulk).empty());
  l.answer(0);
  EXPECT_EQ(l.sent(l.bulk).size(), 1u);
  l.post(WrOp::kSend, 8);
  EXPECT_TRUE(l.sent().empty());
  l.post(WrOp::kSend, 20 * kMtu);
  on_answer(*l.s, l.bulk, l.answer_of(1));
  EXPECT_EQ(l.sent().size(), 1u);
}

TEST(Lane, the_first_message_that_takes_a_receive_chooses_it) {
  Lanes l;
  l.post(WrOp::kSend, 20 * kMtu);
  EXPECT_EQ(l.sent(l.bulk).size(), 1u);
  l.post(WrOp::kSend, 8);
  EXPECT_TRUE(l.sent().empty());
  on_answer(*l.s, l.bulk, l.answer_of(0));
  EXPECT_EQ(l.sent().size(), 1u);
}

TEST(Lane, writes_change_it_at_any_time) {
  Lanes l;
  l.post(WrOp::kWrite, 8);
  EXPECT_EQ(l.sent().size(), 1u);
  l.post(WrOp::kWrite, 20 * kMtu);
  EXPECT_EQ(l.sent(l.bulk).size(), 1u);
  l.post(WrOp::kWrite, 8);
  EXPECT_EQ(l.sent().size(), 1u);
}

// Lower-layer order: it changes once, with its first bulk message, when nothing is under way.
TEST(Lane, a_pinned_queue_moves_to_the_bulk_lane_once) {
  Lanes l(true);
  l.post(WrOp::kWrite, 8);
  l.post(WrOp::kWrite, 20 * kMtu);
  EXPECT_EQ(l.sent().size(), 1u);
  EXPECT_TRUE(l.sent(l.bulk).empty());
  EXPECT_FALSE(l.q().pinned_bulk);
  l.answer(0);
  EXPECT_EQ(l.sent(l.bulk).size(), 1u);
  EXPECT_TRUE(l.q().pinned_bulk);
  l.post(WrOp::kWrite, 8);
  EXPECT_TRUE(l.sent().empty());
  EXPECT_EQ(l.sent(l.bulk).size(), 1u) << "small ones, too, from now on";
}

TEST(Lane, of_rol_changes_once_too) {
  Lanes l(true, true);
  l.post(WrOp::kWrite, 8);
  l.post(WrOp::kWrite, 20 * kMtu);
  EXPECT_EQ(l.sent().size(), 1u);
  EXPECT_TRUE(l.sent(l.bulk).empty());
  l.answer(0);
  EXPECT_EQ(l.sent(l.bulk).size(), 1u);
  l.post(WrOp::kWrite, 8);
  EXPECT_TRUE(l.sent().empty());
  EXPECT_EQ(l.sent(l.bulk).size(), 1u);
}

// What was refused goes again by the channel that it took before, so nothing may pass it on another one.
TEST(Lane, a_pinned_queue_moves_only_when_nothing_was_refused) {
  Lanes l(true);
  l.post(WrOp::kWrite, 8);
  EXPECT_EQ(l.sent().size(), 1u);
  l.refuse(0);
  l.post(WrOp::kWrite, 20 * kMtu);
  EXPECT_TRUE(l.sent(l.bulk).empty());
  EXPECT_FALSE(l.q().pinned_bulk);
}

// Requests that were sent there may still be executed, whether somebody waits for them or not.
TEST(Lane, a_pinned_queue_that_moved_stays_there_whatever_its_jetty_goes_through) {
  void (*const events[])(Lanes&) = {
      [](Lanes& l) {
        EXPECT_EQ(unbind_jetty(*l.s, l.id), Status::kOk);
        EXPECT_EQ(bind_jetty(*l.s, l.id, l.target), Status::kOk);
      },
      [](Lanes& l) {
        EXPECT_EQ(set_state(*l.s, l.id, QueueState::kReset), Status::kOk);
        EXPECT_EQ(set_state(*l.s, l.id, QueueState::kReady), Status::kOk);
      },
      [](Lanes& l) {
        EXPECT_EQ(set_state(*l.s, l.id, QueueState::kError), Status::kOk);
        EXPECT_EQ(set_state(*l.s, l.id, QueueState::kReset), Status::kOk);
        EXPECT_EQ(set_state(*l.s, l.id, QueueState::kReady), Status::kOk);
      },
  };
  for (const bool rol : {false, true}) {
    for (const auto& happens : events) {
      Lanes l(true, rol);
      ASSERT_EQ(bind_jetty(*l.s, l.id, l.target), Status::kOk);
      l.post(WrOp::kWrite, 20 * kMtu);
      ASSERT_EQ(l.sent(l.bulk).size(), 1u);
      happens(l);
      l.post(WrOp::kWrite, 8);
      EXPECT_TRUE(l.sent().empty());
      EXPECT_EQ(l.sent(l.bulk).size(), 1u);
    }
  }
}

// Else its first request would wait for a channel that nobody has begun.
TEST(Lane, the_channel_that_is_begun_when_a_jetty_is_bound_is_that_of_its_first_request) {
  for (const bool pinned : {false, true}) {
    for (const bool rol : {false, true}) {
      for (const bool refused : {false, true}) {
        Lanes l(pinned, rol);
        TargetConfig t = l.target_config(3);
        t.mode = Mode::kRc;
        l.target = l.add(t);
        l.peer().refuses_rol = refused;
        const uint32_t before = l.s->channels.in_use();
        ASSERT_EQ(bind_jetty(*l.s, l.id, l.target), Status::kOk);
        EXPECT_EQ(l.s->channels.in_use(), before + 1);
        l.post(WrOp::kWrite, 8);
        EXPECT_EQ(l.s->channels.in_use(), before + 1);
        EXPECT_NE(l.q().waits_for, 0u);
      }
    }
  }
}

// The lane counts, and not the length of the message.
TEST(Lane, short_messages_of_a_queue_that_moved_go_along_with_its_long_ones) {
  Lanes l(true, true);
  l.post(WrOp::kSend, 20 * kMtu);
  ASSERT_EQ(l.sent(l.bulk).size(), 1u);
  for (const uint8_t place_order : {0, 1, 2}) {
    l.post(WrOp::kSend, 8, place_order);
    EXPECT_EQ(l.sent(l.bulk).size(), 1u) << int{place_order};
    l.post(WrOp::kSend, 20 * kMtu, place_order);
    EXPECT_EQ(l.sent(l.bulk).size(), 1u) << int{place_order};
  }
}

// Others of the same length, or of the same service, go by channels that live.
TEST(Lane, a_channel_that_dies_takes_along_what_was_posted_for_its_lane_alone) {
  for (const uint32_t dies : {kSmallLane, kBulkLane, kOrderedLane, kOrderedBulkLane}) {
    for (const bool rol : {false, true}) {
      for (const bool long_one : {false, true}) {
        Lanes l(true, rol);
        uint32_t channels[kLanes];
        for (uint32_t lane = 0; lane < kLanes; ++lane) {
          channels[lane] = setup::channel_to(*l.s, l.s->targets[l.target].peer, lane);
          if (!l.s->channels[channels[lane]].is_up()) l.open(channels[lane]);
        }
        l.post(WrOp::kWrite, long_one ? 20 * kMtu : 8);
        setup::kill_channel(*l.s, channels[dies]);
        const LaneKind its_lane = lane_kind(rol, long_one);
        if (dies == its_lane) {
          EXPECT_EQ(l.outcomes(), (Outcomes{CrStatus::kAckTimeout})) << dies << rol << long_one;
        } else {
          EXPECT_EQ(l.sent(channels[its_lane]).size(), 1u) << dies << rol << long_one;
        }
      }
    }
  }
}

// A channel keeps the order of what it carries, and not of what another one carries.
struct TwoPeers : Requests {
  TwoPeers() : Requests({.mode = Mode::kRc, .pinned = true, .rol = true}) {
    second = add(target_config(3));
    far = setup::channel_to(*s, s->targets[second].peer, kOrderedLane);
    s->channels[far].rol = true;
    open(far);
  }
  uint32_t second, far;
};

TEST(Lane, a_strong_request_of_rol_waits_for_those_that_went_to_a_former_target) {
  TwoPeers r;
  r.post(WrOp::kWrite, 8, 1);
  EXPECT_EQ(r.sent().size(), 1u);
  Wqe& strong = r.write(WrOp::kWrite);
  strong.place_order = 2;
  strong.target = r.second;
  r.ring_bell();
  EXPECT_TRUE(r.sent(r.far).empty()) << "the first one has not executed";
  r.answer(0);
  EXPECT_EQ(r.sent(r.far).size(), 1u);
}

// The peer accepts channels of ROL for short messages only, and says so while one of them is in use.
TEST(Lane, messages_that_take_a_receive_leave_a_channel_of_rol_when_the_others_are_answered) {
  Requests r({.mode = Mode::kRc, .pinned = true, .lanes = 2, .rol = true});
  const uint32_t small = setup::channel_to(*r.s, r.s->targets[r.target].peer, kSmallLane);
  r.open(small);
  r.post(WrOp::kSend);
  EXPECT_EQ(r.sent().size(), 1u);
  r.peer().refuses_rol = true;
  r.post(WrOp::kSend);
  EXPECT_TRUE(r.sent().empty());
  EXPECT_TRUE(r.sent(small).empty()) << "it may overtake the first one there";
  r.answer(0);
  EXPECT_EQ(r.sent(small).size(), 1u);
}

TEST(Lane, a_pinned_queue_of_small_messages_stays_on_the_small_one) {
  Lanes l(true);
  l.post(WrOp::kWrite, 8);
  l.post(WrOp::kSend, 8);
  EXPECT_EQ(l.sent().size(), 2u);
  EXPECT_FALSE(l.q().pinned_bulk);
}

// A peer that has CTP, with an open channel of it.
struct WithCompact : Requests {
  explicit WithCompact(const Options& o) : Requests(o) {
    peer().compact_mtu = kMtu;
    compact = setup::channel_to(*s, s->targets[target].peer, kCompactLane);
    open(compact);
  }
  uint32_t compact;
};

TEST(Lane, a_pinned_queue_that_waits_for_its_change_says_so) {
  Lanes l(true);
  Looking looking;
  l.s->looker.begin(looking);
  l.post(WrOp::kWrite, 8);
  l.sent();
  EXPECT_TRUE(looking.notes.empty() || looking.notes.back().stage != Stage::kRequestWaits);
  l.post(WrOp::kWrite, 20 * kMtu);
  const auto waits = [&](const Note& n) {
    return n.stage == Stage::kRequestWaits && n.object == l.queue_index && RequestWaits(n.a) == RequestWaits::kLane;
  };
  EXPECT_TRUE(std::any_of(looking.notes.begin(), looking.notes.end(), waits));
}

TEST(Lane, only_queues_of_rm_use_ctp) {
  for (const Mode mode : {Mode::kRm, Mode::kRc}) {
    WithCompact r({.mode = mode, .lanes = 2});
    r.post(WrOp::kWrite, 8);
    EXPECT_EQ(r.sent(r.compact).size(), mode == Mode::kRm ? 1u : 0u);
    EXPECT_EQ(r.sent().size(), mode == Mode::kRm ? 0u : 1u);
  }
}

TEST(Lane, a_write_that_is_cut_for_ctp_stays_on_its_one_channel) {
  WithCompact r({.lanes = 2, .channels_per_lane = 2});
  const uint32_t before = r.s->channels.in_use();
  r.post(WrOp::kWrite, 3 * kMtu);
  EXPECT_EQ(r.sent(r.compact).size(), 3u);
  EXPECT_EQ(r.s->channels.in_use(), before);
}

// The packets of a channel that there is may be shorter than those of the peer's path.
TEST(Lane, what_is_too_long_for_the_channel_of_ctp_goes_by_rtp) {
  WithCompact r({.lanes = 2});
  r.peer().compact_mtu = 4 * kMtu;
  r.post(WrOp::kSend, kMtu + 1);
  EXPECT_EQ(r.sent().size(), 1u);
  r.post(WrOp::kRead, kMtu);
  EXPECT_EQ(r.sent(r.compact).size(), 1u);
}

// They were not too long for CTP: there was none.
TEST(Lane, messages_that_went_by_rtp_before_there_was_ctp_do_not_keep_others_from_it) {
  WithCompact r({.lanes = 2});
  r.peer().compact_mtu = 0;
  r.post(WrOp::kSend, 8);
  ASSERT_EQ(r.sent().size(), 1u);
  r.answer(0);
  r.peer().compact_mtu = kMtu;
  r.post(WrOp::kSend, 8);
  EXPECT_EQ(r.sent(r.compact).size(), 1u);
}

TEST(Lane, requests_for_which_there_is_no_channel_of_ctp_go_by_rtp) {
  Lanes l;
  l.peer().compact_mtu = kMtu;
  while (l.s->channels.alloc() != 0) {
  }
  for (int i = 0; i < 2; ++i) l.post(WrOp::kWrite, 8);
  EXPECT_EQ(l.sent().size(), 2u);
  EXPECT_EQ(l.peer().compact_mtu, 0u) << "nor is it tried again with each request";
}

// What an earlier round left in the ring is the same as the first element everywhere.
TEST(Lane, a_queue_that_sent_a_request_lines_up_at_once_where_its_next_one_goes) {
  const auto next_stands_at = [](Lanes& l, std::initializer_list<Wqe> posted) {
    std::fill(l.ring.begin(), l.ring.end(), *posted.begin());
    std::copy(posted.begin(), posted.end(), l.ring.begin());
    l.indices.produced.store(static_cast<uint32_t>(posted.size()));
    l.ring_bell();
    const uint32_t channel = l.q().waits_for;
    tp::TxMessage m{};
    EXPECT_TRUE(start_next_segment(*l.s, lane_of(*l.s, l.s->channels[channel]), channel, &m));
    return l.q().waits_for;
  };
  const auto of_length = [](Lanes& l, uint32_t length) {
    Wqe w = l.write(WrOp::kWrite, length);
    l.indices.produced.store(0);
    return w;
  };
  const uint32_t limit = Lanes().s->config.lane_bulk_bytes;
  for (const uint32_t small : {8u, limit}) {
    Lanes up, down, same;
    EXPECT_EQ(next_stands_at(up, {of_length(up, small), of_length(up, limit + 1)}), up.bulk) << small;
    EXPECT_EQ(next_stands_at(down, {of_length(down, limit + 1), of_length(down, small)}), down.channel) << small;
    EXPECT_EQ(next_stands_at(same, {of_length(same, 8), of_length(same, small)}), same.channel) << small;
  }
  Lanes none, other;
  EXPECT_EQ(next_stands_at(none, {of_length(none, 8)}), 0u) << "on no list";
  Wqe elsewhere = of_length(other, 8);
  elsewhere.target = other.add(other.target_config(3));
  const uint32_t its_channel = other.s->peers[other.s->targets[elsewhere.target].peer].lanes[0].channels[0];
  EXPECT_EQ(next_stands_at(other, {of_length(other, 8), elsewhere}), its_channel);
}

}  // namespace
}  // namespace ub::ta
