// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <cstdio>
#include "tests/sim/lossy_link.h"

#include <algorithm>

#include "tests/sim/equipment.h"
#include "tests/sim/world.h"

namespace ub::sim {
namespace {

constexpr Duration kStep = microseconds(1);
constexpr Duration kLongest = seconds(60);

// Two instances, one queue with all requests under way that it may have.
class Run {
 public:
  Run(const LinkSpec& link, const LoadSpec& load, uint64_t seed) : load_(load), world_(with_seed(options_of(link), seed)) {
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
    const uint64_t packets = sent(Counter::kTpTxData);
    fill();
    UB_ASSERT(world_.run_until([&] { return top_up(); }, kLongest));
    result.packets = sent(Counter::kTpTxData) - packets;
    result.sent_again_fast = sent(Counter::kTpTxRetransmitFast);
    result.sent_again_late = sent(Counter::kTpTxRetransmitTimeout);
    result.timeouts = sent(Counter::kTpTimeout);
    result.needless = sent(Counter::kTpTxNeedless);
    for (const Wr* w : requests_) result.latencies_ns.push_back(w->resolved_ns - w->posted_ns);
    result.bytes_per_second = rate();
    if (std::getenv("DBG")) {
      std::vector<std::pair<uint64_t,uint64_t>> gaps; std::vector<uint64_t> at;
      for (const Wr* w : requests_) at.push_back(w->resolved_ns);
      std::sort(at.begin(), at.end());
      for (size_t i = 1; i < at.size(); ++i) gaps.push_back({at[i]-at[i-1], at[i]});
      std::sort(gaps.rbegin(), gaps.rend());
      for (int i = 0; i < 8; ++i) printf("gap %lu ending at %lu\n", gaps[i].first, gaps[i].second);
      for (auto* n : {from_[0].node, to_.node}) { ChannelInfo c; for (uint32_t i = 0; i <= n->core().channel_table_size(); ++i) if (n->core().channel_info(i,&c)) printf("srtt %ld rto %ld lane\n", c.smoothed_rtt.ns, c.rto.ns); }
    }
    std::sort(result.latencies_ns.begin(), result.latencies_ns.end());
    UB_ASSERT(world_.run_until_quiet(kLongest));
    world_.model.final_check();
    UB_ASSERT(world_.model.failure().empty());
    return result;
  }

 private:
  static Options with_seed(Options o, uint64_t seed) {
    o.seed = seed;
    return o;
  }
  void request(uint32_t bytes) {
    RequestSpec s;
    s.op = load_.op;
    s.length = bytes;
    s.to = to_.receiver();
    s.remote = to_.target;
    const End& from = from_[requests_.size() % from_.size()];
    const Wr* w = post(world_, from.queue, s);
    UB_ASSERT(w != nullptr);
    requests_.push_back(w);
    from.node->ring(from.queue);
  }
  void fill() {
    while (requests_.size() < load_.requests && world_.model.outstanding() < load_.depth && room()) request(load_.bytes);
  }
  // The next queue has room for a request.
  bool room() { return world_.model.outstanding_of(from_[requests_.size() % from_.size()].queue) < load_.depth / load_.queues + 1; }
  bool top_up() {
    fill();
    return requests_.size() == load_.requests && world_.all_resolved();
  }
  // Between a tenth of the requests and nine tenths of them, by the time that they were answered.
  double rate() const {
    std::vector<uint64_t> at;
    for (const Wr* w : requests_) at.push_back(w->resolved_ns);
    std::sort(at.begin(), at.end());
    const size_t first = at.size() / 10, last = at.size() - at.size() / 10 - 1;
    return static_cast<double>(last - first) * load_.bytes / (static_cast<double>(at[last] - at[first]) / 1e9);
  }
  uint64_t sent(Counter c) const {
    return from_[0].node->counter(c) + (load_.op == WrOp::kRead ? to_.node->counter(c) : 0);
  }

  LoadSpec load_;
  World world_;
  std::vector<End> from_;  // each with a queue
  End to_;
  std::vector<const Wr*> requests_;
};

}  // namespace

Options options_of(const LinkSpec& link) {
  Options o;
  o.mtu = link.mtu;
  o.lossless = link.lossless;
  o.net.delay_ns = link.round_trip_ns / 2;
  o.net.ns_per_byte = 8 / link.gigabits_per_second;
  o.net.loss = link.loss;
  o.net.port_ns = 1000;
  o.host.tx_room_ns = 300;
  o.net.queue_frames = 1 << 20;
  if (link.reorder_packets != 0) {
    o.net.reorder = 0.5;
    o.net.reorder_ns = static_cast<uint64_t>(o.net.ns_per_byte * link.mtu * link.reorder_packets);
  }
  o.work.poll_ns = 1;
  o.work.poll_batch = 100'000;
  o.work.sges = 1;
  o.work.starve = 1;
  o.core.window_packets = 2048;
  o.core.kept_packets = 1024;
  o.core.kept_small_packets = 16384;
  if (!link.lossless) {
    o.work.dcqcn = true;
    o.work.line_rate = static_cast<uint64_t>(link.gigabits_per_second * 1e9 / 8);
  }
  return o;
}

LinkResult run_over(const LinkSpec& link, const LoadSpec& load, uint64_t seed) { return Run(link, load, seed).measure(); }

}  // namespace ub::sim
