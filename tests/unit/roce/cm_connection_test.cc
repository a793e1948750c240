// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/roce/cm_connection.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <utility>
#include <vector>

#include "tests/unit/roce/roce_test_util.h"

namespace ub::roce {
namespace {

constexpr uint64_t kTransaction = 0x1234;
constexpr CmStep kNothing{}, kSend{CmEvent::kNone, true};

CmReq request() {
  CmReq r;
  r.local_comm_id = 0xA1;
  r.qpn = 17;
  return r;
}

CmRep reply() {
  CmRep r;
  r.qpn = 18;
  return r;
}

CmType type_of(const CmConnection& c) {
  CmHead head;
  EXPECT_EQ(CmHead::read(c.mad, head), Drop::kNone);
  EXPECT_EQ(head.transaction_id, kTransaction);
  return head.type;
}

/// Both sides, and the way of a datagram from one to the other.
struct Pair {
  CmStep deliver(const CmConnection& from, CmConnection& to) {
    return on_message(to, now, times, type_of(from), from.mad.data() + kMadHeadSize);
  }
  /// The REQ of the active side reaches the passive one for the first time.
  void deliver_request() {
    CmHead head;
    ASSERT_EQ(CmHead::read(active.mad, head), Drop::kNone);
    ASSERT_EQ(head.type, CmType::kReq);
    receive_request(passive, head, CmReq::read(active.mad.data() + kMadHeadSize), 0xB2);
  }
  CmStep start() { return connect(active, now, times, request(), kTransaction); }
  void establish() {
    ASSERT_EQ(start(), kSend);
    deliver_request();
    ASSERT_EQ(accept(passive, now, times, reply()), kSend);
    ASSERT_EQ(deliver(passive, active).event, CmEvent::kAccepted);
    ASSERT_EQ(ready(active), kSend);
    ASSERT_EQ(deliver(active, passive).event, CmEvent::kEstablished);
  }
  CmStep expire(CmConnection& c) {
    now = c.deadline;
    return on_timer(c, now, times);
  }

  Instant now{1};
  CmTimes times;
  CmConnection active, passive;
};

TEST(CmConnection, three_messages_make_a_connection) {
  Pair p;
  p.establish();
  EXPECT_EQ(p.active.state, CmState::kEstablished);
  EXPECT_EQ(p.passive.state, CmState::kEstablished);
  EXPECT_EQ(p.active.remote_comm_id, 0xB2u);
  EXPECT_EQ(p.passive.remote_comm_id, 0xA1u);
  EXPECT_EQ(p.active.remote_qpn, 18u);
  EXPECT_EQ(p.passive.remote_qpn, 17u);
  EXPECT_TRUE(p.active.deadline.is_never() && p.passive.deadline.is_never());
}

TEST(CmConnection, messages_carry_both_ids) {
  Pair p;
  p.establish();
  const CmRep rep = CmRep::read(p.passive.mad.data() + kMadHeadSize);
  EXPECT_EQ(rep.local_comm_id, 0xB2u);
  EXPECT_EQ(rep.remote_comm_id, 0xA1u);
  EXPECT_EQ(rep.qpn, 18u);
  const CmRtu rtu = CmRtu::read(p.active.mad.data() + kMadHeadSize);
  EXPECT_EQ(rtu.local_comm_id, 0xA1u);
  EXPECT_EQ(rtu.remote_comm_id, 0xB2u);
}

TEST(CmConnection, either_side_may_part) {
  for (const bool active_asks : {false, true}) {
    Pair p;
    p.establish();
    CmConnection& asks = active_asks ? p.active : p.passive;
    CmConnection& asked = active_asks ? p.passive : p.active;
    ASSERT_EQ(disconnect(asks, p.now, p.times), kSend);
    EXPECT_EQ(CmDreq::read(asks.mad.data() + kMadHeadSize).remote_qpn, active_asks ? 18u : 17u);
    EXPECT_EQ(p.deliver(asks, asked), (CmStep{CmEvent::kDisconnected, true}));
    EXPECT_EQ(p.deliver(asked, asks), (CmStep{CmEvent::kDisconnected, false}));
    EXPECT_EQ(asks.state, CmState::kTimeWait);
    EXPECT_EQ(p.expire(asks), kNothing);
    EXPECT_EQ(asks.state, CmState::kClosed);
    EXPECT_TRUE(asks.deadline.is_never());
  }
}

TEST(CmConnection, both_may_part_at_once) {
  Pair p;
  p.establish();
  ASSERT_EQ(disconnect(p.active, p.now, p.times), kSend);
  ASSERT_EQ(disconnect(p.passive, p.now, p.times), kSend);
  const CmConnection other = p.passive;
  EXPECT_EQ(p.deliver(p.active, p.passive), (CmStep{CmEvent::kDisconnected, true}));
  EXPECT_EQ(p.deliver(other, p.active), (CmStep{CmEvent::kDisconnected, true}));
  EXPECT_EQ(p.deliver(p.passive, p.active), kNothing);
}

TEST(CmConnection, a_lost_message_goes_again) {
  Pair p;
  ASSERT_EQ(p.start(), kSend);
  EXPECT_EQ(on_timer(p.active, p.now, p.times), kNothing);  // too early
  EXPECT_EQ(p.expire(p.active), kSend);
  EXPECT_EQ(type_of(p.active), CmType::kReq);
  EXPECT_EQ(p.active.deadline, p.now + milliseconds(500));
  EXPECT_EQ(p.expire(p.active), kSend);
  EXPECT_EQ(p.active.deadline, p.now + milliseconds(1000));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(p.expire(p.active), kSend);
  EXPECT_EQ(p.active.deadline, p.now + milliseconds(4300));
}

TEST(CmConnection, a_request_without_an_answer_ends) {
  Pair p;
  p.times.tries = 3;
  ASSERT_EQ(p.start(), kSend);
  EXPECT_EQ(p.expire(p.active), kSend);
  EXPECT_EQ(p.expire(p.active), kSend);
  EXPECT_EQ(p.expire(p.active), (CmStep{CmEvent::kUnreachable, true}));
  EXPECT_EQ(type_of(p.active), CmType::kRej);
  EXPECT_EQ(CmRej::read(p.active.mad.data() + kMadHeadSize).reason, RejReason::kTimeout);
  EXPECT_EQ(p.active.state, CmState::kClosed);
}

TEST(CmConnection, a_disconnection_without_an_answer_ends_as_one) {
  Pair p;
  p.times.tries = 2;
  p.establish();
  ASSERT_EQ(disconnect(p.active, p.now, p.times), kSend);
  EXPECT_EQ(p.expire(p.active), kSend);
  EXPECT_EQ(p.expire(p.active), (CmStep{CmEvent::kDisconnected, false}));
  EXPECT_EQ(p.active.state, CmState::kTimeWait);
}

TEST(CmConnection, what_comes_twice_is_answered_twice) {
  Pair p;
  ASSERT_EQ(p.start(), kSend);
  const CmConnection asked = p.active;
  p.deliver_request();
  EXPECT_EQ(p.deliver(asked, p.passive), kNothing);  // the application has not decided
  ASSERT_EQ(accept(p.passive, p.now, p.times, reply()), kSend);
  EXPECT_EQ(p.deliver(asked, p.passive), kSend);
  EXPECT_EQ(type_of(p.passive), CmType::kRep);
  EXPECT_EQ(p.deliver(p.passive, p.active).event, CmEvent::kAccepted);
  EXPECT_EQ(p.deliver(p.passive, p.active), kNothing);  // not ready yet
  ASSERT_EQ(ready(p.active), kSend);
  EXPECT_EQ(p.deliver(p.passive, p.active), kSend);
  EXPECT_EQ(type_of(p.active), CmType::kRtu);
  EXPECT_EQ(p.deliver(p.active, p.passive).event, CmEvent::kEstablished);
  EXPECT_EQ(p.deliver(p.active, p.passive), kNothing);
  EXPECT_EQ(p.deliver(asked, p.passive), kNothing);
  ASSERT_EQ(disconnect(p.active, p.now, p.times), kSend);
  EXPECT_EQ(p.deliver(p.active, p.passive).event, CmEvent::kDisconnected);
  EXPECT_EQ(p.deliver(p.active, p.passive), kSend);
  EXPECT_EQ(type_of(p.passive), CmType::kDrep);
}

TEST(CmConnection, the_passive_side_repeats_no_reply_once_established) {
  Pair p;
  p.establish();
  CmConnection stray = p.passive;
  EXPECT_EQ(p.deliver(stray, p.passive), kNothing);
}

TEST(CmConnection, data_is_as_good_as_the_third_message) {
  Pair p;
  ASSERT_EQ(p.start(), kSend);
  p.deliver_request();
  ASSERT_EQ(accept(p.passive, p.now, p.times, reply()), kSend);
  EXPECT_EQ(on_data(p.passive).event, CmEvent::kEstablished);
  EXPECT_EQ(on_data(p.passive), kNothing);
}

TEST(CmConnection, an_application_may_refuse) {
  Pair p;
  ASSERT_EQ(p.start(), kSend);
  p.deliver_request();
  const Bytes why = hex("68656c6c6f");
  ASSERT_EQ(reject(p.passive, RejReason::kConsumer, why), kSend);
  const CmRej rej = CmRej::read(p.passive.mad.data() + kMadHeadSize);
  EXPECT_EQ(rej.about, CmAbout::kReq);
  EXPECT_EQ(rej.remote_comm_id, 0xA1u);
  EXPECT_EQ(to_hex(rej.private_data.first(5)), to_hex(why));
  EXPECT_EQ(p.deliver(p.passive, p.active), (CmStep{CmEvent::kRejected, false}));
  EXPECT_EQ(p.active.state, CmState::kClosed);
}

TEST(CmConnection, the_active_side_may_refuse_the_reply) {
  Pair p;
  ASSERT_EQ(p.start(), kSend);
  p.deliver_request();
  ASSERT_EQ(accept(p.passive, p.now, p.times, reply()), kSend);
  ASSERT_EQ(p.deliver(p.passive, p.active).event, CmEvent::kAccepted);
  ASSERT_EQ(reject(p.active, RejReason::kNoResources), kSend);
  EXPECT_EQ(CmRej::read(p.active.mad.data() + kMadHeadSize).about, CmAbout::kRep);
  EXPECT_EQ(p.deliver(p.active, p.passive).event, CmEvent::kRejected);
}

TEST(CmConnection, a_passive_side_that_gave_up_ends_the_connection) {
  Pair p;
  p.times.tries = 1;
  ASSERT_EQ(p.start(), kSend);
  p.deliver_request();
  ASSERT_EQ(accept(p.passive, p.now, p.times, reply()), kSend);
  ASSERT_EQ(p.deliver(p.passive, p.active).event, CmEvent::kAccepted);
  ASSERT_EQ(ready(p.active), kSend);  // lost
  ASSERT_EQ(p.expire(p.passive), (CmStep{CmEvent::kUnreachable, true}));
  EXPECT_EQ(p.deliver(p.passive, p.active), (CmStep{CmEvent::kDisconnected, false}));
}

TEST(CmConnection, other_refusals_do_not_end_an_established_connection) {
  Pair p;
  p.establish();
  std::array<std::byte, kCmBodySize> body;
  CmRej{0xB2, 0xA1, CmAbout::kReq, RejReason::kTimeout, 0, {}, {}}.write(body.data());
  EXPECT_EQ(on_message(p.active, p.now, p.times, CmType::kRej, body.data()), kNothing);
  CmRej{0xA1, 0xB2, CmAbout::kRep, RejReason::kTimeout, 0, {}, {}}.write(body.data());
  EXPECT_EQ(on_message(p.passive, p.now, p.times, CmType::kRej, body.data()), kNothing);
  EXPECT_EQ(p.active.state, CmState::kEstablished);
  EXPECT_EQ(p.passive.state, CmState::kEstablished);
}

TEST(CmConnection, patience) {
  Pair p;
  ASSERT_EQ(p.start(), kSend);
  p.deliver_request();
  CmMra mra{0xB2, 0xA1, CmAbout::kReq, 20, {}};
  std::array<std::byte, kCmBodySize> body;
  mra.write(body.data());
  EXPECT_EQ(on_message(p.active, p.now, p.times, CmType::kMra, body.data()), kNothing);
  EXPECT_EQ(p.active.deadline, p.now + nanoseconds(4096) * (1 << 20));
  mra.about = CmAbout::kRep;
  mra.service_timeout = 30;
  mra.write(body.data());
  EXPECT_EQ(on_message(p.active, p.now, p.times, CmType::kMra, body.data()), kNothing);
  EXPECT_EQ(p.active.deadline, p.now + nanoseconds(4096) * (1 << 20));
  mra.about = CmAbout::kReq;
  mra.service_timeout = 31;  // 2.4 hours
  mra.write(body.data());
  EXPECT_EQ(on_message(p.active, p.now, p.times, CmType::kMra, body.data()), kNothing);
  EXPECT_EQ(p.active.deadline, p.now + p.times.patience);
}

TEST(CmConnection, goodbye_before_the_answer_ends_it) {
  Pair p;
  EXPECT_EQ(p.start(), kSend);
  std::array<std::byte, kCmBodySize> body{};
  CmDreq{0xB2, 0xA1, 17, {}}.write(body.data());
  EXPECT_EQ(on_message(p.active, p.now, p.times, CmType::kDreq, body.data()), (CmStep{CmEvent::kDisconnected, true}));
  EXPECT_EQ(type_of(p.active), CmType::kDrep);
  EXPECT_EQ(CmDrep::read(p.active.mad.data() + kMadHeadSize).remote_comm_id, 0xB2u);
  CmRep{}.write(body.data());
  EXPECT_EQ(on_message(p.active, p.now, p.times, CmType::kRep, body.data()), kNothing);
  EXPECT_EQ(p.active.state, CmState::kTimeWait);
}

TEST(CmConnection, messages_out_of_place_change_nothing) {
  const CmState states[] = {CmState::kClosed,  CmState::kReqSent,     CmState::kRepReceived, CmState::kReqReceived,
                            CmState::kRepSent, CmState::kEstablished, CmState::kDreqSent,    CmState::kTimeWait};
  const std::pair<CmType, std::vector<CmState>> heard[] = {
      {CmType::kRep, {CmState::kReqSent}},
      {CmType::kRtu, {CmState::kRepSent}},
      {CmType::kRej, {CmState::kReqSent, CmState::kRepReceived, CmState::kRepSent}},
      {CmType::kDreq,
       {CmState::kReqSent, CmState::kEstablished, CmState::kRepSent, CmState::kDreqSent, CmState::kTimeWait}},
      {CmType::kDrep, {CmState::kDreqSent}}};
  const std::array<std::byte, kCmBodySize> body{};
  for (const auto& [type, where] : heard) {
    for (const CmState state : states) {
      Pair p;
      p.passive.state = state;
      const CmStep step = on_message(p.passive, p.now, p.times, type, body.data());
      const bool expected = std::find(where.begin(), where.end(), state) != where.end();
      EXPECT_EQ(step != kNothing, expected) << cm_type_name(type) << " in " << static_cast<int>(state);
      EXPECT_TRUE(expected || p.passive.state == state);
    }
  }
}

TEST(CmConnection, answers_without_a_connection) {
  const CmHead head{CmType::kReq, kTransaction};
  CmConnection c;
  refuse_request(head, 0xA1, RejReason::kInvalidServiceId, c.mad);
  EXPECT_EQ(type_of(c), CmType::kRej);
  const CmRej rej = CmRej::read(c.mad.data() + kMadHeadSize);
  EXPECT_EQ(rej.local_comm_id, 0u);
  EXPECT_EQ(rej.remote_comm_id, 0xA1u);
  EXPECT_EQ(rej.reason, RejReason::kInvalidServiceId);
  confirm_disconnect(head, CmDreq{0xA1, 0xB2, 17, {}}, c.mad);
  EXPECT_EQ(type_of(c), CmType::kDrep);
  const CmDrep drep = CmDrep::read(c.mad.data() + kMadHeadSize);
  EXPECT_EQ(drep.local_comm_id, 0xB2u);
  EXPECT_EQ(drep.remote_comm_id, 0xA1u);
}

// ---- both sides over a path that loses, doubles and swaps ----------------------------------------------------------

/// Runs one connection from REQ to Closed on both sides, and counts what each side's application hears.
class LossyLife {
 public:
  explicit LossyLife(uint64_t seed) : rng_(seed) {}

  void run() {
    take(p_.active, p_.start());
    for (int steps = 0; !over(); ++steps) {
      ASSERT_LT(steps, 10'000);
      if (path_.empty()) {
        pass_time();
      } else {
        deliver();
      }
      if (!parting_ && p_.active.state == CmState::kEstablished && p_.passive.state == CmState::kEstablished) part();
    }
    EXPECT_EQ(heard_[0], (std::vector<CmEvent>{CmEvent::kAccepted, CmEvent::kDisconnected}));
    EXPECT_EQ(heard_[1], (std::vector<CmEvent>{CmEvent::kEstablished, CmEvent::kDisconnected}));
  }

 private:
  struct Datagram {
    bool to_active;
    Bytes mad;
  };

  bool over() const {
    return parting_ && path_.empty() && p_.active.state == CmState::kClosed && p_.passive.state == CmState::kClosed;
  }

  void part() {
    parting_ = true;
    CmConnection& asks = rng_.chance(0.5) ? p_.active : p_.passive;
    take(asks, disconnect(asks, p_.now, p_.times));
  }

  void take(CmConnection& c, CmStep step) {
    const bool active = &c == &p_.active;
    if (step.send) carry({!active, Bytes(c.mad.begin(), c.mad.end())});
    if (step.event == CmEvent::kNone) return;
    heard_[active ? 0 : 1].push_back(step.event);
    if (step.event == CmEvent::kAccepted) take(c, ready(c));
  }

  void carry(const Datagram& d) {
    if (rng_.chance(0.3)) return;
    path_.push_back(d);
    if (rng_.chance(0.2)) path_.push_back(d);
    if (path_.size() > 1 && rng_.chance(0.2)) std::swap(path_[0], path_.back());
  }

  void pass_time() {
    p_.now = earlier(p_.active.deadline, p_.passive.deadline);
    ASSERT_FALSE(p_.now.is_never());
    take(p_.active, on_timer(p_.active, p_.now, p_.times));
    take(p_.passive, on_timer(p_.passive, p_.now, p_.times));
  }

  void deliver() {
    const Datagram d = path_.front();
    path_.pop_front();
    CmHead head;
    ASSERT_EQ(CmHead::read(d.mad, head), Drop::kNone);
    const std::byte* body = d.mad.data() + kMadHeadSize;
    CmConnection& to = d.to_active ? p_.active : p_.passive;
    if (head.type == CmType::kReq && !asked_) {
      asked_ = true;
      receive_request(to, head, CmReq::read(body), 0xB2);
      return take(to, accept(to, p_.now, p_.times, reply()));
    }
    if (head.type == CmType::kDreq && to.state == CmState::kClosed) {
      CmConnection forgotten;
      confirm_disconnect(head, CmDreq::read(body), forgotten.mad);
      return carry({!d.to_active, Bytes(forgotten.mad.begin(), forgotten.mad.end())});
    }
    take(to, on_message(to, p_.now, p_.times, head.type, body));
  }

  Prng rng_;
  Pair p_;
  std::deque<Datagram> path_;
  std::vector<CmEvent> heard_[2];
  bool asked_ = false, parting_ = false;
};

TEST(CmConnection, each_side_hears_each_thing_once_whatever_the_path_does) {
  for (uint64_t seed = 1; seed <= 500 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    LossyLife(seed).run();
  }
}

}  // namespace
}  // namespace ub::roce
