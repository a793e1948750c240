// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/reached.h"

#include <algorithm>

#include "lib/transport/setup/terms.h"
#include "lib/transport/ta/parked_messages.h"
#include "lib/transport/tp/paths.h"
#include "lib/transport/tp/transmit_state.h"
#include "tests/sim/packet_info.h"

namespace ub::sim {
namespace {

using tp::Channel;
using tp::ChannelState;

bool wrapped(Psn since, Psn now) { return now.value() < since.value(); }

bool waits_to_go_again(const CoreState& s, const Channel& ch) {
  return ch.recovery != 0 && s.recovery[ch.recovery].resend_count != 0;
}

bool all_received(const CoreState& s, const Channel& ch) {
  if (ch.recovery == 0) return false;
  for (Psn p = ch.oldest_unacked; p != ch.next_psn; ++p)
    if (!tp::test_bit(s.recovery[ch.recovery].sacked, tp::recovery_index(p))) return false;
  return ch.outstanding() != 0;
}

bool any_repeated(const ta::Repeats& r) {
  return std::any_of(r.sent, r.sent + r.sent_count, [](const ta::SentSegment& sent) { return sent.repeats != 0; });
}

struct HeldAgain {
  bool any, acknowledged;
};
HeldAgain held_again(const CoreState& s, const Channel& ch) {
  HeldAgain found{};
  s.held.each(ch.held, [&](const HeldFrame& h) {
    found.any |= h.again;
    found.acknowledged |= h.again && h.psn.distance(ch.oldest_unacked) >= ch.outstanding();
  });
  return found;
}

bool passed_in_line(const CoreState& s, const Channel& ch) {
  if (!ch.mixed_line || ch.queues.empty()) return false;
  uint32_t queue = ch.queues.front<&SendQueue::in_line>(s.queues);
  while (queue != 0 && s.jettys[s.queues[queue].jetty].passes == 0)
    queue = ch.queues.behind<&SendQueue::in_line>(s.queues, queue);
  return queue != 0;
}

}  // namespace

const char* sentence_of(ReachedState s) {
  static constexpr const char* kSentences[] = {
#define X(name, sentence) sentence,
#include "tests/sim/reached.def"
#undef X
  };
  return kSentences[static_cast<size_t>(s)];
}

void Reached::look(uint32_t node, uint32_t epoch, const CoreState& s, const roce::State* r) {
  if (instances_.size() <= node) instances_.resize(node + 1);
  Instance& instance = instances_[node];
  if (instance.epoch != epoch) instance = Instance{.epoch = epoch, .channels = {}, .qps = {}};
  instance.channels.resize(std::max<size_t>(instance.channels.size(), s.channels.high_water() + 1));
  for (uint32_t i = 1; i <= s.channels.high_water(); ++i) look_at_channel(s, s.channels[i], instance.channels[i]);
  look_at_tables(s);
  if (r == nullptr) return;
  instance.qps.resize(std::max<size_t>(instance.qps.size(), r->qps.high_water() + 1));
  for (uint32_t i = 1; i <= r->qps.high_water(); ++i)
    if (r->qps[i].in_use) look_at_qp(s, r->qps[i], instance.qps[i]);
}

void Reached::look_at_bypass(const bypass::AskedState& asked, const bypass::OwedAnswers& owed) {
  constexpr uint8_t kMany = 4;
  reach(ReachedState::kAnswerOwed, !owed.empty());
  reach(ReachedState::kAnswersOwedFull, owed.full());
  for (uint32_t handle = 1; handle <= asked.handles.high_water(); ++handle) {
    reach(ReachedState::kAskedFull, asked.handles[handle].under_way == bypass::kRecordsPerHandle);
    for (uint32_t i = 0; i < bypass::kRecordsPerHandle; ++i) {
      const bypass::Asked& record = asked.record(handle, i);
      reach(ReachedState::kLoadAgain, record.waits() && record.tries != 0);
      reach(ReachedState::kLoadAgainOften, record.waits() && record.tries >= kMany);
    }
  }
}

void Reached::sent_again(std::span<const std::byte> frame) {
  const PacketInfo p = inspect(0, 0, frame);
  reach(ReachedState::kAtomicAgain, p.request() && wire::ta_is_atomic(p.ta.opcode()));
}

void Reached::look_at_cna(const CoreState& s, const Channel& ch) {
  const bool wanted = setup::offers_cna(s, s.links[ch.link].config, ch.lane);
  reach(ReachedState::kCnaAlone, wanted && !ch.cna && ch.outstanding() != 0);
  if (!ch.cna) return;
  reach(ReachedState::kCnaBusy, ch.outstanding() != 0);
  reach(ReachedState::kCnaGoesAgain, ch.outstanding() != 0 && ch.retransmits != 0);
  const bool caqm = ch.feedback == wire::CcAlgorithm::kCaqm;
  reach(ReachedState::kCnaHeard, caqm && ch.heard.increase);
  reach(ReachedState::kCnaMarked, caqm && ch.heard.marks != 0);
}

void Reached::look_at_rol(const CoreState& s, const Channel& ch) {
  reach(ReachedState::kRolBusy, ch.outstanding() != 0 && ch.unacknowledged != 0);
  reach(ReachedState::kRolUnexecuted, ch.fused.holds);
  reach(ReachedState::kRolFrozen, ch.fused.frozen);
  reach(ReachedState::kRolFailuresWait, ch.fused.frozen && !ch.ending.empty());
  reach(ReachedState::kRolAllReceived, all_received(s, ch));
}

void Reached::look_at_compact(const CoreState& s, const Channel& ch) {
  const Peer& peer = s.peers[ch.peer];
  const uint32_t unanswered = ch.carries_requests ? peer.lanes[ch.lane].unanswered : 0;
  reach(ReachedState::kCompactSeveral, unanswered > 1);
  reach(ReachedState::kCompactRepeats, ch.repeats != 0 && any_repeated(s.repeats[ch.repeats]));
  reach(ReachedState::kCompactFull, unanswered == ch.most_unanswered);
  reach(ReachedState::kCompactWaits, !ch.in_flight.empty());
  if (is_ordered(ch.lane)) {
    const bool by_rtp = peer.lanes[kOrderedLane].unanswered != 0 || peer.lanes[kOrderedBulkLane].unanswered != 0;
    reach(ReachedState::kCompactRol, unanswered != 0);
    reach(ReachedState::kCompactRolAndRtp, unanswered != 0 && by_rtp);
    return;
  }
  const bool by_rtp = peer.lanes[kSmallLane].unanswered != 0 || peer.lanes[kBulkLane].unanswered != 0;
  reach(ReachedState::kCompactAndRtp, unanswered != 0 && by_rtp);
}

void Reached::look_at_paths(const CoreState& s, const Channel& ch) {
  uint32_t live = 0, busy = 0, news = 0;
  bool full = false, room = false;
  const std::span<tp::Path> paths = tp::paths_of(s, ch);
  for (const tp::Path& p : paths) {
    news += p.has_news;
    reach(ReachedState::kPathLivesAgain, p.live && p.deaths != 0 && p.in_flight != 0);
    reach(ReachedState::kPathIsNotAsked, !p.live && p.ask_at.is_never());
    reach(ReachedState::kPathTolerant, p.tolerance.packets > tp::ReorderTolerance::kLeastPackets);
    if (!p.live) continue;
    ++live;
    busy += p.in_flight != 0;
    (p.in_flight < p.room ? room : full) = true;
    reach(ReachedState::kPathWaits, p.gap_ns != 0);
  }
  const bool dead = std::any_of(paths.begin(), paths.end(), [](const tp::Path& p) { return !p.live && p.deaths != 0; });
  reach(ReachedState::kPathsBusy, busy > 1);
  reach(ReachedState::kPathsBusyAll, busy == 8);
  reach(ReachedState::kPathDies, dead);
  reach(ReachedState::kPathOfSetUpDies, !paths[0].live);
  reach(ReachedState::kPathsAllButOne, dead && live == 1 && busy == 1);
  reach(ReachedState::kPathFull, full && room);
  reach(ReachedState::kPathGoBackN, ch.go_back_n && paths[0].in_flight == 0 && busy != 0);
  reach(ReachedState::kPathsReport, ch.feeds_back && news > 1);
  if (!dead) return;
  for (Psn psn = ch.oldest_unacked; psn != ch.next_psn; ++psn) {
    const tp::Departure& d = s.path_blocks[ch.paths].departures[tp::recovery_index(psn)];
    reach(ReachedState::kPathLostGoesAgain, d.path != tp::kNoPath && d.again && !d.lost && paths[d.path].live);
  }
}

void Reached::look_at_channel(const CoreState& s, const Channel& ch, Track& t) {
  if (t.id != ch.tpn) {
    reach(ReachedState::kChannelReused, t.id != 0);
    t = Track{};
    t.id = ch.tpn;
  }
  reach(ReachedState::kClosingBusy, ch.state == ChannelState::kClosing && ch.outstanding() != 0);
  if (!ch.is_up()) {
    t.busy = t.recovering = false;
    return;
  }
  look_at_receiver(s, ch);
  reach(ReachedState::kUrgentPassed, passed_in_line(s, ch));
  reach(ReachedState::kGatherWhileLost, !ch.held.empty() && waits_to_go_again(s, ch));
  const HeldAgain again = held_again(s, ch);
  reach(ReachedState::kGatherAgain, again.any);
  reach(ReachedState::kGatherAgainAcked, again.acknowledged);
  reach(ReachedState::kGatherSeveral, ch.held_new > 1);
  reach(ReachedState::kGatherNewAndAgain, ch.held_new != 0 && again.any);
  reach(ReachedState::kGatherAll, ch.held.count == kHeldOfSender);
  reach(ReachedState::kCopyAndGather, !ch.held.empty() && ch.open.copies != 0);
  if (ch.rol) look_at_rol(s, ch);
  if (ch.compact) return look_at_compact(s, ch);
  look_at_cna(s, ch);
  reach(ReachedState::kPathsBegin, ch.several_paths && !t.several_paths && ch.outstanding() != 0);
  t.several_paths = ch.several_paths;
  if (ch.several_paths) look_at_paths(s, ch);
  const bool calm = ch.asks_soon && ch.calm == s.config.questions_until_calm;
  reach(ReachedState::kCalm, calm && ch.outstanding() != 0);
  reach(ReachedState::kCalmLost, t.calm && ch.retransmits != t.retransmits);
  t.calm = calm;
  t.retransmits = ch.retransmits;
  reach(ReachedState::kWindowShut, ch.outstanding() >= ch.send_window);
  reach(ReachedState::kAnswersWait, !ch.answers.empty() && ch.outstanding() >= ch.send_window);
  look_at_busy_channel(ch, t);
}

void Reached::look_at_busy_channel(const Channel& ch, Track& t) {
  const bool recovering = ch.recovery != 0;
  if (recovering && !t.recovering) t.recovering_since = ch.oldest_unacked;
  t.recovering = recovering;
  if (recovering) {
    reach(ReachedState::kBusySacked, ch.oldest_unacked.distance(t.recovering_since) > tp::kMaxWindow);
    reach(ReachedState::kBusyRecoveryWrap, wrapped(t.recovering_since, ch.oldest_unacked));
  }
  const bool busy = ch.outstanding() != 0;
  if (busy && !t.busy) {
    t.busy_since = ch.oldest_unacked;
    t.gathered_for = 0;
    t.gathered_at = ch.oldest_unacked;
  }
  t.busy = busy;
  if (!busy) return;
  const uint32_t window = std::max(1u, ch.send_window);
  const uint32_t packets = ch.oldest_unacked.distance(t.busy_since);
  reach(ReachedState::kBusyWindow, packets > window);
  reach(ReachedState::kBusyFourWindows, packets > 4 * window);
  reach(ReachedState::kBusyTracked, packets > tp::kMaxWindow);
  reach(ReachedState::kBusyTwiceTracked, packets > 2 * tp::kMaxWindow);
  reach(ReachedState::kBusyWrap, packets > window && wrapped(t.busy_since, ch.oldest_unacked));
  // In every eighth of a window at least one packet waited for its bytes.
  if (!ch.held.empty()) {
    const uint32_t pause = ch.oldest_unacked.distance(t.gathered_at);
    t.gathered_for = pause > window / 8 ? 0 : t.gathered_for + pause;
    t.gathered_at = ch.oldest_unacked;
    reach(ReachedState::kBusySlow, t.gathered_for > 4 * window);
  }
}

void Reached::look_at_receiver(const CoreState& s, const Channel& ch) {
  reach(ReachedState::kFarAhead, ch.reorder != 0 && ch.highest_seen.after(ch.expected + 31));
  reach(ReachedState::kGoneBack, ch.gap_report == tp::GapReport::kSent);
  reach(ReachedState::kCopyWhileGap, ch.open.copies != 0 && ch.reorder != 0);
  reach(ReachedState::kParkedSeveral, !ch.ending.empty() && ch.parked > 1);
  reach(ReachedState::kParkedAll, ch.parked == ta::kParkedOfChannel);
  reach(ReachedState::kParkedAhead, !ch.ahead.empty() && !ch.ending.empty());
  reach(ReachedState::kStalledBehindParked, !ch.ending.empty() && ch.stalled);
  reach(ReachedState::kStallAndGap, ch.stalled && ch.highest_seen.after(ch.expected));
  reach(ReachedState::kReceiverFull, ch.expected.distance(ch.delivered) >= s.config.window_packets - 1);
  reach(ReachedState::kKeptShareUsed, ch.kept.large != 0 && !has_share(s.kept.large(), ch.kept.large));
  reach(ReachedState::kSmallKeptShareUsed, ch.kept.small != 0 && !has_share(s.kept.small(), ch.kept.small));
  reach(ReachedState::kJobShareUsed, ch.read_jobs != 0 && !has_share(s.jobs, ch.read_jobs));
}

void Reached::look_at_qp(const CoreState& s, const roce::Qp& qp, Track& t) {
  if (t.id != qp.qpn) t = Track{};
  t.id = qp.qpn;
  const bool busy = qp.type == roce::QpType::kRc && roce::sends(qp.state) && qp.req.oldest != qp.req.sent_end;
  if (busy && !t.busy) t.busy_since = qp.req.oldest;
  t.busy = busy;
  reach(ReachedState::kQpKept, qp.kept != 0);
  reach(ReachedState::kQpGatherLost,
        !qp.held_requests.empty() && s.held.first(qp.held_requests).psn.before(qp.req.sent_end));
  reach(ReachedState::kQpGatherSeveral, qp.held_requests.count > 1);
  reach(ReachedState::kQpGatherAll, qp.held_requests.count + qp.held_responses.count == kHeldOfSender);
  reach(ReachedState::kQpGatherAnswers, qp.held_responses.count > 1);
  reach(ReachedState::kQpGatherBoth, !qp.held_requests.empty() && !qp.held_responses.empty());
  if (!busy) return;
  const uint32_t packets = qp.req.oldest.distance(t.busy_since);
  reach(ReachedState::kQpBusyTracked, packets > tp::kMaxWindow);
  reach(ReachedState::kQpBusyWrap, packets > s.config.roce.window_packets && wrapped(t.busy_since, qp.req.oldest));
}

void Reached::look_at_context(const CoreState& s, const SequenceContext& c) {
  reach(ReachedState::kRotEarly, c.early_count != 0);
  reach(ReachedState::kRotEarlyFull, c.early_count == kEarlyOfContext);
  const auto on_another = [&](uint32_t m) { return s.parked[m].channel != s.parked[c.early[0]].channel; };
  reach(ReachedState::kRotAcross, std::any_of(c.early, c.early + c.early_count, on_another));
}

void Reached::before_reset(const CoreState& s, const Queue& queue) {
  if (queue.unfinished() == 0) return;
  const SendQueue& q = s.queues[s.jettys[s.ids[queue.id].record].queue];
  const bool sent = q.unanswered_segments != 0;
  reach(ReachedState::kResetUnderWay, sent);
  reach(ReachedState::kResetGates, sent && (q.retries | q.waiting) != 0);
  reach(ReachedState::kResetCopies, q.copies_pending != 0);
  reach(ReachedState::kResetDatagram, q.unreliable && q.held != 0);
  reach(ReachedState::kResetJfs, sent && queue.kind == ObjectKind::kJfs);
  reach(ReachedState::kResetRol, sent && q.rol);
  reach(ReachedState::kResetRot, sent && q.context != 0);
}

void Reached::judged_last_byte(const Options& o, const Wr& w) {
  const bool slow = o.host.pending != 0, segments = w.length > o.core.segment_bytes, rc = w.queue->mode == Mode::kRc;
  reach(ReachedState::kLastByteSlow, slow && w.length > o.mtu);
  if (!segments || w.queue->qp) return;
  reach(ReachedState::kLastByteOfSegments);
  reach(ReachedState::kLastByteOfSegmentsSlow, slow);
  reach(ReachedState::kLastByteOfSegmentsSpread, slow && !rc && w.place_order == 0 && o.core.channels_per_lane > 1);
  reach(ReachedState::kLastByteOfSegmentsRol, rc && !w.queue->rot && o.core.rol != 0);
  reach(ReachedState::kLastByteOfSegmentsRot, w.queue->rot);
}

void Reached::look_at_tables(const CoreState& s) {
  reach(ReachedState::kHalfMessageDied, !s.receives_with_late_copies.empty());
  const bool refused = s.counters[Counter::kTpPathRefused] != 0;
  reach(ReachedState::kPathRefused, refused);
  reach(ReachedState::kPathBlocksShort, refused && s.path_blocks.in_use() == s.path_blocks.capacity());
  reach(ReachedState::kFrameGivenUp, s.held.orphan_count() != 0);
  reach(ReachedState::kMessagesShort, s.answers.in_use() > s.answers.capacity() - s.answers.capacity() / 10);
  reach(ReachedState::kCompactSilent, s.counters[Counter::kCtpTxSilent] != 0);
  reach(ReachedState::kLoadNoRoom, s.counters[Counter::kBypassNoRoom] != 0);
  reach(ReachedState::kAnswerLate, s.counters[Counter::kRxDropNoBypass] != 0);
  reach(ReachedState::kCompactAsks, s.counters[Counter::kCtpTxQuestion] != 0);
  for (uint32_t i = 1; i <= s.peers.high_water(); ++i) {
    const Peer& p = s.peers[i];
    if (!p.in_use) continue;
    reach(ReachedState::kRolRefused, p.refuses_rol);
    uint32_t busy[2] = {};
    for (int lane : {0, 1}) {
      for (uint32_t channel : p.lanes[lane].channels)
        busy[lane] += channel != 0 && s.channels[channel].outstanding() != 0;
    }
    reach(ReachedState::kTwoChannels, busy[0] != 0 && busy[1] != 0);
    reach(ReachedState::kBusyPlaces, busy[0] > 2 || busy[1] > 2);
  }
  for (uint32_t i = 1; i <= s.contexts.high_water(); ++i) {
    if (s.contexts[i].in_use) look_at_context(s, s.contexts[i]);
  }
  for (uint32_t i = 1; i <= s.queues.high_water(); ++i) {
    const SendQueue& q = s.queues[i];
    if (!q.in_use || q.context == 0) continue;
    const InitiatorContext& c = s.initiator_contexts[q.context];
    reach(ReachedState::kRotNumbersFull, !c.answered.spans(c.next));
    reach(ReachedState::kRotCreditFull, c.strong_unanswered == kEarlyOfContext);
  }
  for (uint32_t i = 1; i <= s.queues.high_water(); ++i) {
    reach(ReachedState::kJettyWaits, s.queues[i].in_use && static_cast<bool>(s.queues[i].waiter));
    reach(ReachedState::kQueueRetries, s.queues[i].in_use && s.queues[i].retries != 0);
  }
}

}  // namespace ub::sim
