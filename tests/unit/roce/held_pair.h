// SPDX-License-Identifier: Apache-2.0
// held_pair.h - two Cores with queue pairs (engine_pair.h) whose memory answers when the test says so: what waits for
// it, by PSN.
#pragma once

#include "tests/unit/roce/engine_pair.h"

namespace ub::roce {

inline constexpr uint32_t kMtu = 1024;
inline constexpr uint64_t kThere = TestQp::kAddress;

using Psns = std::vector<uint32_t>;

class HeldTest : public EnginePair {
 protected:
  HeldTest() { hold_copies = true; }

  const Qp& record(TestQp& q) {
    const CoreState& s = q.node.core->state();
    return q.node.core->roce_state()->qps[find_qp(s, q.qpn)];
  }
  const HeldFrames& frames(TestQp& q) { return q.node.core->state().held; }
  Psns psns_of(TestQp& q, const HeldLine& line) {
    Psns all;
    frames(q).each(line, [&](const HeldFrame& h) { all.push_back(h.psn.value()); });
    return all;
  }
  /// PSNs of requests and answers that wait, counted from the first one of the queue pair, or of its peer.
  Psns held(TestQp& q) { return counted(psns_of(q, record(q).held_requests), q); }
  Psns held_answers(TestQp& q, TestQp& asker) { return counted(psns_of(q, record(q).held_responses), asker); }

  /// The packets that a node sends now, by PSN; they are lost.
  Psns sent(TestQp& q) {
    Psns all;
    for (const Packet& p : sent_by(q.node)) all.push_back(p.bth.psn.value());
    q.node.host.frames.clear();
    return counted(all, q);
  }
  static Psns counted(Psns all, const TestQp& q) {
    for (uint32_t& psn : all) psn = Psn(psn).distance(Psn(0xFFFFF0 + (q.qpn & 7)));
    return all;
  }
  void write(TestQp& x, uint32_t offset, uint32_t bytes, TestQp& y) {
    x.post(WrOp::kWrite, offset, bytes, y.rkey, kThere + offset);
    x.ring(now);
  }
  void read(TestQp& x, uint32_t offset, uint32_t bytes, TestQp& y) {
    x.post(WrOp::kRead, offset, bytes, y.rkey, kThere + offset);
    x.ring(now);
  }
  void finish(TestQp& q, size_t which) { q.node.host.finish_copy(*q.node.core, now, which); }
  void finish_all(TestQp& q) { q.node.host.finish_copies(*q.node.core, now); }
  void fail(TestQp& q, size_t which) {
    q.node.host.lost = true;
    finish(q, which);
    q.node.host.lost = false;
  }
  void timeout(TestQp& q) {
    now = later(now, q.node.core->next_deadline());
    q.node.core->on_timer(now);
  }
  Status go(TestQp& q, QpState state, uint32_t mask = 0, QpAttributes to = {}) {
    to.qp_state = state;
    return q.node.roce().modify_qp(now, q.qpn, to, mask);
  }
  void expect_status(TestQp& q, const std::vector<CrStatus>& wanted) {
    std::vector<CrStatus> all;
    for (const Cqe& c : q.poll()) all.push_back(c.status);
    EXPECT_EQ(all, wanted);
  }
  /// From here on memory answers at once; what is awaited comes, too.
  void quicken() {
    hold_copies = false;
    a.host.slow = b.host.slow = false;
    settle();
  }
  void expect_nothing_held() {
    for (TestNode* n : {&a, &b}) {
      EXPECT_EQ(n->core->state().held.in_use_count(), 0u);
      EXPECT_EQ(n->core->state().held.orphan_count(), 0u);
    }
  }
};

}  // namespace ub::roce
