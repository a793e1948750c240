// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/ta/parked_messages.h"

#include <utility>

#include "lib/transport/resource/receives.h"
#include "lib/transport/ta/sequence_contexts.h"
#include "lib/transport/tp/receive_state.h"

namespace ub::ta {

namespace {

// The record of the message `number` on the list; 0: there is none.
uint32_t find(const CoreState& s, const IndexList& list, Tpmsn number) {
  uint32_t i = list.empty() ? 0 : list.front<&ParkedMessage::in_line>(s.parked);
  while (i != 0 && s.parked[i].number != number) i = list.behind<&ParkedMessage::in_line>(s.parked, i);
  return i;
}

uint32_t take_record(CoreState& s, tp::Channel& ch, Tpmsn number) {
  const uint32_t i = s.parked.alloc();
  UB_ASSERT(i != 0);
  ++ch.parked;
  s.parked[i] = ParkedMessage{};
  s.parked[i].number = number;
  return i;
}

void free_record(CoreState& s, tp::Channel& ch, ParkedMessage& m) {
  UB_DCHECK(m.receive == 0);
  if (m.kept != 0) s.kept.free(m.kept, ch.kept);
  --ch.parked;
  s.parked.free(record_of(s, m));
}

// The rest of a message will not come. Its record is freed when no copy of it is pending.
void vanish(CoreState& s, tp::Channel& ch, uint32_t i) {
  ParkedMessage& m = s.parked[i];
  if (m.copies == 0) return free_record(s, ch, m);
  m.vanished = true;
  ch.ending.push_back<&ParkedMessage::in_line>(s.parked, i);
}

void drop_receive(CoreState& s, const tp::Channel& ch, tp::OpenMessage& m, Tpmsn number) {
  const uint32_t receive = std::exchange(m.receive, 0);
  if (receive == 0) return;
  if (m.copies == 0) return return_receive(s, receive);
  return_receive_later(s, receive, {ch.tpn, number, m.copies});
}

void drop_list(CoreState& s, tp::Channel& ch, IndexList& list) {
  while (!list.empty()) {
    ParkedMessage& m = s.parked[list.pop_front<&ParkedMessage::in_line>(s.parked)];
    drop_receive(s, ch, m, m.number);
    free_record(s, ch, m);
  }
}

void count_copy(tp::OpenMessage& m, bool ok) {
  UB_DCHECK(m.copies != 0);
  --m.copies;
  m.copy_failed |= !ok;
}

}  // namespace

bool has_parked(const CoreState& s, const tp::Channel& ch, Tpmsn number) {
  return find(s, ch.ending, number) != 0 || find(s, ch.early, number) != 0;
}

tp::OpenMessage* message_ahead(CoreState& s, uint32_t channel, Tpmsn number) {
  tp::Channel& ch = s.channels[channel];
  if (is_parked(s, ch, number)) return nullptr;
  if (number == ch.message) return &ch.open;
  if (const uint32_t i = find(s, ch.ahead, number); i != 0) return &s.parked[i];
  if (!room_to_park(s, ch)) return nullptr;
  const uint32_t i = take_record(s, ch, number);
  ch.ahead.push_back<&ParkedMessage::in_line>(s.parked, i);
  return &s.parked[i];
}

bool follows_parked(const CoreState& s, const tp::Channel& ch, const wire::TaPacket& last) {
  const auto is_write = [](const wire::TaPacket& ta) { return ta.req.opcode == wire::TaOpcode::kWrite; };
  const auto end_of = [](const wire::TaPacket& ta) { return ta.ma.address + ta.payload_len; };
  if (!is_write(last)) return false;  // other ends of a WRITE wait for the answers to what is before them
  uint32_t i = ch.ending.empty() ? 0 : ch.ending.front<&ParkedMessage::in_line>(s.parked);
  for (; i != 0; i = ch.ending.behind<&ParkedMessage::in_line>(s.parked, i)) {
    const wire::TaPacket& before = s.parked[i].last;
    if (is_write(before) && before.req.rc_id == last.req.rc_id && before.req.tassn + 1 == last.req.tassn &&
        before.ma.length >= kMinSegmentBytes && end_of(before) == end_of(last) - last.ma.length) {
      return true;
    }
  }
  return false;
}

ParkedMessage& park_on(CoreState& s, uint32_t channel, IndexList& list) {
  tp::Channel& ch = s.channels[channel];
  UB_DCHECK(room_to_park(s, ch));
  const uint32_t i = take_record(s, ch, ch.message);
  ParkedMessage& m = s.parked[i];
  static_cast<tp::OpenMessage&>(m) = ch.open;
  m.start = ch.message_start;
  ch.open = {};
  list.push_back<&ParkedMessage::in_line>(s.parked, i);
  return m;
}

void unpark_first(CoreState& s, tp::Channel& ch) {
  free_record(s, ch, s.parked[ch.ending.pop_front<&ParkedMessage::in_line>(s.parked)]);
}

void reach_message(CoreState& s, uint32_t channel, Tpmsn number) {
  tp::Channel& ch = s.channels[channel];
  UB_DCHECK(ch.open.copies == 0 && ch.open.receive == 0);
  ch.message = number;
  IndexList later;
  while (!ch.ahead.empty()) {
    const uint32_t i = ch.ahead.pop_front<&ParkedMessage::in_line>(s.parked);
    ParkedMessage& m = s.parked[i];
    if (m.number.after(number)) {
      later.push_back<&ParkedMessage::in_line>(s.parked, i);
    } else if (m.number == number) {
      ch.open = m;
      free_record(s, ch, m);
    } else {
      vanish(s, ch, i);
    }
  }
  ch.ahead = later;
}

ParkedMessage* copy_done(CoreState& s, uint32_t channel, Tpmsn number, bool ok) {
  tp::Channel& ch = s.channels[channel];
  if (number == ch.message && ch.open.copies != 0) {
    count_copy(ch.open, ok);
    return nullptr;
  }
  if (const uint32_t i = find(s, ch.ending, number); i != 0) {
    count_copy(s.parked[i], ok);
    return &s.parked[i];
  }
  const uint32_t i = find(s, ch.ahead, number);
  UB_ASSERT(i != 0);  // a message has a record as long as copies of it are pending
  ParkedMessage& m = s.parked[i];
  count_copy(m, ok);
  if (m.copies != 0 || m.copy_failed) return nullptr;
  ch.ahead.remove<&ParkedMessage::in_line>(s.parked, i);  // the record has nothing more to count
  free_record(s, ch, m);
  return nullptr;
}

void drop_early(CoreState& s, uint32_t message) {
  ParkedMessage& m = s.parked[message];
  tp::Channel& ch = s.channels[m.channel];
  forget_early(s, m);
  ch.early.remove<&ParkedMessage::in_line>(s.parked, message);
  free_record(s, ch, m);
}

void drop_messages(CoreState& s, tp::Channel& ch) {
  while (!ch.early.empty()) drop_early(s, ch.early.front<&ParkedMessage::in_line>(s.parked));
  drop_receive(s, ch, ch.open, ch.message);
  ch.open = {};
  drop_list(s, ch, ch.ending);
  drop_list(s, ch, ch.ahead);
  UB_DCHECK(ch.parked == 0);
}

}  // namespace ub::ta
