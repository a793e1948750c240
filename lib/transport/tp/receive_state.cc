// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/tp/receive_state.h"

#include <cstring>

namespace ub::tp {

namespace {

uint32_t reorder_block(State& s, Channel& ch) {
  if (ch.reorder == 0) {
    ch.reorder = s.reorder.alloc();  // never 0: the pool has a block for each channel
    std::memset(s.received_bits(ch.reorder), 0, s.config.window_packets / 8);
  }
  return ch.reorder;
}

}  // namespace

RxVerdict classify(State& s, const Channel& ch, Psn psn) {
  uint32_t ahead = psn.distance(ch.expected);
  if (ahead == 0) {
    // Packets that were accepted and not delivered take room in the window, too.
    return psn.distance(ch.delivered) < s.config.window_packets ? RxVerdict::kInOrder : RxVerdict::kBeyondWindow;
  }
  if (ahead >= Psn::kHalf) return RxVerdict::kDuplicate;
  if (psn.distance(ch.delivered) >= s.config.window_packets) return RxVerdict::kBeyondWindow;
  if (ch.reorder != 0 && test_bit(s.received_bits(ch.reorder), slot_of(s, psn))) return RxVerdict::kDuplicate;
  return RxVerdict::kAhead;
}

void accept_ahead(State& s, Channel& ch, Psn psn, uint32_t waiting) {
  uint32_t block = reorder_block(s, ch);
  UB_DCHECK(psn.distance(ch.delivered) < s.config.window_packets);
  UB_DCHECK(!test_bit(s.received_bits(block), slot_of(s, psn)));  // an accepted packet is never accepted again
  set_bit(s.received_bits(block), slot_of(s, psn));
  s.kept_of(block)[slot_of(s, psn)] = waiting;
  if (psn.after(ch.highest_seen)) ch.highest_seen = psn;
}

void accept_what_follows(State& s, Channel& ch) {
  const uint64_t* bits = s.received_bits(ch.reorder);
  while (ch.expected.distance(ch.delivered) < s.config.window_packets && test_bit(bits, slot_of(s, ch.expected))) {
    ++ch.expected;
  }
}

uint32_t keep_packet(State& s, Channel& ch, const wire::RtpHeader& rtp, std::span<const std::byte> rest) {
  if (rest.size() > s.config.max_frame_bytes || !has_share(s.kept, ch.kept)) return 0;
  uint32_t index = s.kept.alloc();
  ++ch.kept;
  s.note(Stage::kPacketKept, number_of(s, ch), rtp.psn.value());
  s.kept[index] = {rtp, static_cast<uint32_t>(rest.size())};
  if (!rest.empty()) std::memcpy(s.kept_data(index), rest.data(), rest.size());
  return index;
}

void release_kept(State& s, Channel& ch, uint32_t index) {
  UB_DCHECK(ch.kept != 0);
  s.kept.free(index);
  --ch.kept;
}

bool accepted_at_cursor(State& s, const Channel& ch, uint32_t* waiting) {
  if (ch.delivered == ch.expected || ch.reorder == 0) return false;
  *waiting = s.kept_of(ch.reorder)[slot_of(s, ch.delivered)];
  return true;
}

void delivered_before_gap(State& s, Channel& ch) {
  uint32_t slot = slot_of(s, ch.delivered);
  uint64_t* bits = s.received_bits(ch.reorder);
  if (test_bit(bits, slot)) {
    clear_bit(bits, slot);
    uint32_t waiting = s.kept_of(ch.reorder)[slot];
    if (!is_placed(waiting)) release_kept(s, ch, waiting);
  }
  ++ch.delivered;
  // Nothing is kept any more: the block goes back to the pool.
  if (ch.delivered == ch.expected && !ch.highest_seen.after(ch.expected - 1)) {
    s.reorder.free(ch.reorder);
    ch.reorder = 0;
  }
}

void release_reorder(State& s, Channel& ch) {
  if (ch.reorder == 0) return;
  const uint64_t* bits = s.received_bits(ch.reorder);
  for (uint32_t slot = 0; slot < s.config.window_packets; ++slot) {
    uint32_t waiting = s.kept_of(ch.reorder)[slot];
    if (test_bit(bits, slot) && !is_placed(waiting)) release_kept(s, ch, waiting);
  }
  s.reorder.free(ch.reorder);
  ch.reorder = 0;
}

}  // namespace ub::tp
