// SPDX-License-Identifier: Apache-2.0
//
// A rate on a network that marks packets instead of dropping them, and when the sender of marked packets is told. After
// DCQCN (Zhu et al., SIGCOMM 2015) with its constants; the notifications are CNPs of the InfiniBand Architecture
// Specification, annex A17. Integers alone, so that a run can be repeated.
//
// A notification cuts the rate; it comes back by time and by bytes sent: at first half of the way to the rate before the
// cut, five times, then in steps beyond it. At line rate nothing is counted any more.
#pragma once

#include "lib/transport/cc/member.h"

namespace ub::cc {

struct Dcqcn : Member {
  static constexpr bool kHearsPackets = true;
  static constexpr uint16_t kAlphaOne = 1 << 15;
  static constexpr uint32_t kBytesPerStep = 10'000'000;
  static constexpr Duration kStep = microseconds(55);
  static constexpr uint32_t kLeastKbytesPerSecond = 1'250;     // 10 Mbit/s
  static constexpr uint32_t kAddKbytesPerSecond = 5'000;       // 40 Mbit/s
  static constexpr uint32_t kAddMuchKbytesPerSecond = 50'000;  // 400 Mbit/s

  uint32_t rate_kbytes_per_second = 0;  ///< 0: no limit
  uint32_t target_kbytes_per_second = 0;
  uint32_t bytes_to_step : 24 = 0;
  uint32_t time_steps : 4 = 0;  ///< since the cut; 15: or more
  uint32_t byte_steps : 4 = 0;  ///< since the cut; 15: or more
  uint16_t alpha = 0;           ///< how congested, of kAlphaOne

  void begin(Verdict& v, const Path&, Psn);
  void sent(Verdict& v, const Path& path, Instant now, uint32_t bytes);
  void marked(Verdict& v, const Path& path, Instant now, const Mark&);
  void timer(Verdict& v, const Path& path, Instant now);

 private:
  void recover(Verdict& v, const Path& path);
  void aim_higher(const Path& path);
  void decay();
};

/// The receiver's half: so long nothing is said of further marked packets of a flow.
inline constexpr Duration kNotificationPause = microseconds(50);
/// A marked packet came. True: its sender is to be told.
constexpr bool is_to_be_told(Instant& next_notification, Instant now) {
  if (now < next_notification) return false;
  next_notification = now + kNotificationPause;
  return true;
}

}  // namespace ub::cc
