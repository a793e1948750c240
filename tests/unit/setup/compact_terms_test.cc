// SPDX-License-Identifier: Apache-2.0
//
// Set-up of channels of CTP on a wire that may lose packets (docs/compact-design.md): both ends know that they repeat
// requests and keep results, and each has a record for it; without one RTP carries all.
#include "lib/transport/setup/terms.h"
#include "tests/unit/setup/instance.h"

namespace ub::setup {
namespace {

constexpr LinkConfig kLossy{.mtu = 4096, .compact = true};
constexpr LinkConfig kLossless{.mtu = 4096, .lossless = true, .compact = true};

struct CompactInstance : Instance {
  explicit CompactInstance(const LinkConfig& link = kLossy) : Instance(link) {
    s->config.slow_memory = false;
    s->config.lanes = 2;
  }
  ControlRecord wanted(bool repeats) const {
    ControlRecord r = request_of_peer();
    r.compact = true;
    r.repeats = repeats;
    return r;
  }
  // What the REQ is answered with.
  ControlRecord answer_to(const ControlRecord& request) {
    on_record(*s, from, request);
    return only().record;
  }
  void use_up_records() {
    while (s->repeats.alloc() != 0) {
    }
  }
};

TEST(CompactTerms, records_say_whether_requests_are_repeated) {
  for (const LinkConfig& link : {kLossy, kLossless}) {
    CompactInstance asks(link), answers(link);
    asks.connect();
    const OutRecord request = asks.only();
    EXPECT_TRUE(request.record.compact);
    EXPECT_EQ(request.record.repeats, !link.lossless);
    const ControlRecord reply = answers.answer_to(answers.wanted(!link.lossless));
    EXPECT_EQ(reply.type, RecordType::kRep);
    EXPECT_EQ(reply.repeats, !link.lossless);
    EXPECT_EQ(asks.s->repeats.in_use(), link.lossless ? 0u : 1u);
    EXPECT_EQ(answers.s->repeats.in_use(), link.lossless ? 0u : 1u);
  }
}

TEST(CompactTerms, both_ends_must_know_the_wire_alike) {
  CompactInstance lossy(kLossy), lossless(kLossless);
  EXPECT_EQ(lossy.answer_to(lossy.wanted(false)).reason, RecordReason::kParameter);
  EXPECT_EQ(lossless.answer_to(lossless.wanted(true)).reason, RecordReason::kParameter);
}

TEST(CompactTerms, where_packets_may_be_lost_unanswered_offers_become_smaller) {
  for (const LinkConfig& link : {kLossy, kLossless}) {
    CompactInstance i(link);
    tp::Channel ch{};
    ch.link = 1;
    ch.lane = kCompactLane;
    ch.compact = true;
    std::vector<uint32_t> offers;
    for (; ch.setup_tries < 8; ++ch.setup_tries) offers.push_back(mtu_offer(*i.s, ch));
    const std::vector<uint32_t> falling = {4096, 4096, 2048, 2048, 1024, 1024, 4096, 4096};
    EXPECT_EQ(offers, link.lossless ? std::vector<uint32_t>(8, 4096) : falling);
  }
}

// One packet may overtake another elsewhere.
TEST(CompactTerms, rol_needs_a_wire_that_loses_nothing_and_both_ends_want_it) {
  for (const LinkConfig& link : {kLossy, kLossless}) {
    for (const bool on : {false, true}) {
      CompactInstance i(link);
      i.s->config.rol = on;
      ControlRecord request = i.wanted(!link.lossless);
      request.flags |= wire::kRecordRol;
      const ControlRecord answer = i.answer_to(request);
      const bool accepted = on && link.lossless;
      EXPECT_EQ(answer.type, accepted ? RecordType::kRep : RecordType::kRej);
      if (!accepted) {
        EXPECT_EQ(answer.reason, RecordReason::kParameter);
        continue;
      }
      EXPECT_TRUE(answer.compact && (answer.flags & wire::kRecordRol) != 0);
      const uint32_t channel = channel_of_tpn(*i.s, answer.sender_tpn);
      EXPECT_EQ(i.peer_of(channel).lanes[kOrderedCompactLane].accepted[0], channel);
      EXPECT_FALSE(i.ch(channel).rol);
    }
  }
}

TEST(CompactTerms, channels_of_rtp_repeat_nothing) {
  CompactInstance i;
  ControlRecord r = i.wanted(true);
  r.compact = false;
  EXPECT_EQ(i.answer_to(r).reason, RecordReason::kParameter);
}

TEST(CompactTerms, without_a_record_a_channel_is_refused_for_now) {
  CompactInstance i;
  i.use_up_records();
  const ControlRecord reply = i.answer_to(i.wanted(true));
  EXPECT_EQ(reply.type, RecordType::kRej);
  EXPECT_EQ(reply.reason, RecordReason::kNoResources);
  EXPECT_EQ(i.channels_alive(), 0u);
  EXPECT_EQ(i.s->peers.in_use(), 0u);
}

TEST(CompactTerms, without_a_record_none_is_asked_for) {
  CompactInstance i;
  i.use_up_records();
  i.connect();
  EXPECT_TRUE(i.sent().empty());
  EXPECT_EQ(i.channels_alive(), 0u);
}

TEST(CompactTerms, where_no_records_are_wanted_rtp_carries_all) {
  CompactInstance i;
  i.s->config.compact_repeats = 0;
  i.connect();
  EXPECT_FALSE(i.only().record.compact);
  EXPECT_EQ(i.answer_to(i.wanted(true)).reason, RecordReason::kParameter);
}

TEST(CompactTerms, a_request_that_comes_twice_takes_one_record) {
  CompactInstance i;
  EXPECT_EQ(i.answer_to(i.wanted(true)).type, RecordType::kRep);
  EXPECT_EQ(i.answer_to(i.wanted(true)).type, RecordType::kRep);
  ControlRecord newer = i.wanted(true);
  newer.attempt = 10;
  EXPECT_EQ(i.answer_to(newer).type, RecordType::kRep);
  EXPECT_EQ(i.s->repeats.in_use(), 1u);
}

TEST(CompactTerms, a_channel_that_nobody_confirms_gives_its_record_back) {
  CompactInstance i;
  const uint32_t channel = i.half_open(i.wanted(true));
  kill_channel(*i.s, channel);
  EXPECT_EQ(i.s->repeats.in_use(), 0u);
  EXPECT_EQ(i.ch(channel).repeats, 0u);
}

}  // namespace
}  // namespace ub::setup
