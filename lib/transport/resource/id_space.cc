// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/resource/id_space.h"

#include "lib/transport/core_state.h"

namespace ub {

namespace {

uint32_t now_ms(const CoreState& s) { return static_cast<uint32_t>(s.now.ns / 1'000'000); }

// Does an id still rest? `freed_ms`: 1 + the time in ms when it was given back; 0: never.
bool rests(const CoreState& s, uint32_t freed_ms) {
  return freed_ms != 0 && now_ms(s) - (freed_ms - 1) < static_cast<uint32_t>(s.config.id_rest.ms());
}

bool id_free(const CoreState& s, uint32_t id) {
  return s.ids[id].kind == ObjectKind::kNone && !rests(s, s.ids[id].freed_ms);
}

// The next id from `turn` on for which `fits` holds; 0: there is none.
template <class Fits>
uint32_t take_turn(const IdBlocks& blocks, uint32_t& turn, Fits fits) {
  for (uint32_t tries = blocks.ids(); tries != 0; --tries) {
    const uint32_t id = blocks.next(turn);
    turn = id + 1;
    if (fits(id)) return id;
  }
  return 0;
}

// The next id that is not used and has rested. If there is none, and there are enough() blocks, the next id that is not
// used: that is the one given out longest ago, and so mostly the one that has rested longest.
template <class IsUsed, class Rests>
uint32_t take_free(const IdBlocks& blocks, uint32_t& turn, IsUsed is_used, Rests is_resting) {
  const uint32_t id = take_turn(blocks, turn, [&](uint32_t n) { return !is_used(n) && !is_resting(n); });
  if (id != 0 || !blocks.enough()) return id;
  return take_turn(blocks, turn, [&](uint32_t n) { return !is_used(n); });
}

}  // namespace

void add_id_block(CoreState& s, uint32_t block) {
  if (s.id_blocks.ids() == 0) {
    s.next_id = block * wire::kIdsOfBlock + s.prng.next_u32() % wire::kIdsOfBlock;
    s.next_token_id = block * wire::kIdsOfBlock + s.prng.next_u32() % wire::kIdsOfBlock;
  }
  s.id_blocks.add(block);
}

uint32_t allocate_id(CoreState& s, uint32_t wanted) {
  if (wanted >= kFirstRequestableId && wanted < kIdSpace && id_free(s, wanted)) return wanted;
  return take_free(
      s.id_blocks, s.next_id, [&](uint32_t id) { return s.ids[id].kind != ObjectKind::kNone; },
      [&](uint32_t id) { return rests(s, s.ids[id].freed_ms); });
}

void release_id(CoreState& s, uint32_t id) {
  UB_DCHECK(s.ids[id].kind != ObjectKind::kNone);
  s.ids[id] = IdSlot{0, now_ms(s) + 1, ObjectKind::kNone};
}

uint32_t allocate_private_id(CoreState& s, uint32_t from) {
  for (uint32_t tries = kIdSpace - kFirstDynamicId, id = from; tries != 0; --tries, ++id) {
    if (id < kFirstDynamicId || id >= kIdSpace) id = kFirstDynamicId;
    if (id_free(s, id)) return id;
  }
  return 0;
}

uint32_t allocate_token_id(CoreState& s) {
  const uint32_t id = take_free(
      s.id_blocks, s.next_token_id, [&](uint32_t token_id) { return s.token_ids[token_id].in_use; },
      [&](uint32_t token_id) { return rests(s, s.token_ids[token_id].freed_ms); });
  if (id != 0) s.token_ids[id] = TokenId{0, 0, true};
  return id;
}

void release_token_id(CoreState& s, uint32_t token_id) {
  UB_DCHECK(s.token_ids[token_id].in_use && s.token_ids[token_id].segments == 0);
  s.token_ids[token_id] = TokenId{0, now_ms(s) + 1, false};
}

}  // namespace ub
