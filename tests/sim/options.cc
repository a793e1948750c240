// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/options.h"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <initializer_list>
#include <iterator>

#include "lib/base/prng.h"

namespace ub::sim {
namespace {

constexpr uint32_t kBusyPackets = 5000;

template <class T>
T pick(Prng& rng, std::initializer_list<T> values) {
  return std::data(values)[rng.below(values.size())];
}

// Zero with probability 1 - p, else one of the values.
template <class T>
T maybe(Prng& rng, double p, std::initializer_list<T> values) {
  bool on = rng.chance(p);
  T v = pick(rng, values);
  return on ? v : T{};
}

void draw_network(Prng& rng, Options& o) {
  NetworkOptions& n = o.net;
  n.delay_ns = pick<uint64_t>(rng, {200, 1000, 2000, 10'000, 100'000, 1'000'000});
  n.jitter_ns = maybe<uint64_t>(rng, 0.5, {100, 1000, 5000, 100'000});
  n.ns_per_byte = maybe<double>(rng, 0.5, {0.08, 0.8, 8});
  n.queue_frames = pick<uint32_t>(rng, {32, 128, 4096, 4096, 4096});
  if (o.lossless) return;
  n.loss = maybe<double>(rng, 0.6, {0.001, 0.01, 0.03, 0.05, 0.1, 0.25});
  n.burst_start = maybe<double>(rng, 0.2, {0.001, 0.005, 0.02});
  n.burst_packets = pick<double>(rng, {3, 10, 40});
  n.duplicate = maybe<double>(rng, 0.4, {0.005, 0.05, 0.2});
  n.reorder = maybe<double>(rng, 0.4, {0.01, 0.1, 0.5});
  n.reorder_ns = pick<uint64_t>(rng, {5000, 50'000, 500'000, 20'000'000});
  n.lifetime = maybe<double>(rng, 0.15, {0.001, 0.01, 0.03});
  if (!o.icrc_optional) n.corrupt = maybe<double>(rng, 0.3, {0.001, 0.01, 0.05});
  if (o.mtu > 1024 && rng.chance(0.2)) n.path_mtu = pick<uint32_t>(rng, {1280, 1500, 2304, 4352});
}

void draw_host_and_core(Prng& rng, Options& o) {
  o.host.pending = maybe<double>(rng, 0.5, {0.05, 0.5, 1.0});
  o.host.pending_ns = pick<uint64_t>(rng, {500, 5000, 200'000, 5'000'000});
  o.host.tx_refuse = maybe<double>(rng, 0.3, {0.01, 0.2, 0.6});
  o.host.tx_room_ns = pick<uint64_t>(rng, {1000, 10'000, 100'000});
  CoreOptions& c = o.core;
  c.window_packets = pick<uint32_t>(rng, {128, 128, 256, 512, 2048});
  c.lanes = pick<uint32_t>(rng, {1, 2, 2});
  c.lane_bulk_bytes = pick<uint32_t>(rng, {1024, 4096, 16384, 16384});
  c.fast_retransmit = rng.chance(0.75);
  c.read_jobs = pick<uint32_t>(rng, {1, 2, 8, 64, 64});
  c.kept_packets = c.kept_small_packets = pick<uint32_t>(rng, {4, 16, 256, 256});
  c.keepalive_ns = pick<uint64_t>(rng, {200'000'000, 1'000'000'000, 10'000'000'000, 10'000'000'000});
  if (rng.chance(0.3)) c.first_psn = static_cast<uint32_t>(0x1000000 - rng.between(1, 300));
  c.channels_per_lane = pick<uint32_t>(rng, {1, 1, 2, 4, 8});
}

void draw_workload(Prng& rng, Options& o) {
  WorkloadOptions& w = o.work;
  bool big = rng.chance(0.04);
  w.requests = big ? 20 : pick<uint32_t>(rng, {10, 30, 60, 60, 120, 250});
  w.apps_per_node = pick<uint32_t>(rng, {1, 1, 2, 3});
  w.queues_per_app = pick<uint32_t>(rng, {1, 2, 2, 4});
  w.rc = pick<double>(rng, {0, 0.3, 0.7});
  w.jfs = pick<double>(rng, {0, 0.3});
  w.um = maybe<double>(rng, 0.3, {0.2, 0.6});
  w.size_cap = big ? pick<uint32_t>(rng, {1 << 20, 3 << 20}) : pick<uint32_t>(rng, {64, 2048, 20'000, 70'000, 200'000});
  w.send_cap = big ? 300'000 : pick<uint32_t>(rng, {64, 2048, 8192, 20'000, 70'000});
  w.large = pick<double>(rng, {0.02, 0.1, 0.5});
  w.batch = pick<uint32_t>(rng, {1, 2, 4, 16});
  w.gap_ns = pick<uint64_t>(rng, {500, 5000, 20'000, 200'000});
  w.unsignaled = maybe<double>(rng, 0.5, {0.2, 0.8});
  w.fence = maybe<double>(rng, 0.5, {0.05, 0.3});
  w.strong = maybe<double>(rng, 0.6, {0.1, 0.5});
  w.relaxed = pick<double>(rng, {0, 0.3, 0.5});
  w.inlined = maybe<double>(rng, 0.6, {0.2, 0.8});
  w.sges = pick<uint32_t>(rng, {1, 2, 4, 13});
  w.comp_order = maybe<double>(rng, 0.5, {0.3, 1.0});
  w.overlap = maybe<double>(rng, 0.3, {0.1, 0.7});
  w.wrong = maybe<double>(rng, 0.5, {0.02, 0.2});
  w.wrong_local = maybe<double>(rng, 0.3, {0.02, 0.1});
  w.too_long = maybe<double>(rng, 0.3, {0.05, 0.3});
  auto weight = [&](uint32_t usual) { return pick<uint32_t>(rng, {0, usual, usual, 3 * usual}); };
  w.weight_write = weight(4);
  w.weight_write_imm = weight(1);
  w.weight_notify = weight(1);
  w.weight_read = weight(3);
  w.weight_send = weight(3);
  w.weight_send_imm = weight(1);
  w.weight_atomic = weight(3);
  w.weight_nop = 1;
  w.sq_depth = pick<uint32_t>(rng, {1, 2, 8, 16, 64});
  w.rq_depth = pick<uint32_t>(rng, {1, 2, 16, 64});
  w.jfc_depth = pick<uint32_t>(rng, {1, 2, 4, 64, 64, 256});
  w.starve = maybe<double>(rng, 0.4, {0.1, 0.5, 0.9});
  w.poll_ns = pick<uint64_t>(rng, {100, 2000, 50'000, 1'000'000});
  w.poll_batch = pick<uint32_t>(rng, {1, 4, 16, 64});
  w.rnr_retry = pick<uint8_t>(rng, {7, 7, 7, 3, 1, 0});
  w.err_timeout = pick<uint8_t>(rng, {17, 17, 17, 17, 15, 12, 5});
  w.min_rnr_timer = pick<uint8_t>(rng, {1, 2, 6, 12, 16, 20});
  w.required_token = pick<double>(rng, {0, 0.6, 1});
  w.odd_address = pick<double>(rng, {0, 0.3, 1});
}

void draw_faults(Prng& rng, Options& o) {
  FaultOptions& f = o.fault;
  bool quiet = rng.chance(0.35);
  f.partitions = maybe<uint32_t>(rng, 0.25, {1, 3});
  f.partition_ns = pick<uint64_t>(rng, {1'000'000, 100'000'000, 1'000'000'000, 6'000'000'000});
  f.app_kills = maybe<uint32_t>(rng, 0.25, {1, 2});
  f.crashes = maybe<uint32_t>(rng, 0.25, {1, 2});
  f.flushes = maybe<uint32_t>(rng, 0.3, {1, 4});
  f.unregisters = maybe<uint32_t>(rng, 0.3, {1, 4});
  f.jfr_flushes = maybe<uint32_t>(rng, 0.2, {1, 3});
  f.closes = maybe<uint32_t>(rng, 0.1, {1});
  f.span_ns = pick<uint64_t>(rng, {300'000, 3'000'000, 30'000'000, 2'000'000'000});
  if (quiet) f = FaultOptions{.span_ns = f.span_ns};
}

// Last, so that the other options of a seed stay what they were.
void draw_applications(Prng& rng, Options& o) {
  o.work.fetched = pick<double>(rng, {0, 0.5, 1});
  o.fault.hostile = maybe<uint32_t>(rng, 0.4, {1, 1, 2});
  o.fault.hostile_acts = pick<uint32_t>(rng, {20, 60, 200});
  o.fault.meddle = maybe<double>(rng, 0.6, {0.01, 0.1});
  if (o.fault.hostile != 0) o.work.required_token = 1;
}

// And after them. A third of the seeds has queue pairs beside jettys, some have nothing else.
void draw_roce(Prng& rng, Options& o) {
  WorkloadOptions& w = o.work;
  w.qp_pairs = pick<uint32_t>(rng, {0, 0, 1, 2});
  w.srq = pick<double>(rng, {0, 0.5, 1});
  const uint32_t room = std::min(o.mtu, o.net.path_mtu - 120);
  w.roce_mtu = pick<uint32_t>(rng, {256, 512, 1024, 2048, 4096});
  while (w.roce_mtu > room) w.roce_mtu /= 2;
  w.roce_timeout = pick<uint8_t>(rng, {17, 17, 16, 14});
  w.roce_reads = pick<uint8_t>(rng, {1, 2, 4, 16});
  w.roce_retry_cnt = pick<uint8_t>(rng, {7, 7, 7, 3, 1, 0});
  w.roce_ack_every = rng.chance(0.3);
  const bool only = rng.chance(0.3);
  if (w.qp_pairs == 0 || !only) return;
  w.queues_per_app = 0;
  w.rc = 0;
  w.qp_pairs = 4;
}

// What such queue pairs may have besides.
void draw_roce_services(Prng& rng, Options& o) {
  WorkloadOptions& w = o.work;
  const bool on = w.qp_pairs != 0;
  w.ud_queues = maybe<uint32_t>(rng, on ? 0.6 : 0, {1, 2});
  w.connects = maybe<uint32_t>(rng, on ? 0.6 : 0, {2, 8, 24});
  w.hang_up = pick<double>(rng, {0, 0.3, 1});
  w.reject = pick<double>(rng, {0, 0.2, 0.6});
  w.cm_tries = pick<uint8_t>(rng, {15, 15, 4, 1});
  w.cm_table = pick<uint32_t>(rng, {4096, 4096, 4});
  w.dcqcn = rng.chance(on ? 0.5 : 0);
  w.line_rate = pick<uint64_t>(rng, {125'000'000, 125'000'000, 1'250'000'000});
  o.net.mark = maybe<double>(rng, on ? 0.4 : 0, {0.01, 0.1, 0.5, 1});
  // Long enough for what is lost to come again, at times.
  if (w.connects != 0 && rng.chance(0.5)) o.fault.span_ns = std::max<uint64_t>(o.fault.span_ns, 1'000'000'000);
}

void draw_bursts(Prng& rng, Options& o) { o.host.burst_ns = maybe<uint64_t>(rng, 0.4, {300, 3000, 30'000}); }

// Queues whose targets keep their order, and which have many requests under way, on both lanes.
void draw_rot(Prng& rng, Options& o) {
  if (o.busy || !rng.chance(0.3)) return;
  WorkloadOptions& w = o.work;
  w.rot = pick<double>(rng, {0.5, 1, 1});
  w.rc = 1;
  w.queues_per_app = 1;
  w.requests = pick<uint32_t>(rng, {250, 600});
  w.batch = pick<uint32_t>(rng, {4, 16, 64});
  w.sq_depth = pick<uint32_t>(rng, {16, 64, 512});
  w.gap_ns = pick<uint64_t>(rng, {2000, 20'000});
  o.core.lanes = 2;
  o.core.lane_bulk_bytes = pick<uint32_t>(rng, {1024, 4096});
  if (rng.chance(0.7)) w.wrong = w.wrong_local = w.too_long = 0;  // a queue of RC ends with its first failure
  o.fault.jfr_flushes = 0;  // so many messages to JFRs that are silent would time out one after the other for minutes
  if (rng.chance(0.5)) return;
  o.host.pending = pick<double>(rng, {0.2, 0.5, 1});
  o.host.pending_ns = pick<uint64_t>(rng, {2000, 50'000});
}

// How long segments are, and in some seeds many WRITEs of several segments.
void draw_segments(Prng& rng, Options& o) {
  if (rng.chance(0.5)) o.core.segment_bytes = 32 * 1024;
  if (o.busy || o.work.rot != 0 || !rng.chance(0.15)) return;
  o.work.size_cap = pick<uint32_t>(rng, {70'000, 140'000, 300'000});
  o.work.large = pick<double>(rng, {0.1, 0.5});
  o.work.weight_write = std::max(o.work.weight_write, 4u);
  o.work.requests = std::min(o.work.requests, 60u);
}

// A channel, or a queue pair, that stays busy for several times its window, and for longer than anything that is
// numbered modulo a window lasts: with loss, memory that answers later, and over the wrap of its packet numbers. No
// fault ends it, and nobody waits for what is under way.
void draw_busy(Prng& rng, Options& o) {
  WorkloadOptions& w = o.work;
  if (!rng.chance(0.25)) return;
  o.busy = true;
  o.nodes = 2;
  o.shared_port_ip = false;
  o.mtu = pick<uint32_t>(rng, {1024, 1024, 2048});
  o.icrc_optional = rng.chance(0.5);
  o.lossless = rng.chance(0.7);  // so it is said to be: nothing makes its window small
  NetworkOptions& n = o.net;
  n = NetworkOptions{};
  n.loss = pick<double>(rng, {0.002, 0.01, 0.03});
  n.duplicate = maybe<double>(rng, 0.3, {0.005, 0.05});
  n.reorder = maybe<double>(rng, 0.7, {0.02, 0.1});
  n.reorder_ns = pick<uint64_t>(rng, {5000, 50'000});
  n.delay_ns = pick<uint64_t>(rng, {2000, 10'000, 50'000});
  n.jitter_ns = maybe<uint64_t>(rng, 0.5, {100, 1000});
  n.ns_per_byte = pick<double>(rng, {0.08, 0.8, 0.8});
  o.host.pending = pick<double>(rng, {0, 0.05, 0.5, 1});
  o.host.pending_ns = pick<uint64_t>(rng, {500, 2000, 5000, 50'000});
  o.host.tx_refuse = maybe<double>(rng, 0.2, {0.01, 0.2});
  o.host.tx_room_ns = 1000;
  o.host.burst_ns = std::min<uint64_t>(o.host.burst_ns, 3000);
  o.core.lanes = 1;
  o.core.channels_per_lane = 1;
  o.core.kept_packets = o.core.kept_small_packets = 256;
  o.core.read_jobs = 64;
  if (rng.chance(0.6)) o.core.first_psn = static_cast<uint32_t>(0x1000000 - rng.between(1, 3000));
  o.fault = FaultOptions{.span_ns = 100'000};
  w = WorkloadOptions{};
  w.queues_per_app = pick<uint32_t>(rng, {2, 4});
  w.rc = w.jfs = w.fence = w.strong = w.unsignaled = w.wrong = w.wrong_local = w.too_long = 0;
  w.size_cap = pick<uint32_t>(rng, {16'384, 32'768});
  w.requests = kBusyPackets * o.mtu / w.size_cap * 4 / 3;
  w.large = 1;
  w.batch = 16;
  w.gap_ns = 10'000;
  w.sq_depth = 32;
  w.jfc_depth = 256;
  w.poll_ns = pick<uint64_t>(rng, {100, 2000});
  w.min_rnr_timer = 1;
  w.weight_nop = w.weight_atomic = w.weight_notify = w.weight_write_imm = 0;
  w.weight_send = w.weight_send_imm = 0;
  w.weight_write = pick<uint32_t>(rng, {1, 1, 0});
  w.weight_read = w.weight_write == 0 ? 1 : pick<uint32_t>(rng, {0, 0, 1});
  w.fetched = pick<double>(rng, {0, 1});
  if (rng.chance(0.75)) return;
  w.queues_per_app = 0;
  w.qp_pairs = 1;
  w.roce_mtu = o.mtu;
  w.roce_reads = 16;
  n.loss = std::min(n.loss, 0.01);  // what follows a lost packet goes again
}

// On a wire that is said to lose nothing a partition would lose what nobody sends again.
void draw_compact(Prng& rng, Options& o) {
  o.compact = !o.busy && rng.chance(o.lossless ? 0.7 : 0.3);
  if (!o.compact) return;
  o.host.pending = 0;
  o.net.path_mtu = NetworkOptions{}.path_mtu;
  if (o.lossless) o.fault.partitions = 0;
  o.core.compact_repeats = pick<uint32_t>(rng, {64, 64, 64, 1});
}

// ROL by CTP: on a wire that loses nothing, most queues leave their order to it, and some requests want no answer.
void draw_compact_rol(Prng& rng, Options& o) {
  o.core.rol = pick<double>(rng, {1, 1, 0.7});
  o.core.lanes = 2;
  o.work.rc = pick<double>(rng, {0.5, 1});
  o.work.rot = 0;
  o.core.compact_answers = rng.chance(0.3);
  if (o.core.compact_answers) return;
  o.work.unsignaled = pick<double>(rng, {0.3, 0.8, 1});
  o.work.weight_write = std::max(o.work.weight_write, 8u);
}

// By number, whatever the rate: every second packet is overtaken by up to so many.
void draw_overtaking(Prng& rng, double share, Options& o) {
  if (o.lossless) return;
  o.net.reorder_packets = maybe<uint32_t>(rng, share, {8, 64});
  o.net.reorder_wait_ns = pick<uint64_t>(rng, {5000, 50'000});
}

// Short runs would hardly ever see a channel that is calm as late as usual. From a source of its own, so that seeds
// draw the rest as if there were no such thing.
uint32_t draw_calm(uint64_t seed) {
  Prng rng(seed ^ 0xca1b);
  return pick<uint32_t>(rng, {1, 1, 4, 32});
}

// The same, of the congestion control of channels.
void draw_congestion(Options& o) {
  Prng rng(o.seed ^ 0xc09e);
  if (rng.chance(0.4)) return;
  o.work.control =
      pick<cc::Control>(rng, {cc::Control::kCaqm, cc::Control::kLdcp, cc::Control::kDcqcn, cc::Control::kSwift});
  o.net.mark = maybe<double>(rng, 0.7, {0.001, 0.01, 0.1, 0.5, 1});
  o.net.refuse = maybe<double>(rng, 0.5, {0.1, 0.9, 1});
}

// Several paths, most often with a few faults that hit one of them each.
void draw_several_paths(Prng& rng, Options& o) {
  o.net.paths = pick<uint32_t>(rng, {2, 2, 3, 4, 8});
  o.net.paths_by_address = !o.shared_port_ip && rng.chance(0.5);
  o.core.path_channels = pick<uint32_t>(rng, {64, 64, 3});
  o.core.spread = pick<Spread>(rng, {Spread::kPackets, Spread::kPackets, Spread::kMessages, Spread::kQueues});
  o.fault.path_faults = maybe<uint32_t>(rng, 0.7, {1, 3, 10, 30});
}

// The same, of several paths.
void draw_paths(Options& o) {
  Prng rng(o.seed ^ 0x9a745);
  if (!o.lossless && rng.chance(0.35)) draw_several_paths(rng, o);
}

// The same, of channels over UB's own network header.
void draw_cna(Options& o) {
  Prng rng(o.seed ^ 0xc4a24);
  o.core.cna = maybe<double>(rng, 0.3, {1, 1, 0.7});
}

// The same, of priorities.
double draw_priorities(uint64_t seed) {
  Prng rng(seed ^ 0x9810417);
  return maybe<double>(rng, 0.3, {0.3, 0.7, 1});
}

// The same, of the straight path.
Straight draw_straight(uint64_t seed) {
  Prng rng(seed ^ 0x57a1);
  return pick<Straight>(rng, {Straight::kAll, Straight::kAll, Straight::kSome, Straight::kNone});
}

// The same, of memory that is mapped.
double draw_mapped(uint64_t seed) {
  Prng rng(seed ^ 0x3a99);
  return maybe<double>(rng, 0.2, {0.5, 1});
}

// The same, of apertures.
ApertureOptions draw_aperture(const Options& o, double share) {
  Prng rng(o.seed ^ 0xa9e27);
  ApertureOptions a;
  const bool on = rng.chance(share);
  a.handles = pick<uint32_t>(rng, {1, 1, 2, 4});
  if (!on) a.handles = 0;
  a.calls = pick<uint32_t>(rng, {10, 40, 150});
  a.gap_ns = pick<uint64_t>(rng, {500, 5000, 50'000});
  a.burst = pick<uint32_t>(rng, {1, 8, 64, 100});
  a.large = pick<double>(rng, {0, 0.1, 0.5});
  a.load = pick<double>(rng, {0.2, 0.5, 0.9});
  a.wrong = maybe<double>(rng, 0.6, {0.02, 0.2});
  a.serve_ns = pick<uint64_t>(rng, {100, 2000, 20'000});
  a.stall = maybe<double>(rng, 0.6, {0.01, 0.1});
  a.stall_ns = pick<uint64_t>(rng, {50'000, 1'000'000, 1'000'000'000, 6'000'000'000});
  a.faults = maybe<uint32_t>(rng, 0.5, {1, 3, 8});
  a.frames = pick<float>(rng, {0.3F, 0.5F, 1.0F});
  a.shuts = maybe<uint32_t>(rng, 0.3, {1, 8});
  if (!o.lossless || o.busy) a.frames = 0;
  return a;
}

constexpr uint64_t kOtherSeeds = uint64_t{1} << 32;

void line(std::string& s, const char* name, double v) {
  char buf[96];
  std::snprintf(buf, sizeof buf, "  %-22s %.12g\n", name, v);
  s += buf;
}

}  // namespace

bool Options::mild() const {
  const bool reorders = net.reorder != 0 || net.reorder_packets != 0;
  // Each packet that comes late costs a timeout, and a READ has one deadline for all packets of a segment.
  if (core.go_back_n != 0 && !core.fast_retransmit && reorders) return false;
  return net.loss <= 0.03 && net.burst_start == 0 && net.corrupt <= 0.01 && net.lifetime == 0 &&
         net.reorder_ns <= 500'000 && net.queue_frames >= 4096 && host.tx_refuse <= 0.2 && host.pending_ns <= 200'000 &&
         work.err_timeout >= 17 && core.kept_packets >= 256 && net.path_mtu == 65535 && fault.partitions == 0;
}

Options Options::draw_for_programs(uint64_t seed) {
  Options o;
  o.seed = seed;
  Prng rng(seed ^ 0x0bde0bde);
  NetworkOptions& n = o.net;
  n.delay_ns = pick<uint64_t>(rng, {200, 2000, 10'000});
  n.jitter_ns = maybe<uint64_t>(rng, 0.5, {1000, 5000});
  n.ns_per_byte = maybe<double>(rng, 0.5, {0.08, 0.8});
  n.loss = maybe<double>(rng, 0.6, {0.01, 0.03});
  n.duplicate = maybe<double>(rng, 0.4, {0.05, 0.2});
  n.reorder = maybe<double>(rng, 0.6, {0.1, 0.5});
  n.reorder_ns = pick<uint64_t>(rng, {5000, 50'000, 500'000});
  o.host.pending = maybe<double>(rng, 0.6, {0.2, 0.5, 1.0});
  o.host.pending_ns = pick<uint64_t>(rng, {500, 5000, 200'000});
  o.core.lanes = pick<uint32_t>(rng, {1, 2, 2, 2});
  o.core.lane_bulk_bytes = pick<uint32_t>(rng, {1024, 4096});
  o.core.channels_per_lane = pick<uint32_t>(rng, {1, 1, 2, 4});
  o.core.fast_retransmit = rng.chance(0.75);
  o.work.sges = pick<uint32_t>(rng, {1, 2});
  o.work.poll_ns = pick<uint64_t>(rng, {100, 2000, 50'000});
  o.work.starve = 1;  // programs post their receives
  o.work.min_rnr_timer = pick<uint8_t>(rng, {1, 6});
  o.core.rol = maybe<double>(rng, 0.5, {1});
  if (rng.chance(0.15)) {
    o.lossless = o.compact = true;
    n.loss = n.duplicate = n.reorder = o.host.pending = 0;
  } else if (rng.chance(0.2)) {
    o.compact = true;
    o.host.pending = 0;
  }
  draw_overtaking(rng, 0.3, o);
  o.core.go_back_n = maybe<double>(rng, 0.2, {0.5, 1});
  if (o.core.go_back_n != 0) o.core.fast_retransmit = true;  // see mild()
  if (rng.chance(0.3)) o.core.first_psn = static_cast<uint32_t>(0x1000000 - rng.between(1, 300));
  if (o.compact && o.lossless) o.core.compact_answers = rng.chance(0.5);
  o.core.straight = draw_straight(seed);
  o.core.mapped = draw_mapped(seed);
  draw_paths(o);
  if (o.net.paths > 1) draw_congestion(o);  // seeds with one path stay what they were before there were several
  return o;
}

Options Options::draw(uint64_t seed) {
  Options o;
  o.seed = seed;
  Prng rng(seed ^ 0x5eed0f0a11);
  o.nodes = pick<uint32_t>(rng, {2, 2, 2, 3, 5});
  o.ipv6 = rng.chance(0.2);
  o.shared_port_ip = rng.chance(0.2);
  o.mtu = pick<uint32_t>(rng, {1024, 1024, 2048, 4096, 8192});
  uint64_t wire_kind = rng.below(10);
  o.icrc_optional = wire_kind < 3;
  o.lossless = wire_kind < 2;
  draw_network(rng, o);
  draw_host_and_core(rng, o);
  draw_workload(rng, o);
  draw_faults(rng, o);
  draw_applications(rng, o);
  draw_roce(rng, o);
  draw_roce_services(rng, o);
  draw_bursts(rng, o);
  draw_busy(rng, o);
  o.work.suspends = maybe<double>(rng, 0.3, {0.3, 1.0});
  o.work.completes_early = maybe<double>(rng, 0.3, {0.3, 1.0});
  o.core.rol = maybe<double>(rng, 0.5, {1, 1, 0.7});
  draw_rot(rng, o);
  draw_segments(rng, o);
  draw_compact(rng, o);
  if (!o.busy) o.fault.resets = maybe<uint32_t>(rng, 0.5, {2, 6, 20});
  if (o.work.rot != 0) o.fault.resets /= 4;  // such a queue may keep its order itself from then on
  if (!o.busy) o.fault.rotations = maybe<uint32_t>(rng, 0.4, {2, 6, 20});
  o.core.go_back_n = maybe<double>(rng, 0.25, {0.5, 1, 1});
  o.core.loss_window = rng.chance(0.8);
  if (!o.busy && o.work.qp_pairs == 0) draw_overtaking(rng, 0.2, o);  // queue pairs would go back each time
  if (o.compact && o.lossless && rng.chance(0.7)) draw_compact_rol(rng, o);
  // Where the wire takes no time, long messages that are refused would come again faster than the run gets on.
  if (o.net.ns_per_byte == 0 && o.work.send_cap >= 20'000)
    o.work.min_rnr_timer = std::max<uint8_t>(o.work.min_rnr_timer, 6);
  o.core.questions_until_calm = draw_calm(o.seed);
  draw_congestion(o);
  draw_paths(o);
  draw_cna(o);
  o.work.priorities = draw_priorities(o.seed);
  o.core.straight = draw_straight(o.seed);
  o.core.mapped = draw_mapped(o.seed);
  o.aperture = draw_aperture(o, o.busy ? 0 : 0.1);
  return o;
}

// Three seeds of four have a wire that carries frames of loads and stores.
Options Options::draw_apertures(uint64_t seed) {
  Options o = draw_rol_by_ctp(seed);
  if (seed % 4 == 0) o = draw(seed);
  o.work.requests = std::min(o.work.requests, 30u);
  if (seed % 8 == 0) o = draw_queue_path(seed);
  o.aperture = draw_aperture(o, 1);
  Prng rng(seed ^ 0xdead);
  if (rng.chance(0.3)) o.fault.crashes = pick<uint32_t>(rng, {1, 2, 4});
  return o;
}

// What an aperture does where neither lane nor frames serve: blocks by READ and WRITE, and atomics, of queues of RM, on
// a wire with all faults at once.
Options Options::draw_queue_path(uint64_t seed) {
  Options o = draw(seed);
  for (uint64_t n = 1; o.busy || o.lossless; ++n) o = draw(seed + n * kOtherSeeds);
  Prng rng(seed ^ 0x90e0e);
  o.seed = seed;
  NetworkOptions& n = o.net;
  n.loss = pick<double>(rng, {0.001, 0.01, 0.05});
  n.duplicate = pick<double>(rng, {0.01, 0.1, 0.3});
  n.reorder = pick<double>(rng, {0.01, 0.1, 0.3});
  n.lifetime = pick<double>(rng, {0, 0.0005, 0.005});
  n.corrupt = o.icrc_optional ? 0 : pick<double>(rng, {0.001, 0.01});
  if (!o.compact) o.fault.partitions = pick<uint32_t>(rng, {0, 1, 3});
  o.fault.crashes = pick<uint32_t>(rng, {0, 1, 2});
  WorkloadOptions& w = o.work;
  w.requests = pick<uint32_t>(rng, {60, 120, 250});
  w.queues_per_app = std::max(w.queues_per_app, 2u);
  w.rc = w.um = w.rot = 0;
  w.jfs = 0.7;
  w.size_cap = 8192;
  w.qp_pairs = w.ud_queues = w.connects = 0;
  w.weight_write = w.weight_read = w.weight_atomic = 4;
  w.weight_write_imm = w.weight_notify = w.weight_send = w.weight_send_imm = w.weight_nop = 0;
  return o;
}

Options Options::draw_repeated(uint64_t seed) {
  Options o = draw(seed);
  Prng rng(seed ^ 0xd0b1ed);
  NetworkOptions& n = o.net;
  n.loss = pick<double>(rng, {0.001, 0.01});
  n.duplicate = pick<double>(rng, {0.1, 0.3, 0.6});
  n.reorder = pick<double>(rng, {0.05, 0.3});
  n.reorder_ns = pick<uint64_t>(rng, {50'000, 500'000, 5'000'000});
  n.lifetime = pick<double>(rng, {0.0005, 0.005});
  o.lossless = false;
  o.aperture.frames = 0;  // they need a wire that doubles nothing
  if (o.busy) return o;  // which requests keep a channel busy is drawn with it
  o.work.weight_send = std::max(o.work.weight_send, 5u);
  o.work.weight_atomic = std::max(o.work.weight_atomic, 5u);
  return o;
}

Options Options::draw_rol_by_ctp(uint64_t seed) {
  Options o = draw(seed);
  for (uint64_t n = 1; o.busy; ++n) o = draw(seed + n * kOtherSeeds);  // those have one lane
  Prng rng(seed ^ 0xc7b07d3);
  const NetworkOptions n = o.net;
  o.seed = seed;
  o.lossless = o.compact = true;
  o.net = NetworkOptions{.delay_ns = n.delay_ns, .jitter_ns = n.jitter_ns, .ns_per_byte = n.ns_per_byte,
                         .queue_frames = n.queue_frames, .mark = n.mark};
  o.host.pending = 0;
  o.fault.partitions = o.fault.path_faults = 0;
  o.work.queues_per_app = std::max(o.work.queues_per_app, 1u);
  draw_compact_rol(rng, o);
  return o;
}

Options Options::draw_with_paths(uint64_t seed) {
  constexpr std::array kControls{cc::Control::kNone, cc::Control::kCaqm, cc::Control::kLdcp, cc::Control::kDcqcn,
                                 cc::Control::kSwift};
  Options o = draw(seed);
  for (uint64_t n = 1; o.lossless; ++n) o = draw(seed + n * kOtherSeeds);  // there is one path then
  Prng rng(seed ^ 0x9a75);
  o.seed = seed;
  draw_several_paths(rng, o);
  o.fault.path_faults = std::max(o.fault.path_faults, 1u);
  o.work.control = kControls[seed % kControls.size()];
  o.net.mark = maybe<double>(rng, 0.7, {0.001, 0.01, 0.1, 0.5});
  o.net.refuse = maybe<double>(rng, 0.5, {0.1, 0.9, 1});
  return o;
}

std::string Options::text() const {
  std::string s;
#define LINE(field) line(s, #field, static_cast<double>(field))
  LINE(busy), LINE(nodes), LINE(ipv6), LINE(shared_port_ip), LINE(mtu), LINE(icrc_optional), LINE(lossless);
  LINE(compact), LINE(core.compact_repeats), LINE(core.compact_answers), LINE(core.straight), LINE(core.bells_send);
  LINE(core.mapped);
  LINE(net.loss), LINE(net.burst_start), LINE(net.burst_packets), LINE(net.duplicate), LINE(net.reorder);
  LINE(net.corrupt), LINE(net.lifetime), LINE(net.delay_ns), LINE(net.jitter_ns), LINE(net.reorder_ns);
  LINE(net.ns_per_byte), LINE(net.queue_frames), LINE(net.path_mtu), LINE(net.reorder_packets);
  LINE(net.reorder_wait_ns);
  LINE(host.pending), LINE(host.pending_ns), LINE(host.tx_refuse), LINE(host.tx_room_ns), LINE(host.burst_ns);
  LINE(core.window_packets), LINE(core.lanes), LINE(core.lane_bulk_bytes), LINE(core.channels_per_lane);
  LINE(core.questions_until_calm);
  LINE(core.fast_retransmit), LINE(core.go_back_n), LINE(core.loss_window), LINE(core.read_jobs);
  LINE(core.kept_packets), LINE(core.kept_small_packets), LINE(core.keepalive_ns);
  LINE(core.first_psn), LINE(core.segment_bytes), LINE(core.rol), LINE(core.cna);
  LINE(work.requests), LINE(work.apps_per_node), LINE(work.queues_per_app), LINE(work.rc), LINE(work.jfs);
  LINE(work.um), LINE(work.size_cap), LINE(work.send_cap), LINE(work.large), LINE(work.batch), LINE(work.gap_ns);
  LINE(work.unsignaled), LINE(work.fence), LINE(work.strong), LINE(work.relaxed), LINE(work.inlined);
  LINE(work.sges), LINE(work.comp_order), LINE(work.overlap), LINE(work.wrong), LINE(work.wrong_local);
  LINE(work.too_long), LINE(work.weight_write), LINE(work.weight_write_imm), LINE(work.weight_notify);
  LINE(work.weight_read), LINE(work.weight_send), LINE(work.weight_send_imm), LINE(work.weight_atomic);
  LINE(work.sq_depth), LINE(work.rq_depth), LINE(work.jfc_depth), LINE(work.starve), LINE(work.poll_ns);
  LINE(work.poll_batch), LINE(work.rnr_retry), LINE(work.err_timeout), LINE(work.min_rnr_timer);
  LINE(work.suspends), LINE(work.completes_early), LINE(work.rot), LINE(work.priorities);
  LINE(work.required_token), LINE(work.late_token), LINE(work.odd_address), LINE(work.fetched), LINE(work.qp_pairs),
      LINE(work.srq);
  LINE(work.roce_mtu), LINE(work.roce_timeout), LINE(work.roce_reads), LINE(work.roce_retry_cnt);
  LINE(work.roce_ack_every), LINE(work.ud_queues), LINE(work.connects), LINE(work.hang_up), LINE(work.reject);
  LINE(work.cm_tries), LINE(work.cm_table), LINE(work.dcqcn), LINE(work.control), LINE(work.line_rate), LINE(net.mark);
  LINE(net.refuse), LINE(net.paths), LINE(net.paths_by_address), LINE(core.path_channels), LINE(core.spread);
  LINE(fault.path_faults);
  LINE(fault.partitions), LINE(fault.partition_ns), LINE(fault.app_kills), LINE(fault.crashes);
  LINE(fault.flushes), LINE(fault.jfr_flushes), LINE(fault.resets), LINE(fault.rotations), LINE(fault.unregisters),
      LINE(fault.closes), LINE(fault.span_ns);
  LINE(fault.hostile), LINE(fault.hostile_acts), LINE(fault.meddle);
  LINE(aperture.handles), LINE(aperture.frames), LINE(aperture.calls), LINE(aperture.gap_ns), LINE(aperture.burst);
  LINE(aperture.large);
  LINE(aperture.load), LINE(aperture.wrong), LINE(aperture.serve_ns), LINE(aperture.stall);
  LINE(aperture.stall_ns), LINE(aperture.faults), LINE(aperture.shuts);
#undef LINE
  s += mild() ? "  (mild: timeouts are forbidden)\n" : "";
  return s;
}

}  // namespace ub::sim
