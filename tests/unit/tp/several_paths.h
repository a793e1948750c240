// SPDX-License-Identifier: Apache-2.0
// several_paths.h - a sender whose channel has several paths. Messages of source n take path n, as long as it has room,
// unless the test says otherwise.
#pragma once

#include "lib/transport/tp/paths.h"
#include "tests/unit/tp/sender.h"

namespace ub::tp {

constexpr Duration kRoundTrip = nanoseconds(20'480);  // a multiple of what LeftAt tells apart

inline CoreConfig several_paths(Spread spread = Spread::kQueues) {
  CoreConfig c = small_tables();
  c.most_paths = 4;
  c.path_channels = 2;
  c.spread = spread;
  return c;
}

inline wire::Endpoint local_of(uint32_t path) {
  return {wire::IpAddress::from_v4(0x0A000001), static_cast<uint16_t>(wire::kUbUdpPort + path)};
}
inline wire::Endpoint peer_address() { return {wire::IpAddress::from_v4(0x0A000002), wire::kUbUdpPort}; }

// Round trips of `kRoundTrip` that hardly vary are known of every path.
struct SeveralPaths : Sender {
  explicit SeveralPaths(uint32_t paths = 2, cc::Algorithm algorithm = cc::Algorithm::kNone, uint32_t first_psn = 100,
                        const CoreConfig& config = several_paths())
      : Sender(first_psn, config) {
    ch().local_endpoint = local_of(0);
    ch().remote_endpoint = peer_address();
    ch().headers.init({}, {}, local_of(0), peer_address(), 0);
    ch().takes_paths = ch().asks_soon = true;
    govern(algorithm);
    if (paths != 0) begin(paths);
  }
  void begin(uint32_t paths) {
    ASSERT_TRUE(begin_paths(*s, channel, now));
    know(0);
    for (uint32_t i = 1; i < paths; ++i) {
      ASSERT_EQ(add_path(*s, channel, now, local_of(i), peer_address()), i);
      path_answers(*s, channel, static_cast<uint8_t>(i), now, kRoundTrip);
      know(static_cast<uint8_t>(i));
    }
  }
  void know(uint8_t path, Duration round_trip = kRoundTrip) {
    this->path(path).round_trip = {round_trip, round_trip / 8, round_trip, round_trip, now};
    this->path(path).news_at = now;
  }
  Path& path(uint8_t i) { return path_at(*s, ch(), i); }
  PathBlock& block() { return block_of(*s, ch()); }
  const Departure& departure(uint32_t psn) { return block().departures[recovery_index(Psn(psn))]; }
  /// That a packet in flight took last; kNoPath: it is not in flight.
  uint8_t path_of(uint32_t psn) { return departure(psn).path; }
  /// One message of so many packets, from this source.
  void send_on(uint32_t its_source, uint32_t packets = 1) {
    source = its_source;
    send(packets);
  }
  /// Packets may be in flight there.
  void limit(uint8_t path, uint16_t packets) {
    this->path(path).flow.window_packets = packets;
    look_at_paths(*s, channel, now);
  }
  std::vector<uint32_t> in_flight() {
    std::vector<uint32_t> all;
    for (const Path& p : paths_of(*s, ch())) all.push_back(p.in_flight);
    return all;
  }
  /// What a packet comes from when it comes over a path.
  void hear(uint8_t path) { heard_on_path(*s, ch(), local_of(path), peer_address()); }
};

}  // namespace ub::tp
