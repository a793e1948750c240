// SPDX-License-Identifier: Apache-2.0
//
// READs at their target, while and after their response is sent (read_jobs.h): what is left of one that has ended, and
// of one whose memory goes.
#include "lib/transport/ta/read_jobs.h"

#include "tests/unit/ta/delivery.h"

namespace ub::ta {
namespace {

struct Reading : Delivery {
  // The response to a READ of this number, as the channel has it.
  tp::TxMessage read(uint32_t number) {
    tassn = number;
    give(on_memory(wire::TaOpcode::kRead, 64), 0);
    const std::vector<tp::TxMessage> all = answers();
    EXPECT_EQ(all.size(), 1u);
    return all.at(0);
  }
};

TEST(ReadJob, one_that_is_refused_is_answered_under_its_number) {
  Reading r;
  r.read(3);
  tp::TxMessage m = r.read(4);
  refuse_read(*r.s, m);
  EXPECT_EQ(m.kind, tp::MessageKind::kAnswer);
  EXPECT_EQ(m.source, kPeerRcid);
  EXPECT_EQ(m.tassn, Tassn(4));
  EXPECT_EQ(m.opcode, wire::TaOpcode::kReadResponse);
  EXPECT_EQ(std::pair(int{m.rspst}, int{m.rspinfo}), kAborted);
  EXPECT_EQ(r.s->jobs.in_use(), 1u) << "that of 3";
}

TEST(ReadJob, one_that_has_ended_does_not_fail_when_its_memory_goes) {
  Reading r;
  finish_read_job(*r.s, r.read(0));
  ASSERT_EQ(unregister_segment(*r.s, r.target_memory.handle), Status::kOk);
  EXPECT_TRUE(r.answers().empty());
}

}  // namespace
}  // namespace ub::ta
