// SPDX-License-Identifier: Apache-2.0
//
// The same floors over drivers of DPDK, without hugepages: two processes, each with the driver of one end.
#pragma once

#include <string>

#include "tests/bench/floor/floor.h"

namespace ub::floor {

// Of each end: driver and arguments, as DPDK writes them.
struct Devices {
  std::string near, peer;
};

constexpr size_t kSmallFrame = 64;       // bytes of a frame, Ethernet header included
constexpr size_t kPacketFrame = 4144;    // 4 KiB and what SoftUB puts before it
constexpr size_t kVethFrame = 1088;      // 1 KiB and the same, where an MTU of 1500 is the most
constexpr size_t kMaxFrame = 8192 - 64;  // in a buffer of 8 KiB

// Ping-pong and echo with a window, for 64 bytes and, if it is another one, Options::size_bytes. Loses nothing.
void run_dpdk_echo(const Options& options, const Devices& devices, Report& report);
// Frames of Options::size_bytes as fast as they go, from the peer to us.
void run_dpdk_one_way(const Options& options, const Devices& devices, Report& report);

}  // namespace ub::floor
