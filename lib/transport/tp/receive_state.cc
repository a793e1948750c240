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

void free_kept(State& s, Channel& ch, Psn psn, uint32_t kept) {
  s.kept_by_psn.remove(number_of(s, ch), psn);
  s.kept.free(kept, ch.kept);
}

void free_block(State& s, Channel& ch) {
  s.reorder.free(ch.reorder);
  ch.reorder = 0;
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

void accept_ahead(State& s, Channel& ch, Psn psn) {
  uint64_t* bits = s.received_bits(reorder_block(s, ch));
  UB_DCHECK(psn.distance(ch.delivered) < s.config.window_packets);
  UB_DCHECK(!test_bit(bits, slot_of(s, psn)));  // an accepted packet is never accepted again
  set_bit(bits, slot_of(s, psn));
  if (psn.after(ch.highest_seen)) ch.highest_seen = psn;
}

void accept_what_follows(State& s, Channel& ch) {
  uint64_t* bits = s.received_bits(ch.reorder);
  while (test_bit(bits, slot_of(s, ch.expected))) {
    clear_bit(bits, slot_of(s, ch.expected));
    ++ch.expected;
  }
  if (ch.highest_seen.before(ch.expected)) free_block(s, ch);
}

uint32_t keep_packet(State& s, Channel& ch, const wire::RtpHeader& rtp, std::span<const std::byte> rest) {
  const uint32_t index = s.kept.keep(rtp, rest, ch.kept);
  if (index != 0) s.note(Stage::kPacketKept, number_of(s, ch), rtp.psn.value());
  return index;
}

bool keep_until_delivery(State& s, Channel& ch, const wire::RtpHeader& rtp, std::span<const std::byte> rest) {
  const uint32_t index = keep_packet(s, ch, rtp, rest);
  if (index != 0) s.kept_by_psn.insert(number_of(s, ch), rtp.psn, index);
  return index != 0;
}

void delivered_kept(State& s, Channel& ch, uint32_t kept) {
  free_kept(s, ch, ch.delivered, kept);
  delivered_one(ch);
}

void release_reorder(State& s, Channel& ch) {
  if (ch.kept == KeptCount{} && ch.reorder == 0) return;  // highest_seen of a channel of CTP does not move
  for (Psn psn = ch.delivered; !psn.after(ch.highest_seen); ++psn) {
    const uint32_t kept = s.kept_by_psn.find(number_of(s, ch), psn);
    if (kept != 0) free_kept(s, ch, psn, kept);
  }
  if (ch.reorder != 0) free_block(s, ch);
}

}  // namespace ub::tp
