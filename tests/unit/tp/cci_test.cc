// SPDX-License-Identifier: Apache-2.0
//
// What a receiver makes of the congestion indicator of a packet over UB's own network header (UB Base Specification Rev
// 2.0, 5.3.5), by the algorithm that its channel has agreed on.
#include "lib/transport/tp/congestion.h"
#include "tests/unit/tp/sender.h"

namespace ub::tp {
namespace {

using wire::CcAlgorithm;
using wire::Cci;
using wire::CciMode;

constexpr uint32_t kBytes = 1000;
constexpr uint32_t kWords = kBytes / wire::kAckSeqUnitBytes;
constexpr CcAlgorithm kAgreed[] = {CcAlgorithm::kNone, CcAlgorithm::kDcqcn, CcAlgorithm::kLdcp, CcAlgorithm::kCaqm};
constexpr CciMode kFecnModes[] = {CciMode::kFecn, CciMode::kFecnRtt};

// A receiver to which one packet came.
struct Receiver : Sender {
  Receiver(CcAlgorithm agreed, uint16_t cci, uint32_t psn = 500) {
    ch().cna = true;
    ch().feedback = agreed;
    ch().feeds_back = agreed == CcAlgorithm::kLdcp || agreed == CcAlgorithm::kCaqm;
    if (ch().feeds_back) ch().heard = {};
    ch().expected = ch().delivered = Psn(500);
    ch().highest_seen = Psn(499);
    on_cci(*s, channel, now, Psn(psn), cci, kBytes);
  }
  Receiver(CcAlgorithm agreed, const Cci& cci, uint32_t psn = 500) : Receiver(agreed, cci.pack(), psn) {}
  bool has_heard_nothing() {
    if (ch().owed_cnp != 0 || count(Counter::kTpRxMarked) != 0) return false;
    return !ch().feeds_back || (ch().heard.received_words == 0 && ch().heard.marked_words == 0);
  }
};

TEST(CciAtReceiver, of_fecn_has_the_levels_of_a_notification) {
  for (const CciMode mode : kFecnModes) {
    for (const uint8_t fecn : {0, 1, 2, 3}) {
      Receiver r(CcAlgorithm::kDcqcn, {.mode = mode, .fecn = fecn});
      const bool met_congestion = (fecn & 1) != 0;
      EXPECT_EQ(r.ch().owed_cnp, met_congestion ? fecn : 0) << int{fecn};
      EXPECT_EQ(r.count(Counter::kTpRxMarked), met_congestion ? 1u : 0u) << int{fecn};
    }
  }
}

TEST(CciAtReceiver, of_fecn_is_a_mark_of_ldcp_whether_congestion_is_light_or_severe) {
  for (const CciMode mode : kFecnModes) {
    for (const uint8_t fecn : {1, 2, 3}) {
      Receiver r(CcAlgorithm::kLdcp, {.mode = mode, .fecn = fecn});
      EXPECT_EQ(r.ch().heard.received_words, kWords) << int{fecn};
      EXPECT_EQ(r.ch().heard.marked_words, fecn == 2 ? 0 : kWords) << int{fecn};
    }
    EXPECT_TRUE(Receiver(CcAlgorithm::kLdcp, {.mode = mode, .fecn = 0}).has_heard_nothing()) << "it cannot be marked";
  }
}

TEST(CciAtReceiver, of_caqm_has_what_hops_grant) {
  Receiver granted(CcAlgorithm::kCaqm, {.enable = true, .increase = true, .hint = 7});
  EXPECT_EQ(granted.ch().heard.caqm(), (wire::CetphCaqm{.ack_seq = kWords, .increase = true, .hint = 7}));
  Receiver refused(CcAlgorithm::kCaqm, {.enable = true, .hint = 7});
  EXPECT_EQ(refused.ch().heard.caqm(), (wire::CetphCaqm{.ack_seq = kWords}));
  Receiver marked(CcAlgorithm::kCaqm, {.loc = true, .enable = true, .congested = true, .increase = true, .hint = 7});
  EXPECT_EQ(marked.ch().heard.caqm(), (wire::CetphCaqm{.ack_seq = kWords, .loc = true, .marks = 1}));
  EXPECT_EQ(marked.count(Counter::kTpRxMarked), 1u);
}

// A packet that came before is received once, but what hops said to it holds.
TEST(CciAtReceiver, of_caqm_counts_although_the_packet_came_before) {
  Receiver r(CcAlgorithm::kCaqm, {.enable = true, .increase = true, .hint = 7}, 499);
  EXPECT_EQ(r.ch().heard.caqm(), (wire::CetphCaqm{.increase = true, .hint = 7}));
}

TEST(CciAtReceiver, of_another_algorithm_says_nothing) {
  for (const CcAlgorithm agreed : kAgreed) {
    if (agreed != CcAlgorithm::kCaqm) {
      const Cci caqm{.loc = true, .enable = true, .congested = true, .increase = true, .hint = 7};
      EXPECT_TRUE(Receiver(agreed, caqm).has_heard_nothing()) << static_cast<int>(agreed);
    }
    EXPECT_TRUE(Receiver(agreed, {.congested = true, .increase = true, .hint = 7}).has_heard_nothing())
        << "it is not enabled " << static_cast<int>(agreed);
  }
  for (const CciMode mode : kFecnModes) {
    EXPECT_TRUE(Receiver(CcAlgorithm::kCaqm, {.mode = mode, .fecn = 3}).has_heard_nothing());
    EXPECT_EQ(Receiver(CcAlgorithm::kNone, {.mode = mode, .fecn = 3}).ch().owed_cnp, 0);
  }
}

TEST(CciAtReceiver, of_a_reserved_mode_says_nothing) {
  for (const uint16_t mode : {1, 3, 5, 6, 7}) {
    for (const CcAlgorithm agreed : kAgreed) {
      EXPECT_TRUE(Receiver(agreed, static_cast<uint16_t>(mode << 13 | 0x1FFF)).has_heard_nothing()) << mode;
    }
  }
}

}  // namespace
}  // namespace ub::tp
