// SPDX-License-Identifier: Apache-2.0
//
// Memory whose latency is longer than the time of a packet on the wire: packets of a channel or of a queue pair are
// gathered together.
#include "tests/sim/roce_stage.h"

namespace ub::sim {
namespace {

constexpr int kRequests = 128;
constexpr uint32_t kRequestBytes = 64 * 1024;
constexpr double kSecondsPerByte = 0.08e-9;

// 100 Gb/s, with packets of 4 KiB.
Options fast_wire(Options o, uint64_t gather_ns) {
  o.mtu = 4096;
  o.lossless = true;
  o.net.ns_per_byte = kSecondsPerByte * 1e9;
  o.host.gather_ns = gather_ns;
  return o;
}

// Virtual seconds for WRITEs of 64 KiB on one channel.
double seconds_for(uint64_t gather_ns) {
  Stage s(fast_wire(directed_options(), gather_ns));
  const End a = s.equip(*s.a().node, usual_queue(), usual_jfr(), 32 << 20);
  const End b = s.equip(*s.b().node, usual_queue(), usual_jfr(), 32 << 20);
  s.request(a, b, WrOp::kWrite, kRequestBytes);
  s.finish();
  s.quiet();
  std::vector<const Wr*> all;
  for (int i = 0; i < kRequests; ++i) all.push_back(&s.request(a, b, WrOp::kWrite, kRequestBytes));
  const double seconds = s.finish();
  for (const Wr* w : all) EXPECT_EQ(w->status, CrStatus::kSuccess);
  EXPECT_EQ(Stage::count(a, Counter::kTpTimeout), 0u);
  s.check_memory();
  return seconds;
}

// The same on one queue pair.
double seconds_for_roce(uint64_t gather_ns) {
  Options o = fast_wire(roce_options(), gather_ns);
  o.work.roce_mtu = 4096;
  RoceStage s(o, 7, 64 << 20);
  std::vector<const Wr*> all;
  for (int i = 0; i < kRequests; ++i) all.push_back(&s.add(WrOp::kWrite, kRequestBytes));
  s.ring();
  const double seconds = s.finish();
  for (const Wr* w : all) EXPECT_EQ(w->status, CrStatus::kSuccess);
  EXPECT_EQ(s.sent(Counter::kRoceTimeout) + s.sent(Counter::kRoceTxRetransmit), 0u);
  s.check_memory();
  return seconds;
}

void expect_99_percent(double at_once, double slow) {
  const double least = double{kRequests} * kRequestBytes * kSecondsPerByte;
  EXPECT_GT(at_once, least) << "as fast as the wire, and no faster";
  EXPECT_LT(at_once, least * 1.1) << "nothing else holds it back";
  EXPECT_GE(at_once / slow, 0.99) << at_once * 1e6 << " us, with slow memory " << slow * 1e6 << " us";
}

TEST(SlowMemory, gathers_of_a_microsecond__leave_99_percent_of_the_rate) {
  expect_99_percent(seconds_for(0), seconds_for(1000));
}

TEST(SlowMemory, gathers_of_a_microsecond__leave_99_percent_of_the_rate_of_a_queue_pair) {
  expect_99_percent(seconds_for_roce(0), seconds_for_roce(1000));
}

}  // namespace
}  // namespace ub::sim
