// SPDX-License-Identifier: Apache-2.0
// Completion events and asynchronous events: when they come, what their descriptors show, what deletion waits
// for.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "tests/unit/threads.h"
#include "tests/unit/urma_api/fixture.h"

namespace ub::test {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

bool readable(int fd) {
  pollfd entry{fd, POLLIN, 0};
  return ::poll(&entry, 1, 0) == 1;
}

class Events : public UrmaTest {
 protected:
  void SetUp() override {
    UrmaTest::SetUp();
    jfce = urma_create_jfce(ctx);
    jfc = make_jfc(16, jfce);
  }
  void complete(uint8_t flags = 0, CrStatus status = CrStatus::kSuccess) {
    Cqe cqe{};
    cqe.flags = flags;
    cqe.status = status;
    ASSERT_TRUE(fake->produce(fake->jfcs.begin()->first, cqe));
  }
  int wait(int time_out = 0) { return urma_wait_jfc(jfce, 4, time_out, got); }
  void ack(uint32_t events = 1) {
    uint32_t counts[] = {events};
    urma_ack_jfc(&jfc, counts, 1);
  }
  urma_jfce_t* jfce = nullptr;
  urma_jfc_t* jfc = nullptr;
  urma_jfc_t* got[4]{};
};

TEST_F(Events, one_event_per_arming) {
  complete();
  EXPECT_EQ(wait(), 0);  // not armed
  urma_cr_t cr;
  EXPECT_EQ(urma_poll_jfc(jfc, 1, &cr), 1);
  EXPECT_EQ(urma_rearm_jfc(jfc, false), URMA_SUCCESS);
  EXPECT_EQ(wait(), 0);  // nothing there
  EXPECT_FALSE(readable(jfce->fd));
  complete();
  complete();
  EXPECT_TRUE(readable(jfce->fd));
  EXPECT_EQ(wait(), 1);
  EXPECT_EQ(got[0], jfc);
  EXPECT_FALSE(readable(jfce->fd));
  EXPECT_EQ(wait(), 0);
  ack();
}

TEST_F(Events, arming_with_records_waiting_fires_at_once) {
  complete();
  complete();
  EXPECT_EQ(urma_rearm_jfc(jfc, false), URMA_SUCCESS);
  EXPECT_EQ(wait(), 1);
  urma_cr_t cr;
  EXPECT_EQ(urma_poll_jfc(jfc, 1, &cr), 1);
  ack();
  EXPECT_EQ(urma_rearm_jfc(jfc, false), URMA_SUCCESS);
  EXPECT_EQ(wait(), 1);  // the second one
  ack();
}

TEST_F(Events, solicited_only) {
  EXPECT_EQ(urma_rearm_jfc(jfc, true), URMA_SUCCESS);
  complete();
  EXPECT_EQ(wait(), 0);
  complete(kCqeReceive | kCqeSolicited);
  EXPECT_EQ(wait(), 1);
  EXPECT_EQ(urma_rearm_jfc(jfc, true), URMA_SUCCESS);
  EXPECT_EQ(wait(), 1);  // the solicited one still waits in the queue
  urma_cr_t cr[4];
  EXPECT_EQ(urma_poll_jfc(jfc, 4, cr), 2);
  EXPECT_EQ(urma_rearm_jfc(jfc, true), URMA_SUCCESS);
  complete(0, CrStatus::kAckTimeout);
  EXPECT_EQ(wait(), 1);
  ack(3);
}

TEST_F(Events, arguments_and_timeout) {
  urma_jfc_t* deaf = make_jfc();
  EXPECT_EQ(urma_rearm_jfc(deaf, false), URMA_EINVAL);
  EXPECT_EQ(urma_wait_jfc(nullptr, 1, 0, got), -1);
  EXPECT_EQ(urma_wait_jfc(jfce, 0, 0, got), -1);
  EXPECT_EQ(urma_wait_jfc(jfce, 1, 0, nullptr), -1);
  auto start = Clock::now();
  EXPECT_EQ(wait(30), 0);
  EXPECT_GE(Clock::now() - start, milliseconds(29));
}

TEST_F(Events, waiter_is_woken_and_signals_do_not_disturb) {
  static std::atomic<pid_t> waiter;
  static std::atomic<int> interruptions;
  waiter = gettid();
  interruptions = 0;
  struct sigaction action {};
  action.sa_handler = [](int) { interruptions += gettid() == waiter; };
  sigaction(SIGALRM, &action, nullptr);
  itimerval every{{0, 5000}, {0, 5000}};
  setitimer(ITIMER_REAL, &every, nullptr);
  ASSERT_EQ(urma_rearm_jfc(jfc, false), URMA_SUCCESS);
  std::thread worker([&] {
    EXPECT_TRUE(eventually([] { return interruptions >= 5; }));
    complete();
  });
  EXPECT_EQ(wait(-1), 1);
  worker.join();
  auto start = Clock::now();
  EXPECT_EQ(wait(30), 0);
  EXPECT_GE(Clock::now() - start, milliseconds(29));
  setitimer(ITIMER_REAL, nullptr, nullptr);
  every = {};
  setitimer(ITIMER_REAL, &every, nullptr);
  ack();
}

TEST_F(Events, wait_drives_before_it_sleeps) {
  ASSERT_EQ(urma_rearm_jfc(jfc, false), URMA_SUCCESS);
  fake->on_drive = [this] {
    fake->on_drive = nullptr;
    complete();
  };
  EXPECT_EQ(wait(0), 1);
  ack();
}

TEST_F(Events, several_queues_on_one_channel) {
  urma_jfc_t* others[3] = {make_jfc(8, jfce), make_jfc(8, jfce), make_jfc(8, jfce)};
  for (urma_jfc_t* other : others) ASSERT_EQ(urma_rearm_jfc(other, false), URMA_SUCCESS);
  for (auto it = std::next(fake->jfcs.begin()); it != fake->jfcs.end(); ++it) fake->produce(it->first, Cqe{});
  EXPECT_EQ(urma_wait_jfc(jfce, 2, 0, got), 2);
  EXPECT_TRUE(readable(jfce->fd));
  EXPECT_EQ(got[0], others[0]);
  EXPECT_EQ(got[1], others[1]);
  // The third event goes with its queue.
  EXPECT_EQ(urma_delete_jfc(others[2]), URMA_SUCCESS);
  EXPECT_FALSE(readable(jfce->fd));
  EXPECT_EQ(urma_wait_jfc(jfce, 2, 0, got), 0);
  uint32_t counts[] = {1, 1, 0};
  urma_jfc_t* acked[] = {others[0], others[1], nullptr};
  urma_ack_jfc(acked, counts, 3);
  EXPECT_EQ(urma_delete_jfc(others[0]), URMA_SUCCESS);
  EXPECT_EQ(urma_delete_jfc(others[1]), URMA_SUCCESS);
}

TEST_F(Events, deletion_waits_for_acks) {
  ASSERT_EQ(urma_rearm_jfc(jfc, false), URMA_SUCCESS);
  complete();
  ASSERT_EQ(wait(), 1);
  uint64_t cookie = fake->jfcs.begin()->second.config.cookie;
  std::atomic<bool> deleted{false};
  std::atomic<pid_t> id{0};
  std::thread deleter([&] {
    id = gettid();
    EXPECT_EQ(urma_delete_jfc(jfc), URMA_SUCCESS);
    deleted = true;
  });
  EXPECT_TRUE(eventually([&] { return id != 0; }));
  EXPECT_TRUE(await_sleep_of(id));
  EXPECT_FALSE(deleted);
  fake->raise(Event{EventKind::kCompletion, cookie});  // too late: nobody may be handed this queue any more
  EXPECT_FALSE(readable(jfce->fd));
  ack();
  deleter.join();
}

TEST_F(Events, non_blocking_deletion_asks_again) {
  urma_jfc_cfg_t cfg{};
  cfg.depth = 8;
  cfg.jfce = jfce;
  cfg.flag.bs.non_blocking = 1;
  jfc = urma_create_jfc(ctx, &cfg);
  ASSERT_EQ(urma_rearm_jfc(jfc, false), URMA_SUCCESS);
  fake->produce(fake->jfcs.rbegin()->first, Cqe{});
  ASSERT_EQ(wait(), 1);
  EXPECT_EQ(urma_delete_jfc(jfc), URMA_EAGAIN);
  ack();
  EXPECT_EQ(urma_delete_jfc(jfc), URMA_SUCCESS);
}

TEST_F(Events, stale_events_are_dropped) {
  uint64_t cookie = fake->jfcs.begin()->second.config.cookie;
  ASSERT_EQ(urma_delete_jfc(jfc), URMA_SUCCESS);
  fake->raise(Event{EventKind::kCompletion, cookie});
  fake->raise(Event{EventKind::kJfcError, cookie});
  EXPECT_EQ(wait(), 0);
  EXPECT_FALSE(readable(ctx->async_fd));
}

TEST_F(Events, asynchronous_events) {
  urma_jfr_t* jfr = make_jfr(jfc);
  urma_jetty_t* jetty = make_jetty(jfc, jfr);
  urma_jfs_t* jfs = make_jfs(jfc);
  fcntl(ctx->async_fd, F_SETFL, fcntl(ctx->async_fd, F_GETFL) | O_NONBLOCK);
  urma_async_event_t event;
  EXPECT_EQ(urma_get_async_event(ctx, &event), URMA_FAIL);
  EXPECT_FALSE(readable(ctx->async_fd));

  fake->raise(Event{EventKind::kJettyError, reinterpret_cast<uintptr_t>(jetty)});
  fake->raise(Event{EventKind::kJettyError, reinterpret_cast<uintptr_t>(jfs)});
  fake->raise(Event{EventKind::kJfrLimit, reinterpret_cast<uintptr_t>(jfr)});
  fake->raise(Event{EventKind::kJfcError, fake->jfcs.begin()->second.config.cookie});
  fake->raise(Event{EventKind::kChannelUp, 5});
  EXPECT_TRUE(readable(ctx->async_fd));
  const std::pair<urma_async_event_type_t, void*> expected[] = {
      {URMA_EVENT_JETTY_ERR, jetty}, {URMA_EVENT_JFS_ERR, jfs}, {URMA_EVENT_JFR_LIMIT, jfr}, {URMA_EVENT_JFC_ERR, jfc}};
  for (auto [type, element] : expected) {
    ASSERT_EQ(urma_get_async_event(ctx, &event), URMA_SUCCESS);
    EXPECT_EQ(event.event_type, type);
    EXPECT_EQ(static_cast<void*>(event.element.jfc), element);
    EXPECT_EQ(event.urma_ctx, ctx);
    if (element != jetty) urma_ack_async_event(&event);
  }
  EXPECT_FALSE(readable(ctx->async_fd));
  EXPECT_EQ(urma_get_async_event(ctx, &event), URMA_FAIL);
  EXPECT_EQ(urma_delete_jfs(jfs), URMA_SUCCESS);

  std::thread acker([&, deleter = gettid()] {
    EXPECT_TRUE(await_sleep_of(deleter));
    urma_async_event_t late{};
    late.event_type = URMA_EVENT_JETTY_ERR;
    late.element.jetty = jetty;
    urma_ack_async_event(&late);
  });
  EXPECT_EQ(urma_delete_jetty(jetty), URMA_SUCCESS);  // waits for the acker
  acker.join();

  // One that nobody collected goes with its object.
  fake->raise(Event{EventKind::kJfrLimit, reinterpret_cast<uintptr_t>(jfr)});
  EXPECT_EQ(urma_delete_jfr(jfr), URMA_SUCCESS);
  EXPECT_FALSE(readable(ctx->async_fd));
}

// None of the API's events can name a channel, and queues go on.
TEST_F(Events, errors_of_channels_are_no_events_of_the_api) {
  urma_jetty_t* jetty = make_jetty(jfc, make_jfr(jfc));
  fake->raise(Event{EventKind::kChannelDead, 5});
  fake->raise(Event{EventKind::kChannelDead, reinterpret_cast<uintptr_t>(jetty)});
  fake->raise(Event{EventKind::kChannelRejected, 6});
  EXPECT_FALSE(readable(ctx->async_fd));
}

TEST_F(Events, a_nic_that_is_gone_is_told_to_every_context) {
  urma_context_t* second = urma_create_context(device, 1);
  urma_context_t* deleted = urma_create_context(device, 1);
  ASSERT_EQ(urma_delete_context(deleted), URMA_SUCCESS);
  fake->raise(NicGone{});
  for (urma_context_t* context : {ctx, second}) {
    EXPECT_TRUE(readable(context->async_fd));
    urma_async_event_t event;
    ASSERT_EQ(urma_get_async_event(context, &event), URMA_SUCCESS);
    EXPECT_EQ(event.event_type, URMA_EVENT_DEV_FATAL);
    EXPECT_EQ(event.urma_ctx, context);
    urma_ack_async_event(&event);
    EXPECT_FALSE(readable(context->async_fd));
  }
  fake->raise(NicGone{});  // not collected: goes with its context
  EXPECT_EQ(urma_delete_context(second), URMA_SUCCESS);
  fake->next_status = Status::kGone;
  errno = 0;
  EXPECT_EQ(make_jfc(), nullptr);
  EXPECT_EQ(errno, ENODEV);
}

TEST_F(Events, a_port_is_told_to_every_context_and_shown_by_the_device) {
  auto expect = [this](urma_async_event_type_t type, uint32_t port) {
    urma_async_event_t event;
    ASSERT_EQ(urma_get_async_event(ctx, &event), URMA_SUCCESS);
    EXPECT_EQ(event.event_type, type);
    EXPECT_EQ(event.element.port_id, port);
    urma_ack_async_event(&event);
    EXPECT_FALSE(readable(ctx->async_fd));
  };
  auto state = [this](uint32_t port) {
    urma_device_attr_t attr;
    EXPECT_EQ(urma_query_device(device, &attr), URMA_SUCCESS);
    return attr.port_attr[port].state;
  };
  urma_context_t* second = urma_create_context(device, 1);
  fake->raise(PortEvent{0, false});
  EXPECT_EQ(state(0), URMA_PORT_DOWN);
  EXPECT_TRUE(readable(second->async_fd));
  expect(URMA_EVENT_PORT_DOWN, 0);
  fake->raise(PortEvent{0, true});
  EXPECT_EQ(state(0), URMA_PORT_ACTIVE);
  expect(URMA_EVENT_PORT_ACTIVE, 0);
  fake->raise(PortEvent{5, false});
  expect(URMA_EVENT_PORT_DOWN, 5);
  // Of two that nobody took, the newer one.
  for (bool up : {true, false}) fake->raise(PortEvent{5, up});
  expect(URMA_EVENT_PORT_DOWN, 5);
  for (bool up : {true, false, true}) fake->raise(PortEvent{5, up});
  expect(URMA_EVENT_PORT_ACTIVE, 5);
  fake->raise(PortEvent{MAX_PORT_CNT, false});  // no such port
  EXPECT_FALSE(readable(ctx->async_fd));
  EXPECT_EQ(urma_delete_context(second), URMA_SUCCESS);  // with events that nobody took
}

TEST_F(Events, asynchronous_event_wakes_a_blocked_thread) {
  std::thread worker([&, waiter = gettid()] {
    EXPECT_TRUE(await_sleep_of(waiter));
    fake->raise(Event{EventKind::kJfcError, fake->jfcs.begin()->second.config.cookie});
  });
  urma_async_event_t event;
  EXPECT_EQ(urma_get_async_event(ctx, &event), URMA_SUCCESS);
  EXPECT_EQ(event.event_type, URMA_EVENT_JFC_ERR);
  urma_ack_async_event(&event);
  worker.join();
}

TEST_F(Events, the_library_ends_around_waiting_threads) {
  urma_notifier_t* notifier = urma_create_notifier(ctx);
  std::thread completions([&] { EXPECT_EQ(wait(-1), -1); });
  std::thread events([&] {
    urma_async_event_t event;
    EXPECT_EQ(urma_get_async_event(ctx, &event), URMA_FAIL);
  });
  std::thread imports([&] {
    urma_notify_t notify;
    EXPECT_EQ(urma_wait_notify(notifier, 1, &notify, -1), -1);
  });
  while (fake->waiters.load() != 3) std::this_thread::yield();
  EXPECT_EQ(urma_uninit(), URMA_SUCCESS);
  completions.join();
  events.join();
  imports.join();
}

}  // namespace
}  // namespace ub::test
