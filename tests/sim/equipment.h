// SPDX-License-Identifier: Apache-2.0
//
// One application with all that it needs to send and to receive, for tests that build their world themselves.
#pragma once

#include "tests/sim/world.h"

namespace ub::sim {

struct End {
  Node* node = nullptr;
  App* app = nullptr;
  Jfc* jfc = nullptr;
  Jfr* jfr = nullptr;
  Queue* queue = nullptr;
  Region* target = nullptr;

  Receiver receiver() const { return {queue, jfr}; }
  void give_receives(uint32_t count, uint32_t bytes = 4096) const {
    for (uint32_t i = 0; i < count; ++i) UB_ASSERT(node->post_receive(jfr, bytes, 1));
  }
};

inline QueueSpec usual_queue() {
  QueueSpec q;
  q.depth = 512;
  q.slots = 2048;
  return q;
}

inline JfrSpec usual_jfr() {
  JfrSpec r;
  r.depth = 256;
  r.token = {true, 0x77};
  return r;
}

inline End equip(Node& node, const QueueSpec& q, const JfrSpec& r, uint64_t memory) {
  End e;
  e.node = &node;
  e.app = node.add_app(memory, memory);
  e.jfc = node.add_jfc(*e.app, 1024);
  e.jfr = node.add_jfr(*e.app, e.jfc, r);
  e.queue = node.add_queue(*e.app, e.jfc, e.jfr, q);
  e.target = node.add_target(*e.app, {.length = memory,
                                      .access = kAccessRead | kAccessWrite | kAccessAtomic,
                                      .token = {true, 0x1234},
                                      .odd_address = false,
                                      .token_id = 0});
  return e;
}

}  // namespace ub::sim
