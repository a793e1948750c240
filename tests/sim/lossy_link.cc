// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/lossy_link.h"

#include <algorithm>

#include "tests/sim/equipment.h"
#include "tests/sim/world.h"

namespace ub::sim {
namespace {

constexpr Duration kLongest = seconds(60);

Options options_of(const LinkSpec& link, const LoadSpec& load, uint64_t seed) {
  Options o;
  o.seed = seed;
  o.core.bells_send = false;  // a driver of its own fills the link
  o.mtu = kLinkMtu;
  o.net.delay_ns = link.round_trip_ns / 2;
  o.net.ns_per_byte = 8 / link.gigabits_per_second;
  o.net.loss = link.loss;
  o.net.port_ns = link.port_ns;
  o.net.queue_frames = 1 << 20;
  o.net.reorder_packets = link.reorder_packets;
  const double packet_ns = o.net.ns_per_byte * std::min(load.bytes, kLinkMtu);
  o.net.reorder_wait_ns = static_cast<uint64_t>(packet_ns * link.reorder_packets);
  o.host.tx_room_ns = 300;
  o.work.poll_ns = 1;
  o.work.poll_batch = 100'000;
  o.work.sges = 1;
  o.work.starve = 1;
  if (!link.loss_window) o.work.control = cc::Control::kDcqcn;  // which hears of no congestion here, and heeds no loss
  o.work.line_rate = static_cast<uint64_t>(link.gigabits_per_second * 1e9 / 8);
  o.core.go_back_n = link.go_back_n ? 1 : 0;
  o.core.window_packets = kLinkWindow;
  o.core.kept_packets = 1024;
  o.core.kept_small_packets = 16384;
  return o;
}

QueueSpec queue_for(const LoadSpec& load) {
  QueueSpec queue = usual_queue();
  queue.depth = std::max(16u, load.depth);
  queue.slots = 4 * queue.depth;
  return queue;
}
uint64_t memory_for(const LoadSpec& load) { return std::max<uint64_t>(4 << 20, uint64_t{load.depth} * load.bytes * 3); }

void boot_two(World& world) {
  for (uint32_t i = 0; i < 2; ++i) {
    world.add_node({wire::IpAddress::from_v4(0x0a000001 + i), wire::kUbUdpPort}).boot();
  }
}

const Wr* request_of(World& world, const End& from, const End& to, WrOp op, uint32_t bytes) {
  RequestSpec s;
  s.op = op;
  s.length = bytes;
  s.packed = true;
  s.to = to.receiver();
  s.remote = to.target;
  const Wr* w = post(world, from.queue, s);
  UB_ASSERT(w != nullptr);
  from.node->ring(from.queue);
  return w;
}

// Two instances, and queues at one of them that have as many requests under way as they may.
class Run {
 public:
  Run(const LinkSpec& link, const LoadSpec& load, uint64_t seed) : load_(load), world_(options_of(link, load, seed)) {
    boot_two(world_);
    const QueueSpec queue = queue_for(load);
    const uint64_t memory = memory_for(load);
    for (uint32_t i = 0; i < load.queues; ++i) from_.push_back(equip(world_.node(0), queue, usual_jfr(), memory));
    to_ = equip(world_.node(1), queue, usual_jfr(), memory * load.queues);
  }

  LinkResult measure() {
    for (const End& from : from_) request(from, 8);  // makes its channel, whose set-up is not measured
    UB_ASSERT(world_.run_until_quiet(kLongest));
    requests_.clear();
    LinkResult result;
    const uint64_t packets = with_payload(Counter::kTpTxData), busy_ns = busy();
    UB_ASSERT(world_.run_until([&] { return top_up(); }, kLongest));
    result.packets = with_payload(Counter::kTpTxData) - packets;
    for (Counter c : {Counter::kTpTxRetransmitFast, Counter::kTpTxAgainProbe, Counter::kTpTxRetransmitTimeout}) {
      result.sent_again += of_both(c);
    }
    result.probes = of_both(Counter::kTpTxProbe);
    result.timeouts = of_both(Counter::kTpTimeout);
    result.needless = of_both(Counter::kTpTxNeedless);
    for (const Wr* w : requests_) result.latencies_ns.push_back(w->resolved_ns - w->posted_ns);
    std::sort(result.latencies_ns.begin(), result.latencies_ns.end());
    const double took_ns = static_cast<double>(all_posted_.at_ns - requests_.front()->posted_ns);
    result.bytes_per_second = static_cast<double>(all_posted_.answered) * load_.bytes / took_ns * 1e9;
    result.link_share = static_cast<double>(all_posted_.busy_ns - busy_ns) / took_ns;
    result.packet_ns = static_cast<double>(busy() - busy_ns) / static_cast<double>(result.packets);
    UB_ASSERT(world_.run_until_quiet(kLongest));
    world_.model.final_check();
    UB_ASSERT(world_.model.failure().empty());
    return result;
  }

 private:
  void request(const End& from, uint32_t bytes) {
    requests_.push_back(request_of(world_, from, to_, load_.op, bytes));
  }
  bool has_room(const End& from) {
    return requests_.size() < load_.requests &&
           world_.model.outstanding_of(from.queue) * load_.queues < load_.depth;
  }
  // Each queue has the same number of requests under way, whatever becomes of the others.
  bool top_up() {
    for (const End& from : from_) {
      while (has_room(from)) request(from, load_.bytes);
    }
    if (requests_.size() < load_.requests) return false;
    if (all_posted_.at_ns == 0) {
      all_posted_ = {world_.now().ns, requests_.size() - world_.model.outstanding(), busy()};
    }
    return world_.all_resolved();
  }
  // How long payload and what leaves beside it kept the link busy.
  uint64_t busy() const {
    const bool back = load_.op == WrOp::kRead;
    return world_.network.busy_ns(back, !back);
  }
  const Node& source() const { return *(load_.op == WrOp::kRead ? to_ : from_[0]).node; }
  uint64_t with_payload(Counter c) const { return source().counter(c); }
  // The packets that answer WRITEs, or ask for READs, may be lost, too.
  uint64_t of_both(Counter c) const { return from_[0].node->counter(c) + to_.node->counter(c); }

  // Goodput is measured until then, or the last requests would count for more than all others: they have nobody behind
  // them who tells that they are lost.
  struct AllPosted {
    uint64_t at_ns = 0;
    size_t answered = 0;
    uint64_t busy_ns = 0;
  };

  LoadSpec load_;
  World world_;
  AllPosted all_posted_;
  std::vector<End> from_;
  End to_;
  std::vector<const Wr*> requests_;
};

}  // namespace

LinkResult run_over(const LinkSpec& link, const LoadSpec& load, uint64_t seed) {
  return Run(link, load, seed).measure();
}

double share_of_first(const LinkSpec& link, const LoadSpec& first, const LoadSpec& second, uint64_t seed) {
  struct Rival {
    LoadSpec load;
    End from, to;
    uint64_t posted = 0;
  };
  World world(options_of(link, first, seed));
  boot_two(world);
  std::vector<Rival> rivals;
  for (const LoadSpec& load : {first, second}) {
    rivals.push_back({load, equip(world.node(0), queue_for(load), usual_jfr(), memory_for(load)),
                      equip(world.node(1), queue_for(load), usual_jfr(), memory_for(load))});
  }
  const auto under_way = [&](const Rival& r) { return world.model.outstanding_of(r.from.queue); };
  const auto top_up = [&] {
    for (Rival& r : rivals) {
      for (; under_way(r) < r.load.depth; ++r.posted) request_of(world, r.from, r.to, r.load.op, r.load.bytes);
    }
    return false;
  };
  (void)world.run_until(top_up, milliseconds(2));
  UB_ASSERT(!world.failed());
  const auto bytes = [&](const Rival& r) { return static_cast<double>((r.posted - under_way(r)) * r.load.bytes); };
  return bytes(rivals[0]) / (bytes(rivals[0]) + bytes(rivals[1]));
}

uint64_t LinkResult::latency_ns(double share) const {
  return latencies_ns[static_cast<size_t>(share * static_cast<double>(latencies_ns.size() - 1))];
}

}  // namespace ub::sim
