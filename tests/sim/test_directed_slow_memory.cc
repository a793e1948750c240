// SPDX-License-Identifier: Apache-2.0
//
// Memory whose latency is longer than the time of a packet on the wire: packets of one channel are gathered together.
#include "tests/sim/directed.h"

namespace ub::sim {
namespace {

// Virtual seconds for WRITEs of 64 KiB on one channel, at 100 Gb/s with packets of 4 KiB.
double seconds_for(uint64_t gather_ns) {
  Options o = directed_options();
  o.mtu = 4096;
  o.lossless = true;
  o.net.ns_per_byte = 0.08;
  o.host.gather_ns = gather_ns;
  Stage s(o);
  const End a = s.equip(*s.a().node, Stage::usual_queue(), Stage::usual_jfr(), 32 << 20);
  const End b = s.equip(*s.b().node, Stage::usual_queue(), Stage::usual_jfr(), 32 << 20);
  s.request(a, b, WrOp::kWrite, 64 * 1024);
  s.finish();
  s.quiet();
  std::vector<const Wr*> all;
  for (int i = 0; i < 128; ++i) all.push_back(&s.request(a, b, WrOp::kWrite, 64 * 1024));
  const double seconds = s.finish();
  for (const Wr* w : all) EXPECT_EQ(w->status, CrStatus::kSuccess);
  EXPECT_EQ(Stage::count(a, Counter::kTpTimeout), 0u);
  s.check_memory();
  return seconds;
}

TEST(SlowMemory, gathers_of_a_microsecond__leave_99_percent_of_the_rate) {
  const double at_once = seconds_for(0);
  const double slow = seconds_for(1000);
  EXPECT_GT(at_once, 128 * 65536 * 0.08e-9) << "as fast as the wire, and no faster";
  EXPECT_GE(at_once / slow, 0.99) << at_once * 1e6 << " us, with slow memory " << slow * 1e6 << " us";
}

}  // namespace
}  // namespace ub::sim
