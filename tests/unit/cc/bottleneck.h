// SPDX-License-Identifier: Apache-2.0
//
// Flows that share one queue, in virtual time: the closed loop in which an algorithm shows whether it fills a line,
// how long it makes the queue, and whether all flows get the same. Each sender tells its flow (flow.h) what the
// transport does, in the same order (tp/congestion.cc), and obeys its verdict. Nothing is lost: the queue has no limit.
//
// A packet leaves when the sender's own line is free, reaches the queue half of a round trip later, and leaves it at
// the rate of the bottleneck. The receiver is behind the queue. Its acknowledgement takes the other half of the round
// trip. The same setting gives the same result.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/arena.h"
#include "lib/transport/cc/feedback.h"
#include "lib/transport/cc/flow.h"
#include "lib/transport/cc/heard.h"
#include "lib/transport/cc/rate.h"
#include "lib/transport/wire/network_header.h"

namespace ub::cc::bottleneck {

/// What a packet says of congestion.
struct Says {
  uint8_t ecn;
  uint8_t hint;  ///< if it asks for more (01): for so much of it, as a CCI has it; without CCI the most
};

/// What a hop does to a packet that finds `queued` bytes in front of it: it changes what the packet says.
using Hop = std::function<void(uint64_t queued, Says& says)>;

/// Marks all that finds more than so many bytes.
inline Hop marks_above(uint64_t most_queued) {
  return [most_queued](uint64_t queued, Says& says) {
    if (queued > most_queued && says.ecn != wire::kEcnNotCapable) says.ecn = wire::kEcnCe;
  };
}

/// Only delays.
inline Hop marks_nothing() {
  return [](uint64_t, Says&) {};
}

/// Where a flow differs from the others.
struct Sender {
  Instant begin{};
  Instant end = Instant::never();
  uint32_t bytes = 0;          ///< of each of its packets, with all headers; 0: Setting::packet_bytes
  Duration packet_interval{};  ///< its application has one packet in so much time; zero: it always has one
};

/// So many, which begin one after the other, so that they do not march in step.
inline std::vector<Sender> staggered(size_t senders, Duration apart = nanoseconds(700)) {
  std::vector<Sender> all(senders);
  for (size_t i = 0; i < senders; ++i) all[i].begin = Instant{} + apart * static_cast<int64_t>(i);
  return all;
}

struct Setting {
  Algorithm algorithm = Algorithm::kNone;
  Hop hop = marks_nothing();
  bool has_hints = false;  ///< packets of C-AQM have a CCI, and ask for bytes (Path::has_hints)
  std::vector<Sender> senders = staggered(16);
  uint32_t packet_bytes = 4096 + 62;          ///< Path::packet_bytes
  uint32_t header_bytes = 62;                 ///< a packet without them is what a C-AQM hop grants
  uint64_t bits_per_second = 25'000'000'000;  ///< of the bottleneck
  uint64_t line_bits_per_second = 0;          ///< of each sender; 0: all together have four times the bottleneck's
  Duration round_trip = microseconds(10);     ///< without queues, and without the time that a packet takes on a line
  uint32_t packets_per_ack = 1;               ///< the receiver waits for so many,
  Duration most_ack_delay = microseconds(5);  ///< but no longer than that
  uint16_t most_packets = 2048;               ///< Path::most_packets; a power of two
  Duration length = milliseconds(20);
  Constants constants{};
};

/// Of the second half of a run.
struct Result {
  double utilisation = 0;                       ///< of the bottleneck
  double mean_queue = 0, p99_queue = 0;         ///< packets of Setting::packet_bytes, sampled once a microsecond
  double jain = 0;                              ///< Jain's index of the bytes of all flows; 1: all got the same
  std::vector<double> shares;                   ///< of the bytes that left the queue, by flow
  std::vector<uint32_t> windows;                ///< packets, at the end, by flow
  uint64_t marked = 0, asked = 0, granted = 0;  ///< packets: of all; those that came with 01; those that left with it
  uint64_t asked_units = 0, granted_units = 0;  ///< sums of their hints

  std::string text() const {
    std::array<char, 160> line;
    std::snprintf(line.data(), line.size(), "utilisation %.4f, queue %.1f (p99 %.1f) packets, Jain %.4f, marked %llu",
                  utilisation, mean_queue, p99_queue, jain, static_cast<unsigned long long>(marked));
    return line.data();
  }
};

class Run {
 public:
  explicit Run(Setting setting) : s_(std::move(setting)), flows_(s_.senders.size()) {
    if (s_.line_bits_per_second == 0) s_.line_bits_per_second = 4 * s_.bits_per_second / flows_.size();
    give_memory();
  }

  Result result() {
    for (size_t i = 0; i < flows_.size(); ++i) at(s_.senders[i].begin, [this, i] { begin(i); });
    at(half(), [this] { sample(); });
    const Instant end = Instant{} + s_.length;
    while (!events_.empty() && events_.top().at <= end) {
      const Event event = events_.top();
      events_.pop();
      now_ = event.at;
      event.happens();
    }
    return summary();
  }

 private:
  struct Packet {
    size_t flow;
    Psn psn;
    uint32_t bytes;
    Says says;
  };
  struct State {
    Flow flow;
    bool active = false;
    Psn oldest{}, next{};  ///< what is in flight
    Instant line_free{};
    Instant application_has{};         ///< its next packet
    Instant turn = Instant::never();   ///< when the sender looks again whether it may send
    Instant timer = Instant::never();  ///< when it looks at Verdict::timer_at
    Heard heard;                       ///< the receiver's
    Psn received{};                    ///< the next that it waits for
    uint32_t unacked = 0;              ///< packets that it has not acknowledged
    uint64_t delivered = 0;            ///< bytes in the second half
  };
  struct Event {
    Instant at;
    uint64_t order;
    std::function<void()> happens;
    bool operator<(const Event& other) const { return std::pair(other.at, other.order) < std::pair(at, order); }
  };

  Instant half() const { return Instant{} + s_.length / 2; }
  void at(Instant when, std::function<void()> happens) { events_.push({when, order_++, std::move(happens)}); }

  void give_memory() {
    const auto flows = static_cast<uint32_t>(flows_.size());
    SendTimes measured;
    Arena nowhere(nullptr);
    measured.init(nowhere, flows, s_.most_packets);
    memory_.resize(nowhere.used_bytes());
    Arena arena(memory_.data());
    times_.init(arena, flows, s_.most_packets);
  }

  // ---- the sender ----

  Path path_of(const State& f) const {
    return {.most_packets = s_.most_packets,
            .packet_bytes = static_cast<uint16_t>(s_.packet_bytes),
            .line_kbytes_per_second = kbytes_per_second(s_.line_bits_per_second / 8),
            .has_hints = s_.has_hints,
            .in_flight = f.next.distance(f.oldest),
            .constants = &s_.constants};
  }
  uint32_t bytes_of(size_t i) const { return s_.senders[i].bytes == 0 ? s_.packet_bytes : s_.senders[i].bytes; }
  Duration line_time(uint32_t bytes) const { return time_of(8 * uint64_t{bytes}, s_.line_bits_per_second); }

  void begin(size_t i) {
    State& f = flows_[i];
    f.active = true;
    f.application_has = now_;
    cc::begin(f.flow, times_, s_.algorithm, path_of(f), f.next);
    act(i);
  }

  /// When a packet may leave, if the window has room.
  Instant may_leave_at(const State& f) const {
    return later(later(f.line_free, f.application_has), f.flow.next_packet);
  }

  /// Sends what the flow allows, then plans when to look at it again.
  void act(size_t i) {
    State& f = flows_[i];
    const Instant end = s_.senders[i].end;
    const auto room = [&] {
      return f.next.distance(f.oldest) < std::min<uint32_t>(f.flow.window_packets, s_.most_packets) && now_ < end;
    };
    while (room() && may_leave_at(f) <= now_) send(i);
    if (room() && may_leave_at(f) < f.turn) look_at(f.turn = may_leave_at(f), i);
    if (f.flow.timer_at < f.timer) look_at(f.timer = f.flow.timer_at, i);
  }
  void look_at(Instant when, size_t i) {
    at(when, [this, i] {
      State& f = flows_[i];
      if (f.turn <= now_) f.turn = Instant::never();
      if (f.timer <= now_) f.timer = Instant::never();
      cc::timer(f.flow, path_of(f), now_);
      act(i);
    });
  }

  void send(size_t i) {
    State& f = flows_[i];
    const uint8_t hint = s_.has_hints ? f.flow.caqm.hint : uint8_t{UINT8_MAX};
    const Packet packet{i, f.next, bytes_of(i), {f.flow.ecn, hint}};
    cc::sent(f.flow, times_, path_of(f), now_, packet.psn, packet.bytes, {});
    ++f.next;
    f.application_has = now_ + s_.senders[i].packet_interval;
    f.line_free = now_ + line_time(packet.bytes);
    at(f.line_free + s_.round_trip / 2, [this, packet] { reach_queue(packet); });
  }

  /// `cetph`: what the acknowledgement reports.
  void on_ack(size_t i, Psn until, const Feedback& feedback) {
    State& f = flows_[i];
    cc::fed_back(f.flow, path_of(f), now_, feedback);
    const Psn from = f.oldest;
    f.oldest = until;
    cc::acknowledged(f.flow, times_, path_of(f), now_, from, until);
    act(i);
  }

  // ---- the queue ----

  void reach_queue(Packet packet) {
    const Says before = packet.says;
    s_.hop(queued_, packet.says);
    if (now_ >= half()) count(before, packet.says);
    queued_ += packet.bytes;
    queue_free_ps_ = std::max(queue_free_ps_, now_.ns * 1000) + 8'000'000'000'000 * packet.bytes / s_.bits_per_second;
    at({queue_free_ps_ / 1000}, [this, packet] { leave_queue(packet); });
  }

  void count(const Says& before, const Says& after) {
    const bool asks = before.ecn == wire::kEcnEct1, granted = after.ecn == wire::kEcnEct1;
    counts_.marked += after.ecn == wire::kEcnCe;
    counts_.asked += asks;
    counts_.granted += granted;
    counts_.asked_units += asks ? before.hint : 0;
    counts_.granted_units += granted ? after.hint : 0;
  }

  void leave_queue(const Packet& packet) {
    queued_ -= packet.bytes;
    if (now_ >= half()) flows_[packet.flow].delivered += packet.bytes;
    receive(packet);
  }

  void sample() {
    samples_.push_back(static_cast<double>(queued_) / s_.packet_bytes);
    at(now_ + microseconds(1), [this] { sample(); });
  }

  // ---- the receiver ----

  wire::CcAlgorithm agreed() const {
    return s_.algorithm == Algorithm::kLdcp ? wire::CcAlgorithm::kLdcp : wire::CcAlgorithm::kCaqm;
  }

  void receive(const Packet& packet) {
    State& f = flows_[packet.flow];
    f.received = packet.psn + 1;
    const auto [ecn, hint] = packet.says;
    f.heard.accepted(agreed(), packet.bytes, ecn);
    if (s_.has_hints) {
      f.heard.told({.congested = ecn == wire::kEcnCe, .increase = ecn == wire::kEcnEct1, .hint = hint});
    } else if (agreed() == wire::CcAlgorithm::kCaqm) {
      f.heard.told(ecn, s_.packet_bytes - s_.header_bytes);
    }
    if (++f.unacked >= s_.packets_per_ack) return acknowledge(packet.flow);
    if (f.unacked != 1) return;
    const Psn first = packet.psn;
    at(now_ + s_.most_ack_delay, [this, i = packet.flow, first] {
      State& late = flows_[i];
      if (late.unacked != 0 && late.received - late.unacked == first) acknowledge(i);
    });
  }

  void acknowledge(size_t i) {
    State& f = flows_[i];
    f.unacked = 0;
    at(now_ + s_.round_trip / 2, [this, i, until = f.received, feedback = report(f)] { on_ack(i, until, feedback); });
  }

  /// Through the bytes of a CETPH.
  Feedback report(State& f) const {
    std::array<std::byte, wire::CetphCaqm::kSize> bytes;
    if (agreed() == wire::CcAlgorithm::kLdcp) {
      f.heard.ldcp().write(bytes.data());
    } else {
      f.heard.caqm().write(bytes.data());
      f.heard.caqm_said();
    }
    Feedback feedback;
    read_feedback(agreed(), bytes, &feedback);
    return feedback;
  }

  // ---- what comes out ----

  Result summary() {
    Result r = counts_;
    double sum = 0, squares = 0;
    for (const State& f : flows_) {
      const auto bytes = static_cast<double>(f.delivered);
      sum += bytes;
      squares += bytes * bytes;
    }
    for (const State& f : flows_) {
      r.shares.push_back(static_cast<double>(f.delivered) / sum);
      r.windows.push_back(f.flow.window_packets);
    }
    const double seconds = 0.5e-9 * static_cast<double>(s_.length.ns);
    r.utilisation = 8 * sum / (static_cast<double>(s_.bits_per_second) * seconds);
    r.jain = sum * sum / (static_cast<double>(flows_.size()) * squares);
    std::sort(samples_.begin(), samples_.end());
    r.p99_queue = samples_[samples_.size() * 99 / 100];
    for (const double sample : samples_) r.mean_queue += sample / static_cast<double>(samples_.size());
    return r;
  }

  Setting s_;
  std::vector<std::byte> memory_;
  SendTimes times_;
  std::vector<State> flows_;
  std::priority_queue<Event> events_;
  uint64_t order_ = 0;
  Instant now_{};
  uint64_t queued_ = 0;         ///< bytes
  uint64_t queue_free_ps_ = 0;  ///< picoseconds, so that the rate is exact
  Result counts_;
  std::vector<double> samples_;
};

/// Runs it and returns what the second half was like.
inline Result run(Setting setting) { return Run(std::move(setting)).result(); }

}  // namespace ub::cc::bottleneck
