// SPDX-License-Identifier: Apache-2.0
//
// Messages whose turn in a sequence context has not come keep their numbers on the channel, which come again after 2^24
// messages (UB Base Specification Rev 2.0, 6.2.1, 7.3.3.3).
#include "lib/transport/ta/sequence_contexts.h"
#include "tests/unit/ta/delivery.h"

namespace ub::ta {
namespace {

using wire::TaOpcode;

TEST(HeldNumber, a_message_waits_for_the_one_that_is_held_under_its_number) {
  Delivery d;
  wire::TaPacket early = d.on_memory(TaOpcode::kWrite, 8);
  early.req.rc_type = wire::kRcTypeSequenceContext;
  early.req.rc_id = open_context(*d.s, d.ch().peer, kPeerRcid);
  early.req.odr = wire::kOdrStrong;
  early.req.tassn = Tassn(1);  // number 0 has not come
  const uint32_t number = d.tpmsn;
  d.give(early, 8);
  ASSERT_EQ(d.ch().early_count, 1u);
  d.ch().message = Tpmsn(d.tpmsn = number);
  d.give(d.on_memory(TaOpcode::kWrite, 8, 4096), 8);
  EXPECT_TRUE(d.ch().stalled);
  EXPECT_FALSE(d.holds(8, 4096));
  d.s->now = d.s->now + kHeldLongest;
  d.channel_timer();
  EXPECT_FALSE(d.ch().stalled);
  EXPECT_TRUE(d.holds(8, 4096));
  EXPECT_EQ(d.answers().size(), 2u) << "the one that was held is refused";
  EXPECT_EQ(d.ch().parked, 0u);
}

}  // namespace
}  // namespace ub::ta
