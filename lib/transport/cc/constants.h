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

/// What may control the congestion of a channel. All but kSwift need a peer that has the same.
enum class Control : uint8_t { kNone, kCaqm, kLdcp, kDcqcn, kSwift };

/// C-AQM's sender (caqm.h). The numbers are those of the public ns-3 model of UB.
struct CaqmConstants {
  uint16_t initial_packets = 10;
  uint8_t increase_percent = 50;  ///< alpha: it asks for this part of a packet in each round trip
  uint8_t decrease_percent = 50;  ///< beta: each mark takes this part of a packet
  uint8_t calm_round_trips = 10;  ///< theta: after so many without a mark or a refusal it asks for as much as it sends
};

/// LDCP (ldcp.h). The specification has no formula; ours is that of DCTCP (RFC 8257).
struct LdcpConstants {
  uint16_t initial_packets = 10;
  uint8_t gain_shift = 4;  ///< g, the weight of the latest round trip in alpha, is 1/2^gain_shift
};

/// Swift (swift.h): Kumar et al., SIGCOMM 2020.
struct SwiftConstants {
  uint16_t initial_packets = 10;
  Duration base_target = microseconds(25);  ///< of the round trip of a flow with a large window
  Duration most_scaling = microseconds(25);  ///< how much longer the target of a flow with the smallest window is
  uint16_t least_scaled_packets = 1, most_scaled_packets = 100;  ///< the windows between which it is scaled
  uint8_t increase_percent = 100;      ///< of a packet, in each round trip
  uint8_t decrease_percent = 80;       ///< beta: of the excess over the target
  uint8_t most_decrease_percent = 50;  ///< of the window, in one round trip
};

struct LossWindowConstants {
  uint16_t initial_packets = 32;
  uint16_t least_packets = 2;
};

struct Constants {
  DcqcnConstants dcqcn;
  CaqmConstants caqm;
  LdcpConstants ldcp;
  SwiftConstants swift;
  LossWindowConstants loss_window;
};
inline constexpr Constants kUsualConstants;

}  // namespace ub::cc
