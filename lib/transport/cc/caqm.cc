// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/cc/caqm.h"

#include <algorithm>

#include "lib/base/assert.h"
#include "lib/transport/wire/congestion_header.h"
#include "lib/transport/wire/network_header.h"

namespace ub::cc {
namespace {

const CaqmConstants& constants_of(const Path& path) { return path.constants->caqm; }

// So many bytes as a hint, which has 8 bits.
uint8_t hint_of(uint64_t bytes) {
  return static_cast<uint8_t>(std::min<uint64_t>(bytes / wire::kCaqmHintUnitBytes, UINT8_MAX));
}

}  // namespace

void Caqm::begin(Verdict& v, const Path& path, Psn next) {
  *this = {};
  sixteen_packets = 16u * path.packet_bytes;
  round_until = next;
  v.ecn = wire::kEcnEct1;
  hint = hint_of(path.packet_bytes);
  const uint32_t packets = std::min(constants_of(path).initial_packets, path.most_packets);
  set_window(v, path, packets * path.packet_bytes);
}

/// The packet that leaves has the code point and hint that were chosen after the one before.
void Caqm::sent(Verdict& v, const Path& path, Instant, uint32_t bytes) {
  UB_DCHECK(bytes != 0);
  sixteen_packets += bytes - mean_bytes();
  if (v.ecn == wire::kEcnEct1 && wish_round_trips == 0) wish_round_trips = 1;
  const uint32_t per_wish = bytes_per_wish(path);
  unasked_bytes = std::min(unasked_bytes, per_wish) + bytes;
  const bool uses_window = 2 * (path.in_flight + 1) >= v.window_packets;
  v.ecn = wire::kEcnEct0;
  hint = 0;
  if (uses_window) ask(v, path, per_wish);
  set_window(v, path, window_bytes);
}

/// The next packet asks for a packet if enough was sent since the last wish, or for the part of one that is due by now.
void Caqm::ask(Verdict& v, const Path& path, uint32_t per_wish) {
  uint64_t asked_for = per_wish;  // bytes that were sent
  if (path.has_hints) {
    hint = hint_of(uint64_t{unasked_bytes} * path.packet_bytes / per_wish);
    if (hint == 0) return;
    asked_for = uint64_t{hint} * wire::kCaqmHintUnitBytes * per_wish / path.packet_bytes;
  } else if (unasked_bytes < per_wish) {
    return;
  }
  unasked_bytes -= static_cast<uint32_t>(asked_for);
  v.ecn = wire::kEcnEct1;
}

void Caqm::acknowledged(Verdict&, const Path& path, Instant, uint32_t, Psn until) {
  if (until.after(round_until)) end_round_trip(path, until + path.in_flight);
}

void Caqm::fed_back(Verdict& v, const Path& path, Instant, const Feedback& feedback) {
  if (feedback.may_increase) {
    wish_round_trips = 0;
    const uint64_t larger = uint64_t{window_bytes} + feedback.granted_bytes;
    set_window(v, path, std::max(window_bytes, static_cast<uint32_t>(std::min<uint64_t>(larger, most_bytes(path)))));
  }
  if (feedback.marked_packets != 0) {
    disturb();
    shrink(v, path, uint32_t{feedback.marked_packets} * mean_bytes() * constants_of(path).decrease_percent / 100);
  }
}

void Caqm::lost(Verdict& v, const Path& path, Instant, const Loss& loss) {
  if (cut && loss.first.before(round_until)) return;  // it belongs to the same round trip
  begin_anew(loss.next);
  shrink(v, path, std::min(window_bytes, most_bytes(path)) / 2);
}

void Caqm::timed_out(Verdict& v, const Path& path, Instant, Psn next) {
  begin_anew(next);
  set_window(v, path, path.packet_bytes);
}

/// So many bytes are sent for each wish for one packet more.
uint32_t Caqm::bytes_per_wish(const Path& path) const {
  constexpr uint64_t kMost = UINT32_MAX / 2;  // so that a packet more is no overflow
  if (slow_start) return path.packet_bytes;
  return static_cast<uint32_t>(std::min(uint64_t{window_bytes} * 100 / constants_of(path).increase_percent, kMost));
}

/// A larger window would allow no packet more.
uint32_t Caqm::most_bytes(const Path& path) const { return path.most_packets * mean_bytes(); }

void Caqm::end_round_trip(const Path& path, Psn next) {
  const bool refused = wish_round_trips == 2;
  if (refused) disturb();
  if (wish_round_trips != 0) wish_round_trips = refused ? 0 : 2;
  const uint8_t enough = constants_of(path).calm_round_trips;
  calm_round_trips = disturbed ? 0 : static_cast<uint8_t>(std::min<int>(calm_round_trips + 1, enough));
  if (calm_round_trips == enough) slow_start = true;
  disturbed = cut = false;
  round_until = next;
}

/// There is congestion.
void Caqm::disturb() {
  disturbed = true;
  slow_start = false;
}

/// Packets were lost that left before `next`; what is lost of them later has been answered by this.
void Caqm::begin_anew(Psn next) {
  disturb();
  cut = true;
  round_until = next;
}

void Caqm::shrink(Verdict& v, const Path& path, uint32_t bytes) {
  const uint32_t before = std::min(window_bytes, most_bytes(path));
  set_window(v, path, before - std::min(before, bytes));
}

void Caqm::set_window(Verdict& v, const Path& path, uint32_t bytes) {
  window_bytes = std::max<uint32_t>(bytes, path.packet_bytes);
  v.window_packets = static_cast<uint16_t>(std::clamp<uint32_t>(window_bytes / mean_bytes(), 1, path.most_packets));
}

}  // namespace ub::cc
