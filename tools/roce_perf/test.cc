// SPDX-License-Identifier: Apache-2.0
#include "tools/roce_perf/test.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <memory>

#include "lib/base/histogram.h"
#include "tools/common/probe.h"
#include "tools/common/tool_error.h"

namespace ub::roce_perf {
namespace {

using tools::Idle;
using tools::Ticks;

constexpr uint32_t kReceives = 512;
constexpr uint32_t kWarmup = 1000;
constexpr uint64_t kPattern = 7;  // of what is sent, but for the last byte of a message
constexpr uint32_t kAccess = verbs::kLocalWrite | verbs::kRemoteWrite | verbs::kRemoteRead;

roce_peer::Options endpoint_options(const Options& o) {
  roce_peer::Options e;
  e.tx_depth = o.depth;
  e.rx_depth = kReceives;
  e.time_limit_s = 1e6;  // whoever waits here has limits of its own
  return e;
}

uint32_t warmup(const Options& o) { return std::min(kWarmup, o.iterations / 10 + 1); }

}  // namespace

Test::Test(const Options& o)
    : o_(o),
      endpoint_(endpoint_options(o), verbs::QpType::kRc),
      out_(endpoint_.domain(), o.size, kAccess),
      in_(endpoint_.domain(), o.size, kAccess) {
  roce_peer::fill_pattern(out_.bytes, kPattern);
  endpoint_.to_init(kAccess);
}

// ---- getting to know each other ------------------------------------------------------------------------------------

Json Test::introduction() const {
  // The peer reads what goes out, and writes what comes in.
  const roce_peer::Buffer& target = o_.verb == Verb::kRead ? out_ : in_;
  return {{"gid", endpoint_.gid().bytes},
          {"qpn", endpoint_.qpn()},
          {"psn", endpoint_.psn()},
          {"mtu", endpoint_.port_mtu()},
          {"address", target.address()},
          {"rkey", target.region->rkey()},
          {"test", o_.name},
          {"size", o_.size},
          {"iterations", o_.iterations},
          {"to_completion", o_.to_completion}};
}

void Test::connect(const Json& theirs) {
  for (const char* what : {"test", "size", "iterations", "to_completion"}) {
    const Json ours = introduction();
    if (ours.at(what) == theirs.at(what)) continue;
    throw tools::ToolError(tools::kExitUsage, fmt::format("both sides must agree: {} is {} here and {} at the peer",
                                                          what, ours.at(what).dump(), theirs.at(what).dump()));
  }
  roce_peer::Endpoint::Remote remote;
  remote.gid.bytes = theirs.at("gid").get<decltype(remote.gid.bytes)>();
  remote.qpn = theirs.at("qpn");
  remote.psn = theirs.at("psn");
  remote.mtu = std::min<uint8_t>(endpoint_.port_mtu(), theirs.at("mtu"));
  remote.reads = static_cast<uint8_t>(o_.reads);
  remote_address_ = theirs.at("address");
  rkey_ = theirs.at("rkey");
  endpoint_.connect(remote, static_cast<uint8_t>(o_.reads));
  if (o_.verb != Verb::kSend) return;
  for (uint32_t i = 0; i < kReceives; ++i) endpoint_.post_receive(i, in_.range(0, o_.size));
}

// ---- steps ---------------------------------------------------------------------------------------------------------

void Test::post() {
  // The last byte of a message tells which one it is.
  if (o_.ping_pong()) last_byte(out_) = static_cast<std::byte>(++sent_);
  const Sge range = (o_.verb == Verb::kRead ? in_ : out_).range(0, o_.size);
  verbs::SendRequest r;
  r.sg_list = std::span(&range, 1);
  r.opcode = o_.verb == Verb::kWrite  ? verbs::WrOpcode::kRdmaWrite
             : o_.verb == Verb::kRead ? verbs::WrOpcode::kRdmaRead
                                      : verbs::WrOpcode::kSend;
  r.remote_addr = remote_address_;
  r.rkey = rkey_;
  endpoint_.post_send(r);
  ++in_flight_;
}

uint32_t Test::reap() {
  const uint32_t ended = endpoint_.take(endpoint_.send_queue());
  in_flight_ -= ended;
  return ended;
}

uint32_t Test::receive() {
  const uint32_t came = endpoint_.take(endpoint_.receive_queue());
  for (uint32_t i = 0; i < came; ++i) endpoint_.post_receive(0, in_.range(0, o_.size));
  received_ += came;
  return came;
}

// False: the peer has something to say instead.
bool Test::wait_for_message(Idle& idle) {
  ++awaited_;
  idle.progress();
  if (o_.verb == Verb::kSend) {
    while (received_ < awaited_) {
      if (receive() == 0 && idle()) return false;
    }
    return true;
  }
  const volatile std::byte* last = &last_byte(in_);
  while (*last != static_cast<std::byte>(awaited_)) {
    reap();
    if (idle()) return false;
  }
  std::atomic_thread_fence(std::memory_order_acquire);
  return true;
}

void Test::wait_for_sends(Idle& idle, uint32_t left) {
  idle.progress();
  while (in_flight_ > left) {
    if (reap() == 0) idle();
  }
}

void Test::one_round(Idle& idle) {
  tools::throw_if_stopped();
  if (in_flight_ == o_.depth) wait_for_sends(idle, 0);
  post();
  if (!o_.ping_pong()) return wait_for_sends(idle, 0);
  if (!wait_for_message(idle)) throw tools::ToolError("the peer ended the test early");
}

void Test::flood(Idle& idle, uint32_t messages) {
  for (uint32_t posted = 0; posted < messages || in_flight_ != 0;) {
    const uint32_t before = posted;
    for (; posted < messages && in_flight_ < o_.depth; ++posted) post();
    if (reap() != 0 || posted != before) {
      idle.progress();
    } else {
      idle();
      tools::throw_if_stopped();
    }
  }
}

// ---- the two roles -------------------------------------------------------------------------------------------------

Json Test::measure_latency(Idle& idle) {
  auto times = std::make_unique<Histogram>();
  const double us_per_tick = Ticks::ns_per_tick() / 1000 / (o_.ping_pong() ? 2 : 1);
  for (uint32_t i = 0; i < warmup(o_); ++i) one_round(idle);
  for (uint64_t i = 0, last = Ticks::now(); i < o_.iterations; ++i) {
    one_round(idle);
    const uint64_t now = Ticks::now();
    times->record(now - last);
    last = now;
  }
  wait_for_sends(idle, 0);
  const auto us = [&](double ticks) { return ticks * us_per_tick; };
  return {{"bytes", o_.size},
          {"iterations", times->count()},
          {"t_min_us", us(static_cast<double>(times->min()))},
          {"t_typical_us", us(static_cast<double>(times->percentile(50)))},
          {"t_avg_us", us(times->mean())},
          {"p99_us", us(static_cast<double>(times->percentile(99)))}};
}

Json Test::measure_rate(Idle& idle) {
  flood(idle, warmup(o_));
  const uint64_t start = Ticks::now();
  flood(idle, o_.iterations);
  const double seconds = static_cast<double>(Ticks::now() - start) * Ticks::ns_per_tick() / 1e9;
  const double rate = o_.iterations / seconds;
  return {{"bytes", o_.size},
          {"iterations", o_.iterations},
          {"seconds", seconds},
          {"bw_average_mib_s", rate * o_.size / (1 << 20)},
          {"msg_rate_mpps", rate / 1e6}};
}

Json Test::measure(tools::Peer& peer) {
  Idle idle(peer);
  return o_.bandwidth ? measure_rate(idle) : measure_latency(idle);
}

void Test::answer(tools::Peer& peer) {
  Idle idle(peer, Idle::kNoLimit);
  if (o_.ping_pong()) {
    while (wait_for_message(idle)) {
      tools::throw_if_stopped();
      if (in_flight_ == o_.depth) wait_for_sends(idle, 0);
      post();
    }
    return wait_for_sends(idle, 0);
  }
  while (true) {
    if ((o_.verb == Verb::kSend ? receive() : reap()) != 0) {
      idle.progress();
    } else if (idle()) {
      return;
    }
  }
}

void Test::check_data() {
  const bool came = o_.ping_pong() || (o_.verb == Verb::kRead) == o_.client();
  if (!came) return;
  const uint32_t same = o_.ping_pong() ? o_.size - 1 : o_.size;
  roce_peer::compare(std::span(in_.bytes).first(same), std::span(out_.bytes).first(same), "what came");
}

}  // namespace ub::roce_perf
