// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/cc/dcqcn.h"

#include <algorithm>

#include "lib/transport/cc/rate.h"
#include "lib/transport/wire/network_header.h"

namespace ub::cc {
namespace {

constexpr uint32_t kManySteps = 15;

const DcqcnConstants& constants_of(const Path& path) { return path.constants->dcqcn; }

}  // namespace

void Dcqcn::begin(Verdict& v, const Path&, Psn) {
  *this = {};
  v.ecn = wire::kEcnEct0;
}

void Dcqcn::decay(const Path& path) {
  alpha = static_cast<uint16_t>(alpha - (alpha >> constants_of(path).gain_shift));
}

/// Raises the target beyond the rate before the cut, but never beyond that of the line.
void Dcqcn::aim_higher(const Path& path) {
  const DcqcnConstants& c = constants_of(path);
  const uint32_t more = std::min(time_steps, byte_steps) > c.fast_steps   ? c.add_much_kbytes_per_second
                        : std::max(time_steps, byte_steps) > c.fast_steps ? c.add_kbytes_per_second
                                                                          : 0;
  target_kbytes_per_second += std::min(more, path.line_kbytes_per_second - target_kbytes_per_second);
}

/// Makes one step up, whether by time or by bytes.
void Dcqcn::recover(Verdict& v, const Path& path) {
  aim_higher(path);
  rate_kbytes_per_second += (target_kbytes_per_second - rate_kbytes_per_second + 1) / 2;
  if (rate_kbytes_per_second < path.line_kbytes_per_second) return;
  rate_kbytes_per_second = 0;
  v.next_packet = {};
  v.timer_at = Instant::never();
}

void Dcqcn::marked(Verdict& v, const Path& path, Instant now, const Mark&) {
  if (rate_kbytes_per_second == 0) {
    rate_kbytes_per_second = path.line_kbytes_per_second;
    alpha = kAlphaOne;
    v.next_packet = now;
  }
  const DcqcnConstants& c = constants_of(path);
  target_kbytes_per_second = rate_kbytes_per_second;
  const uint64_t cut = uint64_t{rate_kbytes_per_second} * alpha / (2 * kAlphaOne);
  const uint32_t least = std::min(c.least_kbytes_per_second, path.line_kbytes_per_second);
  rate_kbytes_per_second = std::max(least, rate_kbytes_per_second - static_cast<uint32_t>(cut));
  decay(path);
  alpha = static_cast<uint16_t>(std::min<uint32_t>(kAlphaOne, alpha + (kAlphaOne >> c.gain_shift)));
  time_steps = byte_steps = 0;
  bytes_to_step = c.bytes_per_step;
  v.timer_at = now + c.step;
}

void Dcqcn::timer(Verdict& v, const Path& path, Instant now) {
  if (now < v.timer_at) return;  // without a limit, timer_at is never
  decay(path);
  v.timer_at = now + constants_of(path).step;
  time_steps = std::min(time_steps + 1u, kManySteps);
  recover(v, path);
}

void Dcqcn::sent(Verdict& v, const Path& path, Instant now, uint32_t bytes) {
  if (rate_kbytes_per_second == 0) return;
  v.next_packet = after_bytes(v.next_packet, now, bytes, uint64_t{rate_kbytes_per_second} * 1000);
  if (bytes < bytes_to_step) {
    bytes_to_step -= bytes;
    return;
  }
  bytes_to_step = constants_of(path).bytes_per_step;
  byte_steps = std::min(byte_steps + 1u, kManySteps);
  recover(v, path);
}

}  // namespace ub::cc
