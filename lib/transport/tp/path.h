// SPDX-License-Identifier: Apache-2.0
//
// One of several paths of a channel (UB Base Specification Rev 2.0, 6.5; docs/paths-design.md), and the block that a
// channel with several has. A path is a pair of addresses. It has congestion control, losses and round trips of its
// own.
#pragma once

#include <cstdint>

#include "lib/base/serial.h"
#include "lib/base/time.h"
#include "lib/transport/cc/flow.h"
#include "lib/transport/cc/heard.h"
#include "lib/transport/tp/channel.h"
#include "lib/transport/tp/reorder_tolerance.h"
#include "lib/transport/tp/retransmission_timeout.h"
#include "lib/transport/wire/network_header.h"

namespace ub::tp {

// When a packet left, in units that let 32 bits last for minutes.
struct LeftAt {
  static constexpr int kShift = 6;  // 64 ns

  uint32_t ticks;

  static constexpr LeftAt of(Instant now) { return {static_cast<uint32_t>(now.ns >> kShift)}; }
  // How long before `later` that was.
  constexpr Duration before(LeftAt later) const {
    return {static_cast<int64_t>(static_cast<int32_t>(later.ticks - ticks)) * (1 << kShift)};
  }
};

struct Path {
  wire::Endpoint local, remote;
  wire::NetTemplate headers;

  // ---- sending; packets are numbered on each path, from 1 ----
  cc::Flow flow;  // knows the packets by these numbers
  bool live;      // packets may take it; else it is asked by PING (setup/path_life.h)
  bool known;     // the peer has asked about it
  uint8_t asked;  // PINGs since it was live
  ReorderTolerance tolerance;
  uint32_t newest;     // number of the packet that left last
  uint32_t reach;      // highest number of those that arrived
  LeftAt reach_left;   // when that one left
  uint32_t in_flight;  // packets whose last departure took it, and that are neither known to have arrived nor lost
  uint32_t arrived;    // so many were reported by the acknowledgement that is being read
  uint32_t room;       // most packets in flight: the window of the flow, or less on a slow path (path_choice.h)
  uint32_t gap_ns;     // between arrivals while packets wait on the path; 0: none seem to wait
  RoundTrip round_trip;
  Instant news_at;   // when something was last reported to have arrived
  Instant ask_at;    // if it is not live: when the next PING leaves
  Instant asked_at;  // when the last one left
  Psn question;      // which that was: its PONG says the same

  // ---- receiving ----
  cc::Heard heard;   // what acknowledgements that leave on this path report, if the channel feeds back
  bool has_news;     // packets came over it since the last one that did
  Instant next_cnp;  // DCQCN: no CNP is sent before on it

  // ---- statistics ----
  uint64_t tx_packets, rx_packets, lost, marks;
  uint32_t deaths;  // how often it ceased to be live
};

// The last departure of a packet in flight.
struct Departure {
  uint8_t path;      // kNoPath: the packet is not in flight
  bool lost : 1;     // it is taken for lost, and no longer counted in Path::in_flight
  bool again : 1;    // it had left before
  uint16_t number;   // low bits of its number on that path
  LeftAt left;
};
constexpr uint8_t kNoPath = UINT8_MAX;

struct PathBlock {
  uint8_t count;       // of paths; the first one is that of the set-up
  uint8_t current;     // the path of the newest message, or of all packets of Go-Back-N
  uint8_t heard_from;  // the path over which the last packet came
  uint8_t cnp_path;    // where Channel::owed_cnp belongs
  uint8_t ack_path;    // that the last acknowledgement took
  uint64_t touched;    // bit by path: the acknowledgement that is being read moved its `reach`
  LeftAt latest_left;  // of all packets that are known to have arrived, when the one left that left last
  Departure departures[kMaxWindow];  // by PSN modulo kMaxWindow
};

}  // namespace ub::tp
