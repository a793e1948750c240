// SPDX-License-Identifier: Apache-2.0
//
// The stage of directed tests of RoCE: two nodes with a queue pair each.
#pragma once

#include <utility>
#include <vector>

#include "tests/sim/directed.h"

namespace ub::sim {

inline Options roce_options() {
  Options o = directed_options();
  o.work.qp_pairs = 1;
  o.work.roce_mtu = 1024;
  o.work.roce_timeout = 8;  // 1 ms
  return o;
}

// Two nodes, a queue pair on each, connected; 64 receives of 4096 bytes where a test posts them. Each node has `memory`
// bytes to send from, and a quarter of that to write to.
struct RoceStage : Stage {
  explicit RoceStage(Options o = roce_options(), uint8_t rnr_retry = 7, uint64_t memory = 4 << 20) : Stage(o) {
    for (End& e : ends) {
      if (memory > 4 << 20) e = equip(*e.node, usual_queue(), usual_jfr(), memory);
      jfr.push_back(
          e.node->add_jfr(*e.app, e.jfc, {.mode = Mode::kRc, .depth = 64, .buffer_bytes = 4096, .token = {}}));
      qp.push_back(e.node->add_qp(*e.app, e.jfc, jfr.back(), {.depth = 128, .slots = 512, .rnr_retry = rnr_retry}));
      target.push_back(e.node->add_target(*e.app, {.length = memory / 4, .token = {true, 0x123}}));
    }
    qp[0]->peer = qp[1];
    qp[1]->peer = qp[0];
    ends[0].node->connect(qp[0], 0xFFFFF0, 77, 1);
    ends[1].node->connect(qp[1], 77, 0xFFFFF0, 1);
  }
  void give(uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) ASSERT_TRUE(ends[1].node->post_receive(jfr[1], 4096, 1));
  }
  const Wr& add(WrOp op, uint32_t length, RequestSpec s = {}) {
    s.op = op;
    s.length = length;
    s.to = {qp[1], jfr[1]};
    if (s.remote == nullptr) s.remote = target[1];
    s.plain_add = true;
    s.extra_allowed |= extra_allowed;
    const Wr* w = post(world, qp[0], s);
    UB_ASSERT(w != nullptr);
    return *w;
  }
  const Wr& go(WrOp op, uint32_t length, RequestSpec s = {}) {
    const Wr& w = add(op, length, s);
    ring();
    return w;
  }
  void ring() { ends[0].node->ring(qp[0]); }
  uint64_t sent(Counter c) { return ends[0].node->counter(c); }
  uint64_t got(Counter c) { return ends[1].node->counter(c); }
  TamperRule& tamper(TamperRule r) { return world.network.tamper.add(std::move(r)); }

  std::vector<Jfr*> jfr;
  std::vector<Queue*> qp;
  std::vector<Region*> target;
};

}  // namespace ub::sim
