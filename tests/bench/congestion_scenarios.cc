// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/congestion_scenarios.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <memory>
#include <numeric>

#include "lib/base/assert.h"
#include "lib/transport/cc/rate.h"
#include "tests/bench/virtual_writer.h"

namespace ub::bench {
namespace {

constexpr uint32_t kLongBytes = 64 * 1024, kShortBytes = 16 * 1024, kSmallBytes = 1024;
constexpr uint32_t kUnderWay = 8;  // WRITEs of a long sender
constexpr Duration kSetUp = milliseconds(1);
constexpr Duration kStartWithin = microseconds(100);  // the senders do not all begin at the same time
constexpr Duration kSample = microseconds(1);
constexpr uint32_t kSamplesPerPoint = 20;

CoreConfig config_for(const Algorithm& algorithm, uint64_t bits_per_second) {
  CoreConfig c;
  c.congestion_control = algorithm.control;
  c.line_bytes_per_second = bits_per_second / 8;
  c.rtp_over_cna = algorithm.cci;
  c.compact = false;  // requests of one packet take the same way as all others
  c.bulk_dscp = kBulkDscp;
  c.kept_packets = 8192;
  c.max_jfc = c.max_queues = c.max_segments = c.max_targets = 64;
  c.max_channels = 256;
  c.max_peers = c.max_links = 64;
  return c;
}

/// Of which there are four on the way there and back.
Duration cable() {
  const Duration sending = cc::time_of(kLongestFrame, kHostRate / 8) + cc::time_of(kLongestFrame, kBottleneckRate / 8);
  return (kRoundTrip - sending) / 4;
}

QueueSpec queue_for(const Algorithm& algorithm, uint64_t bits_per_second) {
  QueueSpec q;
  q.bits_per_second = bits_per_second;
  q.cable = cable();
  q.limit_bytes = kQueueLimit;
  q.marks = algorithm.marks;
  q.speaks_caqm = algorithm.caqm_hop;
  return q;
}

VirtualHost& add_host(VirtualFabric& fabric, const Algorithm& algorithm, uint64_t bits_per_second) {
  return fabric.add_host(config_for(algorithm, bits_per_second), {bits_per_second, cable()},
                         {queue_for(algorithm, bits_per_second)});
}

class LongWriter final : public Writer {
 public:
  LongWriter(VirtualFabric& its_fabric, VirtualHost& host, const End& to) : Writer(its_fabric, host, to, kLongBytes) {
    const Duration wait = nanoseconds(static_cast<int64_t>(fabric.random().below(kStartWithin.ns)));
    fabric.call_at(fabric.now() + kSetUp + wait, [this] {
      for (uint32_t i = 0; i < kUnderWay; ++i) write(fabric.now());
    });
  }

 private:
  void done(Instant) override { write(fabric.now()); }
};

class ShortWriter final : public Writer {
 public:
  ShortWriter(VirtualFabric& its_fabric, VirtualHost& host, const End& to, uint32_t bytes = kShortBytes,
              uint32_t most_under_way = 1)
      : Writer(its_fabric, host, to, bytes), most_under_way_(most_under_way) {
    come();  // the first one makes the channel
  }

  void come() {
    waiting_.push_back(fabric.now());
    write_waiting();
  }
  const std::vector<double>& took() const { return took_; }  // ns

 private:
  void write_waiting() {
    for (; !waiting_.empty() && under_way_ != most_under_way_; ++under_way_) {
      write(waiting_.front());
      waiting_.pop_front();
    }
  }
  void done(Instant since) override {
    took_.push_back(static_cast<double>((fabric.now() - since).ns));
    --under_way_;
    write_waiting();
  }

  const uint32_t most_under_way_;
  uint32_t under_way_ = 0;
  std::deque<Instant> waiting_;
  std::vector<double> took_;
};

/// A receiver, and writers on other hosts.
class Star {
 public:
  Star(const Algorithm& algorithm, uint64_t seed)
      : fabric(seed),
        algorithm_(algorithm),
        receiver_(bench::add_host(fabric, algorithm, kBottleneckRate), kLongBytes) {}

  template <class Kind>
  Kind& add() {
    auto writer = std::make_unique<Kind>(fabric, bench::add_host(fabric, algorithm_, kHostRate), receiver_);
    Kind& added = *writer;
    writers_.push_back(std::move(writer));
    return added;
  }
  const std::vector<std::unique_ptr<Writer>>& writers() const { return writers_; }
  const QueueCounts& counts() { return fabric.queue_counts(receiver_.host); }
  uint64_t queued_bytes() { return fabric.queued_bytes(receiver_.host); }

  /// From now on traffic() tells what has happened since.
  void begin_to_measure() {
    began_ = fabric.now();
    counts_before_ = counts();
    bytes_before_ = bytes_done();
    for (size_t i = 0; i < std::size(kCounted); ++i) before_[i] = sum(kCounted[i]);
  }
  Traffic traffic() {
    const double seconds = static_cast<double>((fabric.now() - began_).ns) * 1e-9;
    const auto payload = static_cast<double>(counts().payload_bytes - counts_before_.payload_bytes);
    const auto since = [&](size_t i) { return sum(kCounted[i]) - before_[i]; };
    return {.utilisation = payload * 8 / seconds / static_cast<double>(kBottleneckRate),
            .goodput = static_cast<double>(bytes_done() - bytes_before_) * 8 / seconds,
            .drops = counts().dropped - counts_before_.dropped,
            .marks = counts().marked - counts_before_.marked,
            .again = since(0) + since(1) + since(2),
            .needless = since(3),
            .timeouts = since(4)};
  }

  VirtualFabric fabric;

 private:
  static constexpr Counter kCounted[] = {Counter::kTpTxRetransmitFast, Counter::kTpTxAgainProbe,
                                         Counter::kTpTxRetransmitTimeout, Counter::kTpTxNeedless, Counter::kTpTimeout};

  uint64_t sum(Counter c) const {
    uint64_t all = 0;
    for (const auto& writer : writers_) all += writer->count(c);
    return all;
  }
  uint64_t bytes_done() const {
    uint64_t all = 0;
    for (const auto& writer : writers_) all += writer->bytes_done();
    return all;
  }

  const Algorithm& algorithm_;
  End receiver_;
  std::vector<std::unique_ptr<Writer>> writers_;
  Instant began_;
  QueueCounts counts_before_;
  uint64_t bytes_before_ = 0;
  uint64_t before_[std::size(kCounted)] = {};
};

double quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1))];
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// Draws the curve of an incast.
class Recorder {
 public:
  Recorder(Star& star, std::vector<IncastPoint>* curve) : star_(star), curve_(curve), began_(star.fabric.now()) {}

  void point() {
    if (curve_ == nullptr) return;
    const Duration since = star_.fabric.now() - last_;
    last_ = star_.fabric.now();
    const double n = static_cast<double>(star_.writers().size());
    IncastPoint p;
    p.us = static_cast<double>((last_ - began_).ns) / 1000;
    for (const auto& writer : star_.writers()) {
      const tp::Channel* ch = writer->channel();
      if (ch == nullptr) continue;
      p.window += std::min<uint32_t>(ch->agreed_window, ch->flow.window_packets) / n;
      p.in_flight += ch->outstanding() / n;
      p.rate_limit += rate_of(*ch) / n;
    }
    p.passed = rate(passed_, star_.counts().payload_bytes, since);
    p.first_sender = rate(sent_, star_.writers()[0]->count(Counter::kTxBytes), since);
    p.queue = static_cast<double>(star_.queued_bytes());
    curve_->push_back(p);
  }

 private:
  static double rate_of(const tp::Channel& ch) {
    const bool limited = ch.flow.algorithm == cc::Algorithm::kDcqcn && ch.flow.dcqcn.rate_kbytes_per_second != 0;
    return limited ? 8e3 * ch.flow.dcqcn.rate_kbytes_per_second : static_cast<double>(kHostRate);
  }
  static double rate(uint64_t& before, uint64_t now, Duration since) {
    return static_cast<double>(now - std::exchange(before, now)) * 8e9 / static_cast<double>(since.ns);
  }

  Star& star_;
  std::vector<IncastPoint>* curve_;
  Instant began_, last_ = began_ - kSample * kSamplesPerPoint;
  uint64_t passed_ = 0, sent_ = 0;
};

class Incast {
 public:
  Incast(const Algorithm& algorithm, const IncastSpec& spec, std::vector<IncastPoint>* curve)
      : star_(algorithm, spec.seed), time_(spec.time) {
    for (uint32_t i = 0; i < spec.senders; ++i) star_.add<LongWriter>();
    star_.fabric.run_until(star_.fabric.now() + kSetUp);
    recorder_ = std::make_unique<Recorder>(star_, curve);
  }

  IncastResult run() {
    pass(time_ / 2);
    queue_.clear();
    IncastResult r;
    r.early_drops = star_.counts().dropped;
    star_.begin_to_measure();
    std::vector<uint64_t> before;
    for (const auto& writer : star_.writers()) before.push_back(writer->bytes_done());
    pass(time_ / 2);
    static_cast<Traffic&>(r) = star_.traffic();
    r.mean_queue = mean(queue_);
    r.p99_queue = quantile(queue_, 0.99);
    for (size_t i = 0; i < before.size(); ++i)
      r.shares.push_back(static_cast<double>(star_.writers()[i]->bytes_done() - before[i]));
    judge_shares(r);
    return r;
  }

 private:
  void pass(Duration time) {
    for (const Instant end = star_.fabric.now() + time; star_.fabric.now() < end;) {
      if (queue_.size() % kSamplesPerPoint == 0) recorder_->point();
      star_.fabric.run_until(star_.fabric.now() + kSample);
      queue_.push_back(static_cast<double>(star_.queued_bytes()));
    }
  }

  static void judge_shares(IncastResult& r) {
    const double average = mean(r.shares);
    double squares = 0;
    for (double& share : r.shares) {
      share /= average;
      squares += share * share;
    }
    r.fairness = static_cast<double>(r.shares.size()) / squares;
  }

  Star star_;
  Duration time_;
  std::vector<double> queue_;  // samples
  std::unique_ptr<Recorder> recorder_;
};

/// Between events that come at random times.
Duration random_gap(Prng& random, double mean_ns) {
  const double uniform = static_cast<double>((random.next_u64() >> 11) + 1) * 0x1.0p-53;  // never 0
  return nanoseconds(static_cast<int64_t>(-std::log(uniform) * mean_ns));
}

class ShortAmongLong {
 public:
  ShortAmongLong(const Algorithm& algorithm, const ShortSpec& spec) : star_(algorithm, spec.seed), spec_(spec) {
    for (uint32_t i = 0; i < spec.long_senders; ++i) longs_.push_back(&star_.add<LongWriter>());
    for (uint32_t i = 0; i < kShortHosts; ++i) shorts_.push_back(&star_.add<ShortWriter>());
    star_.fabric.run_until(star_.fabric.now() + kSetUp);
  }

  ShortResult run() {
    star_.fabric.run_until(star_.fabric.now() + kBefore);
    const Instant last = plan();
    star_.begin_to_measure();
    const uint64_t before = long_bytes();
    const Instant began = star_.fabric.now();
    star_.fabric.run_until(last);
    ShortResult r;
    static_cast<Traffic&>(r) = star_.traffic();
    r.long_goodput = static_cast<double>(long_bytes() - before) * 8e9 / static_cast<double>((last - began).ns);
    while (took().size() < spec_.short_writes) {
      star_.fabric.run_until(star_.fabric.now() + kBefore);
      UB_ASSERT(star_.fabric.now() - last < seconds(10));
    }
    r.p50 = quantile(took(), 0.5);
    r.p99 = quantile(took(), 0.99);
    return r;
  }

 private:
  static constexpr uint32_t kShortHosts = 16;
  static constexpr Duration kBefore = milliseconds(5);

  /// Returns when the last one comes.
  Instant plan() {
    const double mean_ns = kShortBytes * 8e9 / (spec_.load * static_cast<double>(kBottleneckRate));
    Prng random(spec_.seed);
    Instant at = star_.fabric.now();
    for (uint32_t i = 0; i < spec_.short_writes; ++i) {
      at += random_gap(random, mean_ns);
      ShortWriter* writer = shorts_[random.below(shorts_.size())];
      star_.fabric.call_at(at, [writer] { writer->come(); });
    }
    return at;
  }
  uint64_t long_bytes() const {
    uint64_t all = 0;
    for (const LongWriter* writer : longs_) all += writer->bytes_done();
    return all;
  }
  std::vector<double> took() const {
    std::vector<double> all;
    for (const ShortWriter* writer : shorts_) all.insert(all.end(), writer->took().begin() + 1, writer->took().end());
    return all;
  }

  Star star_;
  ShortSpec spec_;
  std::vector<LongWriter*> longs_;
  std::vector<ShortWriter*> shorts_;
};

class SmallBesideBulk {
 public:
  SmallBesideBulk(const Algorithm& algorithm, const SmallSpec& spec)
      : spec_(spec),
        fabric_(spec.seed),
        sender_(add_host(algorithm, kHostRate)),
        receiver_(add_host(algorithm, spec.hop_rate), kLongBytes),
        small_(fabric_, sender_, receiver_, kSmallBytes, kWriterDepth) {
    if (spec.flood) flood_ = std::make_unique<LongWriter>(fabric_, sender_, receiver_);
    fabric_.run_until(fabric_.now() + kSettle);
  }

  ShortResult run() {
    const Instant began = fabric_.now(), last = plan();
    const uint64_t flood_before = flood_bytes();
    const QueueCounts before = counts();
    fabric_.run_until(last);
    const double time = static_cast<double>((last - began).ns) * 1e-9;
    ShortResult r;
    r.long_goodput = static_cast<double>(flood_bytes() - flood_before) * 8 / time;
    r.utilisation = static_cast<double>(counts().payload_bytes - before.payload_bytes) * 8 / time /
                    static_cast<double>(spec_.hop_rate);
    r.drops = counts().dropped - before.dropped;
    r.marks = counts().marked - before.marked;
    while (small_.took().size() <= spec_.small_writes) {
      fabric_.run_until(fabric_.now() + kSettle);
      UB_ASSERT(fabric_.now() - last < seconds(10));
    }
    const std::vector<double> took(small_.took().begin() + 1, small_.took().end());
    r.p50 = quantile(took, 0.5);
    r.p99 = quantile(took, 0.99);
    return r;
  }

 private:
  static constexpr Duration kSettle = milliseconds(5);
  static constexpr double kMeanGap = 100'000;  // ns

  VirtualHost& add_host(const Algorithm& algorithm, uint64_t hop_rate) {
    QueueSpec queue = queue_for(algorithm, hop_rate);
    queue.by_class = spec_.by_class;
    return fabric_.add_host(config_for(algorithm, kHostRate), {kHostRate, cable()}, {queue});
  }
  /// Returns when the last one comes.
  Instant plan() {
    Prng random(spec_.seed);
    Instant at = fabric_.now();
    for (uint32_t i = 0; i < spec_.small_writes; ++i) {
      at += random_gap(random, kMeanGap);
      fabric_.call_at(at, [this] { small_.come(); });
    }
    return at;
  }
  uint64_t flood_bytes() const { return flood_ == nullptr ? 0 : flood_->bytes_done(); }
  const QueueCounts& counts() { return fabric_.queue_counts(receiver_.host); }

  SmallSpec spec_;
  VirtualFabric fabric_;
  VirtualHost& sender_;
  End receiver_;
  ShortWriter small_;
  std::unique_ptr<LongWriter> flood_;
};

}  // namespace

const Algorithm* find_algorithm(const char* name) {
  for (const Algorithm& a : kAlgorithms) {
    if (std::strcmp(a.name, name) == 0) return &a;
  }
  return std::strcmp(kCaqmWithHints.name, name) == 0 ? &kCaqmWithHints : nullptr;
}

IncastResult run_incast(const Algorithm& algorithm, const IncastSpec& spec, std::vector<IncastPoint>* curve) {
  return Incast(algorithm, spec, curve).run();
}

ShortResult run_short(const Algorithm& algorithm, const ShortSpec& spec) {
  return ShortAmongLong(algorithm, spec).run();
}

ShortResult run_small(const Algorithm& algorithm, const SmallSpec& spec) {
  return SmallBesideBulk(algorithm, spec).run();
}

}  // namespace ub::bench
