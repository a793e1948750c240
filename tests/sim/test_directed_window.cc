// SPDX-License-Identifier: Apache-2.0
//
// Both edges of the receive window (UB Base Specification Rev 2.0, 6.4.1), while its first packet is missing: the
// packet at the last place, the one behind it, and those before the first one.
#include <cstring>
#include <map>

#include "tests/sim/at_rest.h"
#include "tests/sim/directed.h"

namespace ub::sim {
namespace {

constexpr uint32_t kWindow = 128;

Options options_of(bool go_back_n) {
  Options o = directed_options();
  o.core.window_packets = kWindow;
  o.core.loss_window = false;
  o.core.go_back_n = go_back_n ? 1 : 0;
  return o;
}

// A long WRITE whose first packet does not arrive, until it is repaired. All that the window holds has been sent.
struct GapStage : Stage {
  explicit GapStage(bool go_back_n = false) : Stage(options_of(go_back_n)) {
    warm_up();
    world.network.tamper.add(drop(kAlways, from(0, [this](const PacketInfo& p) { return is_missing(p); })));
    write(1 << 20);
    EXPECT_TRUE(world.run_for(milliseconds(1)));
  }

  bool is_missing(const PacketInfo& p) {
    if (!p.request()) return false;
    if (frames.empty()) missing = p.rtp.psn;
    const uint32_t ahead = p.rtp.psn.distance(missing);
    frames[ahead] = {p.frame.begin(), p.frame.end()};
    ++times_sent[ahead];
    return ahead == 0;
  }
  // A packet of the window comes once more, as if it had a PSN so far from the missing one.
  void inject(uint32_t of_place, int32_t ahead) {
    std::vector<std::byte> frame = frames.at(of_place);
    const PacketInfo p = inspect(0, 1, frame);
    wire::RtpHeader rtp = p.rtp;
    rtp.psn = missing + ahead;
    rtp.write(frame.data() + (p.net.tph - frame.data()));
    reseal(frame);
    world.network.inject(0, frame);
    EXPECT_TRUE(world.run_for(microseconds(50)));
  }
  void repair() {
    world.network.tamper.clear();
    finish();
    check_memory();
    check_quiet_state(world);
  }

  Psn missing;
  std::map<uint32_t, std::vector<std::byte>> frames;  // by place in the window
  std::map<uint32_t, uint32_t> times_sent;
};

TEST(WindowEdges, the_last_place_is_used_and_no_packet_behind_it) {
  GapStage s;
  EXPECT_EQ(s.frames.rbegin()->first, kWindow - 1);
  // A bitmap of 128 bits does not say of the last one whether it has arrived, so a probe may send it again.
  for (uint32_t place = 1; place < kWindow - 1; ++place) EXPECT_EQ(s.times_sent[place], 1u) << place;
  s.repair();
  EXPECT_EQ(s.count(s.b(), Counter::kTpRxBeyondWindow), 0u);
}

TEST(WindowEdges, a_packet_behind_the_last_place_is_dropped_and_changes_nothing) {
  GapStage s;
  const uint64_t accepted = s.count(s.b(), Counter::kTpRxData);
  s.inject(1, kWindow);
  s.inject(1, Psn::kHalf - 1);
  EXPECT_EQ(s.count(s.b(), Counter::kTpRxBeyondWindow), 2u);
  EXPECT_EQ(s.count(s.b(), Counter::kTpRxData), accepted);
  s.repair();
}

TEST(WindowEdges, duplicates_at_the_last_place_and_before_the_first_one_are_known) {
  GapStage s;
  const uint64_t accepted = s.count(s.b(), Counter::kTpRxData), duplicates = s.count(s.b(), Counter::kTpRxDuplicate);
  s.inject(kWindow - 1, kWindow - 1);
  s.inject(1, 1);
  s.inject(1, -1);  // the bytes of another packet: nobody looks at them
  s.inject(1, -int32_t{Psn::kHalf} + 1);
  EXPECT_GE(s.count(s.b(), Counter::kTpRxDuplicate), duplicates + 4) << "and perhaps those of probes";
  EXPECT_EQ(s.count(s.b(), Counter::kTpRxData), accepted);
  s.repair();
}

TEST(WindowEdges, of_go_back_n_are_the_same_and_what_lies_between_is_discarded) {
  GapStage s(true);
  EXPECT_EQ(s.frames.rbegin()->first, kWindow - 1);
  const uint64_t discarded = s.count(s.b(), Counter::kTpRxDiscarded);
  EXPECT_GE(discarded, kWindow - 1);
  s.inject(kWindow - 1, kWindow - 1);
  EXPECT_GE(s.count(s.b(), Counter::kTpRxDiscarded), discarded + 1);
  s.inject(1, kWindow);
  EXPECT_EQ(s.count(s.b(), Counter::kTpRxBeyondWindow), 1u);
  const uint64_t duplicates = s.count(s.b(), Counter::kTpRxDuplicate);
  s.inject(1, -1);
  EXPECT_EQ(s.count(s.b(), Counter::kTpRxDuplicate), duplicates + 1);
  s.repair();
}

}  // namespace
}  // namespace ub::sim
