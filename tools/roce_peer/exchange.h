// SPDX-License-Identifier: Apache-2.0
//
// What the tools of rdma-core and perftest tell each other over TCP before and after the data: the bytes of each item.
// Items have fixed lengths, so a reader never takes more than that. What is malformed is a ToolError that quotes it.
//
//   ibv_*_pingpong   one line of 52 bytes each way, then "done" from the client
//   perftest 6.06    version, sizes, MTU; then lines of 108 bytes, which also serve as barriers; see conversation.h
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "lib/transport/roce/wire/cm_message.h"

namespace ub::roce_peer {

using roce::Gid;

inline constexpr std::string_view kDone{"done", 5};  // with its NUL

// ---- ibv_{rc,uc,ud}_pingpong --------------------------------------------------------------------------------------
struct PingpongLine {
  static constexpr size_t kBytes = 52;

  uint16_t lid = 0;
  uint32_t qpn = 0;
  uint32_t psn = 0;  // of the first packet that the sender sends
  Gid gid;
};
std::string format(const PingpongLine&);
PingpongLine parse_pingpong_line(std::string_view bytes);

// ---- perftest ------------------------------------------------------------------------------------------------------
inline constexpr size_t kVersionBytes = 16;
inline constexpr std::string_view kVersion = "6.06";
std::string format_version();
// Throws for versions that expect another conversation.
void check_version(std::string_view bytes);

// The first items: numbers in network order.
std::string format_number(uint32_t);
uint32_t parse_number(std::string_view bytes);

// A path MTU as its code, 1 to 5 for 256 to 4096: a digit and NUL.
std::string format_mtu(uint8_t code);
uint8_t parse_mtu(std::string_view bytes);

struct PerftestLine {
  static constexpr size_t kBytes = 108;

  uint16_t lid = 0;
  uint16_t out_reads = 0;  // READs and atomics that the other side may have in flight
  uint32_t qpn = 0;
  uint32_t psn = 0;
  uint32_t rkey = 0;
  uint64_t address = 0;
  Gid gid;
  uint32_t srqn = 0;
};
std::string format(const PerftestLine&);
PerftestLine parse_perftest_line(std::string_view bytes);

}  // namespace ub::roce_peer
