// SPDX-License-Identifier: Apache-2.0
//
// Setting up connections: tasks, dealt in turn to workers, each of which does one after the other. Whoever waits for
// them looks from time to time. Only the look that sees all of them done is an event.
#include "emu_hw/kernel/clock_domain.h"
#include "emu_hw/kernel/task.h"
#include "emu_hw/models/model.h"
#include "emu_hw/models/populations.h"

namespace ub::emu {
namespace {

// What an object takes to be set up.
struct Kind {
  uint64_t ioctls, round_trips;
};
constexpr Kind kJetty{1, 0}, kChannel{1, 1}, kQueuePair{4, 1};

// The objects of a stack: so many of one kind, then so many of another one.
struct Objects {
  uint64_t firsts;
  Kind first;
  uint64_t others;
  Kind other;

  uint64_t count() const { return firsts + others; }
  Kind kind(uint64_t number) const { return number < firsts ? first : other; }
};

Objects objects_of(const Point& point) {
  const uint64_t n = applications(point.parameters), m = remote_hosts(point.parameters);
  if (point.stack == "ub") return {n, kJetty, m, kChannel};
  if (point.stack == "roce") return {n * m, kQueuePair, 0, {}};
  throw BadPoint("there is no stack " + point.stack + " that is set up; there are ub, roce");
}

class Setup {
 public:
  Setup(Kernel& kernel, const Parameters& p, const Objects& objects) : kernel_(kernel), p_(p), objects_(objects) {}

  Task work(uint64_t worker) {
    for (uint64_t number = worker; number < objects_.count(); number += p_.cpus) {
      const Kind kind = objects_.kind(number);
      for (uint64_t i = 0; i < kind.ioctls; ++i) co_await delay(kernel_, p_.ioctl, "setup.ioctl");
      for (uint64_t i = 0; i < kind.round_trips; ++i) co_await delay(kernel_, p_.oob_rtt, "setup.oob");
      last_done_ = kernel_.now();
    }
    if (++idle_workers_ == p_.cpus) spawn(kernel_, look());
  }
  Time seen() const { return seen_; }

 private:
  // The first one behind what was done last.
  Task look() {
    constexpr Span kBehind = picoseconds(1);
    const ClockDomain looks({1'000'000'000'000, p_.setup_poll.ps});
    const Span span = kBehind + looks.to_edge(after(last_done_, kBehind, "setup.poll"));
    co_await delay(kernel_, span, "setup.poll");
    seen_ = kernel_.now();
  }

  Kernel& kernel_;
  const Parameters& p_;
  const Objects objects_;
  uint64_t idle_workers_ = 0;
  Time last_done_, seen_;
};

}  // namespace

PointResult run_setup(const Point& point) {
  const Parameters& p = point.parameters;
  if (p.setup_poll.ps == 0) throw BadPoint("setup_poll = 0: whoever never waits sees nothing; give at least 0.001 ns");
  constexpr uint64_t kMostObjects = 10'000'000;
  const Objects objects = objects_of(point);
  if (objects.count() > kMostObjects)
    throw BadPoint("active_connections, remote_hosts: " + std::to_string(objects.count()) +
                   " objects are too many to set up each; give numbers that make up to " +
                   std::to_string(kMostObjects) + ", or choose the model setup_formula");
  Kernel kernel;
  Setup setup(kernel, p, objects);
  for (uint64_t worker = 0; worker < p.cpus; ++worker) spawn(kernel, setup.work(worker));
  kernel.run();
  PointResult result;
  result.values = {{"setup_ns", (setup.seen() - Time{}).ns()}};
  result.events = kernel.events_run();
  return result;
}

PointResult run_setup_formula(const Point& point) {
  const Parameters& p = point.parameters;
  const Objects objects = objects_of(point);
  const auto all = [&](uint64_t count, const Kind& kind) {
    return static_cast<double>(count) * (p.ioctl * kind.ioctls + p.oob_rtt * kind.round_trips).ns();
  };
  PointResult result;
  result.values = {{"setup_ns", all(objects.firsts, objects.first) + all(objects.others, objects.other)}};
  return result;
}

}  // namespace ub::emu
