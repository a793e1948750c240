// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/cc/swift.h"

#include <algorithm>

namespace ub::cc {
namespace {

constexpr int64_t kLongestDelay = INT32_MAX;

const SwiftConstants& constants_of(const Path& path) { return path.constants->swift; }

constexpr uint64_t part_of(uint64_t percent) { return percent * Swift::kPacket / 100; }

/// Rounded down.
constexpr uint64_t square_root(uint64_t n) {
  uint64_t root = 0;
  for (uint64_t bit = uint64_t{1} << 31; bit != 0; bit /= 2) {
    if ((root + bit) * (root + bit) <= n) root += bit;
  }
  return root;
}
/// The root of a window; unit: 1/2^12.
constexpr int64_t root_of(uint64_t window) { return static_cast<int64_t>(square_root(window << 8)); }

}  // namespace

/// The scaling is linear in 1/sqrt(window): all of it at the least scaled window, nothing at the most.
Duration Swift::target(const SwiftConstants& c) const {
  const uint64_t least = uint64_t{c.least_scaled_packets} * kPacket;
  const uint64_t most = uint64_t{c.most_scaled_packets} * kPacket;
  if (window <= least) return c.base_target + c.most_scaling;
  if (window >= most) return c.base_target;
  const int64_t root = root_of(window), low = root_of(least), high = root_of(most);
  const int64_t part = kPacket * low * (high - root) / (root * (high - low));
  return c.base_target + c.most_scaling * part / kPacket;
}

/// Where nothing was measured, or where a path is empty, the base target stands for the round trip.
Duration Swift::usual_round_trip(const SwiftConstants& c) const {
  return std::max(nanoseconds(delay_ns), c.base_target);
}

/// Takes this part of the window; unit: 1/kPacket.
void Swift::decrease(Instant now, uint64_t part) {
  const uint64_t rest = window - window * part / kPacket;
  const auto after = std::max(static_cast<uint32_t>(rest), kPacket);
  if (after >= window) return;
  window = after;
  decreased_at = now;
}

void Swift::judge(Verdict& v) const { v.window_packets = static_cast<uint16_t>(window / kPacket); }

void Swift::begin(Verdict& v, const Path& path, Psn) {
  *this = {};
  window = std::clamp<uint32_t>(constants_of(path).initial_packets, 1, path.most_packets) * kPacket;
  judge(v);
}

void Swift::round_trip(Verdict& v, const Path& path, Instant now, Duration sample) {
  const SwiftConstants& c = constants_of(path);
  const int64_t delay = std::clamp<int64_t>(sample.ns, 1, kLongestDelay);
  const int64_t excess = delay - target(c).ns;
  delay_ns = static_cast<uint32_t>(delay) & kLongestDelay;
  below_target = excess < 0;
  if (excess > 0 && now - decreased_at >= sample) {
    const auto part = part_of(c.decrease_percent) * static_cast<uint64_t>(excess) / static_cast<uint64_t>(delay);
    decrease(now, std::min(part, part_of(c.most_decrease_percent)));
  }
  judge(v);
}

void Swift::acknowledged(Verdict& v, const Path& path, Instant, uint32_t packets, Psn) {
  const bool used = 2 * (path.in_flight + packets) >= v.window_packets;
  if (!below_target || !used) return;
  const uint64_t more = packets * part_of(constants_of(path).increase_percent) * kPacket / window;
  window = static_cast<uint32_t>(std::min(window + more, uint64_t{path.most_packets} * kPacket));
  judge(v);
}

void Swift::lost(Verdict& v, const Path& path, Instant now, const Loss&) {
  const SwiftConstants& c = constants_of(path);
  if (now - decreased_at < usual_round_trip(c)) return;
  decrease(now, part_of(c.most_decrease_percent));
  judge(v);
}

void Swift::timed_out(Verdict& v, const Path&, Instant now, Psn) {
  window = kPacket;
  decreased_at = now;
  judge(v);
}

}  // namespace ub::cc
