// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "emu_hw/kernel/random_stream.h"
#include "emu_hw/models/many_hosts.h"

namespace ub::emu {
namespace {

// Reads of other hosts, all with the same chance. Which ones follows from the seed, so it is known who talks to whom.
class UniformReads final : public Workload {
 public:
  UniformReads(const Parameters& p, uint32_t node, bool loads)
      : verb_(loads ? Verb::kLoad : Verb::kRead), bytes_(static_cast<uint32_t>(p.payload)) {
    RandomStream random(p.seed, "node " + std::to_string(node), "destinations");
    for (uint64_t i = 0; i < p.operations; ++i) {
      const auto drawn = static_cast<uint32_t>(1 + random.below(p.nodes - 1));
      destinations_.push_back(drawn < node ? drawn : drawn + 1);
    }
    peers_ = destinations_;
    std::sort(peers_.begin(), peers_.end());
    peers_.erase(std::unique(peers_.begin(), peers_.end()), peers_.end());
  }

  // Those that it reads, each of them once.
  const std::vector<uint32_t>& peers() const { return peers_; }

  Step next(uint64_t number) override {
    const auto place = std::lower_bound(peers_.begin(), peers_.end(), destinations_[number]);
    Step step{verb_, bytes_, number * bytes_};
    step.peer = static_cast<uint32_t>(place - peers_.begin());
    return step;
  }

 private:
  const Verb verb_;
  const uint32_t bytes_;
  std::vector<uint32_t> destinations_, peers_;
};

}  // namespace

PointResult run_cluster(const Point& point) {
  if (point.workload != "uniform_read") throw BadPoint("workload: a cluster has \"uniform_read\" alone");
  Parameters p = point.parameters;
  p.active_connections = p.nodes;
  ManyHosts cluster(p, kCluster, static_cast<uint32_t>(p.nodes));
  for (uint32_t node = 1; node <= p.nodes; ++node) {
    auto reads = std::make_unique<UniformReads>(p, node, has_loads(point.stack));
    const std::vector<uint32_t> peers = reads->peers();
    cluster.add_program(node, cluster.add_stack(node, point.stack, peers), std::move(reads));
  }
  return cluster.run();
}

}  // namespace ub::emu
