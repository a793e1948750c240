// SPDX-License-Identifier: Apache-2.0
//
// The sender of a channel of CTP (UB Base Specification Rev 2.0, 6.2.1), whose peer the test plays: how long it waits
// for an answer. What its packets are like is in compact_test.cc.
#include "lib/transport/ta/compact_sender.h"

#include "tests/unit/ta/requests.h"
#include "tests/unit/transport/test_host.h"

namespace ub::ta {
namespace {

struct Compact : Requests {
  Compact() { ch().compact = true; }
  // Sends a WRITE of a queue that waits so long for its answer.
  void send(Duration patience) {
    q().request_timeout = patience;
    post(WrOp::kWrite);
    EXPECT_EQ(CompactSender(*s, host).send_next(channel), Sent::kYes);
  }
  TestHost host;
};

TEST(CompactSender, waits_as_long_as_the_longest_deadline_of_what_is_unanswered) {
  Compact c;
  const Duration usual = c.s->config.channel_timeout;
  c.send(usual + seconds(20));
  c.send(usual + seconds(10));
  EXPECT_EQ(c.ch().give_up_after, usual + seconds(20));
  c.answer(0);
  c.send(usual + seconds(5));
  EXPECT_EQ(c.ch().give_up_after, usual + seconds(20)) << "one is left, and nobody looks which";
  c.answer(1);
  c.answer(2);
  c.send(usual + seconds(1));
  EXPECT_EQ(c.ch().give_up_after, usual + seconds(1));
  c.answer(3);
  c.send(milliseconds(1));
  EXPECT_EQ(c.ch().give_up_after, usual);
}

}  // namespace
}  // namespace ub::ta
