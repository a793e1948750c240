// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/ta/sequence_contexts.h"

#include <algorithm>

namespace ub::ta {

namespace {

// An SCID is a record and its generation, so that a peer cannot mean a former context of the record. An answer has 16
// bits for it (7.2.2).
constexpr uint32_t kIndexBits = 11;
static_assert(kSequenceContexts < 1u << kIndexBits);
constexpr uint32_t kGenerations = 1u << (16 - kIndexBits);

uint32_t scid_of(const CoreState& s, uint32_t context) {
  return uint32_t{s.contexts[context].generation} << kIndexBits | context;
}

uint32_t index_of(uint32_t scid) { return scid & ((1u << kIndexBits) - 1); }

uint32_t context_for(const CoreState& s, uint32_t peer, uint32_t rcid) {
  if (s.peers[peer].contexts == 0) return 0;
  for (uint32_t i = 1; i <= s.contexts.high_water(); ++i) {
    const SequenceContext& c = s.contexts[i];
    if (c.in_use && c.peer == peer && c.rcid == rcid) return i;
  }
  return 0;
}

}  // namespace

uint32_t open_context(CoreState& s, uint32_t peer, uint32_t rcid) {
  if (const uint32_t former = context_for(s, peer, rcid); former != 0) close_context(s, former);
  if (!has_share(s.contexts, s.peers[peer].contexts)) return 0;
  const uint32_t index = s.contexts.alloc();
  SequenceContext& c = s.contexts[index];
  const auto generation = static_cast<uint8_t>((c.generation + 1) % kGenerations);
  c = SequenceContext{};
  c.peer = peer;
  c.rcid = rcid;
  c.generation = generation;
  c.in_use = true;
  ++s.peers[peer].contexts;
  s.note(Stage::kContextOpened, index, rcid);
  return scid_of(s, index);
}

uint32_t context_of(const CoreState& s, uint32_t peer, uint32_t scid) {
  const uint32_t index = index_of(scid);
  if (index == 0 || index > s.contexts.high_water()) return 0;
  const SequenceContext& c = s.contexts[index];
  return c.in_use && c.peer == peer && scid_of(s, index) == scid ? index : 0;
}

void close_context(CoreState& s, uint32_t context) {
  SequenceContext& c = s.contexts[context];
  while (c.early_count != 0) drop_early(s, c.early[c.early_count - 1]);
  --s.peers[c.peer].contexts;
  c.in_use = false;
  s.contexts.free(context);
}

void close_contexts_of(CoreState& s, uint32_t peer) {
  for (uint32_t i = 1; s.peers[peer].contexts != 0; ++i) {
    if (s.contexts[i].in_use && s.contexts[i].peer == peer) close_context(s, i);
  }
}

Turn turn_of(const SequenceContext& context, const wire::Btah& request) {
  const Tassn first = context.executed.first();
  if (!wire::is_strong(request)) {
    // One without an order that was refused has been passed when it comes again.
    return context.executed.spans(request.tassn) || request.tassn.before(first) ? Turn::kNow : Turn::kNever;
  }
  if (request.tassn == first) return Turn::kNow;
  return context.executed.spans(request.tassn) ? Turn::kEarly : Turn::kNever;
}

bool room_for_early(const CoreState& s, const tp::Channel& ch, const SequenceContext& context) {
  return context.early_count < kEarlyOfContext && ch.early_count < kEarlyOfChannel && room_to_park(s, ch);
}

ParkedMessage& hold_early(CoreState& s, uint32_t channel) {
  tp::Channel& ch = s.channels[channel];
  ParkedMessage& m = park_on(s, channel, ch.early);
  m.channel = channel;
  ++ch.early_count;
  SequenceContext& c = s.contexts[index_of(m.context)];
  c.early[c.early_count++] = record_of(s, m);
  return m;
}

void forget_early(CoreState& s, const ParkedMessage& message) {
  SequenceContext& c = s.contexts[index_of(message.context)];
  uint32_t* const end = c.early + c.early_count;
  uint32_t* const at = std::find(c.early, end, record_of(s, message));
  UB_DCHECK(at != end);
  *at = end[-1];
  --c.early_count;
  --s.channels[message.channel].early_count;
}

uint32_t note_executed(CoreState& s, uint32_t context, Tassn tassn) {
  SequenceContext& c = s.contexts[context];
  c.executed.mark(tassn);
  for (uint32_t i = 0; i < c.early_count; ++i) {
    if (s.parked[c.early[i]].last.req.tassn == c.executed.first()) return c.early[i];
  }
  return 0;
}

void park_held(CoreState& s, uint32_t message) {
  ParkedMessage& m = s.parked[message];
  forget_early(s, m);
  tp::Channel& ch = s.channels[m.channel];
  ch.early.remove<&ParkedMessage::in_line>(s.parked, message);
  ch.ending.push_back<&ParkedMessage::in_line>(s.parked, message);
}

}  // namespace ub::ta
