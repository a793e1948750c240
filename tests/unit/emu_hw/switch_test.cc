// SPDX-License-Identifier: Apache-2.0
// Links that send one packet after the other, and the ports of a switch.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "emu_hw/parts/link.h"
#include "emu_hw/parts/switch.h"
#include "tests/unit/wire/wire_test_util.h"

namespace ub::emu {
namespace {

constexpr Span kBegin = picoseconds(100'000);
constexpr uint32_t kHere = 1, kThere = 2, kElsewhere = 3;

struct Rig {
  // Late enough that a packet can have come over a link.
  explicit Rig(const Parameters& parameters = {}) : p(parameters) {
    spawn(kernel, wait());
    kernel.run();
  }
  Task wait() { co_await delay(kernel, kBegin, "the test"); }

  Operation& operation() {
    operations.push_back(std::make_unique<Operation>(operations.size(), kHere, Verb::kWrite, 64, kernel.now()));
    return *operations.back();
  }

  Parameters p;
  Kernel kernel;
  std::vector<std::unique_ptr<Operation>> operations;
};

// When each of the packets, which come to a switch at these times, is through. Both count from kBegin.
struct Passed {
  uint64_t comes_at;
  uint32_t to, bytes;
};

Task pass(Rig& rig, Switch& through, Passed packet, uint64_t* left_at) {
  co_await delay(rig.kernel, picoseconds(packet.comes_at), "the test");
  Train train;
  co_await through.pass(rig.operation(), kHere, packet.to, packet.bytes, train);
  *left_at = (rig.kernel.now() - Time{kBegin.ps}).ps;
}

std::vector<uint64_t> pass_all(Rig& rig, Switch& through, const std::vector<Passed>& packets) {
  std::vector<uint64_t> left_at(packets.size());
  for (size_t i = 0; i < packets.size(); ++i) spawn(rig.kernel, pass(rig, through, packets[i], &left_at[i]));
  rig.kernel.run();
  return left_at;
}

TEST(Switch, a_packet_that_meets_no_other_passes_at_once) {
  Rig rig;
  Switch through(rig.kernel, rig.p, kCluster);
  EXPECT_EQ(pass_all(rig, through, {{5000, kThere, 64}, {6280, kThere, 64}}), (std::vector<uint64_t>{5000, 6280}));
}

TEST(Switch, packets_to_one_host_leave_one_after_the_other) {
  Rig rig;
  Switch through(rig.kernel, rig.p, kCluster);
  EXPECT_EQ(pass_all(rig, through, {{5000, kThere, 64}, {5000, kThere, 64}, {5000, kThere, 1024}, {6279, kThere, 64}}),
            (std::vector<uint64_t>{5000, 6280, 26760, 28040}));
  EXPECT_EQ(through.most_queued(), 64u + 64 + 1024);
}

TEST(Switch, packets_to_several_hosts_do_not_wait_for_each_other) {
  Rig rig;
  Switch through(rig.kernel, rig.p, kCluster);
  EXPECT_EQ(pass_all(rig, through, {{5000, kThere, 64}, {5000, kElsewhere, 64}}), (std::vector<uint64_t>{5000, 5000}));
  EXPECT_EQ(through.most_queued(), 64u);
}

TEST(Switch, takes_a_time_of_its_own) {
  Parameters p;
  p.switch_delay = picoseconds(300'000);
  Rig rig(p);
  Switch through(rig.kernel, rig.p, kCluster);
  EXPECT_EQ(pass_all(rig, through, {{5000, kThere, 64}}), (std::vector<uint64_t>{305'000}));
}

// One frame for each packet of 1000 bytes that comes at one time; which of them are marked?
std::vector<bool> marks(Rig& rig, const wire::Bytes& frame, int packets) {
  Switch through(rig.kernel, rig.p, kCluster);
  std::vector<bool> all;
  uint64_t before = 0;
  for (int i = 0; i < packets; ++i) {
    Train train{{0, frame}};
    through.pass(rig.operation(), kHere, kThere, 1000, train).await_ready();
    all.push_back(train.front().bytes != frame);
    EXPECT_EQ(through.marked(), before += all.back());
  }
  return all;
}

wire::Bytes frame_with(uint8_t ecn) { return wire::frame_of(wire::template_v4(), wire::Bytes(958), ecn); }

TEST(Switch, marks_what_has_many_bytes_in_front) {
  Parameters p;
  p.switch_mark_above = p.switch_mark_all_from = 3000;
  Rig rig(p);
  EXPECT_EQ(marks(rig, frame_with(wire::kEcnEct0), 6), (std::vector<bool>{false, false, false, false, true, true}));
}

TEST(Switch, marks_nothing_unless_told_to) {
  Rig rig;
  EXPECT_EQ(marks(rig, frame_with(wire::kEcnEct0), 3), (std::vector<bool>{false, false, false}));
}

TEST(Switch, marks_only_frames_whose_sender_allows_it) {
  Parameters p;
  p.switch_mark_all_from = 1;
  Rig rig(p);
  EXPECT_EQ(marks(rig, frame_with(wire::kEcnNotCapable), 3), (std::vector<bool>{false, false, false}));
}

TEST(Switch, marks_some_between_the_thresholds) {
  Parameters p;
  p.switch_mark_all_from = 1'000'000;
  p.switch_mark_most = 1;
  Rig rig(p);
  const std::vector<bool> all = marks(rig, frame_with(wire::kEcnEct0), 1000);
  const auto first = std::count(all.begin(), all.begin() + 500, true);
  const auto second = std::count(all.begin() + 500, all.end(), true);
  EXPECT_NEAR(static_cast<double>(first), 125, 40);
  EXPECT_NEAR(static_cast<double>(second), 375, 40);
}

// ---- links --------------------------------------------------------------------------------------------------------

Task send(Rig& rig, Link& link, uint64_t* arrived_at) {
  co_await link.wire(rig.operation(), 64);
  *arrived_at = (rig.kernel.now() - Time{kBegin.ps}).ps;
}

std::vector<uint64_t> send_two(bool one_after_the_other) {
  Rig rig;
  Link link({rig.kernel, rig.p, kCluster, kHere});
  if (one_after_the_other) link.send_one_after_the_other();
  std::vector<uint64_t> arrived_at(2);
  for (uint64_t& at : arrived_at) spawn(rig.kernel, send(rig, link, &at));
  rig.kernel.run();
  return arrived_at;
}

TEST(Link, is_busy_with_no_other_packet) { EXPECT_EQ(send_two(false), (std::vector<uint64_t>{101'280, 101'280})); }

TEST(Link, sends_one_after_the_other_if_told_to) {
  EXPECT_EQ(send_two(true), (std::vector<uint64_t>{101'280, 102'560}));
}

}  // namespace
}  // namespace ub::emu
