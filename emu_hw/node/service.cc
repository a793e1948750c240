// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/node/service.h"

namespace ub::emu {
namespace {

constexpr uint32_t kDepthOfReceivers = 1;

}  // namespace

const std::vector<uint32_t>& Service::jettys(uint64_t count) {
  while (jettys_.size() < count) {
    rings_.push_back(std::make_unique<SendRing>(kDepthOfReceivers, jetty_work_bytes(kDepthOfReceivers)));
    jettys_.push_back(make_jetty(node_, *rings_.back(), receivers.jfc, receivers.jfr.id));
  }
  return jettys_;
}

size_t jetty_work_bytes(uint32_t depth) { return Core<CoreHost>::send_queue_work_bytes(depth); }

uint32_t make_jetty(Node& node, SendRing& ring, const CompletionQueue& jfc, uint32_t jfr) {
  JettyConfig config;
  config.kind = jfr == 0 ? ObjectKind::kJfs : ObjectKind::kJetty;
  config.sq = ring.config(jfc);
  config.jfr = jfr;
  UB_ASSERT(node.core.create_jetty(config, &ring.id) == Status::kOk);
  return ring.id;
}

}  // namespace ub::emu
