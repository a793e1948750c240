// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/path_scenarios.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "tests/bench/virtual_writer.h"

namespace ub::bench {
namespace {

constexpr uint32_t kBytes = 64 * 1024;
constexpr uint64_t kAll = 100'000'000'000;  // bits per second
constexpr Duration kCable = nanoseconds(2500);
constexpr Duration kSettle = milliseconds(3), kMeasured = milliseconds(5), kHealed = milliseconds(10);
constexpr Duration kAfterCut = milliseconds(1), kSample = microseconds(1);

/// Keeps kWriterDepth WRITEs under way.
class BusyWriter final : public Writer {
 public:
  BusyWriter(VirtualFabric& its_fabric, VirtualHost& host, const End& to) : Writer(its_fabric, host, to, kBytes) {
    fabric.call_at(fabric.now() + milliseconds(1), [this] {
      for (uint32_t i = 0; i < kWriterDepth; ++i) write(fabric.now());
    });
  }

 private:
  void done(Instant) override { write(fabric.now()); }
};

CoreConfig config_for(const Algorithm& algorithm, const PathSpec& spec) {
  CoreConfig c;
  c.congestion_control = algorithm.control;
  c.line_bytes_per_second = kAll / spec.paths / 8;
  c.compact = false;
  c.window_packets = spec.window;
  c.kept_packets = 8192;
  c.most_paths = spec.paths;
  c.path_channels = 16;
  c.spread = spec.spread;
  c.max_jfc = c.max_queues = c.max_segments = c.max_targets = 64;
  c.max_channels = 256;
  c.max_peers = c.max_links = 64;
  return c;
}

class Paths {
 public:
  Paths(const Algorithm& algorithm, const PathSpec& spec)
      : fabric_(spec.seed),
        queue_(queue_for(algorithm, spec)),
        from_(add_host(algorithm, spec)),
        to_(add_host(algorithm, spec)),
        end_(to_, kBytes) {
    for (uint32_t i = 1; i < spec.paths; ++i)
      from_.core.add_path({to_.address(0).ip, from_.address(i), to_.address(i).ip});
    writer_ = std::make_unique<BusyWriter>(fabric_, from_, end_);
    fabric_.run_until(fabric_.now() + kSettle);
  }

  PathResult run() {
    PathResult r;
    r.whole = goodput(kMeasured);
    if (queue_specs() > 1) degrade_and_cut(r);
    r.again = writer_->channel()->retransmits;
    r.deaths = writer_->count(Counter::kTpPathDead);
    r.lives = writer_->count(Counter::kTpPathLive);
    return r;
  }

  std::vector<PathPoint> curve() {
    const uint64_t rate = queue_.bits_per_second;
    QueueSpec& second = fabric_.queue_spec(to_, 1);
    std::vector<PathPoint> points;
    draw(points, milliseconds(2));
    second.bits_per_second = rate / 10;
    draw(points, milliseconds(5));
    second.bits_per_second = rate;
    draw(points, milliseconds(8));
    cut(true);
    draw(points, milliseconds(11));
    cut(false);
    draw(points, milliseconds(16));
    return points;
  }

 private:
  void draw(std::vector<PathPoint>& points, Duration until) {
    constexpr Duration kStep = microseconds(500);
    for (Duration at = kStep * static_cast<int64_t>(points.size()); at < until;) {
      at = at + kStep;
      points.push_back({at, goodput(kStep)});
    }
  }

  /// The marks of an algorithm are those of a queue of 100 Gb/s; a slower one marks as much earlier.
  static QueueSpec queue_for(const Algorithm& algorithm, const PathSpec& spec) {
    QueueSpec q;
    q.bits_per_second = kAll / spec.paths;
    q.cable = kCable;
    q.jitter = spec.jitter;
    q.limit_bytes = kQueueLimit;
    q.marks = algorithm.marks;
    q.marks.none_below /= std::min<uint64_t>(spec.paths, 4);
    q.marks.all_from /= std::min<uint64_t>(spec.paths, 4);
    q.speaks_caqm = algorithm.caqm_hop;
    return q;
  }

  VirtualHost& add_host(const Algorithm& algorithm, const PathSpec& spec) {
    return fabric_.add_host(config_for(algorithm, spec), {kAll, kCable}, std::vector<QueueSpec>(spec.paths, queue_));
  }
  uint32_t queue_specs() const { return from_.core.config().most_paths; }

  double goodput(Duration time) {
    const uint64_t before = writer_->bytes_done();
    fabric_.run_until(fabric_.now() + time);
    return static_cast<double>(writer_->bytes_done() - before) * 8e9 / static_cast<double>(time.ns);
  }

  void degrade_and_cut(PathResult& r) {
    fabric_.queue_spec(to_, 1).bits_per_second = queue_.bits_per_second / 10;
    fabric_.run_until(fabric_.now() + kSettle);
    r.degraded = goodput(kMeasured);
    fabric_.queue_spec(to_, 1).bits_per_second = queue_.bits_per_second;
    fabric_.run_until(fabric_.now() + kHealed);
    r.degraded_healed = goodput(kMeasured);
    r.round_trip = writer_->channel()->round_trip.smoothed;
    cut(true);
    r.stall = longest_stall();
    r.cut = goodput(kMeasured);
    cut(false);
    fabric_.run_until(fabric_.now() + kHealed * 10);
    r.cut_healed = goodput(kMeasured);
  }

  void cut(bool down) {
    fabric_.queue_spec(to_, 1).down = fabric_.queue_spec(from_, 1).down = down;
  }

  Duration longest_stall() {
    Duration longest{};
    Instant last = fabric_.now();
    uint64_t done = writer_->bytes_done();
    for (const Instant end = fabric_.now() + kAfterCut; fabric_.now() < end;) {
      fabric_.run_until(fabric_.now() + kSample);
      if (writer_->bytes_done() == done) continue;
      done = writer_->bytes_done();
      longest = std::max(longest, fabric_.now() - last);
      last = fabric_.now();
    }
    return std::max(longest, fabric_.now() - last);
  }

  VirtualFabric fabric_;
  QueueSpec queue_;
  VirtualHost& from_;
  VirtualHost& to_;
  End end_;
  std::unique_ptr<BusyWriter> writer_;
};

}  // namespace

PathResult run_paths(const Algorithm& algorithm, const PathSpec& spec) { return Paths(algorithm, spec).run(); }
std::vector<PathPoint> path_curve(const Algorithm& algorithm, const PathSpec& spec) {
  return Paths(algorithm, spec).curve();
}

}  // namespace ub::bench
