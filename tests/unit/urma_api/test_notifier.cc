// SPDX-License-Identifier: Apache-2.0
// Asynchronous import and bind: results, time limits, and what becomes of either when something goes away.
#include <poll.h>
#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <condition_variable>
#include <future>
#include <mutex>
#include <set>
#include <thread>

#include "tests/unit/urma_api/fixture.h"

namespace ub::test {
namespace {

bool readable(int fd) {
  pollfd entry{fd, POLLIN, 0};
  return ::poll(&entry, 1, 0) == 1;
}

// Holds up who passes, until it is opened.
class Gate {
 public:
  void pass() {
    std::unique_lock lock(mutex_);
    ++arrived_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_; });
  }
  void await_arrival() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return arrived_ != 0; });
  }
  void open() {
    std::lock_guard guard(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int arrived_ = 0;
  bool open_ = false;
};

class Notifiers : public UrmaTest {
 protected:
  void SetUp() override {
    UrmaTest::SetUp();
    notifier = urma_create_notifier(ctx);
    ASSERT_NE(notifier, nullptr);
  }
  void TearDown() override {
    gate.open();
    UrmaTest::TearDown();
  }
  void close_gate() {
    fake->on_add_target = [this] { gate.pass(); };
  }
  urma_target_jetty_t* start(uint64_t user_ctx = 7, int timeout = -1, urma_transport_mode_t mode = URMA_TM_RM) {
    urma_rjetty_t rjetty = peer(mode);
    return urma_import_jetty_async(notifier, &rjetty, nullptr, user_ctx, timeout);
  }
  urma_notify_t wait_one() {
    urma_notify_t got{};
    EXPECT_EQ(urma_wait_notify(notifier, 1, &got, -1), 1);
    return got;
  }
  urma_target_jetty_t* import_rc() {
    urma_target_jetty_t* target = start(0, -1, URMA_TM_RC);
    EXPECT_EQ(wait_one().status, URMA_SUCCESS);
    return target;
  }
  urma_jetty_t* make_rc_jetty() {
    urma_jfc_t* jfc = make_jfc();
    return make_jetty(jfc, make_jfr(jfc, URMA_TM_RC), URMA_TM_RC);
  }

  Gate gate;
  urma_notifier_t* notifier = nullptr;
};

TEST_F(Notifiers, result_names_the_import) {
  EXPECT_EQ(notifier->urma_ctx, ctx);
  EXPECT_FALSE(readable(notifier->fd));
  urma_target_jetty_t* target = start(0x1122334455667788);
  ASSERT_NE(target, nullptr);
  EXPECT_EQ(target->id.id, 2000u);
  EXPECT_EQ(target->urma_ctx, ctx);
  pollfd entry{notifier->fd, POLLIN, 0};
  EXPECT_EQ(::poll(&entry, 1, -1), 1);
  urma_notify_t got{};
  EXPECT_EQ(urma_wait_notify(notifier, 1, &got, 0), 1);
  EXPECT_EQ(got.type, URMA_IMPORT_JETTY_NOTIFY);
  EXPECT_EQ(got.status, URMA_SUCCESS);
  EXPECT_EQ(got.user_ctx, 0x1122334455667788u);
  EXPECT_EQ(got.tjetty, target);
  EXPECT_FALSE(readable(notifier->fd));
  EXPECT_EQ(urma_wait_notify(notifier, 1, &got, 0), 0);
  EXPECT_EQ(urma_ack_notify(ctx, 1, &got), URMA_SUCCESS);
  ASSERT_EQ(fake->target_count(), 1u);
  EXPECT_EQ(fake->targets.begin()->first, target->handle);
  EXPECT_EQ(urma_unimport_jetty_async(target), URMA_SUCCESS);
  EXPECT_EQ(fake->target_count(), 0u);
  EXPECT_EQ(urma_unimport_jetty_async(target), URMA_EINVAL);
}

TEST_F(Notifiers, the_description_is_not_changed_but_the_target_has_the_default_order) {
  const urma_rjetty_t rjetty = peer(URMA_TM_RC);
  urma_target_jetty_t* target = urma_import_jetty_async(notifier, &rjetty, nullptr, 0, -1);
  EXPECT_EQ(rjetty.flag.bs.order_type, uint32_t{URMA_DEF_ORDER});
  EXPECT_EQ(target->flag.bs.order_type, uint32_t{URMA_OL});
}

TEST_F(Notifiers, bad_arguments) {
  urma_rjetty_t rjetty = peer();
  auto refused = [&](urma_notifier_t* where, const urma_rjetty_t* what, int error) {
    errno = 0;
    EXPECT_EQ(urma_import_jetty_async(where, what, nullptr, 0, -1), nullptr);
    EXPECT_EQ(errno, error);
  };
  refused(nullptr, &rjetty, EINVAL);
  refused(notifier, nullptr, EINVAL);
  urma_rjetty_t wrong = rjetty;
  wrong.trans_mode = static_cast<urma_transport_mode_t>(3);
  refused(notifier, &wrong, EINVAL);
  wrong = rjetty;
  wrong.tp_type = URMA_UTP;
  refused(notifier, &wrong, EINVAL);
  wrong = rjetty;
  wrong.flag.bs.order_type = URMA_OL;
  refused(notifier, &wrong, EINVAL);
  wrong = rjetty;
  wrong.flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT;  // and no token
  refused(notifier, &wrong, EINVAL);

  urma_notify_t got{};
  EXPECT_EQ(urma_wait_notify(notifier, 0, nullptr, -1), 0);
  EXPECT_EQ(urma_wait_notify(nullptr, 1, &got, 0), -1);
  EXPECT_EQ(urma_wait_notify(notifier, 1, nullptr, 0), -1);
  EXPECT_EQ(urma_wait_notify(notifier, 1, &got, 0), 0);  // no refusal left a result
  EXPECT_EQ(urma_ack_notify(nullptr, 1, &got), URMA_EINVAL);
  EXPECT_EQ(urma_ack_notify(ctx, 1, nullptr), URMA_EINVAL);
  EXPECT_EQ(urma_unimport_jetty_async(nullptr), URMA_EINVAL);
  EXPECT_EQ(urma_create_notifier(nullptr), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(urma_delete_notifier(nullptr), URMA_EINVAL);
  EXPECT_EQ(ctx->ref.atomic_cnt.load(), 2u);  // itself and the notifier
}

TEST_F(Notifiers, no_way_to_the_peer_is_a_result) {
  urma_rjetty_t rjetty = peer();
  rjetty.jetty_id.eid.raw[15] = 99;
  urma_target_jetty_t* target = urma_import_jetty_async(notifier, &rjetty, nullptr, 5, -1);
  ASSERT_NE(target, nullptr);
  urma_notify_t got = wait_one();
  EXPECT_EQ(got.status, URMA_FAIL);
  EXPECT_EQ(got.user_ctx, 5u);
  EXPECT_EQ(got.tjetty, target);
  EXPECT_EQ(urma_bind_jetty(make_rc_jetty(), target), URMA_EINVAL);
  EXPECT_EQ(urma_unimport_jetty_async(target), URMA_SUCCESS);
  EXPECT_EQ(urma_unimport_jetty_async(target), URMA_EINVAL);
}

TEST_F(Notifiers, many_results_are_handed_out_in_pieces) {
  std::set<urma_target_jetty_t*> targets;
  for (int i = 0; i < 10; ++i) targets.insert(start());
  ASSERT_EQ(targets.size(), 10u);
  std::set<urma_target_jetty_t*> got;
  while (got.size() < 10) {
    urma_notify_t some[3];
    int count = urma_wait_notify(notifier, 3, some, -1);
    ASSERT_GE(count, 1);
    ASSERT_LE(count, 3);
    for (int i = 0; i < count; ++i) EXPECT_TRUE(got.insert(some[i].tjetty).second);
  }
  EXPECT_EQ(got, targets);
  EXPECT_FALSE(readable(notifier->fd));
}

TEST_F(Notifiers, an_outstanding_import_is_no_good_yet) {
  close_gate();
  urma_target_jetty_t* target = start(1, -1, URMA_TM_RC);
  gate.await_arrival();
  urma_jetty_t* jetty = make_rc_jetty();
  urma_notify_t got{};
  EXPECT_EQ(urma_wait_notify(notifier, 1, &got, 0), 0);
  EXPECT_EQ(urma_wait_notify(notifier, 1, &got, 1), 0);
  EXPECT_FALSE(readable(notifier->fd));
  EXPECT_EQ(urma_bind_jetty(jetty, target), URMA_EINVAL);
  EXPECT_EQ(urma_bind_jetty_async(notifier, jetty, target, 0, -1), URMA_EINVAL);
  gate.open();
  EXPECT_EQ(wait_one().status, URMA_SUCCESS);
  EXPECT_EQ(urma_bind_jetty(jetty, target), URMA_SUCCESS);
}

TEST_F(Notifiers, the_time_limit_makes_the_descriptor_readable) {
  close_gate();
  urma_target_jetty_t* running = start(1, 50);  // time enough to begin, as a rule; the result is the same if not
  urma_target_jetty_t* queued = start(2, 1);
  urma_target_jetty_t* patient = start(3, -1);
  std::set<uint64_t> late;
  while (late.size() < 2) {
    pollfd entry{notifier->fd, POLLIN, 0};
    ASSERT_EQ(::poll(&entry, 1, -1), 1);
    urma_notify_t got{};
    ASSERT_EQ(urma_wait_notify(notifier, 1, &got, 0), 1);  // readable exactly while there is one
    EXPECT_EQ(got.status, URMA_ETIMEOUT);
    EXPECT_EQ(got.tjetty, got.user_ctx == 1 ? running : queued);
    late.insert(got.user_ctx);
  }
  EXPECT_FALSE(readable(notifier->fd));
  gate.open();
  urma_notify_t got = wait_one();
  EXPECT_EQ(got.user_ctx, 3u);
  EXPECT_EQ(got.status, URMA_SUCCESS);
  EXPECT_EQ(fake->target_count(), 1u);  // what came too late was given back
  EXPECT_EQ(urma_bind_jetty(make_rc_jetty(), running), URMA_EINVAL);
  for (urma_target_jetty_t* target : {running, queued, patient}) {
    EXPECT_EQ(urma_unimport_jetty_async(target), URMA_SUCCESS);
  }
  EXPECT_EQ(fake->target_count(), 0u);
}

TEST_F(Notifiers, no_time_at_all_is_a_time_out) {
  ASSERT_NE(start(1, 0), nullptr);
  EXPECT_EQ(wait_one().status, URMA_ETIMEOUT);
  EXPECT_EQ(fake->target_count(), 0u);
}

// The clock of the first would make the descriptor readable once more, before the second is late.
TEST_F(Notifiers, a_success_stops_its_clock) {
  std::atomic<int> calls{0};
  fake->on_add_target = [&] {
    if (calls.fetch_add(1) != 0) gate.pass();
  };
  ASSERT_NE(start(1, 100), nullptr);
  ASSERT_NE(start(2, 200), nullptr);
  for (uint64_t user_ctx = 1; user_ctx <= 2; ++user_ctx) {
    pollfd entry{notifier->fd, POLLIN, 0};
    ASSERT_EQ(::poll(&entry, 1, -1), 1);
    urma_notify_t got{};
    ASSERT_EQ(urma_wait_notify(notifier, 1, &got, 0), 1);
    EXPECT_EQ(got.user_ctx, user_ctx);
    if (user_ctx == 2) {
      EXPECT_EQ(got.status, URMA_ETIMEOUT);
    }
  }
  gate.open();
  UrmaTest::TearDown();  // while `calls` is there
  UrmaTest::SetUp();
}

TEST_F(Notifiers, unimport_before_the_result) {
  close_gate();
  urma_target_jetty_t* running = start(1);
  gate.await_arrival();
  urma_target_jetty_t* queued = start(2);
  EXPECT_EQ(urma_unimport_jetty_async(running), URMA_SUCCESS);
  EXPECT_EQ(urma_unimport_jetty(queued), URMA_SUCCESS);
  EXPECT_EQ(urma_unimport_jetty(queued), URMA_EINVAL);
  ASSERT_NE(start(3), nullptr);
  gate.open();
  EXPECT_EQ(wait_one().user_ctx, 3u);
  EXPECT_FALSE(readable(notifier->fd));
  EXPECT_EQ(fake->target_count(), 1u);
}

TEST_F(Notifiers, unimport_drops_a_result_that_nobody_collected) {
  urma_target_jetty_t* target = start();
  pollfd entry{notifier->fd, POLLIN, 0};
  ASSERT_EQ(::poll(&entry, 1, -1), 1);
  EXPECT_EQ(urma_unimport_jetty_async(target), URMA_SUCCESS);
  EXPECT_FALSE(readable(notifier->fd));
  urma_notify_t got{};
  EXPECT_EQ(urma_wait_notify(notifier, 1, &got, 0), 0);
  EXPECT_EQ(fake->target_count(), 0u);
}

TEST_F(Notifiers, deleting_the_notifier_cancels) {
  close_gate();
  urma_target_jetty_t* running = start(1, 3'600'000);
  gate.await_arrival();
  urma_target_jetty_t* queued = start(2, 3'600'000);
  EXPECT_EQ(urma_delete_notifier(notifier), URMA_SUCCESS);
  EXPECT_EQ(urma_delete_notifier(notifier), URMA_EINVAL);
  urma_notify_t got{};
  EXPECT_EQ(urma_wait_notify(notifier, 1, &got, -1), -1);
  EXPECT_EQ(urma_delete_context(ctx), URMA_EAGAIN);  // the targets are still the program's
  EXPECT_EQ(urma_unimport_jetty_async(running), URMA_SUCCESS);
  gate.open();
  EXPECT_EQ(urma_unimport_jetty_async(queued), URMA_SUCCESS);
  EXPECT_EQ(urma_delete_context(ctx), URMA_SUCCESS);

  // The thread finds out that nobody wanted the first, and is there for others.
  ctx = urma_create_context(device, 0);
  notifier = urma_create_notifier(ctx);
  start(4);
  EXPECT_EQ(wait_one().user_ctx, 4u);
  EXPECT_EQ(fake->target_count(), 1u);
}

TEST_F(Notifiers, deleting_the_notifier_drops_results) {
  urma_target_jetty_t* target = start();
  pollfd entry{notifier->fd, POLLIN, 0};
  ASSERT_EQ(::poll(&entry, 1, -1), 1);
  EXPECT_EQ(urma_delete_notifier(notifier), URMA_SUCCESS);
  EXPECT_EQ(urma_unimport_jetty(target), URMA_SUCCESS);
  EXPECT_EQ(fake->target_count(), 0u);
}

TEST_F(Notifiers, a_notifier_is_a_child_of_its_context) {
  EXPECT_EQ(urma_delete_context(ctx), URMA_EAGAIN);
  EXPECT_EQ(urma_delete_notifier(notifier), URMA_SUCCESS);
  EXPECT_EQ(urma_delete_context(ctx), URMA_SUCCESS);
}

TEST_F(Notifiers, the_library_ends_around_an_outstanding_import) {
  close_gate();
  start(1);
  gate.await_arrival();
  start(2);
  std::thread end([] { EXPECT_EQ(urma_uninit(), URMA_SUCCESS); });
  gate.open();
  end.join();
  urma_notify_t got{};
  EXPECT_EQ(urma_wait_notify(notifier, 1, &got, 0), -1);
  EXPECT_EQ(urma_delete_notifier(notifier), URMA_EINVAL);
  UrmaTest::SetUp();
  notifier = urma_create_notifier(ctx);
  start(3);
  EXPECT_EQ(wait_one().user_ctx, 3u);
}

// ---- bind ------------------------------------------------------------------------------------------------------

TEST_F(Notifiers, bind_completes_through_the_notifier) {
  urma_jetty_t* jetty = make_rc_jetty();
  urma_target_jetty_t* target = import_rc();
  EXPECT_EQ(urma_bind_jetty_async(notifier, jetty, target, 11, 1000), URMA_SUCCESS);
  EXPECT_TRUE(readable(notifier->fd));
  urma_notify_t got = wait_one();
  EXPECT_EQ(got.type, URMA_BIND_JETTY_NOTIFY);
  EXPECT_EQ(got.status, URMA_SUCCESS);
  EXPECT_EQ(got.user_ctx, 11u);
  EXPECT_EQ(got.jetty, jetty);
  EXPECT_EQ(jetty->remote_jetty, target);
  EXPECT_EQ(fake->queues.begin()->second.bound, target->handle);
  EXPECT_EQ(urma_bind_jetty_async(notifier, jetty, target, 12, -1), URMA_SUCCESS);  // the same pair again
  EXPECT_EQ(wait_one().status, URMA_SUCCESS);
  EXPECT_EQ(urma_unbind_jetty_async(jetty), URMA_SUCCESS);
  EXPECT_EQ(jetty->remote_jetty, nullptr);
  EXPECT_EQ(urma_unbind_jetty_async(jetty), URMA_EINVAL);
}

TEST_F(Notifiers, bind_refuses_as_the_other_one_does) {
  urma_jetty_t *a = make_rc_jetty(), *b = make_rc_jetty();
  urma_target_jetty_t *x = import_rc(), *y = import_rc();
  EXPECT_EQ(urma_bind_jetty_async(nullptr, a, x, 0, -1), URMA_EINVAL);
  EXPECT_EQ(urma_bind_jetty_async(notifier, nullptr, x, 0, -1), URMA_EINVAL);
  EXPECT_EQ(urma_bind_jetty_async(notifier, a, nullptr, 0, -1), URMA_EINVAL);
  urma_jfc_t* jfc = make_jfc();
  urma_jetty_t* rm = make_jetty(jfc, make_jfr(jfc));
  EXPECT_EQ(urma_bind_jetty_async(notifier, rm, x, 0, -1), URMA_ENOPERM);
  EXPECT_EQ(urma_bind_jetty_async(notifier, a, make_target(), 0, -1), URMA_ENOPERM);
  urma_rjetty_t other_order = peer(URMA_TM_RC);
  other_order.flag.bs.order_type = URMA_OT;
  EXPECT_EQ(urma_bind_jetty_async(notifier, a, urma_import_jetty(ctx, &other_order, nullptr), 0, -1), URMA_ENOPERM);
  EXPECT_EQ(urma_bind_jetty(a, x), URMA_SUCCESS);
  EXPECT_EQ(urma_bind_jetty_async(notifier, a, y, 0, -1), URMA_EEXIST);
  EXPECT_EQ(urma_bind_jetty_async(notifier, b, x, 0, -1), URMA_EINVAL);
  EXPECT_EQ(urma_unbind_jetty_async(rm), URMA_ENOPERM);
  EXPECT_EQ(urma_unbind_jetty_async(nullptr), URMA_EINVAL);
  urma_context_t* second = urma_create_context(device, 1);
  urma_notifier_t* foreign = urma_create_notifier(second);
  EXPECT_EQ(urma_bind_jetty_async(foreign, b, y, 0, -1), URMA_EINVAL);
  EXPECT_FALSE(readable(notifier->fd));
  EXPECT_FALSE(readable(foreign->fd));
}

TEST_F(Notifiers, what_the_device_refuses_is_the_result_of_the_bind) {
  urma_jetty_t* jetty = make_rc_jetty();
  urma_target_jetty_t* target = import_rc();
  fake->bind_status = Status::kInvalid;
  EXPECT_EQ(urma_bind_jetty_async(notifier, jetty, target, 1, -1), URMA_SUCCESS);
  EXPECT_EQ(wait_one().status, URMA_FAIL);
  EXPECT_EQ(jetty->remote_jetty, nullptr);
}

TEST_F(Notifiers, unbind_drops_a_result_that_nobody_collected) {
  urma_jetty_t* jetty = make_rc_jetty();
  EXPECT_EQ(urma_bind_jetty_async(notifier, jetty, import_rc(), 1, -1), URMA_SUCCESS);
  EXPECT_EQ(urma_unbind_jetty_async(jetty), URMA_SUCCESS);
  EXPECT_FALSE(readable(notifier->fd));
  EXPECT_EQ(urma_delete_jetty(jetty), URMA_SUCCESS);
}

// ---- waiting ---------------------------------------------------------------------------------------------------

TEST_F(Notifiers, any_number_of_threads_wait_for_one_result_each) {
  constexpr int kThreads = 4;
  close_gate();
  std::vector<std::future<uint64_t>> waiters;
  for (int i = 0; i < kThreads; ++i) {
    waiters.push_back(std::async(std::launch::async, [this] { return wait_one().user_ctx; }));
  }
  while (fake->waiters.load() != kThreads) std::this_thread::yield();
  for (uint64_t i = 0; i < kThreads; ++i) ASSERT_NE(start(i), nullptr);
  gate.open();
  std::set<uint64_t> got;
  for (auto& waiter : waiters) got.insert(waiter.get());
  EXPECT_EQ(got.size(), size_t{kThreads});
}

std::atomic<int> signals{0};

TEST_F(Notifiers, signals_do_not_end_the_wait) {
  struct sigaction action {};
  action.sa_handler = [](int) { signals.fetch_add(1); };
  ASSERT_EQ(sigaction(SIGUSR1, &action, nullptr), 0);
  close_gate();
  ASSERT_NE(start(9), nullptr);
  std::promise<pthread_t> started;
  auto waiter = std::async(std::launch::async, [&] {
    started.set_value(pthread_self());
    return wait_one().user_ctx;
  });
  pthread_t thread = started.get_future().get();
  while (fake->waiters.load() != 1) std::this_thread::yield();
  while (signals.load() < 3) {  // sanitizers hold one back until the next comes
    ASSERT_EQ(pthread_kill(thread, SIGUSR1), 0);
    std::this_thread::yield();
  }
  gate.open();
  EXPECT_EQ(waiter.get(), 9u);
}

}  // namespace
}  // namespace ub::test
