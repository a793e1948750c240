// SPDX-License-Identifier: Apache-2.0
//
// The numbers that the algorithms go by. Those of DCQCN are its paper's (dcqcn.h), the others our choice.
#pragma once

#include <cstdint>

#include "lib/base/time.h"

namespace ub::cc {

struct DcqcnConstants {
  uint8_t gain_shift = 8;  ///< g, the weight of the latest news in alpha, is 1/2^gain_shift; at most 15
  uint8_t fast_steps = 5;  ///< half of the way back each; at most 14
  uint32_t bytes_per_step = 10'000'000;  ///< less than 2^24
  Duration step = microseconds(55);
  uint32_t least_kbytes_per_second = 1'250;     ///< 10 Mbit/s
  uint32_t add_kbytes_per_second = 5'000;       ///< 40 Mbit/s
  uint32_t add_much_kbytes_per_second = 50'000;  ///< 400 Mbit/s
  /// The receiver's half: for so long after a notification, further marked packets of the flow cause none.
  Duration notification_pause = microseconds(50);
};

struct LossWindowConstants {
  uint16_t initial_packets = 32;
  uint16_t least_packets = 2;
};

struct Constants {
  DcqcnConstants dcqcn;
  LossWindowConstants loss_window;
};
inline constexpr Constants kUsualConstants;

}  // namespace ub::cc
