// SPDX-License-Identifier: Apache-2.0
//
// Requests on a wire that is slower than their queues are patient: what is in line does not time out while the channel
// gets on.
#include "tests/unit/transport/ub_pair.h"

namespace ub {
namespace {

// One packet of a's requests passes in 400 ms. The queue waits for an answer for half a second.
class Crawling : public UbPair {
 protected:
  static UbOptions crawling() {
    UbOptions o;
    o.link.lossless = false;
    o.err_timeout = 14;
    return o;
  }
  Crawling() : UbPair(crawling()) {
    filter = [this](UbNode& from, Bytes& frame) {
      if (&from != &a || !parse(frame).data()) return true;
      if (now - passed_ < milliseconds(400) || parse(frame).rtp.psn != channel(b).expected) return false;
      passed_ = now;
      return stopped_at == 0 || --stopped_at != 0;
    };
  }
  std::vector<CrStatus> outcomes() {
    std::vector<CrStatus> all;
    for (const Cqe& c : a.poll()) all.push_back(c.status);
    return all;
  }
  int stopped_at = 0;  // after so many packets

 private:
  Instant passed_{};
};
TEST_F(Crawling, requests_that_wait_for_those_in_front_of_them_do_not_time_out) {
  connect();
  for (const uint32_t length : {6 * 1024, 8, 4 * 1024, 8}) request(WrOp::kWrite, length);
  settle(seconds(20));
  EXPECT_EQ(outcomes(), std::vector<CrStatus>(4, CrStatus::kSuccess));
}
TEST_F(Crawling, requests_behind_one_that_stands_still_time_out) {
  connect();
  stopped_at = 3;
  for (int i = 0; i < 3; ++i) request(WrOp::kWrite, 4 * 1024);
  const Instant begin = now;
  size_t ended = 0;
  while (ended < 3 && now - begin < seconds(20)) {
    now = now + milliseconds(1);
    for (UbNode* n : {&a, &b}) n->core->on_timer(now);
    exchange();
    for (const CrStatus status : outcomes()) {
      EXPECT_EQ(status, CrStatus::kAckTimeout);
      ++ended;
    }
  }
  EXPECT_LT(now - begin, seconds(3)) << "three packets, and then half a second and a bit";
}

}  // namespace
}  // namespace ub
