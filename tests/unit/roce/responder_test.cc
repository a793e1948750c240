// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/roce/responder.h"

#include <gtest/gtest.h>

#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "tests/unit/roce/roce_test_util.h"

namespace ub::roce {
namespace {

constexpr uint32_t kMtu = 1024;

/// A request packet as the parser would give it.
Packet request(Opcode op, uint32_t psn, uint32_t payload_bytes = 0, uint32_t dma_length = 0) {
  Packet p{};
  p.bth = {.opcode = op, .psn = Psn(psn)};
  p.shape = packet_shape(op);
  p.payload_bytes = payload_bytes;
  p.reth = {0x10000, 0x77, dma_length};
  return p;
}

ResponderState at(uint32_t expected) {
  ResponderState s;
  s.expected = Psn(expected);
  s.mtu = kMtu;
  return s;
}

Arrival judge_good(const ResponderState& s, const Packet& p) { return judge(s, Drop::kNone, p); }

/// The packet must be the next one; it is carried out.
void execute(ResponderState& s, const Packet& p) {
  ASSERT_EQ(judge_good(s, p), Arrival::kExecute) << opcode_name(p.bth.opcode);
  accept(s, p);
}

TEST(Responder, messages_of_one_packet) {
  ResponderState s = at(0xFFFFFE);
  execute(s, request(Opcode::kRcSendOnly, 0xFFFFFE, 5));
  execute(s, request(Opcode::kRcWriteOnlyImm, 0xFFFFFF, 5, 5));
  execute(s, request(Opcode::kRcFetchAdd, 0));
  EXPECT_EQ(s.expected, Psn(1));
  EXPECT_EQ(s.msn, Msn(3));
  EXPECT_EQ(acknowledge(s), (Reply{Psn(0), {Syndrome::ack(), Msn(3)}}));
}

TEST(Responder, a_message_counts_with_its_last_packet) {
  ResponderState s = at(10);
  execute(s, request(Opcode::kRcSendFirst, 10, kMtu));
  EXPECT_EQ(s.msn, Msn(0));
  EXPECT_EQ(s.open, OpenMessage::kSend);
  execute(s, request(Opcode::kRcSendMiddle, 11, kMtu));
  execute(s, request(Opcode::kRcSendLastInv, 12, 1));
  EXPECT_EQ(s.msn, Msn(1));
  EXPECT_EQ(s.open, OpenMessage::kNone);
}

TEST(Responder, a_write_goes_on_where_it_was) {
  ResponderState s = at(10);
  const Packet first = request(Opcode::kRcWriteFirst, 10, kMtu, 2 * kMtu + 3);
  EXPECT_EQ(write_place(s, first).address, 0x10000u);
  execute(s, first);
  const Packet middle = request(Opcode::kRcWriteMiddle, 11, kMtu);
  EXPECT_EQ(write_place(s, middle).address, 0x10000u + kMtu);
  EXPECT_EQ(write_place(s, middle).rkey, 0x77u);
  execute(s, middle);
  const Packet last = request(Opcode::kRcWriteLast, 12, 3);
  EXPECT_EQ(write_place(s, last).address, 0x10000u + 2 * kMtu);
  execute(s, last);
  EXPECT_EQ(s.write_left, 0u);
}

TEST(Responder, a_read_takes_the_numbers_of_its_response) {
  const std::pair<uint32_t, uint32_t> cases[] = {{0, 1}, {1, 1}, {1024, 1}, {1025, 2}, {1u << 30, 1u << 20}};
  for (const auto& [length, psns] : cases) {
    ResponderState s = at(0);
    execute(s, request(Opcode::kRcReadRequest, 0, 0, length));
    EXPECT_EQ(s.expected, Psn(psns)) << length;
    EXPECT_EQ(s.msn, Msn(1));
  }
}

TEST(Responder, order_of_opcodes) {
  const Opcode begins[] = {Opcode::kRcSendFirst, Opcode::kRcSendOnly,    Opcode::kRcWriteFirst,
                           Opcode::kRcWriteOnly, Opcode::kRcReadRequest, Opcode::kRcCompareSwap};
  const Opcode sends[] = {Opcode::kRcSendMiddle, Opcode::kRcSendLast, Opcode::kRcSendLastImm};
  const Opcode writes[] = {Opcode::kRcWriteMiddle, Opcode::kRcWriteLast, Opcode::kRcWriteLastImm};
  const auto verdict = [](OpenMessage open, Opcode op) {
    ResponderState s = at(5);
    s.open = open;
    const bool full = (packet_shape(op) & (kShapePayload | kShapeLast)) == kShapePayload;
    const bool ends_write = (packet_shape(op) & (kShapeWrite | kShapeLast)) == (kShapeWrite | kShapeLast);
    const uint32_t bytes = full ? kMtu : (packet_shape(op) & kShapePayload) != 0 ? 8 : 0;
    s.write_left = ends_write ? bytes : 5 * kMtu;
    return judge_good(s, request(op, 5, bytes, bytes));
  };
  for (const OpenMessage open : {OpenMessage::kNone, OpenMessage::kSend, OpenMessage::kWrite}) {
    const auto allowed = [](bool yes) { return yes ? Arrival::kExecute : Arrival::kInvalid; };
    for (const Opcode op : begins) EXPECT_EQ(verdict(open, op), allowed(open == OpenMessage::kNone)) << opcode_name(op);
    for (const Opcode op : sends) EXPECT_EQ(verdict(open, op), allowed(open == OpenMessage::kSend)) << opcode_name(op);
    for (const Opcode op : writes)
      EXPECT_EQ(verdict(open, op), allowed(open == OpenMessage::kWrite)) << opcode_name(op);
  }
}

TEST(Responder, lengths_must_fit_the_path) {
  const ResponderState s = at(5);
  EXPECT_EQ(judge_good(s, request(Opcode::kRcSendFirst, 5, kMtu / 2)), Arrival::kInvalid);
  EXPECT_EQ(judge_good(s, request(Opcode::kRcSendFirst, 5, kMtu * 2)), Arrival::kInvalid);
  EXPECT_EQ(judge_good(s, request(Opcode::kRcSendOnly, 5, kMtu)), Arrival::kExecute);
  EXPECT_EQ(judge_good(s, request(Opcode::kRcSendOnly, 5, kMtu + 1)), Arrival::kInvalid);
  ResponderState open = at(5);
  open.open = OpenMessage::kSend;
  EXPECT_EQ(judge_good(open, request(Opcode::kRcSendLast, 5, kMtu + 1)), Arrival::kInvalid);
}

TEST(Responder, a_write_brings_what_it_said) {
  ResponderState s = at(5);
  s.open = OpenMessage::kWrite;
  s.write_left = kMtu;
  EXPECT_EQ(judge_good(s, request(Opcode::kRcWriteMiddle, 5, kMtu)), Arrival::kInvalid);  // nothing would be left
  EXPECT_EQ(judge_good(s, request(Opcode::kRcWriteLast, 5, kMtu)), Arrival::kExecute);
  EXPECT_EQ(judge_good(s, request(Opcode::kRcWriteLast, 5, kMtu - 1)), Arrival::kInvalid);
  s.write_left = kMtu + 1;
  EXPECT_EQ(judge_good(s, request(Opcode::kRcWriteMiddle, 5, kMtu)), Arrival::kExecute);
  EXPECT_EQ(judge_good(s, request(Opcode::kRcWriteLast, 5, kMtu)), Arrival::kInvalid);
}

TEST(Responder, malformed_requests_are_refused_in_their_turn) {
  const ResponderState s = at(5);
  EXPECT_EQ(judge(s, Drop::kMisalignedAtomic, request(Opcode::kRcFetchAdd, 5)), Arrival::kInvalid);
  EXPECT_EQ(judge(s, Drop::kMisalignedAtomic, request(Opcode::kRcFetchAdd, 6)), Arrival::kGap);
  EXPECT_EQ(judge(s, Drop::kMisalignedAtomic, request(Opcode::kRcFetchAdd, 4)), Arrival::kSilent);
}

TEST(Responder, a_gap_is_reported_once_until_it_is_filled) {
  ResponderState s = at(5);
  EXPECT_EQ(judge_good(s, request(Opcode::kRcSendOnly, 7)), Arrival::kGap);
  EXPECT_EQ(refuse(s, NakCode::kPsnSequence), (Reply{Psn(5), {Syndrome::nak(NakCode::kPsnSequence), Msn(0)}}));
  EXPECT_EQ(judge_good(s, request(Opcode::kRcSendOnly, 8)), Arrival::kSilent);
  EXPECT_EQ(judge_good(s, request(Opcode::kRcSendOnly, 6)), Arrival::kSilent);
  execute(s, request(Opcode::kRcSendOnly, 5));
  EXPECT_EQ(judge_good(s, request(Opcode::kRcSendOnly, 7)), Arrival::kGap);
}

TEST(Responder, without_a_receive_the_same_packet_is_awaited) {
  ResponderState s = at(5);
  ASSERT_EQ(judge_good(s, request(Opcode::kRcSendOnly, 5)), Arrival::kExecute);
  EXPECT_EQ(not_ready(s, 12), (Reply{Psn(5), {Syndrome::rnr(12), Msn(0)}}));
  EXPECT_EQ(judge_good(s, request(Opcode::kRcSendOnly, 6)), Arrival::kSilent);
  ASSERT_EQ(judge_good(s, request(Opcode::kRcSendOnly, 5)), Arrival::kExecute);
  EXPECT_EQ(not_ready(s, 12).psn, Psn(5));  // each time
  execute(s, request(Opcode::kRcSendOnly, 5));
  EXPECT_EQ(s.msn, Msn(1));
}

TEST(Responder, duplicates) {
  const ResponderState s = at(5);
  EXPECT_EQ(judge_good(s, request(Opcode::kRcSendMiddle, 4, kMtu)), Arrival::kAckAgain);
  EXPECT_EQ(judge_good(s, request(Opcode::kRcWriteOnly, 0, 4, 4)), Arrival::kAckAgain);
  EXPECT_EQ(judge_good(s, request(Opcode::kRcReadRequest, 1, 0, 4)), Arrival::kReadAgain);
  EXPECT_EQ(judge_good(s, request(Opcode::kRcCompareSwap, 2)), Arrival::kAtomicAgain);
  EXPECT_EQ(judge_good(s, request(Opcode::kRcFetchAdd, 0xFFFFFF)), Arrival::kAtomicAgain);
}

TEST(Responder, half_of_the_numbers_is_behind) {
  const ResponderState s = at(0);
  EXPECT_EQ(judge_good(s, request(Opcode::kRcSendOnly, 0x7FFFFF)), Arrival::kGap);
  EXPECT_EQ(judge_good(s, request(Opcode::kRcSendOnly, 0x800000)), Arrival::kAckAgain);
}

TEST(Responder, credits_are_told) {
  ResponderState s = at(5);
  s.credits = credit_code(3);
  EXPECT_EQ(acknowledge(s), (Reply{Psn(4), {Syndrome::ack(3), Msn(0)}}));
}

// ---- a whole conversation over a path that loses, doubles and swaps -------------------------------------------------

std::vector<Packet> random_requests(Prng& rng, uint32_t first_psn, int messages) {
  std::vector<Packet> all;
  uint32_t psn = first_psn;
  const auto add = [&](Packet p) {
    p.reth.address = all.size();  // tells packets apart
    psn += psns_of(p, kMtu);
    all.push_back(p);
  };
  for (int i = 0; i < messages; ++i) {
    const bool send = rng.chance(0.5);
    const uint32_t middles = static_cast<uint32_t>(rng.below(3));
    switch (rng.below(4)) {
      case 0:
        add(request(Opcode::kRcReadRequest, psn, 0, static_cast<uint32_t>(rng.below(5 * kMtu))));
        break;
      case 1:
        add(request(send ? Opcode::kRcSendOnly : Opcode::kRcWriteOnly, psn, 9, 9));
        break;
      default:
        add(request(send ? Opcode::kRcSendFirst : Opcode::kRcWriteFirst, psn, kMtu, (1 + middles) * kMtu + 9));
        for (uint32_t m = 0; m < middles; ++m) {
          add(request(send ? Opcode::kRcSendMiddle : Opcode::kRcWriteMiddle, psn, kMtu));
        }
        add(request(send ? Opcode::kRcSendLast : Opcode::kRcWriteLast, psn, 9));
    }
  }
  return all;
}

/// What the responder of a test does with one packet: executes it into a list, or answers.
std::optional<Reply> respond(ResponderState& s, const Packet& p, bool receive_there, std::vector<size_t>* executed) {
  switch (judge_good(s, p)) {
    case Arrival::kExecute:
      if (p.has(kShapeSend) && p.has(kShapeFirst) && !receive_there) return not_ready(s, 1);
      executed->push_back(p.reth.address);
      accept(s, p);
      return acknowledge(s);
    case Arrival::kAckAgain:
    case Arrival::kReadAgain:
    case Arrival::kAtomicAgain:
      return acknowledge(s);
    case Arrival::kGap:
      return refuse(s, NakCode::kPsnSequence);
    case Arrival::kInvalid:
      ADD_FAILURE() << "refused packet " << p.reth.address;
      return std::nullopt;
    case Arrival::kSilent:
      return std::nullopt;
  }
  return std::nullopt;
}

TEST(Responder, everything_once_and_in_order_whatever_the_path_does) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Prng rng(seed);
    const auto first_psn = static_cast<uint32_t>(rng.below(1 << 24));
    const std::vector<Packet> sent = random_requests(rng, first_psn, 40);
    ResponderState s = at(first_psn);
    std::vector<size_t> executed;
    std::deque<Packet> path;
    size_t oldest = 0, next = 0;  // of a go-back-N sender
    for (int steps = 0; oldest < sent.size(); ++steps) {
      ASSERT_LT(steps, 1'000'000) << "seed " << seed;
      if (next < sent.size() && next - oldest < 16) path.push_back(sent[next++]);
      if (path.empty()) {
        next = oldest;  // its timer
        continue;
      }
      if (path.size() > 1 && rng.chance(0.1)) std::swap(path[0], path[1]);
      if (rng.chance(0.1)) path.push_back(path.front());
      const Packet p = path.front();
      path.pop_front();
      if (rng.chance(0.1)) continue;
      const std::optional<Reply> reply = respond(s, p, rng.chance(0.8), &executed);
      if (!reply || rng.chance(0.1)) continue;
      const bool ack = reply->aeth.syndrome.kind() == AckKind::kAck;
      const Psn done = ack ? reply->psn + 1 : reply->psn;
      while (oldest < sent.size() && sent[oldest].bth.psn.before(done)) ++oldest;
      next = ack ? std::max(next, oldest) : oldest;
    }
    ASSERT_EQ(executed.size(), sent.size()) << "seed " << seed;
    for (size_t i = 0; i < executed.size(); ++i) ASSERT_EQ(executed[i], i) << "seed " << seed;
    uint32_t messages = 0;
    for (const Packet& p : sent) messages += p.has(kShapeLast);
    EXPECT_EQ(s.msn, Msn(messages));
  }
}

// ---- unreliable connections ----------------------------------------------------------------------------------------

TEST(Responder, unreliable__any_beginning_is_good) {
  using enum UnreliableArrival;
  ResponderState s = at(0xFFFFFE);
  EXPECT_EQ(judge_unreliable(s, request(Opcode::kUcSendOnly, 0xFFFFFE, 5)), kBegins);
  EXPECT_EQ(judge_unreliable(s, request(Opcode::kUcWriteFirst, 0x2000, kMtu, 2 * kMtu)), kBegins);
  EXPECT_EQ(judge_unreliable(s, request(Opcode::kUcSendMiddle, 0xFFFFFE, kMtu)), kLost);
  EXPECT_EQ(judge_unreliable(s, request(Opcode::kUcWriteLast, 0xFFFFFE, 1)), kLost);
  s.open = OpenMessage::kSend;
  EXPECT_EQ(judge_unreliable(s, request(Opcode::kUcSendOnly, 0xFFFFFE, 5)), kBegins);
}

TEST(Responder, unreliable__a_message_goes_on_without_a_gap) {
  using enum UnreliableArrival;
  ResponderState s = at(10);
  accept(s, request(Opcode::kUcWriteFirst, 10, kMtu, 2 * kMtu + 3));
  EXPECT_EQ(judge_unreliable(s, request(Opcode::kUcWriteMiddle, 11, kMtu)), kGoesOn);
  EXPECT_EQ(judge_unreliable(s, request(Opcode::kUcWriteMiddle, 12, kMtu)), kLost);
  EXPECT_EQ(judge_unreliable(s, request(Opcode::kUcSendMiddle, 11, kMtu)), kLost);
  EXPECT_EQ(judge_unreliable(s, request(Opcode::kUcWriteMiddle, 11, kMtu / 2)), kLost);
  EXPECT_EQ(judge_unreliable(s, request(Opcode::kUcWriteLast, 11, 3)), kLost);  // too soon
  accept(s, request(Opcode::kUcWriteMiddle, 11, kMtu));
  EXPECT_EQ(judge_unreliable(s, request(Opcode::kUcWriteLastImm, 12, 3)), kGoesOn);
  EXPECT_EQ(judge_unreliable(s, request(Opcode::kUcWriteLast, 12, 4)), kLost);
}

TEST(Responder, unreliable__what_came_before_is_late_and_what_is_far_behind_is_new) {
  using enum UnreliableArrival;
  const ResponderState s = at(5);
  EXPECT_EQ(judge_unreliable(s, request(Opcode::kUcSendOnly, 4)), kLate);
  EXPECT_EQ(judge_unreliable(s, request(Opcode::kUcSendOnly, (Psn(5) - kLatePackets).value())), kLate);
  EXPECT_EQ(judge_unreliable(s, request(Opcode::kUcSendOnly, (Psn(5) - kLatePackets - 1).value())), kBegins);
  EXPECT_EQ(judge_unreliable(s, request(Opcode::kUcSendLast, (Psn(5) - kLatePackets - 1).value(), 1)), kLost);
}

}  // namespace
}  // namespace ub::roce
