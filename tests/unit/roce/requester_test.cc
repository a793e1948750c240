// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/roce/requester.h"

#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <vector>

#include "lib/transport/roce/read_slots.h"
#include "lib/transport/roce/responder.h"
#include "tests/unit/roce/roce_test_util.h"

namespace ub::roce {
namespace {

constexpr uint32_t kMtu = 1024;
using Kind = RequestKind;

struct Requester {
  explicit Requester(uint32_t first_psn = 100) {
    s.oldest = s.cursor = s.sent_end = s.end = Psn(first_psn);
    s.mtu = kMtu;
    s.timeout = microseconds(100);
  }
  /// Begins a request and sends all it may; the packets that went.
  std::vector<NextPacket> post(Kind kind, uint32_t length) {
    EXPECT_TRUE(may_begin(s, ring, kind, length));
    begin(s, ring, kind, length);
    return send();
  }
  std::vector<NextPacket> send() {
    std::vector<NextPacket> out;
    for (NextPacket p; next_packet(s, ring, now, &p);) {
      sent(s, ring, now, p);
      out.push_back(p);
    }
    return out;
  }
  Progress ack(uint32_t psn, uint32_t msn = 0, Syndrome syndrome = Syndrome::ack()) {
    return on_ack(s, ring, now, Psn(psn), {syndrome, Msn(msn)});
  }
  Response response(uint32_t psn, bool last, uint32_t bytes) {
    return on_response(s, ring, now, Psn(psn), last, bytes);
  }
  Progress timeout() {
    now = s.deadline;
    return on_timeout(s, now);
  }

  RequesterState s;
  std::array<SentRequest, 16> requests{};
  RequestRing ring{requests};
  Instant now{1000};
};

TEST(Requester, a_request_is_cut_into_packets) {
  Requester r(0xFFFFFF);
  const std::vector<NextPacket> packets = r.post(Kind::kWrite, 2 * kMtu + 1);
  ASSERT_EQ(packets.size(), 3u);
  for (uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(packets[i].skipped, i);
    EXPECT_EQ(packets[i].last, i == 2);
  }
  EXPECT_EQ(r.s.end, Psn(2));
  EXPECT_EQ(r.post(Kind::kSend, 0).size(), 1u);
  EXPECT_EQ(r.s.end, Psn(3));
}

TEST(Requester, an_acknowledgement_completes_all_before_it) {
  Requester r(100);
  r.post(Kind::kWrite, 2 * kMtu);
  r.post(Kind::kSend, 1);
  r.post(Kind::kSend, 1);
  EXPECT_EQ(r.ack(100).completed, 0u);
  EXPECT_EQ(r.ack(102).completed, 2u);
  EXPECT_TRUE(r.ack(102).stale);
  EXPECT_TRUE(r.ack(104).stale);  // never sent
  EXPECT_EQ(r.ack(103).completed, 1u);
  EXPECT_TRUE(r.s.deadline.is_never());
}

TEST(Requester, unreliable__what_is_acknowledged_as_it_leaves_meets_no_limit) {
  Requester r(0xFFFFF0);
  r.s.window = 4;
  begin(r.s, r.ring, Kind::kSend, 50 * kMtu);
  for (uint32_t i = 0; i < 50; ++i) {
    NextPacket p;
    ASSERT_TRUE(next_packet(r.s, r.ring, r.now, &p));
    EXPECT_FALSE(p.must_ask);
    sent(r.s, r.ring, r.now, p);
    EXPECT_EQ(r.ack((r.s.sent_end - 1).value()).completed, i == 49 ? 1u : 0u);
    EXPECT_TRUE(r.s.deadline.is_never());
  }
  EXPECT_TRUE(may_begin(r.s, r.ring, Kind::kSend, kMaxRequestBytes));
}

TEST(Requester, the_window_is_a_limit) {
  Requester r;
  r.s.window = 4;
  EXPECT_EQ(r.post(Kind::kSend, 10 * kMtu).size(), 4u);
  EXPECT_FALSE(may_begin(r.s, r.ring, Kind::kSend, 1));
  r.ack(101);
  EXPECT_EQ(r.send().size(), 2u);
}

TEST(Requester, a_sequence_nak_goes_back_once) {
  Requester r(100);
  r.post(Kind::kSend, 5 * kMtu);
  const Syndrome nak = Syndrome::nak(NakCode::kPsnSequence);
  EXPECT_EQ(r.ack(102, 0, nak).failed, CrStatus::kSuccess);
  const std::vector<NextPacket> again = r.send();
  ASSERT_EQ(again.size(), 3u);
  EXPECT_EQ(again[0].skipped, 2u);
  r.ack(102, 0, nak);
  EXPECT_TRUE(r.send().empty());
  EXPECT_EQ(r.ack(104).completed, 1u);
}

TEST(Requester, the_next_gap_is_a_new_one) {
  Requester r(100);
  r.post(Kind::kSend, 5 * kMtu);
  const Syndrome nak = Syndrome::nak(NakCode::kPsnSequence);
  r.ack(101, 0, nak);
  EXPECT_EQ(r.send().size(), 4u);
  r.ack(103, 0, nak);
  EXPECT_EQ(r.send().size(), 2u);
}

TEST(Requester, what_was_sent_before_going_back_may_still_be_acknowledged) {
  Requester r(100);
  r.post(Kind::kSend, 5 * kMtu);
  r.timeout();
  NextPacket p;
  ASSERT_TRUE(next_packet(r.s, r.ring, r.now, &p));
  sent(r.s, r.ring, r.now, p);
  EXPECT_EQ(r.ack(104, 1).completed, 1u);
  EXPECT_TRUE(r.send().empty());
}

TEST(Requester, a_timeout_goes_back_until_the_retries_are_used_up) {
  Requester r;
  r.s.retry_count = r.s.retries_left = 2;
  EXPECT_TRUE(r.s.deadline.is_never());
  r.post(Kind::kSend, 2 * kMtu);
  EXPECT_EQ(r.s.deadline, r.now + microseconds(100));
  EXPECT_EQ(on_timeout(r.s, r.now).failed, CrStatus::kSuccess);  // too early
  EXPECT_TRUE(r.send().empty());
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(r.timeout().failed, CrStatus::kSuccess);
    EXPECT_EQ(r.send().size(), 2u);
  }
  EXPECT_EQ(r.timeout().failed, CrStatus::kAckTimeout);
}

TEST(Requester, progress_brings_the_retries_back) {
  Requester r(100);
  r.s.retry_count = r.s.retries_left = 1;
  r.post(Kind::kSend, 2 * kMtu);
  r.timeout();
  r.send();
  r.ack(100);
  EXPECT_EQ(r.timeout().failed, CrStatus::kSuccess);
  r.send();
  EXPECT_EQ(r.timeout().failed, CrStatus::kAckTimeout);
}

TEST(Requester, without_a_timeout_it_waits_for_ever) {
  Requester r;
  r.s.timeout = {};
  r.post(Kind::kSend, 1);
  EXPECT_TRUE(r.s.deadline.is_never());
}

TEST(Requester, receiver_not_ready) {
  Requester r(100);
  r.s.rnr_retry = r.s.rnr_left = 1;
  r.post(Kind::kWrite, 1);
  r.post(Kind::kSend, 1);
  r.post(Kind::kWrite, 1);
  const Progress first = r.ack(101, 1, Syndrome::rnr(1));
  EXPECT_EQ(first.completed, 1u);
  EXPECT_TRUE(r.send().empty());
  EXPECT_EQ(r.s.wait_until, r.now + microseconds(10));
  EXPECT_EQ(r.ack(101, 1, Syndrome::rnr(1)).failed, CrStatus::kSuccess);  // the same once more
  r.now = r.s.wait_until;
  const std::vector<NextPacket> again = r.send();
  ASSERT_EQ(again.size(), 2u);
  EXPECT_EQ(again[0].request, 1u);
  EXPECT_EQ(r.ack(101, 1, Syndrome::rnr(1)).failed, CrStatus::kRnrRetryExceeded);
}

TEST(Requester, receiver_not_ready_for_ever) {
  Requester r(100);
  r.post(Kind::kSend, 1);
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(r.ack(100, 0, Syndrome::rnr(1)).failed, CrStatus::kSuccess);
    r.now = r.s.wait_until;
    ASSERT_EQ(r.send().size(), 1u);
  }
  EXPECT_EQ(r.ack(100, 1).completed, 1u);
}

TEST(Requester, the_wait_for_a_receive_is_no_timeout) {
  Requester r(100);
  r.post(Kind::kSend, 1);
  r.ack(100, 0, Syndrome::rnr(0));
  EXPECT_EQ(r.s.deadline, r.now + rnr_delay(0) + microseconds(100));
}

TEST(Requester, the_wait_ends_when_the_packet_was_taken_after_all) {
  Requester r(100);
  r.post(Kind::kSend, 1);
  r.ack(100, 0, Syndrome::rnr(0));
  EXPECT_EQ(r.ack(100, 1).completed, 1u);
  EXPECT_EQ(r.post(Kind::kSend, 1).size(), 1u);
}

TEST(Requester, refusals) {
  const std::pair<NakCode, CrStatus> cases[] = {{NakCode::kInvalidRequest, CrStatus::kRemUnsupported},
                                                {NakCode::kRemoteAccess, CrStatus::kRemAccessAbort},
                                                {NakCode::kRemoteOperation, CrStatus::kRemOperation}};
  for (const auto& [code, status] : cases) {
    Requester r(100);
    r.post(Kind::kWrite, 1);
    r.post(Kind::kWrite, 1);
    const Progress p = r.ack(101, 1, Syndrome::nak(code));
    EXPECT_EQ(p.completed, 1u);
    EXPECT_EQ(p.failed, status);
  }
}

TEST(Requester, a_read_is_completed_by_its_response_alone) {
  Requester r(100);
  r.s.max_reads = 2;
  const std::vector<NextPacket> asked = r.post(Kind::kRead, 2 * kMtu + 7);
  ASSERT_EQ(asked.size(), 1u);
  EXPECT_TRUE(asked[0].last && asked[0].must_ask);
  EXPECT_EQ(r.s.end, Psn(103));
  const Response first = r.response(100, false, kMtu), middle = r.response(101, false, kMtu);
  EXPECT_TRUE(first.taken && middle.taken);
  EXPECT_EQ(middle.offset, kMtu);
  EXPECT_EQ(middle.progress.completed, 0u);
  const Response last = r.response(102, true, 7);
  EXPECT_EQ(last.offset, 2 * kMtu);
  EXPECT_EQ(last.progress.completed, 1u);
  EXPECT_EQ(r.s.reads_in_flight, 0);
}

TEST(Requester, a_lost_response_is_asked_for_from_there_on) {
  Requester r(100);
  r.post(Kind::kRead, 3 * kMtu);
  r.response(100, false, kMtu);
  EXPECT_FALSE(r.response(102, true, kMtu).taken);
  const std::vector<NextPacket> again = r.send();
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].skipped, 1u);
  EXPECT_TRUE(again[0].last);
  EXPECT_TRUE(r.response(101, false, kMtu).taken);
  EXPECT_TRUE(r.response(102, true, kMtu).taken);
  EXPECT_EQ(r.s.oldest, r.s.end);
}

TEST(Requester, an_acknowledgement_behind_a_read_says_that_its_response_was_lost) {
  Requester r(100);
  r.post(Kind::kSend, 1);
  r.post(Kind::kRead, kMtu);
  r.post(Kind::kSend, 1);
  EXPECT_EQ(r.ack(102, 3).completed, 1u);
  const std::vector<NextPacket> again = r.send();
  ASSERT_EQ(again.size(), 2u);
  EXPECT_EQ(again[0].request, 1u);
}

TEST(Requester, a_response_acknowledges_what_came_before) {
  Requester r(100);
  r.post(Kind::kWrite, 3 * kMtu);
  r.post(Kind::kAtomic, 8);
  EXPECT_EQ(r.response(103, true, 0).progress.completed, 2u);
}

TEST(Requester, responses_that_cannot_be) {
  const auto failed = [](uint32_t psn, bool last, uint32_t bytes) {
    Requester r(100);
    r.post(Kind::kRead, kMtu + 7);
    if (psn == 101) r.response(100, false, kMtu);
    return r.response(psn, last, bytes).progress.failed;
  };
  EXPECT_EQ(failed(100, false, kMtu - 4), CrStatus::kRemRespLen);
  EXPECT_EQ(failed(100, true, kMtu), CrStatus::kRemRespLen);
  EXPECT_EQ(failed(101, true, 8), CrStatus::kRemRespLen);
  EXPECT_EQ(failed(101, false, kMtu), CrStatus::kRemRespLen);
  EXPECT_EQ(failed(101, true, 7), CrStatus::kSuccess);
  Requester r(100);
  r.post(Kind::kSend, 1);
  EXPECT_EQ(r.response(100, true, 0).progress.failed, CrStatus::kRemRespLen);
}

TEST(Requester, reads_in_flight_are_limited) {
  Requester r(100);
  r.s.max_reads = 2;
  r.post(Kind::kRead, 1);
  r.post(Kind::kAtomic, 8);
  EXPECT_FALSE(may_begin(r.s, r.ring, Kind::kRead, 1));
  EXPECT_TRUE(may_begin(r.s, r.ring, Kind::kWrite, 1));
  r.response(100, true, 1);
  EXPECT_TRUE(may_begin(r.s, r.ring, Kind::kRead, 1));
}

TEST(Requester, requests_and_numbers_in_flight_are_limited) {
  Requester r;
  for (size_t i = 0; i < r.requests.size(); ++i) r.post(Kind::kSend, 1);
  EXPECT_FALSE(may_begin(r.s, r.ring, Kind::kSend, 1));
  Requester huge;
  huge.s.mtu = 256;
  huge.s.max_reads = 16;
  huge.post(Kind::kRead, kMaxRequestBytes);
  EXPECT_FALSE(may_begin(huge.s, huge.ring, Kind::kRead, kMaxRequestBytes));
  EXPECT_TRUE(may_begin(huge.s, huge.ring, Kind::kRead, kMaxRequestBytes / 2));
}

TEST(Requester, without_credits_one_packet_goes_alone) {
  Requester r(100);
  r.post(Kind::kSend, 1);
  r.ack(100, 1, Syndrome::ack(1));  // one more receive is posted
  EXPECT_EQ(r.post(Kind::kSend, 1).size(), 1u);
  EXPECT_TRUE(r.post(Kind::kSend, 2 * kMtu).empty());
  r.ack(101, 2, Syndrome::ack(0));
  const std::vector<NextPacket> probe = r.send();
  ASSERT_EQ(probe.size(), 1u);
  EXPECT_TRUE(probe[0].must_ask);
  EXPECT_TRUE(r.send().empty());
  r.ack(102, 2, Syndrome::ack(2));
  EXPECT_EQ(r.send().size(), 1u);
  EXPECT_EQ(r.ack(103, 3, Syndrome::ack()).completed, 1u);
  EXPECT_FALSE(r.s.limited);
}

TEST(Requester, writes_need_no_credit_and_an_old_acknowledgement_may_bring_some) {
  Requester r(100);
  r.post(Kind::kSend, 1);
  r.ack(100, 1, Syndrome::ack(0));
  EXPECT_EQ(r.post(Kind::kWrite, 1).size(), 1u);
  EXPECT_TRUE(r.post(Kind::kSend, 1).empty());
  r.ack(101, 2, Syndrome::ack(0));
  r.send();
  EXPECT_TRUE(r.post(Kind::kSend, 1).empty());
  EXPECT_TRUE(r.ack(101, 2, Syndrome::ack(4)).stale);
  EXPECT_EQ(r.send().size(), 1u);
}

// ---- requester and responder over a path that loses, doubles and swaps ----------------------------------------------

struct Answer {
  Psn psn;
  Aeth aeth;
  bool response = false, last = false;
  uint32_t bytes = 0;
};

class Conversation {
 public:
  explicit Conversation(uint64_t seed) : rng_(seed), requester_(static_cast<uint32_t>(rng_.below(1 << 24))) {
    responder_.expected = requester_.s.end;
    responder_.mtu = kMtu;
    requester_.s.retry_count = requester_.s.retries_left = 255;
    requester_.s.max_reads = slots_in_use_.slots = static_cast<uint8_t>(1 + rng_.below(4));
    requester_.s.window = static_cast<uint16_t>(1 + rng_.below(20));
  }

  void run(uint32_t requests) {
    for (int steps = 0; completed_ < requests; ++steps) {
      ASSERT_LT(steps, 1'000'000);
      switch (rng_.below(3)) {
        case 0:
          ask(requests);
          break;
        case 1:
          answer();
          break;
        default:
          hear();
      }
      if (::testing::Test::HasFailure()) return;
    }
    EXPECT_EQ(executed_.size(), packets_);
    EXPECT_EQ(responder_.msn, Msn(requests));
    EXPECT_EQ(requester_.s.oldest, requester_.s.end);
  }

 private:
  static constexpr Kind kKinds[] = {Kind::kSend, Kind::kWrite, Kind::kWriteImm, Kind::kRead, Kind::kAtomic};

  template <class T>
  void carry(std::deque<T>& path, const T& what) {
    if (rng_.chance(0.1)) return;
    path.push_back(what);
    if (rng_.chance(0.05)) path.push_back(what);
    if (path.size() > 1 && rng_.chance(0.05)) std::swap(path[path.size() - 1], path[path.size() - 2]);
  }

  /// Sends one packet, of a new request if there is none; lets time pass if nothing else is to happen.
  void ask(uint32_t requests) {
    NextPacket p;
    if (!next_packet(requester_.s, requester_.ring, requester_.now, &p)) {
      const Kind kind = kKinds[rng_.below(5)];
      const uint32_t length = kind == Kind::kAtomic ? 8 : static_cast<uint32_t>(rng_.below(4 * kMtu));
      if (begun_ == requests || !may_begin(requester_.s, requester_.ring, kind, length)) return wait();
      begin(requester_.s, requester_.ring, kind, length);
      packets_ += has_response(kind) ? 1 : requester_.requests[begun_ % 16].psns;
      ++begun_;
      if (!next_packet(requester_.s, requester_.ring, requester_.now, &p)) return;
    }
    sent(requester_.s, requester_.ring, requester_.now, p);
    carry(there_, packet_of(p));
  }

  void wait() {
    if (!there_.empty() || !back_.empty()) return;
    const Instant until = requester_.s.wait_until;
    requester_.now = until > requester_.now ? until : earlier(requester_.s.deadline, requester_.now + seconds(1));
    EXPECT_EQ(on_timeout(requester_.s, requester_.now).failed, CrStatus::kSuccess);
  }

  Packet packet_of(const NextPacket& next) const {
    const SentRequest& r = requester_.requests[next.request % 16];
    const uint32_t offset = next.skipped * kMtu;
    Packet p{};
    p.bth.psn = r.first_psn + next.skipped;
    p.bth.opcode = opcode_of(r.kind, next.skipped == 0, next.last);
    p.shape = packet_shape(p.bth.opcode);
    p.payload_bytes = has_response(r.kind) ? 0 : next.last ? r.length - offset : kMtu;
    p.reth = {uint64_t{next.request} << 32 | offset, 7, r.length - (r.kind == Kind::kRead ? offset : 0)};
    p.immediate = next.request << 8 | next.skipped;  // tells packets apart
    return p;
  }

  static Opcode opcode_of(Kind kind, bool first, bool last) {
    if (kind == Kind::kRead) return Opcode::kRcReadRequest;
    if (kind == Kind::kAtomic) return Opcode::kRcFetchAdd;
    const bool send = kind == Kind::kSend, imm = kind == Kind::kWriteImm;
    if (first && last) return send ? Opcode::kRcSendOnly : imm ? Opcode::kRcWriteOnlyImm : Opcode::kRcWriteOnly;
    if (first) return send ? Opcode::kRcSendFirst : Opcode::kRcWriteFirst;
    if (last) return send ? Opcode::kRcSendLast : imm ? Opcode::kRcWriteLastImm : Opcode::kRcWriteLast;
    return send ? Opcode::kRcSendMiddle : Opcode::kRcWriteMiddle;
  }

  void answer() {
    if (there_.empty()) return;
    const Packet p = there_.front();
    there_.pop_front();
    switch (judge(responder_, Drop::kNone, p)) {
      case Arrival::kExecute:
        return execute(p);
      case Arrival::kAckAgain:
        return reply(acknowledge(responder_));
      case Arrival::kReadAgain:
        if (find_read(slots_, slots_in_use_, p, kMtu) != nullptr) read(p);
        return;
      case Arrival::kAtomicAgain:
        if (find_atomic(slots_, slots_in_use_, p) != nullptr) atomic(p);
        return;
      case Arrival::kGap:
        return reply(refuse(responder_, NakCode::kPsnSequence));
      case Arrival::kInvalid:
        ADD_FAILURE() << "refused " << opcode_name(p.bth.opcode);
        return;
      case Arrival::kSilent:
        return;
    }
  }

  void execute(const Packet& p) {
    const bool wants_receive = (p.has(kShapeSend) && p.has(kShapeFirst)) || p.has(kShapeImm);
    if (wants_receive && rng_.chance(0.2)) return reply(not_ready(responder_, 1));
    if (!executed_.empty()) {
      EXPECT_GT(p.immediate, executed_.back());
    }
    executed_.push_back(p.immediate);
    const bool is_read = p.bth.opcode == Opcode::kRcReadRequest, is_atomic = p.has(kShapeAtomicEth);
    if (is_read || is_atomic) {
      ReadSlot* slot = add_slot(slots_, slots_in_use_, p, kMtu);
      ASSERT_NE(slot, nullptr);
      slot->serving = false;
    }
    accept(responder_, p);
    if (is_read) return read(p);
    if (is_atomic) return atomic(p);
    if (p.has(kShapeLast) || rng_.chance(0.3)) reply(acknowledge(responder_));
  }

  void reply(const Reply& r) { carry(back_, Answer{r.psn, r.aeth}); }
  void atomic(const Packet& p) { carry(back_, Answer{p.bth.psn, {}, true, true, 0}); }
  void read(const Packet& p) {
    const uint32_t packets = psns_of(p, kMtu);
    for (uint32_t i = 0; i < packets; ++i) {
      const bool last = i + 1 == packets;
      carry(back_, Answer{p.bth.psn + i, {}, true, last, last ? p.reth.length - i * kMtu : kMtu});
    }
  }

  void hear() {
    if (back_.empty()) return;
    const Answer a = back_.front();
    back_.pop_front();
    Progress progress;
    if (a.response) {
      const Response r = on_response(requester_.s, requester_.ring, requester_.now, a.psn, a.last, a.bytes);
      if (r.taken) take(r, a);
      progress = r.progress;
    } else {
      progress = on_ack(requester_.s, requester_.ring, requester_.now, a.psn, a.aeth);
    }
    EXPECT_EQ(progress.failed, CrStatus::kSuccess);
    completed_ += progress.completed;
  }

  /// Bytes of a response come once, in order, and the last of them with the completion.
  void take(const Response& r, const Answer& a) {
    EXPECT_EQ(r.request, completed_ + r.progress.completed - (a.last ? 1 : 0));
    EXPECT_EQ(r.offset, taken_bytes_);
    taken_bytes_ = a.last ? 0 : taken_bytes_ + a.bytes;
  }

  Prng rng_;
  Requester requester_;
  ResponderState responder_;
  std::array<ReadSlot, kMaxReadSlots> slots_{};
  ReadRing slots_in_use_;
  std::deque<Packet> there_;
  std::deque<Answer> back_;
  std::vector<uint32_t> executed_;
  uint32_t begun_ = 0, completed_ = 0, taken_bytes_ = 0;
  size_t packets_ = 0;
};

TEST(Requester, everything_is_executed_once_and_completes_whatever_the_path_does) {
  for (uint64_t seed = 1; seed <= 300 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Conversation(seed).run(100);
  }
}

}  // namespace
}  // namespace ub::roce
