// SPDX-License-Identifier: Apache-2.0
//
// What is said when: the items of exchange.h over a TCP connection of the kernel. Whoever connected writes first, and
// each item goes once each way. Every wait is limited.
//
// Thread: one.
#pragma once

#include <functional>
#include <string>

#include "tools/common/tcp_socket.h"
#include "tools/roce_peer/exchange.h"
#include "tools/roce_peer/options.h"

namespace ub::roce_peer {

class Conversation {
 public:
  // Connects or waits to be connected to. `idle` is called again and again while we wait for the other tool.
  Conversation(const Options& options, std::function<void()> idle);

  // The lines of a pingpong. `connect` gets the peer's: a client that hears ours, or "done", may send at once.
  void meet_pingpong(const PingpongLine& ours, const std::function<void(const PingpongLine&)>& connect);

  // ---- perftest ----
  // Our line for theirs.
  PerftestLine swap(const PerftestLine& ours);
  // Version, sizes and MTU of perftest; returns the lower MTU.
  uint8_t start_perftest(uint8_t mtu);
  // What bandwidth tests report. Theirs is whatever was in memory: not looked at.
  void swap_report(uint32_t size, uint32_t iterations);
  void finish_perftest();

  // The other tool has ended, or `limit_s` is over.
  void wait_for_end(double limit_s);
  bool something_came() const { return socket_.state() != tools::TcpSocket::State::kQuiet; }

 private:
  std::string swap_bytes(const std::string& ours, size_t theirs);
  std::string receive(size_t bytes);

  std::function<void()> idle_;
  bool serves_;
  double time_limit_s_;
  tools::TcpSocket socket_;
};

}  // namespace ub::roce_peer
