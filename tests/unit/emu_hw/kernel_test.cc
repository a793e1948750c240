// SPDX-License-Identifier: Apache-2.0
// The event kernel: order, time, tasks, and the ends that an emulation can come to.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "emu_hw/kernel/clock_domain.h"
#include "emu_hw/kernel/random_stream.h"
#include "emu_hw/kernel/slots.h"
#include "emu_hw/kernel/task.h"
#include "emu_hw/kernel/wait_list.h"

namespace ub::emu {
namespace {

// ---- the queue ----------------------------------------------------------------------------------------------------

struct Numbered : Event {
  uint64_t at = 0;
  int number = 0;
};

// Against a stable sort, with times near and far and many ties, and pushes between pops.
TEST(EventQueue, is_in_the_order_of_time_and_of_coming) {
  Prng random(1);
  for (int round = 0; round < 200; ++round) {
    const uint64_t spread = uint64_t{1} << random.below(50);
    std::vector<Numbered> events(300);
    std::vector<const Numbered*> expected, popped;
    EventQueue queue;
    size_t pushed = 0;
    const auto push = [&] {
      Numbered& event = events[pushed];
      event.at = queue.now().ps + random.below(spread);
      event.number = static_cast<int>(pushed++);
      queue.push({event.at}, &event);
    };
    while (popped.size() < events.size()) {
      for (uint64_t more = random.below(5); more != 0 && pushed < events.size(); --more) push();
      if (queue.empty()) continue;
      const Time next = queue.next_time();
      const auto* event = static_cast<const Numbered*>(queue.pop());
      ASSERT_EQ(event->at, next.ps);
      ASSERT_EQ(queue.now(), next);
      popped.push_back(event);
    }
    EXPECT_TRUE(queue.empty());
    expected = popped;
    std::stable_sort(expected.begin(), expected.end(), [](const auto* a, const auto* b) {
      return a->at != b->at ? a->at < b->at : a->number < b->number;
    });
    EXPECT_EQ(popped, expected);
  }
}

TEST(EventQueue, looking_at_the_next_time_moves_nothing) {
  EventQueue queue;
  Numbered late, early;
  queue.push({1000}, &late);
  EXPECT_EQ(queue.next_time(), Time{1000});
  queue.push({10}, &early);
  EXPECT_EQ(queue.next_time(), Time{10});
  EXPECT_EQ(queue.pop(), &early);
  EXPECT_EQ(queue.pop(), &late);
}

// ---- clocks -------------------------------------------------------------------------------------------------------

TEST(ClockDomain, cycles_do_not_drift) {
  const ClockDomain nic({322'000'000, 1});
  EXPECT_EQ(nic.cycles(1).ps, 3106u);
  EXPECT_EQ(nic.cycles(322'000'000).ps, 1'000'000'000'000u);
  EXPECT_EQ(nic.cycles(0).ps, 0u);
  EXPECT_EQ(nic.cycles(1'000'000).ps, 3'105'590'063u);
}

TEST(ClockDomain, next_edge) {
  const ClockDomain nic({322'000'000, 1});
  EXPECT_EQ(nic.to_edge({0}).ps, 0u);
  EXPECT_EQ(nic.to_edge({1}).ps, 3105u);
  EXPECT_EQ(nic.to_edge({3106}).ps, 0u);
  EXPECT_EQ(nic.to_edge({3107}).ps, 6212u - 3107);
  for (uint64_t at = 0; at < 20000; at += 7) {
    const Span wait = nic.to_edge({at});
    EXPECT_LT(wait.ps, 3107u);
    EXPECT_EQ(nic.to_edge(Time{at + wait.ps}).ps, 0u);
  }
  EXPECT_EQ(cut_to_nanoseconds({77'999}).ps, 77'000u);
}

// ---- tasks --------------------------------------------------------------------------------------------------------

struct Thing final : Named {
  explicit Thing(std::string its_name) : text(std::move(its_name)) {}
  std::string name() const override { return text; }
  std::string text;
};

struct World {
  Kernel kernel;
  std::vector<std::string> log;
  void note(const std::string& what) { log.push_back(std::to_string(kernel.now().ps) + " " + what); }
};

Task step(World& world, std::string name, Span span) {
  world.note(name + " begins");
  co_await delay(world.kernel, span, "step");
  world.note(name + " ends");
}

Task two_steps(World& world) {
  Task first = step(world, "first", {30});
  co_await first;
  Task second = step(world, "second", {0});
  co_await second;
}

// By the ABI that event_queue.h names.
TEST(Task, a_frame_begins_with_the_function_that_resumes_it) {
  World world;
  spawn(world.kernel, step(world, "one", {5}));
  world.kernel.run();
  EXPECT_EQ(world.log, (std::vector<std::string>{"0 one begins", "5 one ends"}));
  EXPECT_EQ(world.kernel.events_run(), 2u);
}

TEST(Task, awaits_tasks_and_others_run_meanwhile) {
  World world;
  spawn(world.kernel, two_steps(world));
  spawn(world.kernel, step(world, "other", {10}));
  world.kernel.run();
  EXPECT_EQ(world.log, (std::vector<std::string>{"0 first begins", "0 other begins", "10 other ends", "30 first ends",
                                                 "30 second begins", "30 second ends"}));
}

Task fails(World& world) {
  co_await delay(world.kernel, {7}, "a fault");
  throw std::runtime_error("it broke");
}

Task awaits_failure(World& world) {
  Task task = fails(world);
  co_await task;
  world.note("not reached");
}

TEST(Task, an_error_ends_the_run) {
  World world;
  spawn(world.kernel, awaits_failure(world));
  spawn(world.kernel, step(world, "later", {8}));
  EXPECT_THROW(world.kernel.run(), std::runtime_error);
  EXPECT_EQ(world.kernel.now(), Time{7});
  world.kernel.run();
  EXPECT_EQ(world.log, (std::vector<std::string>{"0 later begins", "8 later ends"}));
}

TEST(Task, that_nobody_starts_is_destroyed) {
  World world;
  { Task never = step(world, "never", {1}); }
  EXPECT_TRUE(world.log.empty());
}

struct Leaves {
  World& world;
  ~Leaves() { world.note("leaves"); }
};

Task stays(World& world) {
  const Leaves leaves{world};
  co_await delay(world.kernel, {1000}, "stay");
}

Task stays_inside(World& world) {
  Task task = stays(world);
  co_await task;
}

TEST(Task, that_has_not_ended_is_destroyed_with_what_it_awaits) {
  World world;
  spawn(world.kernel, step(world, "one", {1}));
  spawn(world.kernel, stays_inside(world));
  spawn(world.kernel, stays(world));
  world.kernel.run({10});
  world.kernel.destroy_tasks();
  EXPECT_EQ(world.log, (std::vector<std::string>{"0 one begins", "1 one ends", "1 leaves", "1 leaves"}));
}

Task waits(World& world, WaitList& list, const Thing& who) {
  co_await list.wait(who);
  world.note(who.name());
}

TEST(WaitList, serves_in_the_order_of_coming_and_by_events) {
  World world;
  WaitList list(world.kernel, "a thing");
  const Thing a("a"), b("b");
  spawn(world.kernel, waits(world, list, a));
  spawn(world.kernel, waits(world, list, b));
  world.kernel.run();
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(&list.let_in_next(), &a);
  EXPECT_TRUE(world.log.empty());
  list.let_in_all();
  world.kernel.run();
  EXPECT_EQ(world.log, (std::vector<std::string>{"0 a", "0 b"}));
  EXPECT_TRUE(list.empty());
}

Task takes(World& world, Slots& slots, const Thing& who, Span span) {
  Slots::Place place = co_await slots.enter(who);
  world.note(who.name() + " enters");
  co_await delay(world.kernel, span, "a stay");
}

TEST(Slots, so_many_are_in_at_a_time) {
  World world;
  Slots slots(world.kernel, "a place", 2);
  const Thing a("a"), b("b"), c("c"), d("d");
  const std::pair<const Thing*, Span> stays[] = {{&a, {30}}, {&b, {10}}, {&c, {10}}, {&d, {10}}};
  for (const auto& [who, span] : stays) spawn(world.kernel, takes(world, slots, *who, span));
  world.kernel.run();
  EXPECT_EQ(world.log, (std::vector<std::string>{"0 a enters", "0 b enters", "10 c enters", "20 d enters"}));
}

// ---- ends ---------------------------------------------------------------------------------------------------------

TEST(Kernel, stops_before_the_end_that_was_given) {
  World world;
  spawn(world.kernel, step(world, "long", {100}));
  world.kernel.run({99});
  EXPECT_EQ(world.log, (std::vector<std::string>{"0 long begins"}));
  world.kernel.run({100});
  EXPECT_EQ(world.log.size(), 2u);
}

TEST(Kernel, time_beyond_its_end_is_an_error_with_a_name) {
  World world;
  spawn(world.kernel, step(world, "soon", {1}));
  world.kernel.run();
  spawn(world.kernel, step(world, "never", {UINT64_MAX}));
  try {
    world.kernel.run();
    FAIL();
  } catch (const TimeOverflow& error) {
    EXPECT_NE(std::string(error.what()).find("step"), std::string::npos);
  }
}

TEST(Span, so_many_times_is_an_error_beyond_the_end_of_time) {
  EXPECT_EQ((picoseconds(UINT64_MAX / 3) * 3).ps, UINT64_MAX / 3 * 3);
  EXPECT_THROW(picoseconds(UINT64_MAX / 3 + 1) * 3, TimeOverflow);
  EXPECT_EQ((picoseconds(UINT64_MAX) * 0).ps, 0u);
  EXPECT_EQ((picoseconds(0) * UINT64_MAX).ps, 0u);
}

TEST(Span, that_is_longer_than_virtual_time_is_an_error) {
  EXPECT_EQ((picoseconds(UINT64_MAX - 1) + picoseconds(1)).ps, UINT64_MAX);
  EXPECT_THROW(picoseconds(UINT64_MAX) + picoseconds(1), TimeOverflow);
  EXPECT_THROW(picoseconds(UINT64_MAX / 2) * 3, TimeOverflow);
  EXPECT_EQ(cut_to_picoseconds(1.9, "a gap").ps, 1u);
  for (const double ps : {0x1p64, 1e300, std::numeric_limits<double>::quiet_NaN()})
    EXPECT_THROW(cut_to_picoseconds(ps, "a gap"), TimeOverflow);
}

TEST(Kernel, a_deadlock_names_who_waits_for_what_and_who_has_it) {
  World world;
  WaitList engine(world.kernel, "the engine of node 0");
  const Thing waiting("READ 7 of node 0"), holder("READ 6 of node 0");
  engine.set_holder(&holder);
  world.kernel.begin_operation();
  spawn(world.kernel, waits(world, engine, waiting));
  try {
    world.kernel.run();
    FAIL();
  } catch (const Deadlock& error) {
    EXPECT_NE(std::string(error.what()).find(
                  "READ 7 of node 0 waits for the engine of node 0, which READ 6 of node 0 has"),
              std::string::npos)
        << error.what();
  }
  engine.let_in_all();
  world.kernel.end_operation();
  world.kernel.run();
}

// ---- deadlines ----------------------------------------------------------------------------------------------------

// Against a search of all, with times that are set anew, and some that are cleared.
TEST(DeadlineQueue, has_one_time_for_each_owner) {
  Prng random(7);
  std::deque<Deadline> deadlines;
  for (int i = 0; i < 40; ++i) deadlines.emplace_back(nullptr);
  std::vector<std::pair<uint64_t, uint64_t>> set(deadlines.size());  // time and number; 0: not set
  DeadlineQueue queue;
  uint64_t number = 0;
  for (int step = 0; step < 20'000; ++step) {
    const auto which = static_cast<size_t>(random.below(deadlines.size()));
    const uint64_t what = random.below(8);
    if (what < 5) {
      queue.set(deadlines[which], {random.below(100)});
      set[which] = {deadlines[which].at().ps, ++number};
    } else if (what == 5) {
      queue.clear(deadlines[which]);
      set[which].second = 0;
    } else if (!queue.empty()) {
      size_t first = deadlines.size();
      for (size_t i = 0; i < set.size(); ++i)
        if (set[i].second != 0 && (first == set.size() || set[i] < set[first])) first = i;
      ASSERT_EQ(queue.next_time().ps, set[first].first);
      ASSERT_EQ(queue.pop(), &deadlines[first]);
      set[first].second = 0;
    }
    const auto count = std::count_if(set.begin(), set.end(), [](const auto& each) { return each.second != 0; });
    ASSERT_EQ(queue.size(), static_cast<size_t>(count));
  }
}

// A deadline that comes again and again, as that of a Core does that has nothing to send.
struct Ticking : Deadline {
  explicit Ticking(Kernel& k) : Deadline(&tick), kernel(k) { kernel.set_deadline(*this, {10}); }
  static void tick(Event* event) {
    auto* self = static_cast<Ticking*>(event);
    ++self->ticks;
    if (self->ticks == self->helps_at) {
      self->kernel.note_progress();
      self->kernel.end_operation();
    }
    self->kernel.set_deadline(*self, after(self->kernel.now(), {10}, "tick"));
  }
  Kernel& kernel;
  int ticks = 0;
  int helps_at = -1;
};

TEST(Kernel, deadlines_alone_do_not_keep_it_running) {
  World world;
  const Ticking ticking(world.kernel);
  spawn(world.kernel, step(world, "one", {25}));
  world.kernel.run();
  EXPECT_EQ(ticking.ticks, 2);
}

TEST(Kernel, a_round_of_deadlines_without_progress_is_a_deadlock) {
  World world;
  Ticking ticking(world.kernel);
  world.kernel.begin_operation();
  EXPECT_THROW(world.kernel.run(), Deadlock);
  EXPECT_LT(ticking.ticks, 5);
  ticking.helps_at = ticking.ticks + 2;
  world.kernel.note_progress();
  world.kernel.run();
  EXPECT_EQ(world.kernel.open_operations(), 0u);
}

// As that of a Core whose timeout is 0.
TEST(Kernel, a_deadline_that_is_never_later_is_an_error_and_no_hang) {
  struct Standing : Deadline {
    explicit Standing(Kernel& k) : Deadline(&come), kernel(k) { kernel.set_deadline(*this, {10}); }
    static void come(Event* event) {
      auto* self = static_cast<Standing*>(event);
      self->kernel.set_deadline(*self, self->kernel.now());
    }
    Kernel& kernel;
  };
  World world;
  const Standing standing(world.kernel);
  spawn(world.kernel, step(world, "later", {25}));
  try {
    world.kernel.run();
    FAIL();
  } catch (const Deadlock& error) {
    EXPECT_EQ(std::string(error.what()).find("time stands still at 10 ps"), 0u) << error.what();
  }
}

// ---- randomness ---------------------------------------------------------------------------------------------------

TEST(RandomStream, is_of_its_seed_part_and_purpose) {
  const auto first = [](uint64_t seed, const char* part, const char* purpose) {
    return RandomStream(seed, part, purpose).below(1u << 30);
  };
  EXPECT_EQ(first(1, "node 0", "loss"), first(1, "node 0", "loss"));
  EXPECT_NE(first(1, "node 0", "loss"), first(2, "node 0", "loss"));
  EXPECT_NE(first(1, "node 0", "loss"), first(1, "node 1", "loss"));
  EXPECT_NE(first(1, "node 0", "loss"), first(1, "node 0", "jitter"));
  EXPECT_NE(first(1, "a", "bc"), first(1, "ab", "c"));
}

TEST(RandomStream, has_the_mean_that_was_asked_for) {
  RandomStream random(3, "arrivals", "gaps");
  double sum = 0;
  for (int i = 0; i < 100'000; ++i) sum += random.exponential(250);
  EXPECT_NEAR(sum / 100'000, 250, 5);
}

}  // namespace
}  // namespace ub::emu
