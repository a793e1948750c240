// SPDX-License-Identifier: Apache-2.0
//
// Applications of the hosts of a VirtualFabric that write to each other's memory.
#pragma once

#include <cstdint>
#include <utility>

#include "lib/base/assert.h"
#include "tests/bench/virtual_fabric.h"

namespace ub::bench {

inline constexpr uint32_t kWriterDepth = 32;  ///< WRITEs under way

/// What an application has on its host.
struct End {
  End(VirtualHost& its_host, size_t bytes)
      : host(its_host),
        sent(host, 2 * kWriterDepth),
        received(host, 2 * kWriterDepth),
        jfr(host, received, 2 * kWriterDepth),
        sends(kWriterDepth, Core<FabricPort>::send_queue_work_bytes(kWriterDepth)),
        region(host, bytes) {
    JettyConfig c;
    c.sq = sends.config(sent);
    c.jfr = jfr.id;
    UB_ASSERT(host.core.create_jetty(c, &sends.id) == Status::kOk);
  }

  VirtualHost& host;
  emu::CompletionQueue sent, received;
  emu::ReceiveQueue jfr;
  emu::SendRing sends;
  emu::Region region;
};

/// Writes to the memory of another host. Whoever derives from it says when, and keeps to kWriterDepth. A
/// host may have several, which end together.
class Writer {
 public:
  /// `bytes`: of each WRITE. `path`: the addresses of both hosts that it takes.
  Writer(VirtualFabric& its_fabric, VirtualHost& host, const End& to, uint32_t bytes, uint32_t path = 0)
      : fabric(its_fabric), end(host, bytes), to_(to), bytes_(bytes) {
    TargetConfig t;
    t.instance = to.host.core.config().self;
    t.id = to.sends.id;
    t.path = host.path_to(to.host, path);
    UB_ASSERT(host.core.add_target(fabric.now(), t, &target_) == Status::kOk);
    host.on_turn = [this, others = std::move(host.on_turn)] {
      others();
      take_completions();
    };
  }
  virtual ~Writer() {
    end.host.on_turn = [] {};
  }

  uint64_t count(Counter c) const { return end.host.core.counters()[c]; }
  uint64_t bytes_done() const { return bytes_done_; }
  /// The channel of long messages, which its first one makes.
  const tp::Channel* channel() const {
    const Core<FabricPort>& core = end.host.core;
    ChannelInfo info;
    for (uint32_t i = 1; i <= core.channel_table_size(); ++i) {
      if (core.channel_info(i, &info) && info.bulk) return &core.state().channels[i];
    }
    return nullptr;
  }

 protected:
  /// A WRITE was answered that was given that time.
  virtual void done(Instant since) = 0;

  void write(Instant since) {
    Wqe e{};
    e.op = WrOp::kWrite;
    e.flags = kWrSignaled;
    e.user_ctx = since.ns;
    e.target = target_;
    e.length = bytes_;
    e.sge = end.region.sge(0, bytes_);
    e.remote_address = to_.region.address();
    e.token_id = to_.region.registered.token_id;
    end.sends.post(e);
    end.host.posted(end.sends.id);
  }

  VirtualFabric& fabric;
  End end;

 private:
  void take_completions() {
    while (const Cqe* cqe = end.sent.front()) {
      UB_ASSERT(cqe->status == CrStatus::kSuccess);
      const Instant since{cqe->user_ctx};
      bytes_done_ += cqe->length;
      end.sent.pop();
      done(since);
    }
  }

  const End& to_;
  uint32_t bytes_, target_ = 0;
  uint64_t bytes_done_ = 0;
};

}  // namespace ub::bench
