// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/lossy_link.h"

#include <algorithm>

#include "tests/sim/equipment.h"
#include "tests/sim/world.h"

namespace ub::sim {
namespace {

constexpr Duration kLongest = seconds(60);

Options options_of(const LinkSpec& link, uint64_t seed) {
  Options o;
  o.seed = seed;
  o.mtu = kLinkMtu;
  o.net.delay_ns = link.round_trip_ns / 2;
  o.net.ns_per_byte = 8 / link.gigabits_per_second;
  o.net.loss = link.loss;
  o.net.port_ns = 1000;
  o.net.queue_frames = 1 << 20;
  o.net.late_packets = link.late_packets;
  o.net.late_packet_ns = static_cast<uint64_t>(o.net.ns_per_byte * kLinkMtu);
  o.host.tx_room_ns = 300;
  o.work.poll_ns = 1;
  o.work.poll_batch = 100'000;
  o.work.sges = 1;
  o.work.starve = 1;
  o.work.dcqcn = true;  // which hears of no congestion here, and heeds no loss
  o.work.line_rate = static_cast<uint64_t>(link.gigabits_per_second * 1e9 / 8);
  o.core.window_packets = kLinkWindow;
  o.core.kept_packets = 1024;
  o.core.kept_small_packets = 16384;
  return o;
}

// Two instances, and queues at one of them that have as many requests under way as they may.
class Run {
 public:
  Run(const LinkSpec& link, const LoadSpec& load, uint64_t seed) : load_(load), world_(options_of(link, seed)) {
    for (uint32_t i = 0; i < 2; ++i) {
      world_.add_node({wire::IpAddress::from_v4(0x0a000001 + i), wire::kUbUdpPort}).boot();
    }
    QueueSpec queue = usual_queue();
    queue.depth = std::max(16u, load.depth);
    queue.slots = 4 * queue.depth;
    const uint64_t memory = std::max<uint64_t>(4 << 20, uint64_t{load.depth} * load.bytes * 3);
    for (uint32_t i = 0; i < load.queues; ++i) from_.push_back(equip(world_.node(0), queue, usual_jfr(), memory));
    to_ = equip(world_.node(1), queue, usual_jfr(), memory * load.queues);
  }

  LinkResult measure() {
    request(8);  // makes the channel
    UB_ASSERT(world_.run_until_quiet(kLongest));
    requests_.clear();
    LinkResult result;
    const uint64_t packets = sent(Counter::kTpTxData), busy_ns = busy();
    UB_ASSERT(world_.run_until([&] { return top_up(); }, kLongest));
    result.packets = sent(Counter::kTpTxData) - packets;
    result.sent_again = sent(Counter::kTpTxRetransmitFast) + sent(Counter::kTpTxRetransmitTimeout);
    result.probes = sent(Counter::kTpTxProbe);
    result.timeouts = sent(Counter::kTpTimeout);
    result.needless = sent(Counter::kTpTxNeedless);
    for (const Wr* w : requests_) result.latencies_ns.push_back(w->resolved_ns - w->posted_ns);
    std::sort(result.latencies_ns.begin(), result.latencies_ns.end());
    result.bytes_per_second = static_cast<double>(requests_.size()) * load_.bytes / took_ns() * 1e9;
    result.link_share = static_cast<double>(busy() - busy_ns) / took_ns();
    result.packet_ns = static_cast<double>(busy() - busy_ns) / static_cast<double>(result.packets);
    UB_ASSERT(world_.run_until_quiet(kLongest));
    world_.model.final_check();
    UB_ASSERT(world_.model.failure().empty());
    return result;
  }

 private:
  const End& next() const { return from_[requests_.size() % from_.size()]; }
  void request(uint32_t bytes) {
    RequestSpec s;
    s.op = load_.op;
    s.length = bytes;
    s.packed = true;
    s.to = to_.receiver();
    s.remote = to_.target;
    const End& from = next();
    const Wr* w = post(world_, from.queue, s);
    UB_ASSERT(w != nullptr);
    requests_.push_back(w);
    from.node->ring(from.queue);
  }
  // The queues take turns, and each has the same number of requests under way.
  bool has_room() { return world_.model.outstanding_of(next().queue) * load_.queues < load_.depth; }
  bool top_up() {
    while (requests_.size() < load_.requests && has_room()) request(load_.bytes);
    return requests_.size() == load_.requests && world_.all_resolved();
  }
  // From the first request to the last answer.
  double took_ns() const {
    uint64_t first = UINT64_MAX, last = 0;
    for (const Wr* w : requests_) {
      first = std::min(first, w->posted_ns);
      last = std::max(last, w->resolved_ns);
    }
    return static_cast<double>(last - first);
  }
  // How long payload and what leaves beside it kept the link busy.
  uint64_t busy() const {
    const bool back = load_.op == WrOp::kRead;
    return world_.network.busy_ns(back, !back);
  }
  uint64_t sent(Counter c) const {
    return from_[0].node->counter(c) + (load_.op == WrOp::kRead ? to_.node->counter(c) : 0);
  }

  LoadSpec load_;
  World world_;
  std::vector<End> from_;
  End to_;
  std::vector<const Wr*> requests_;
};

}  // namespace

LinkResult run_over(const LinkSpec& link, const LoadSpec& load, uint64_t seed) {
  return Run(link, load, seed).measure();
}

uint64_t LinkResult::latency_ns(double share) const {
  return latencies_ns[static_cast<size_t>(share * static_cast<double>(latencies_ns.size() - 1))];
}

}  // namespace ub::sim
