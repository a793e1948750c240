// SPDX-License-Identifier: Apache-2.0
//
// DCQCN limits the rate of a sender on a network that marks packets instead of dropping them, and says when the sender
// of marked packets is told. It follows DCQCN (Zhu et al., SIGCOMM 2015) with the constants of that paper, unless it is
// given others (constants.h). The notifications are CNPs of the InfiniBand Architecture Specification, annex A17. It
// computes with integers only, so that a run can be repeated.
//
// A notification cuts the rate. The rate comes back with time and with the bytes that are sent: first five times half
// of the way to the rate before the cut, then in steps beyond that rate. At line rate nothing is counted any more.
#pragma once

#include "lib/transport/cc/member.h"

namespace ub::cc {

struct Dcqcn : Member {
  static constexpr bool kHearsPackets = true;
  static constexpr uint16_t kAlphaOne = 1 << 15;

  uint32_t rate_kbytes_per_second = 0;  ///< 0: there is no limit
  uint32_t target_kbytes_per_second = 0;
  uint32_t bytes_to_step : 24 = 0;
  uint32_t time_steps : 4 = 0;  ///< steps by time since the cut; 15: that many or more
  uint32_t byte_steps : 4 = 0;  ///< steps by bytes since the cut; 15: that many or more
  uint16_t alpha = 0;           ///< how congested the network is, as a part of kAlphaOne

  void begin(Verdict& v, const Path&, Psn);
  void sent(Verdict& v, const Path& path, Instant now, uint32_t bytes);
  void marked(Verdict& v, const Path& path, Instant now, const Mark&);
  void timer(Verdict& v, const Path& path, Instant now);

 private:
  void recover(Verdict& v, const Path& path);
  void aim_higher(const Path& path);
  void decay(const Path& path);
};

/// A marked packet arrived. True: its sender has to be told.
constexpr bool is_to_be_told(const DcqcnConstants& constants, Instant& next_notification, Instant now) {
  if (now < next_notification) return false;
  next_notification = now + constants.notification_pause;
  return true;
}

}  // namespace ub::cc
