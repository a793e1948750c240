// SPDX-License-Identifier: Apache-2.0
//
// The straight path (docs/straight-path-design.md): it leaves behind what the general one does, and whatever could
// change the choice of a channel ends its routes.
#include <algorithm>
#include <string>

#include "lib/base/prng.h"
#include "lib/transport/ta/routes.h"
#include "tests/unit/ta/compact_pair.h"

namespace ub {
namespace {

using Bytes = TestHost::Bytes;

/// Two Cores that are told the same as those of another one.
class Twin : public CompactPair {
 public:
  explicit Twin(bool straight, bool icrc = true) : CompactPair(options_of(straight, icrc)) { connect(); }
  void TestBody() override {}

  struct Post {
    WrOp op;
    uint32_t length, offset;
    uint8_t flags, place_order;
    bool cut_off, rings;
  };
  void post(const Post& p) {
    Wqe& w = a.post(a.sends, p.op, to_b, p.length, p.offset);
    w.flags = p.flags;
    w.place_order = p.place_order;
    w.remote_address = b.address() + UbNode::kMemory / 2 + p.offset;
    w.token_id = b.segment.token_id;
    w.token_value = UbNode::kToken;
    if (p.cut_off) w.sge.length = p.length / 2;  // it promises more than its range has
    if (p.rings) ring();
  }
  void post_receive() { b.post_receive(b.receive_indices[0], b.receives[0], 0, 4096); }
  void pass(Duration time) {
    now += time;
    for (UbNode* n : {&a, &b}) n->core->on_timer(now);
  }
  void set_full(bool full) { a.host.full = b.host.full = full; }
  void set_gone(bool gone) { b.host.gone = gone; }
  void poll_packets() {
    for (UbNode* n : {&a, &b}) n->core->poll_packets(now, 8, Acks::kMayWait);
  }
  void deliver_both() {
    deliver(a, b);
    deliver(b, a);
  }
  void ring() {
    if (sends_at_once) {
      a.core->send_posted(now, a.jetty, 8, Acks::kMayWait);
    } else {
      a.core->on_posted(now, a.jetty);
    }
  }
  void to_the_end() {
    set_full(false);
    set_gone(false);
    ring();
    for (int i = 0; i < 100; ++i) post_receive();
    settle(seconds(2));
  }

  /// All that can be seen from outside, and where the queues and channels stand.
  std::string seen() {
    std::string s;
    for (UbNode* n : {&a, &b}) {
      for (const Bytes& frame : n->host.frames) s += text_of(frame) + "\n";
      s += completions_of(*n);
      for (size_t i = 0; i < kCounterCount; ++i) {
        s += std::to_string(n->core->counters()[static_cast<Counter>(i)]) + " ";
      }
      const CoreState& c = state(*n);
      for (uint32_t i = 1; i <= c.channels.high_water(); ++i) s += text_of(c, c.channels[i]);
      for (uint32_t i = 1; i <= c.queues.high_water(); ++i) s += text_of(c.queues[i]);
      s += " held back " + std::to_string(c.held_back) + " messages " + std::to_string(c.messages.in_use()) +
           " answers " + std::to_string(c.answers.in_use()) + " jobs " + std::to_string(c.jobs.in_use()) + "\n";
    }
    return s;
  }
  std::string completions_of_a() { return completions_of(a); }
  bool sends_at_once = false;
  bool has_memory_of(const Twin& other) const { return a.memory == other.a.memory && b.memory == other.b.memory; }
  bool has_route() const {
    return std::ranges::any_of(state(a).routes, [&](const Route& r) { return r.epoch == state(a).route_epoch; });
  }
  using CompactPair::a, CompactPair::b, CompactPair::now, CompactPair::to_b, CompactPair::state;
  using CompactPair::exchange;

 private:
  static std::string completions_of(UbNode& n) {
    std::string s;
    for (const Cqe& c : n.poll()) {
      s += "cqe " + std::to_string(c.user_ctx) + " " + std::to_string(static_cast<int>(c.status)) + " " +
           std::to_string(c.length) + " " + std::to_string(c.stamp) + "\n";
    }
    return s;
  }
  static UbOptions options_of(bool straight, bool icrc) {
    UbOptions o = options();
    o.core.straight = straight;
    o.link.icrc_optional = !icrc;
    return o;
  }
  /// Addresses become places in the memory; the sum over them goes.
  std::string text_of(Bytes frame) const {
    frame.resize(frame.size() - wire::kIcrcSize);
    for (size_t i = 0; i + 8 <= frame.size(); ++i) {
      const uint64_t place = load_be64(frame.data() + i) - b.address();
      if (place < UbNode::kMemory) store_be64(frame.data() + i, place);
    }
    std::string s = "frame";
    for (const std::byte byte : frame) s += " " + std::to_string(static_cast<int>(byte));
    return s;
  }
  std::string text_of(const CoreState& c, const tp::Channel& ch) const {
    std::string s = "\nchannel";
    for (const uint64_t value :
         {uint64_t{ch.next_psn.value()}, uint64_t{ch.expected.value()}, uint64_t{ch.delivered.value()},
          uint64_t{ch.message.value()}, uint64_t{ch.next_tpmsn.value()}, uint64_t{ch.in_flight.size()},
          uint64_t{ch.answers.size()}, ch.tx_packets, ch.rx_packets, ch.heard_at.ns, uint64_t{ch.held_back},
          uint64_t{c.peers[ch.peer].lanes[ch.lane].unanswered}}) {
      s += " " + std::to_string(value);
    }
    return s + " " + std::to_string(ch.give_up_after.ns);
  }
  static std::string text_of(const SendQueue& q) {
    std::string s = "\nqueue";
    for (const uint64_t value :
         {uint64_t{q.started_head}, uint64_t{q.started_tail}, uint64_t{q.next_slot}, uint64_t{q.next_tassn.value()},
          uint64_t{q.unanswered_segments}, uint64_t{q.unanswered_fenced}, uint64_t{q.receives_in_flight},
          uint64_t{q.retries}, q.waiting, uint64_t{q.held_back}}) {
      s += " " + std::to_string(value);
    }
    return s;
  }
};

// What a run of the test is made of.
struct Script {
  explicit Script(uint64_t seed) : rng(seed), exact(rng.chance(0.7)), at_once(rng.chance(0.5)) {}

  Prng rng;
  // All goes by CTP. Else requests change between channels, which may have their turns sooner or later.
  const bool exact;
  const bool at_once;
  uint32_t posted = 0;
  uint32_t place = 0;  // behind what all requests until now touch

  Twin::Post draw_post() {
    Twin::Post p{};
    const uint64_t kind = rng.below(10);
    p.op = kind < 5 ? WrOp::kWrite : kind < 8 ? WrOp::kRead : kind < 9 ? WrOp::kSend : WrOp::kNop;
    // Behind a full port it may be passed sooner or later.
    if (p.op == WrOp::kNop && exact && at_once) p.op = WrOp::kWrite;
    const uint64_t longest = exact ? 1024 : 3000;
    const uint64_t length = rng.below(8) == 0 ? rng.below(longest + 1) : rng.between(1, 200);
    p.length = p.op == WrOp::kNop ? 0 : static_cast<uint32_t>(length);
    // Where it is not known what comes first, no two requests touch the same bytes.
    if (place + p.length > UbNode::kMemory / 2) p.length = 0;
    p.offset = exact ? static_cast<uint32_t>(rng.below(1000) * 8) : place;
    place += exact ? 0 : (p.length + 7) / 8 * 8;
    p.flags = static_cast<uint8_t>((rng.chance(0.8) ? kWrSignaled : 0) | (rng.chance(0.9) ? kWrToken : 0) |
                                   (rng.chance(0.1) ? kWrFence : 0) | (rng.chance(0.1) ? kWrSolicited : 0));
    p.place_order = static_cast<uint8_t>(rng.chance(0.2) ? rng.below(3) : 0);
    p.cut_off = p.op != WrOp::kNop && rng.chance(0.05);
    p.rings = rng.chance(0.7);
    return p;
  }

  /// Both do the same, whatever that is.
  void step(Twin& one, Twin& other) {
    const auto both = [&](auto fn) { fn(one), fn(other); };
    const uint64_t what = rng.below(20);
    if (what < 8 && posted < 180) {
      const uint64_t count = rng.between(1, 6);
      for (uint64_t i = 1; i <= count; ++i, ++posted) {
        Twin::Post p = draw_post();
        p.rings |= i == count;  // what was posted without a doorbell may be seen sooner or later
        both([&](Twin& t) { t.post(p); });
      }
    } else if (what < 11) {
      both([](Twin& t) { t.deliver_both(); });
    } else if (what < 14) {
      both([](Twin& t) { t.poll_packets(); });
    } else if (what < 15) {
      const bool full = rng.chance(0.5);
      both([=](Twin& t) { t.set_full(full); });
    } else if (what < 16) {
      const bool gone = exact && rng.chance(0.3);
      both([=](Twin& t) { t.set_gone(gone); });
    } else if (what < 17) {
      both([](Twin& t) { t.post_receive(); });
    } else if (what < 18) {
      const Duration time = nanoseconds(static_cast<int64_t>(rng.below(200'000)));
      both([=](Twin& t) { t.pass(time); });
    } else {
      both([](Twin& t) { t.ring(); });
    }
  }
};

TEST(StraightTest, it_leaves_behind_what_the_general_path_does) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Script script(seed);
    const bool icrc = script.rng.chance(0.5);
    Twin straight(true, icrc), general(false, icrc);
    straight.sends_at_once = general.sends_at_once = script.at_once;
    std::string completions[2];
    for (int step = 0; step < 120; ++step) {
      script.step(straight, general);
      if (script.exact) {
        ASSERT_EQ(straight.seen(), general.seen()) << "step " << step;
      } else {
        completions[0] += straight.completions_of_a(), completions[1] += general.completions_of_a();
      }
    }
    straight.to_the_end();
    general.to_the_end();
    if (script.exact) {
      ASSERT_EQ(straight.seen(), general.seen());
    } else {
      ASSERT_EQ(completions[0] + straight.completions_of_a(), completions[1] + general.completions_of_a());
    }
    EXPECT_TRUE(straight.has_memory_of(general));
    EXPECT_FALSE(general.has_route());
  }
}

// ---- routes ----------------------------------------------------------------------------------------------------

class Routes : public CompactPair {
 protected:
  void send(uint32_t length = 8) {
    request(WrOp::kWrite, length);
    settle(milliseconds(10));
    EXPECT_EQ(only_status(a), CrStatus::kSuccess);
  }
  bool has_route() const {
    return std::ranges::any_of(state(a).routes, [&](const Route& r) { return r.epoch == state(a).route_epoch; });
  }
};

TEST_F(Routes, the_first_request_finds_one) {
  EXPECT_FALSE(has_route());
  send();
  EXPECT_TRUE(has_route());
}

TEST_F(Routes, a_request_of_several_packets_finds_none) {
  send(3 * kMtu);
  EXPECT_FALSE(has_route());
}

TEST_F(Routes, a_request_that_asks_for_an_order_finds_none) {
  Wqe& w = a.post(a.sends, WrOp::kWrite, to_b, 8);
  w.place_order = 1;
  w.remote_address = b.address();
  w.token_id = b.segment.token_id;
  w.token_value = UbNode::kToken;
  a.core->on_posted(now, a.jetty);
  settle(milliseconds(10));
  EXPECT_EQ(only_status(a), CrStatus::kSuccess);
  EXPECT_FALSE(has_route());
}

TEST_F(Routes, the_death_of_a_channel_ends_them) {
  send();
  a.core->link_down(now, a.link);
  EXPECT_FALSE(has_route());
}

TEST_F(Routes, the_end_of_a_target_ends_them) {
  send();
  EXPECT_EQ(a.core->remove_target(to_b), Status::kOk);
  EXPECT_FALSE(has_route());
}

TEST_F(Routes, the_end_of_a_queue_ends_them) {
  send();
  EXPECT_EQ(a.core->destroy_jetty(now, a.jetty), Status::kOk);
  EXPECT_FALSE(has_route());
}

// A doorbell for a queue that stands in line leaves no trace but the index of its ring.
TEST_F(Routes, what_is_posted_while_its_queue_stands_in_line_is_seen) {
  send();
  request(WrOp::kWrite, 8);
  request(WrOp::kWrite, 16);
  settle(milliseconds(10));
  EXPECT_EQ(a.poll().size(), 2u);
}

}  // namespace
}  // namespace ub
