// SPDX-License-Identifier: Apache-2.0
//
// The Core's congestion control at work: queue pairs of one host write to another one, and all their packets pass one
// transmitter, which marks them by what waits in front of it. What comes back meets no other packet.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "emu_hw/kernel/random_stream.h"
#include "emu_hw/models/model.h"
#include "emu_hw/node/roce_connections.h"
#include "emu_hw/parts/link.h"
#include "lib/impair/congestion_mark.h"
#include "lib/impair/queue_rules.h"

namespace ub::emu {
namespace {

constexpr uint64_t kMostSamples = 1'000'000;

class Bottleneck final : private LateTrains {
 public:
  explicit Bottleneck(const Parameters& p)
      : parameters_(p),
        here_(kernel_, p, kTwoNode, 1),
        there_(kernel_, p, kTwoNode, 2),
        requests_(here_.node),
        transmitter_(p.link_bw),
        marking_{p.switch_mark_above, p.switch_mark_all_from, p.switch_mark_most},
        random_(p.seed, "the bottleneck", "marks"),
        passed_(p.bottleneck_time.ps / p.bottleneck_sample.ps) {
    Node::join(here_.node, there_.node, link_config(p));
    flows_.emplace(here_, there_, requests_.jfc, p.remote_jetties);
    Node::settle({&here_.node, &there_.node});
    here_.node.give_late_trains_to(this);
    there_.node.give_late_trains_to(this);
  }
  ~Bottleneck() { kernel_.destroy_tasks(); }

  PointResult run() {
    PointResult result;
    try {
      spawn(kernel_, start());
      kernel_.run(Time{parameters_.bottleneck_time.ps - 1});
      measure(result);
    } catch (const std::exception& error) {
      result.invalid = error.what();
    }
    result.events = kernel_.events_run();
    return result;
  }

 private:
  // While all flows wait until the Core lets them send, only this goes on.
  Task start() {
    for (uint64_t flow = 0; flow < parameters_.remote_jetties; ++flow)
      for (uint64_t i = 0; i < parameters_.in_flight; ++i) post(flow);
    for (size_t i = 0; i < passed_.size(); ++i)
      co_await delay(kernel_, parameters_.bottleneck_sample, "the time of the flows");
  }

  void post(uint64_t flow) {
    const auto bytes = static_cast<uint32_t>(parameters_.payload);
    const Operation op(flow, 1, Verb::kWrite, bytes, kernel_.now());
    QueuePair<Node>& pair = flows_->here(flow);
    requests_.post(pair, op, roce_destination(there_));
    send(here_.node, here_.node.hand_over(pair.id));
  }

  void come(Node& from, Train train) override { send(from, std::move(train)); }

  void send(Node& from, Train train) {
    const bool goes_there = &from == &here_.node;
    for (Frame& frame : train) {
      const Span span = parameters_.link_delay + (goes_there ? pass(frame) : Span{});
      spawn(kernel_, carry(goes_there ? there_.node : here_.node, std::move(frame), span));
    }
  }

  // How long it takes until the frame has left the transmitter.
  Span pass(Frame& frame) {
    const Time now = kernel_.now();
    const uint64_t in_front = transmitter_.queued_bytes(now);
    const auto bytes = static_cast<uint32_t>(frame.bytes.size());
    if (now.ps / parameters_.bottleneck_sample.ps >= first_measured())
      most_queued_ = std::max(most_queued_, in_front + bytes);
    marked_ += random_.chance(impair::mark_chance(marking_, in_front)) && mark_congestion(frame.bytes);
    const Time leaves = transmitter_.send(now, bytes);
    ++frames_;
    if (const uint64_t sample = leaves.ps / parameters_.bottleneck_sample.ps; sample < passed_.size())
      passed_[sample] += bytes;
    return leaves - now;
  }

  Task carry(Node& to, Frame frame, Span span) {
    co_await delay(kernel_, span, "the bottleneck");
    Train alone;
    alone.push_back(std::move(frame));
    send(to, to.deliver(alone));
    while (const Cqe* completion = requests_.jfc.front()) {
      const uint64_t flow = completion->user_ctx;
      Operation op(flow, 1, Verb::kWrite, 0, kernel_.now());
      requests_.complete(op);
      post(flow);
    }
  }

  // Of the samples, the first one that counts.
  size_t first_measured() const {
    const double skipped = static_cast<double>(passed_.size()) * (1 - parameters_.measured_part / 100);
    return std::min(static_cast<size_t>(skipped), passed_.size() - 1);
  }

  void measure(PointResult& result) const {
    const double sample_ns = parameters_.bottleneck_sample.ns();
    const auto gigabits = [&](uint64_t bytes) { return static_cast<double>(bytes * 8) / sample_ns; };
    Curve curve{"what passes", "time, us", "rate, Gb/s", {}};
    for (size_t i = 0; i < passed_.size(); ++i)
      curve.points.emplace_back(static_cast<double>(i + 1) * sample_ns / 1000, gigabits(passed_[i]));
    double sum = 0;
    for (size_t i = first_measured(); i < passed_.size(); ++i) sum += gigabits(passed_[i]);
    const double rate = sum / static_cast<double>(passed_.size() - first_measured());
    result.values = {{"utilization_percent", rate / static_cast<double>(parameters_.link_bw) * 100},
                     {"queue_bytes", static_cast<double>(most_queued_)},
                     {"marked_percent", static_cast<double>(marked_) / static_cast<double>(frames_) * 100}};
    result.curves.push_back(std::move(curve));
  }

  const Parameters& parameters_;
  Kernel kernel_;
  EmulatedHost here_, there_;
  WorkRequests requests_;
  std::optional<RoceConnections> flows_;
  Transmitter transmitter_;
  const impair::Marking marking_;
  RandomStream random_;
  std::vector<uint64_t> passed_;  // bytes that left in each sample
  uint64_t most_queued_ = 0, marked_ = 0, frames_ = 0;
};

}  // namespace

PointResult run_bottleneck(const Point& point) {
  const Parameters& p = point.parameters;
  if (point.stack != "roce") throw BadPoint("there is no stack or profile " + point.stack + " of a bottleneck");
  if (p.remote_jetties * p.in_flight > WorkRequests::kDepth)
    throw BadPoint("remote_jetties * in_flight: give at most " + std::to_string(WorkRequests::kDepth));
  if (p.measured_part == 0) throw BadPoint("measured_part: give more than 0");
  if (p.bottleneck_sample.ps == 0 || p.bottleneck_sample > p.bottleneck_time)
    throw BadPoint("bottleneck_sample: give a time up to bottleneck_time, and not 0");
  if (p.bottleneck_time.ps / p.bottleneck_sample.ps > kMostSamples)
    throw BadPoint("bottleneck_sample: give at least bottleneck_time / " + std::to_string(kMostSamples));
  return Bottleneck(p).run();
}

}  // namespace ub::emu
