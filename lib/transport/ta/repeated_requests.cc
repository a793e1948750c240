// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/ta/repeated_requests.h"

#include <algorithm>

#include "lib/transport/setup/channel_life.h"
#include "lib/transport/ta/completion.h"
#include "lib/transport/ta/giving_up.h"
#include "lib/transport/ta/request_state.h"
#include "lib/transport/ta/scheduler.h"
#include "lib/transport/ta/segmentation.h"
#include "lib/transport/tp/transmit_state.h"
#include "lib/transport/wire/response_status.h"

namespace ub::ta {

// ---- the channel's record --------------------------------------------------------------------------------------

bool take_repeats(CoreState& s, tp::Channel& ch) {
  if (ch.repeats != 0) return true;
  const uint32_t index = s.repeats.alloc();
  if (index == 0) return false;
  ch.repeats = static_cast<uint16_t>(index);
  Repeats& r = s.repeats[index];
  r.look_at = Instant::never();
  r.sent_count = r.due_count = 0;
  r.queue_count = r.results_count = r.results_last = 0;
  return true;
}

void free_repeats(CoreState& s, tp::Channel& ch) {
  if (ch.repeats == 0) return;
  repeats_of(s, ch).queue_count = 0;
  s.repeats.free(ch.repeats);
  ch.repeats = 0;
}

// ---- which requests it carries ---------------------------------------------------------------------------------

namespace {

// The place of a queue; nullptr: it has none. `R`: Repeats, which may be const.
template <class R>
auto* find_place(R& r, uint32_t rcid) {
  auto* end = r.queues + r.queue_count;
  auto* place = std::find_if(r.queues, end, [rcid](const RepeatQueue& each) { return each.rcid == rcid; });
  return place == end ? nullptr : place;
}

// How many TASSNs the queue has used since its newest request that the target knows.
uint32_t used_since(const RepeatQueue& place, Tassn next) {
  return place.wraps * (Tassn::kMask + 1) + next.value() - place.newest.value();
}

// Calls visit(place) for the places of this RCID on all channels.
template <class Visit>
void for_places(CoreState& s, uint32_t rcid, Visit visit) {
  for (uint32_t i = 1; i <= s.repeats.high_water(); ++i) {
    Repeats& r = s.repeats[i];
    for (RepeatQueue* place = r.queues; place != r.queues + r.queue_count; ++place) {
      if (place->rcid == rcid) visit(*place);
    }
  }
}

// nullptr: there is none.
const WrState* oldest_request(const SendQueue& q) {
  for (uint32_t n = q.started_head; n != q.started_tail; ++n) {
    const WrState& wr = q.work[n & q.work_mask];
    if (!wr.done) return &wr;
  }
  return nullptr;
}

bool within_record(const WrState& oldest, Tassn tassn) {
  return tassn.distance(oldest.first_tassn + oldest.base) < kKeptResults;
}

}  // namespace

bool has_place(const Repeats& r, const SendQueue& q) {
  const RepeatQueue* place = find_place(r, q.rcid);
  if (place == nullptr) return r.queue_count < kRepeatQueues;
  return !place->closed && used_since(*place, q.next_tassn) < kMostBetween;
}

bool may_be_repeated(const CoreState& s, const SendQueue& q, const Wqe& wqe, uint32_t peer) {
  if (takes_receive(wqe.op)) return false;
  const uint32_t channel = s.peers[peer].lanes[kCompactLane].channels[0];
  if (channel == 0 || s.channels[channel].repeats == 0) return true;
  if (!has_place(s.repeats[s.channels[channel].repeats], q)) return false;
  const WrState* oldest = oldest_request(q);
  if (oldest == nullptr || oldest->channel == channel) return true;
  const uint32_t mtu = s.peers[peer].compact_mtu;
  return within_record(*oldest, q.next_tassn + segment_count(wqe.op, wqe.length, mtu, mtu) - 1);
}

bool target_remembers(const SendQueue& q, Tassn tassn) {
  const WrState* oldest = oldest_request(q);
  return oldest == nullptr || within_record(*oldest, tassn);
}

void hold_place(CoreState& s, const tp::Channel& ch, const SendQueue& q) {
  Repeats& r = repeats_of(s, ch);
  if (find_place(r, q.rcid) != nullptr) return;
  UB_ASSERT(r.queue_count < kRepeatQueues);  // may_be_repeated() was asked
  r.queues[r.queue_count++] = {q.rcid, q.next_tassn, 0, false};
}

void note_wrap(CoreState& s, uint32_t rcid) {
  for_places(s, rcid, [](RepeatQueue& place) { place.wraps += place.wraps != UINT8_MAX; });
}

void close_repeat_queues(CoreState& s, uint32_t rcid) {
  for_places(s, rcid, [](RepeatQueue& place) { place.closed = true; });
}

// ---- the list --------------------------------------------------------------------------------------------------

namespace {

bool is_about(const SentSegment& sent, const tp::TxMessage& m) {
  return sent.queue == m.source && sent.work_request == m.work_request && sent.segment == m.segment &&
         sent.generation == m.generation;
}

// The message of the segment, but for its TASSN, which is that of a request that may have ended.
tp::TxMessage name_of(const SentSegment& sent) {
  tp::TxMessage m{};
  m.kind = tp::MessageKind::kRequest;
  m.source = sent.queue;
  m.generation = sent.generation;
  m.work_request = sent.work_request;
  m.segment = sent.segment;
  m.retry = true;
  return m;
}

// Is its answer awaited? One that was refused is not: it is sent again by itself, and stands on the list anew.
bool is_awaited(CoreState& s, const SentSegment& sent) {
  const WrState* wr = request_of(s, name_of(sent));
  if (wr == nullptr || sent.segment < wr->base) return false;
  return ((wr->answered | wr->refused) & segment_bit(sent.segment)) == 0;
}

template <class Condition>
void remove_if(Repeats& r, Condition condition) {
  SentSegment* end = std::remove_if(r.sent, r.sent + r.sent_count, condition);
  r.sent_count = static_cast<uint16_t>(end - r.sent);
  r.due_count = static_cast<uint16_t>(std::count_if(r.sent, end, [](const SentSegment& each) { return each.due; }));
}

void remove_answered(CoreState& s, Repeats& r) {
  remove_if(r, [&s](const SentSegment& each) { return !is_awaited(s, each); });
}

Duration patience_with(const CoreState& s, const tp::Channel& ch, const SentSegment& sent) {
  constexpr uint8_t kMostDoublings = 20;  // more than from any timeout to rto_max
  return std::min(ch.rto * (int64_t{1} << std::min(sent.repeats, kMostDoublings)), s.config.rto_max);
}

// The channel's timer fires when this segment may be due, or sooner.
void look_in_time(CoreState& s, uint32_t channel, const SentSegment& sent) {
  const tp::Channel& ch = s.channels[channel];
  Repeats& r = repeats_of(s, ch);
  const Instant due = sent.at + patience_with(s, ch, sent);
  if (due >= r.look_at) return;
  r.look_at = due;
  s.timers.arm(s.timer_of_channel(channel), earlier(due, ch.rto_at));
}

}  // namespace

void note_sent(CoreState& s, uint32_t channel, const tp::TxMessage& m) {
  tp::Channel& ch = s.channels[channel];
  Repeats& r = repeats_of(s, ch);
  if (m.retry) remove_if(r, [&m](const SentSegment& each) { return is_about(each, m); });
  if (r.sent_count == std::size(r.sent)) remove_answered(s, r);
  UB_ASSERT(r.sent_count < std::size(r.sent));  // at most Channel::most_unanswered are awaited
  SentSegment& sent = r.sent[r.sent_count++];
  sent = {s.now, m.source, m.work_request, m.segment, m.generation, 0, false, false};
  if (!ch.timing) {
    ch.timing = true;
    ch.timed_at = s.now;
    r.timed = m.tassn;
    r.timed_rcid = s.queues[m.source].rcid;
  }
  look_in_time(s, channel, sent);
}

SentSegment* next_repeat(CoreState& s, const tp::Channel& ch) {
  Repeats& r = repeats_of(s, ch);
  for (SentSegment* sent = r.sent; r.due_count != 0 && sent != r.sent + r.sent_count; ++sent) {
    if (!sent->due) continue;
    if (is_awaited(s, *sent)) return sent;
    sent->due = false;
    --r.due_count;
  }
  return nullptr;
}

tp::TxMessage message_of(const CoreState& s, const SentSegment& sent) {
  const SendQueue& q = s.queues[sent.queue];
  tp::TxMessage m = name_of(sent);
  m.tassn = q.work[sent.work_request & q.work_mask].first_tassn + sent.segment;
  return m;
}

void note_repeated(CoreState& s, uint32_t channel, SentSegment& sent) {
  tp::Channel& ch = s.channels[channel];
  sent.due = sent.lost = false;
  --repeats_of(s, ch).due_count;
  ++sent.repeats;
  sent.at = s.now;
  ++ch.retransmits;
  s.count(Counter::kCtpTxRepeat);
  look_in_time(s, channel, sent);
}

// ---- answers and time ------------------------------------------------------------------------------------------

namespace {

// The target knows this request of the queue, and with it all older ones.
void note_known(RepeatQueue& place, Tassn t) {
  if (!t.after(place.newest)) return;
  if (t.value() < place.newest.value()) {
    if (place.wraps == 0) return;  // the peer answers what the queue has not sent
    --place.wraps;
  }
  place.newest = t;
}

void allow_one_more(CoreState& s, uint32_t channel) {
  ++s.channels[channel].most_unanswered;
  activate(s, channel);
}

}  // namespace

void note_answered(CoreState& s, uint32_t channel, const wire::Atah& answer) {
  tp::Channel& ch = s.channels[channel];
  if (ch.most_unanswered < most_repeatable(ch)) [[unlikely]]
    allow_one_more(s, channel);
  Repeats& r = repeats_of(s, ch);
  const uint32_t more = wire::says_success(answer.rspst) ? answer.rspinfo : 0;
  if (RepeatQueue* place = find_place(r, answer.rc_id)) note_known(*place, answer.tassn + more);
  if (!ch.timing || answer.rc_id != r.timed_rcid) return;
  if (r.timed.distance(answer.tassn) > more) return;
  ch.timing = false;
  tp::add_sample(ch.round_trip, s.now - ch.timed_at, s.now);
  ch.rto = tp::rto_of(ch.round_trip, tp::rto_limits(s));
}

namespace {

// The target has not answered any of so many.
void end_request(CoreState& s, const SentSegment& sent) {
  s.count(Counter::kTaTimeout);
  const uint32_t queue = sent.queue;
  give_up(s, queue, sent.work_request, CrStatus::kAckTimeout);
  retire_requests(s, queue);
  schedule_queue(s, queue);
}

// Finds what is late. Returns whether requests ended, since they had been sent often enough.
bool find_lost(CoreState& s, uint32_t channel) {
  tp::Channel& ch = s.channels[channel];
  Repeats& r = repeats_of(s, ch);
  bool ended = false;
  uint32_t lost = 0;
  for (SentSegment* sent = r.sent; sent != r.sent + r.sent_count; ++sent) {
    if (sent->lost || !is_awaited(s, *sent)) continue;
    if (s.now < sent->at + patience_with(s, ch, *sent)) {
      look_in_time(s, channel, *sent);
    } else if (sent->repeats == kMostRepeats) {
      end_request(s, *sent);
      ended = true;
    } else {
      sent->lost = true;
      ++lost;
    }
  }
  constexpr uint32_t kManyOf = 4;
  if (s.config.loss_window && lost * kManyOf > ch.most_unanswered) ch.most_unanswered -= ch.most_unanswered / 2;
  remove_answered(s, r);
  return ended;
}

// What is lost is to be sent again, as much as may be under way. The rest has its turn soon.
void make_due(Instant now, uint32_t most, Repeats& r) {
  const auto waits = [](const SentSegment& each) { return each.lost && !each.due; };
  SentSegment* const end = r.sent + r.sent_count;
  auto under_way = static_cast<uint32_t>(r.sent_count - std::count_if(r.sent, end, waits));
  for (SentSegment* sent = r.sent; sent != end; ++sent) {
    if (!waits(*sent)) continue;
    if (under_way >= most) {
      r.look_at = now;
      return;
    }
    sent->due = true;
    ++r.due_count;
    ++under_way;
  }
}

}  // namespace

bool look_for_repeats(CoreState& s, uint32_t channel) {
  tp::Channel& ch = s.channels[channel];
  if (ch.repeats == 0 || s.now < next_look(s, ch)) return true;
  Repeats& r = repeats_of(s, ch);
  if (ch.timing && s.now - ch.timed_at >= ch.rto) ch.timing = false;  // an answer may be one to a repeat (Karn)
  r.look_at = Instant::never();
  const bool ended = find_lost(s, channel);
  make_due(s.now, ch.most_unanswered, r);
  if (!r.look_at.is_never()) r.look_at = later(r.look_at, s.now + ch.rto / 4);  // several become due together
  if (r.due_count != 0) activate(s, channel);
  if (ended) setup::end_if_silent(s, channel);
  return s.channels[channel].is_up();
}

}  // namespace ub::ta
