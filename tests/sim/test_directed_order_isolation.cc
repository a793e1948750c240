// SPDX-License-Identifier: Apache-2.0
//
// Who waits for an order waits alone (UB Base Specification Rev 2.0, 7.3.2): queues on the same channel as one whose
// requests are held for good, or whose completions wait for an older one, keep their rate. In RC the channel is one of
// ROL, which a refusal freezes for a round trip.
#include <algorithm>
#include <cstdio>

#include "tests/sim/directed.h"

namespace ub::sim {
namespace {

constexpr int kQueues = 8, kRequests = 200;
constexpr double kSecondsPerByte = 0.08e-9;  // 100 Gb/s

Options fast_wire() {
  Options o = directed_options();
  o.core.rol = 1;
  o.mtu = 4096;
  o.lossless = true;
  o.net.ns_per_byte = kSecondsPerByte * 1e9;
  o.work.poll_ns = 20;  // so that the end is seen when it comes
  return o;
}

// Refuses for 8 ms, so that the messages that are asked for again and again take nothing of the wire.
JfrSpec slow_jfr() {
  JfrSpec r = usual_jfr();
  r.min_rnr_timer = 12;
  return r;
}

QueueSpec queue_of(Mode mode) {
  QueueSpec q = usual_queue();
  q.mode = mode;
  return q;
}
JfrSpec in_mode(Mode mode, JfrSpec r) {
  r.mode = mode;
  return r;
}

// Between two nodes: one queue that a test stalls, and eight others beside it.
struct Crowd : Stage {
  explicit Crowd(Mode mode) : Stage(fast_wire()) {
    stalled = equip(*a().node, queue_of(mode), in_mode(mode, usual_jfr()));
    receiver = equip(*b().node, queue_of(mode), in_mode(mode, slow_jfr()));
    bind_in_rc(stalled, receiver);
    for (int i = 0; i < kQueues; ++i) {
      senders.push_back(with_memory(*a().node, mode));
      targets.push_back(with_memory(*b().node, mode));
      bind_in_rc(senders.back(), targets.back());
    }
    receiver.give_receives(1);
    request(stalled, receiver, WrOp::kSend, 8);
    for (int i = 0; i < kQueues; ++i) request(senders[i], targets[i], WrOp::kWrite, 8);
    finish();
    quiet();
  }
  End with_memory(Node& node, Mode mode) {
    return equip(node, queue_of(mode), in_mode(mode, usual_jfr()), 16 << 20);
  }
  static void bind_in_rc(const End& x, const End& y) {
    if (x.queue->mode != Mode::kRc) return;
    x.node->bind(x.queue, y.queue);
    y.node->bind(y.queue, x.queue);
  }
  // Nobody gives a receive: the message is asked for again and again, and what has to come after it stays where it is.
  void stall(const RequestSpec& message, WrOp behind, const RequestSpec& spec) {
    held.push_back(&request(stalled, receiver, WrOp::kSend, 8, message));
    for (int i = 0; i < 100; ++i) held.push_back(&request(stalled, receiver, behind, 8, spec));
    world.run_for(milliseconds(1));
  }
  double seconds_for_others(uint32_t bytes) { return seconds_to_write(senders, targets, kRequests, bytes); }
  void none_of_the_held_has_ended() const {
    for (const Wr* w : held) EXPECT_EQ(w->state, Wr::State::kOutstanding) << op_name(w->op);
  }
  void go_on() {
    receiver.give_receives(101);
    finish();
    for (const Wr* w : held) EXPECT_EQ(w->status, CrStatus::kSuccess) << op_name(w->op);
    check_memory();
  }

  End stalled, receiver;
  std::vector<End> senders, targets;
  std::vector<const Wr*> held;
};

RequestSpec strong() {
  RequestSpec s;
  s.order = 2;
  return s;
}
RequestSpec receives_in_order() {
  RequestSpec s;
  s.comp_order = true;
  return s;
}

void others_keep_99_percent(Mode mode, uint32_t bytes, const RequestSpec& message, WrOp behind,
                            const RequestSpec& spec) {
  Crowd alone(mode);
  const double before = alone.seconds_for_others(bytes);
  Crowd beside(mode);
  beside.stall(message, behind, spec);
  const double with = beside.seconds_for_others(bytes);
  beside.none_of_the_held_has_ended();
  EXPECT_GE(before / with, 0.99) << bytes << " B: " << before * 1e6 << " us alone, " << with * 1e6 << " us";
  std::printf("%s, %u B: %.1f %% of the rate\n", mode == Mode::kRm ? "RM" : "RC", bytes, 100 * before / with);
  beside.go_on();
}

void others_keep_99_percent(const RequestSpec& message, WrOp behind, const RequestSpec& spec) {
  for (const Mode mode : {Mode::kRm, Mode::kRc}) {
    for (const uint32_t bytes : {64u, 16'384u}) others_keep_99_percent(mode, bytes, message, behind, spec);
  }
}

TEST(OrderIsolation, a_stalled_strong_order__leaves_others_99_percent) {
  others_keep_99_percent(strong(), WrOp::kWrite, strong());
}

TEST(OrderIsolation, receives_in_order_that_nobody_gives__leave_others_99_percent) {
  others_keep_99_percent(receives_in_order(), WrOp::kSend, receives_in_order());
}

// A gap in the completions of a queue: the WRITEs behind have been executed, and are reported after the message.
TEST(OrderIsolation, a_gap_in_the_completions_of_a_queue__leaves_others_99_percent) {
  others_keep_99_percent({}, WrOp::kWrite, {});
}

}  // namespace
}  // namespace ub::sim
