// SPDX-License-Identifier: Apache-2.0
//
// Connected pairs of RoCE queue pairs between two hosts. Those of a host share its receives.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "emu_hw/node/emulated_host.h"
#include "emu_hw/node/queue_pair.h"
#include "emu_hw/node/work_requests.h"

namespace ub::emu {

// All memory of a host, for a RoCE request.
inline WorkRequests::Destination roce_destination(const EmulatedHost& there) {
  const Region& memory = there.service.memory;
  return {0, roce::make_rkey(memory.registered.token_id, 0), memory};
}

class RoceConnections {
 public:
  // So many, which complete into `jfc` here. The hosts are joined.
  RoceConnections(EmulatedHost& here, EmulatedHost& there, CompletionQueue& jfc, uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) {
      here_.push_back(make(here, jfc, here.service.receivers));
      there_.push_back(make(there, there.service.receivers.jfc, there.service.receivers));
      connect(*here_.back(), *there_.back());
      connect(*there_.back(), *here_.back());
    }
  }

  QueuePair<Node>& here(uint64_t number) { return *here_[number]; }

 private:
  static constexpr uint32_t kReads = 16;
  static constexpr uint8_t kMtu4096 = 5;

  static std::unique_ptr<QueuePair<Node>> make(EmulatedHost& host, CompletionQueue& jfc, const Receivers& receivers) {
    auto pair = std::make_unique<QueuePair<Node>>(host.node, jfc, receivers.jfr, WorkRequests::kDepth);
    pair->timeout = static_cast<uint8_t>(host.site.parameters.roce_timeout);
    return pair;
  }
  static void connect(QueuePair<Node>& from, const QueuePair<Node>& to) {
    from.connect(from.node.now(), from.node.link_to(to.node), to.node, to.id, kReads, kMtu4096);
  }

  std::vector<std::unique_ptr<QueuePair<Node>>> here_, there_;
};

}  // namespace ub::emu
