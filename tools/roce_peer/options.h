// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace ub::roce_peer {

enum class Test : uint8_t {
  kRcPingpong,
  kUcPingpong,
  kUdPingpong,
  kSendLat,
  kSendBw,
  kWriteLat,
  kWriteBw,
  kReadLat,
  kReadBw,
  kAtomicLat,
  kAtomicBw,
  kRping,
};

struct Options {
  Test test = Test::kRcPingpong;
  std::string host;  // empty: we serve
  uint16_t port = 0;
  uint32_t size = 0;
  uint32_t iterations = 0;
  uint32_t mtu = 0;  // bytes; 0: the port's
  uint32_t gid_index = 0;
  uint8_t timeout = 14;
  bool unreliable = false;  // perftest over UC
  bool echo = false;
  double time_limit_s = 60;
  double linger_s = 0.5;
  uint32_t tx_depth = 128, rx_depth = 512;

  bool serves() const { return host.empty(); }
  bool is_perftest() const { return test >= Test::kSendLat && test <= Test::kAtomicBw; }
  bool is_bandwidth() const {
    return test == Test::kSendBw || test == Test::kWriteBw || test == Test::kReadBw || test == Test::kAtomicBw;
  }
};

// Ends the program after --help, and with status 2 after a mistake.
Options parse_options(int argc, char** argv);

}  // namespace ub::roce_peer
