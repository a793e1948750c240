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
    if (p.rings) a.core->send_posted(now, a.jetty, 8, Acks::kMayWait);
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
  void ring() { a.core->send_posted(now, a.jetty, 8, Acks::kMayWait); }
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
      for (const Cqe& c : n->poll()) {
        s += "cqe " + std::to_string(c.user_ctx) + " " + std::to_string(static_cast<int>(c.status)) + " " +
             std::to_string(c.length) + " " + std::to_string(c.stamp) + "\n";
      }
      for (size_t i = 0; i < kCounterCount; ++i) {
        s += std::to_string(n->core->counters()[static_cast<Counter>(i)]) + " ";
      }
      const CoreState& c = state(*n);
      for (uint32_t i = 1; i <= c.channels.high_water(); ++i) s += text_of(c, c.channels[i]);
      for (uint32_t i = 1; i <= c.queues.high_water(); ++i) s += text_of(c.queues[i]);
      s += " held back " + std::to_string(c.held_back) + " messages " + std::to_string(c.messages.in_use()) +
           " answers " + std::to_string(c.answers.in_use()) + " jobs " + std::to_string(c.jobs.in_use()) +
           (n->core->has_packets() ? " busy\n" : " quiet\n");
      s += std::to_string(std::count(n->memory.begin(), n->memory.end(), std::byte{7})) + "\n";
    }
    return s;
  }
  bool has_route() const {
    return std::ranges::any_of(state(a).routes, [&](const Route& r) { return r.epoch == state(a).route_epoch; });
  }
  using CompactPair::a, CompactPair::b, CompactPair::now, CompactPair::to_b, CompactPair::state;
  using CompactPair::exchange;

 private:
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

Twin::Post draw_post(Prng& rng) {
  Twin::Post p{};
  const uint64_t kind = rng.below(10);
  p.op = kind < 5 ? WrOp::kWrite : kind < 8 ? WrOp::kRead : kind < 9 ? WrOp::kSend : WrOp::kNop;
  p.length = p.op == WrOp::kNop ? 0 : static_cast<uint32_t>(rng.below(8) == 0 ? rng.below(3000) : rng.between(1, 200));
  p.offset = static_cast<uint32_t>(rng.below(1000) * 8);
  p.flags = static_cast<uint8_t>((rng.chance(0.8) ? kWrSignaled : 0) | (rng.chance(0.9) ? kWrToken : 0) |
                                 (rng.chance(0.1) ? kWrFence : 0) | (rng.chance(0.1) ? kWrSolicited : 0));
  p.place_order = static_cast<uint8_t>(rng.chance(0.2) ? rng.below(3) : 0);
  p.cut_off = p.op != WrOp::kNop && rng.chance(0.05);
  p.rings = rng.chance(0.7);
  return p;
}

/// Both do the same, whatever that is.
void do_something(Prng& rng, Twin& one, Twin& other, uint32_t* posted) {
  const auto both = [&](auto fn) { fn(one), fn(other); };
  const uint64_t what = rng.below(20);
  if (what < 8 && *posted < 200) {
    const uint32_t count = static_cast<uint32_t>(rng.between(1, 6));
    *posted += count;
    for (uint32_t i = 0; i < count; ++i) {
      Twin::Post p = draw_post(rng);
      // What was posted without a doorbell may be seen sooner or later, so the last one rings.
      p.rings |= i + 1 == count;
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
    const bool gone = rng.chance(0.3);
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

TEST(StraightTest, it_leaves_behind_what_the_general_path_does) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Prng rng(seed);
    const bool icrc = rng.chance(0.5);
    Twin straight(true, icrc), general(false, icrc);
    uint32_t posted = 0;
    for (int step = 0; step < 120; ++step) {
      do_something(rng, straight, general, &posted);
      ASSERT_EQ(straight.seen(), general.seen()) << "step " << step;
    }
    straight.to_the_end();
    general.to_the_end();
    ASSERT_EQ(straight.seen(), general.seen());
    EXPECT_FALSE(general.has_route());
  }
}

}  // namespace
}  // namespace ub
