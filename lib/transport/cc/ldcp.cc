// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/cc/ldcp.h"

#include <algorithm>

#include "lib/transport/wire/network_header.h"

namespace ub::cc {
namespace {

const LdcpConstants& constants_of(const Path& path) { return path.constants->ldcp; }

}  // namespace

void Ldcp::begin(Verdict& v, const Path& path, Psn next) {
  *this = {};
  round_until = next;
  v.ecn = wire::kEcnEct0;
  set_window(v, path, uint64_t{constants_of(path).initial_packets} * kPacket);
}

void Ldcp::set_window(Verdict& v, const Path& path, uint64_t window) {
  window = std::clamp<uint64_t>(window, kPacket, uint64_t{path.most_packets} * kPacket);
  v.window_packets = static_cast<uint16_t>(window / kPacket);
  fraction = static_cast<uint32_t>(window % kPacket);
}

void Ldcp::begin_round(Psn next) {
  round_until = next;
  received_before = received_words;
  marked_before = marked_words;
  halved = false;
}

void Ldcp::halve(Verdict& v, const Path& path, Psn next) {
  set_window(v, path, window(v) / 2);
  begin_round(next);
  starting = false;
  halved = true;
}

/// A round trip has ended.
void Ldcp::learn(Verdict& v, const Path& path, bool used) {
  const uint32_t received = received_words - received_before;
  const uint32_t marked = std::min(marked_words - marked_before, received);  // a peer may say anything
  const uint64_t part = marked == 0 ? 0 : uint64_t{marked} * kAlphaOne / received;
  const auto more = static_cast<int32_t>(part) - static_cast<int32_t>(alpha);
  alpha = static_cast<uint16_t>(static_cast<int32_t>(alpha) + (more >> constants_of(path).gain_shift));
  if (halved) return;
  if (marked != 0) return set_window(v, path, window(v) - window(v) * alpha / (2 * kAlphaOne));
  if (used) set_window(v, path, window(v) + kPacket);
}

void Ldcp::acknowledged(Verdict& v, const Path& path, Instant, uint32_t packets, Psn until) {
  const Psn next = until + path.in_flight;
  const bool used = 2 * (path.in_flight + packets) >= v.window_packets;
  if (starting && !halved && marked_words != marked_before) return halve(v, path, next);
  if (starting && used) set_window(v, path, window(v) + uint64_t{packets} * kPacket);
  if (!until.after(round_until)) return;
  if (!starting) learn(v, path, used);
  begin_round(next);
}

void Ldcp::take_over(const Ldcp& before) {
  received_words = received_before = before.received_words;
  marked_words = marked_before = before.marked_words;
}

/// An acknowledgement that was overtaken tells less than is known.
void Ldcp::fed_back(Verdict&, const Path&, Instant, const Feedback& f) {
  if (static_cast<int32_t>(f.received_words - received_words) <= 0) return;
  received_words = f.received_words;
  marked_words = f.marked_words;
}

void Ldcp::lost(Verdict& v, const Path& path, Instant, const Loss& loss) {
  if (halved && loss.first.before(round_until)) return;  // it left before the window was halved
  halve(v, path, loss.next);
}

void Ldcp::timed_out(Verdict& v, const Path& path, Instant, Psn next) {
  halve(v, path, next);
  set_window(v, path, kPacket);
  starting = true;
}

}  // namespace ub::cc
