// SPDX-License-Identifier: Apache-2.0
//
// One side of a test: a queue pair of roce_peer's endpoint, room for what goes out and for what comes in. The loops are
// those of urma_perf, so that their numbers can be compared: everything completes, nothing is inline.
//
// Thread: one.
#pragma once

#include "tools/common/peer.h"
#include "tools/perf/idle.h"
#include "tools/roce_peer/endpoint.h"
#include "tools/roce_perf/options.h"

namespace ub::roce_perf {

using tools::Json;

class Test {
 public:
  explicit Test(const Options&);

  Json introduction() const;
  void connect(const Json& peer_introduction);

  // What we measured, as urma_perf reports it.
  Json measure(tools::Peer& peer);
  // Until the peer has something to say.
  void answer(tools::Peer& peer);
  // Throws if what came is not what the peer sent.
  void check_data();
  std::string counters() { return endpoint_.counters(); }

 private:
  void post();
  uint32_t reap();
  uint32_t receive();
  bool wait_for_message(tools::Idle& idle);
  void wait_for_sends(tools::Idle& idle, uint32_t left);
  void one_round(tools::Idle& idle);
  void flood(tools::Idle& idle, uint32_t messages);
  Json measure_latency(tools::Idle& idle);
  Json measure_rate(tools::Idle& idle);
  std::byte& last_byte(roce_peer::Buffer& buffer) { return buffer.bytes[o_.size - 1]; }

  const Options& o_;
  roce_peer::Endpoint endpoint_;
  roce_peer::Buffer out_, in_;  // of READ, too: `out_` is what the peer reads, into its `in_`
  uint64_t remote_address_ = 0;
  uint32_t rkey_ = 0;
  uint32_t in_flight_ = 0;
  uint32_t sent_ = 0;
  uint64_t received_ = 0;  // messages, of SEND
  uint64_t awaited_ = 0;   // the message that is
};

}  // namespace ub::roce_perf
