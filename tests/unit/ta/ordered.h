// SPDX-License-Identifier: Apache-2.0
//
// A send queue of RC with ROT, and the answers of a target that gives out a sequence context (UB Base Specification Rev
// 2.0, 7.3.3.3).
#pragma once

#include <vector>

#include "lib/transport/ta/packet_content.h"
#include "lib/transport/ta/target_order.h"
#include "tests/unit/ta/requests.h"

namespace ub::ta {

constexpr uint8_t kNo = 0, kRo = 1, kSo = 2;
constexpr uint32_t kScid = 0x1803;

struct Ordered : Requests {
  explicit Ordered(Options o = {}) : Requests(with_rot(o)) {}
  static Options with_rot(Options o) {
    o.mode = Mode::kRc;
    o.rot = true;
    return o;
  }
  // Posts a strong WRITE, and the target grants a context.
  void get_context() {
    post(WrOp::kWrite, 8, kSo);
    ASSERT_EQ(sent().size(), 1u);
    grant();
    completions();
  }
  void grant(uint32_t scid = kScid) {
    wire::Atah a = answer_of(scid);
    a.sv = true;
    on_answer(*s, channel, a);
  }
  wire::Atah answer_in_context(uint32_t number, uint8_t rspst = wire::kRspOk, uint8_t rspinfo = 0) {
    wire::Atah a = answer_of(number, rspst, rspinfo);
    a.rc_type = wire::kRcTypeSequenceContext;
    return a;
  }
  void answer_number(uint32_t number, uint8_t rspst = wire::kRspOk, uint8_t rspinfo = 0) {
    on_answer(*s, channel, answer_in_context(number, rspst, rspinfo));
  }
  wire::Btah header_of(const tp::TxMessage& m) {
    wire::TaPacket ta;
    Payload payload;
    describe(*s, ch(), m, 0, &ta, &payload);
    return ta.req;
  }
  // The numbers that these messages have in the context; ~0 for one without.
  Numbers context_numbers(const std::vector<tp::TxMessage>& messages) {
    Numbers all;
    for (const tp::TxMessage& m : messages) {
      const wire::Btah h = header_of(m);
      const bool in_context = h.rc_type == wire::kRcTypeSequenceContext;
      EXPECT_EQ(h.rc_id, in_context ? kScid : id);
      all.push_back(in_context ? h.tassn.value() : ~0u);
    }
    return all;
  }
  InitiatorContext& context() { return s->initiator_contexts[q().context]; }
};

}  // namespace ub::ta
