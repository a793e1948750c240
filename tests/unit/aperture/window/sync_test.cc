// SPDX-License-Identifier: Apache-2.0
//
// sync(), own(), flush_due(), close().
#include <thread>

#include "tests/unit/aperture/window/window_rig.h"
#include "tests/unit/threads.h"

namespace ub::aperture::test {
namespace {

using ub::test::eventually;

TEST(WindowSync, flush__sends_and_keeps) {
  Rig rig(8, 8);
  rig.write(5, std::byte{0xa1});
  rig.write(kPage, std::byte{0xa2});
  EXPECT_EQ(rig.sync(5, 1, kSyncFlush), URMA_CR_SUCCESS);
  EXPECT_EQ(rig.memory.get(5), std::byte{0xa1});
  EXPECT_EQ(rig.memory.get(kPage), first_value(kPage));  // another page
  EXPECT_TRUE(rig.is_present(0));
  rig.write(6, std::byte{0xa3});  // a new twin
  EXPECT_EQ(rig.sync(0, kPage, kSyncFlush), URMA_CR_SUCCESS);
  EXPECT_EQ(rig.memory.get(6), std::byte{0xa3});
  EXPECT_EQ(rig.memory.stored_bytes, 2u);
  EXPECT_EQ(rig.memory.loaded_blocks, 2u);
}

TEST(WindowSync, flush_of_clean_pages__sends_nothing) {
  Rig rig(8, 8);
  rig.read(0);
  EXPECT_EQ(rig.sync(0, 8 * kPage, kSyncFlush), URMA_CR_SUCCESS);
  EXPECT_EQ(rig.memory.fence_calls, 0u);
  EXPECT_TRUE(rig.is_present(0));
}

TEST(WindowSync, many_pages__share_the_wait_for_answers) {
  Rig rig(64, 64);
  for (uint64_t page = 0; page < 64; ++page) rig.write(page * kPage, std::byte{0xa4});
  EXPECT_EQ(rig.sync(0, 64 * kPage, kSyncFlush), URMA_CR_SUCCESS);
  EXPECT_LE(rig.memory.fence_calls, 4u);
  for (uint64_t page = 0; page < 64; ++page) EXPECT_EQ(rig.memory.get(page * kPage), std::byte{0xa4});
}

TEST(WindowSync, invalidate__sends_what_is_dirty_and_shows_what_is_new) {
  Rig rig(8, 8);
  rig.read(0);
  rig.write(kPage + 1, std::byte{0xb1});
  rig.memory.set(7, std::byte{0xb2});
  rig.memory.set(kPage + 9, std::byte{0xb3});
  EXPECT_NE(rig.read(7), std::byte{0xb2});
  EXPECT_EQ(rig.sync(0, 2 * kPage, kSyncInvalidate), URMA_CR_SUCCESS);
  EXPECT_EQ(rig.count_present(), 0u);
  EXPECT_EQ(rig.read(7), std::byte{0xb2});
  EXPECT_EQ(rig.read(kPage + 1), std::byte{0xb1});
  EXPECT_EQ(rig.read(kPage + 9), std::byte{0xb3});
}

TEST(WindowSync, discard__loses_what_is_dirty) {
  Rig rig(8, 8);
  rig.write(1, std::byte{0xc1});
  EXPECT_EQ(rig.sync(0, kPage, kSyncDiscard), URMA_CR_SUCCESS);
  EXPECT_EQ(rig.read(1), first_value(1));
  EXPECT_EQ(rig.window->close(), URMA_CR_SUCCESS);
  EXPECT_EQ(rig.memory.stores, 0u);
}

TEST(WindowSync, prefetch__loads_as_far_as_the_cache_has_room) {
  Rig rig(64, 16);
  EXPECT_EQ(rig.sync(kPage, 12 * kPage, kSyncPrefetch), URMA_CR_SUCCESS);
  for (uint64_t page = 1; page < 13; ++page) EXPECT_TRUE(rig.is_present(page));
  EXPECT_LE(rig.memory.load_calls, 2u);
  EXPECT_EQ(rig.sync(0, 64 * kPage, kSyncPrefetch), URMA_CR_SUCCESS);
  EXPECT_EQ(rig.count_present(), 16u);
  EXPECT_EQ(rig.window->counters().missing_faults, 0u);
}

// Whatever was there before goes, and nothing of the range itself.
TEST(WindowSync, resident__fills_the_cache_with_the_whole_range) {
  Rig rig(64, 16);
  for (uint64_t page = 0; page < 64; page += 3) rig.write(page * kPage, std::byte{0xc2});
  for (uint64_t first : {0U, 20U, 9U, 48U}) {
    EXPECT_EQ(rig.sync(first * kPage, 16 * kPage, kSyncResident), URMA_CR_SUCCESS);
    for (uint64_t page = first; page < first + 16; ++page) EXPECT_TRUE(rig.is_present(page));
  }
  EXPECT_EQ(rig.sync(0, 17 * kPage, kSyncResident), URMA_CR_LOC_LEN_ERR);
}

TEST(WindowSync, writable__makes_writes_free_of_faults) {
  Rig rig(16, 16);
  rig.read(2 * kPage);
  EXPECT_EQ(rig.sync(0, 4 * kPage, kSyncWritable), URMA_CR_SUCCESS);
  const uint64_t faults = rig.window->counters().write_faults + rig.window->counters().missing_faults;
  for (uint64_t page = 0; page < 4; ++page) rig.write(page * kPage, std::byte{0xc3});
  EXPECT_EQ(rig.window->counters().write_faults + rig.window->counters().missing_faults, faults);
  EXPECT_EQ(rig.window->close(), URMA_CR_SUCCESS);
  for (uint64_t page = 0; page < 4; ++page) EXPECT_EQ(rig.memory.get(page * kPage), std::byte{0xc3});
}

TEST(WindowSync, bad_arguments__have_their_causes) {
  CachedWindowOptions options = options_of(8, 8);
  options.read_only = true;
  Rig rig(options);
  EXPECT_EQ(rig.window->sync(rig.at(0) - 1, 1, kSyncFlush), URMA_CR_LOC_LEN_ERR);
  EXPECT_EQ(rig.sync(8 * kPage - 1, 2, kSyncFlush), URMA_CR_LOC_LEN_ERR);
  EXPECT_EQ(rig.sync(kPage, UINT64_MAX, kSyncFlush), URMA_CR_LOC_LEN_ERR);
  EXPECT_EQ(rig.sync(8 * kPage, 0, kSyncFlush), URMA_CR_SUCCESS);
  EXPECT_EQ(rig.sync(0, kPage, 1U << 20), URMA_CR_LOC_OPERATION_ERR);
  EXPECT_EQ(rig.sync(0, kPage, kSyncWritable), URMA_CR_LOC_ACCESS_ERR);
  EXPECT_EQ(rig.own(0, 9 * kPage, Owned::kRead), URMA_CR_LOC_LEN_ERR);
  EXPECT_EQ(rig.sync(kPage + 5, 0, kSyncResident), URMA_CR_SUCCESS);
  EXPECT_EQ(rig.count_present(), 0u);
}

TEST(WindowSync, failed_load__is_the_answer_and_the_other_pages_are_there) {
  Rig rig(8, 8);
  rig.memory.bad_loads.set(2 * kPage, kPage, URMA_CR_REM_ACCESS_ABORT_ERR);
  EXPECT_EQ(rig.sync(0, 5 * kPage, kSyncResident), URMA_CR_REM_ACCESS_ABORT_ERR);
  for (uint64_t page = 0; page < 5; ++page) EXPECT_EQ(rig.is_present(page), page != 2);
}

TEST(WindowSync, failed_invalidate__keeps_what_was_not_sent) {
  Rig rig(8, 8);
  rig.write(0, std::byte{0xd1});
  rig.write(kPage, std::byte{0xd2});
  rig.memory.bad_stores.set(0, kPage, URMA_CR_ACK_TIMEOUT_ERR);
  EXPECT_EQ(rig.sync(0, 8 * kPage, kSyncInvalidate), URMA_CR_ACK_TIMEOUT_ERR);
  EXPECT_TRUE(rig.is_present(0));
  EXPECT_FALSE(rig.is_present(1));
  EXPECT_EQ(rig.read(0), std::byte{0xd1});
  EXPECT_EQ(rig.memory.get(kPage), std::byte{0xd2});
}

// The loading began before the value changed; whoever invalidates after the change must not find the old one.
TEST(WindowSync, page_that_is_being_loaded__is_dropped_when_it_has_come) {
  Rig rig(8, 8);
  rig.memory.loads.shut();
  std::thread reader([&] { rig.read(0); });
  EXPECT_TRUE(eventually([&] { return rig.memory.loads.waiting() == 1; }));
  std::atomic<bool> dropped{false};
  std::thread dropper([&] {
    EXPECT_EQ(rig.sync(0, kPage, kSyncInvalidate), URMA_CR_SUCCESS);
    dropped = true;
  });
  for (int i = 0; i < 200; ++i) std::this_thread::yield();
  EXPECT_FALSE(dropped);
  rig.memory.loads.open();
  reader.join();
  dropper.join();
  rig.memory.set(0, std::byte{0xd5});
  EXPECT_EQ(rig.sync(0, kPage, kSyncInvalidate), URMA_CR_SUCCESS);
  EXPECT_EQ(rig.read(0), std::byte{0xd5});
}

TEST(WindowSync, large_window__is_synced_by_way_of_its_cache) {
  CachedWindowOptions options = options_of(1, 8);
  options.segment_bytes = options.bytes = uint64_t{1} << 36;  // its words alone would take 64 MiB
  FakeMemory memory(40 * kPage);
  WindowError error;
  const auto window = CachedWindow::create(options, paths_to(memory, 1), &error);
  ASSERT_NE(window, nullptr) << error.why;
  for (uint64_t page = 0; page < 20; ++page) window->data()[page * kPage] = std::byte{0xd6};
  EXPECT_EQ(window->sync(window->data(), options.bytes, kSyncInvalidate), URMA_CR_SUCCESS);
  for (uint64_t page = 0; page < 20; ++page) EXPECT_EQ(memory.get(page * kPage), std::byte{0xd6});
  unsigned char present[20];
  EXPECT_EQ(::mincore(window->data(), sizeof present * kPage, present), 0);
  for (const unsigned char page : present) EXPECT_EQ(page & 1, 0);
}

// ---- ownership ----

CachedWindowOptions owned_options() {
  CachedWindowOptions options = options_of(16, 8);
  options.owned = true;
  return options;
}

TEST(WindowOwnership, access__needs_it_if_the_window_says_so) {
  Rig rig(owned_options());
  EXPECT_EQ(signal_of([&] { rig.read(0); }), SIGBUS);
  EXPECT_EQ(signal_of([&] { rig.write(0, std::byte{1}); }), SIGBUS);
  EXPECT_EQ(rig.sync(0, kPage, kSyncResident), URMA_CR_LOC_ACCESS_ERR);
  EXPECT_EQ(rig.memory.load_calls, 0u);

  EXPECT_EQ(rig.own(0, kPage, Owned::kRead), URMA_CR_SUCCESS);
  EXPECT_EQ(rig.read(0), first_value(0));
  EXPECT_EQ(signal_of([&] { rig.write(0, std::byte{1}); }), SIGBUS);
  EXPECT_EQ(signal_of([&] { rig.read(kPage); }), SIGBUS);
  EXPECT_EQ(rig.sync(0, kPage, kSyncWritable), URMA_CR_LOC_ACCESS_ERR);

  EXPECT_EQ(rig.own(0, kPage, Owned::kWrite), URMA_CR_SUCCESS);
  rig.write(0, std::byte{0xe1});
  EXPECT_EQ(rig.memory.loaded_blocks, 1u);

  EXPECT_EQ(rig.own(0, kPage, Owned::kRead), URMA_CR_SUCCESS);
  EXPECT_EQ(rig.memory.get(0), std::byte{0xe1});
  EXPECT_EQ(rig.read(0), std::byte{0xe1});
  EXPECT_EQ(signal_of([&] { rig.write(0, std::byte{2}); }), SIGBUS);

  EXPECT_EQ(rig.own(0, kPage, Owned::kNone), URMA_CR_SUCCESS);
  EXPECT_FALSE(rig.is_present(0));
  EXPECT_EQ(signal_of([&] { rig.read(0); }), SIGBUS);
}

TEST(WindowOwnership, survives_eviction) {
  Rig rig(owned_options());
  EXPECT_EQ(rig.own(0, 12 * kPage, Owned::kWrite), URMA_CR_SUCCESS);
  for (int round = 0; round < 3; ++round) {
    for (uint64_t page = 0; page < 12; ++page) rig.write(page * kPage, byte_of(page + 30));
  }
  EXPECT_EQ(rig.own(0, 16 * kPage, Owned::kNone), URMA_CR_SUCCESS);
  EXPECT_EQ(rig.count_present(), 0u);
  for (uint64_t page = 0; page < 12; ++page) EXPECT_EQ(rig.memory.get(page * kPage), byte_of(page + 30));
}

TEST(WindowOwnership, loading_ahead__stops_where_it_ends) {
  CachedWindowOptions options = owned_options();
  options.cache_bytes = 16 * kPage;
  options.prefetch_pages = 7;
  Rig rig(options);
  EXPECT_EQ(rig.own(0, 3 * kPage, Owned::kRead), URMA_CR_SUCCESS);
  rig.read(0);
  rig.read(kPage);
  EXPECT_TRUE(rig.is_present(2));
  EXPECT_FALSE(rig.is_present(3));
  EXPECT_EQ(rig.sync(0, 16 * kPage, kSyncPrefetch), URMA_CR_SUCCESS);
  EXPECT_EQ(rig.count_present(), 3u);
}

// In a window where nobody needs it: what was loaded before one owned it is old.
TEST(WindowOwnership, to_gain_it__drops_what_is_old) {
  Rig rig(8, 8);
  rig.read(0);
  rig.write(1, std::byte{0xe2});
  rig.memory.set(0, std::byte{0xe3});
  EXPECT_EQ(rig.own(0, kPage, Owned::kRead), URMA_CR_SUCCESS);
  EXPECT_EQ(rig.read(0), std::byte{0xe3});
  EXPECT_EQ(rig.read(1), std::byte{0xe2});
}

TEST(WindowOwnership, failed_write_back__keeps_the_owner) {
  Rig rig(owned_options());
  EXPECT_EQ(rig.own(0, kPage, Owned::kWrite), URMA_CR_SUCCESS);
  rig.write(0, std::byte{0xe4});
  rig.memory.bad_stores.set(0, kPage, URMA_CR_ACK_TIMEOUT_ERR);
  EXPECT_EQ(rig.own(0, kPage, Owned::kNone), URMA_CR_ACK_TIMEOUT_ERR);
  rig.write(1, std::byte{0xe5});
  rig.memory.bad_stores.heal();
  EXPECT_EQ(rig.own(0, kPage, Owned::kNone), URMA_CR_SUCCESS);
  EXPECT_EQ(rig.memory.get(0), std::byte{0xe4});
  EXPECT_EQ(rig.memory.get(1), std::byte{0xe5});
}

// The callback may take ownership when it is missed.
TEST(WindowOwnership, callback__may_take_it) {
  Rig rig(owned_options());
  rig.window->on_fault(
      [](const softub_fault_t* fault, void* context) {
        auto& window = *static_cast<CachedWindow*>(context);
        return fault->cause == URMA_CR_LOC_ACCESS_ERR &&
               window.own(fault->address, 1, fault->is_write ? Owned::kWrite : Owned::kRead) == URMA_CR_SUCCESS;
      },
      rig.window.get());
  EXPECT_EQ(rig.read(5), first_value(5));
  rig.write(5, std::byte{0xe6});
  EXPECT_EQ(rig.own(0, kPage, Owned::kNone), URMA_CR_SUCCESS);
  EXPECT_EQ(rig.memory.get(5), std::byte{0xe6});
}

// ---- write-through ----

Instant now() { return {static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count())}; }

CachedWindowOptions write_through() {
  CachedWindowOptions options = options_of(8, 8);
  options.policy = WritePolicy::kWriteThrough;
  return options;
}

TEST(WindowWriteThrough, page__is_due_100_us_after_its_first_write) {
  Rig rig(write_through());
  EXPECT_TRUE(rig.window->flush_due(now() + seconds(1)).is_never());
  const Instant before = now();
  rig.write(0, std::byte{0xf1});
  const Instant after = now();
  const Instant due = rig.window->flush_due(before);
  EXPECT_GE(due, before + CachedWindow::kWriteThroughAfter);
  EXPECT_LE(due, after + CachedWindow::kWriteThroughAfter);
  EXPECT_EQ(rig.window->flush_due(due - nanoseconds(1)), due);
  EXPECT_EQ(rig.memory.get(0), first_value(0));
  EXPECT_TRUE(rig.window->flush_due(due).is_never());
  EXPECT_EQ(rig.memory.get(0), std::byte{0xf1});
  EXPECT_TRUE(rig.is_present(0));
}

TEST(WindowWriteThrough, time__counts_from_the_first_write_since_the_flush) {
  Rig rig(write_through());
  rig.write(0, std::byte{0xf2});
  const Instant due = rig.window->flush_due({0});
  rig.write(1, std::byte{0xf3});
  EXPECT_EQ(rig.window->flush_due({0}), due);
  rig.window->flush_due(due);
  EXPECT_EQ(rig.memory.get(1), std::byte{0xf3});
  rig.write(2, std::byte{0xf4});
  const Instant again = rig.window->flush_due({0});
  EXPECT_GT(again, due - CachedWindow::kWriteThroughAfter);
  EXPECT_FALSE(again.is_never());
  rig.window->flush_due(again);
  EXPECT_EQ(rig.memory.get(2), std::byte{0xf4});
}

TEST(WindowWriteThrough, failure__is_tried_again_100_us_later) {
  Rig rig(write_through());
  rig.write(0, std::byte{0xf5});
  rig.memory.bad_stores.set(0, kPage, URMA_CR_ACK_TIMEOUT_ERR);
  const Instant then = now() + seconds(1);
  EXPECT_EQ(rig.window->flush_due(then), then + CachedWindow::kWriteThroughAfter);
  EXPECT_EQ(rig.window->flush_due(then), then + CachedWindow::kWriteThroughAfter);
  EXPECT_EQ(rig.window->counters().failed_write_backs, 1u);
  rig.memory.bad_stores.heal();
  EXPECT_TRUE(rig.window->flush_due(then + CachedWindow::kWriteThroughAfter).is_never());
  EXPECT_EQ(rig.memory.get(0), std::byte{0xf5});
}

TEST(WindowWriteThrough, pages_that_were_flushed_or_evicted__are_not_due) {
  CachedWindowOptions options = write_through();
  options.segment_bytes = options.bytes = 20 * kPage;
  Rig rig(options);
  rig.write(0, std::byte{0xf6});
  rig.write(kPage, std::byte{0xf7});
  EXPECT_EQ(rig.sync(0, kPage, kSyncFlush), URMA_CR_SUCCESS);
  for (uint64_t page = 2; page < 20; ++page) rig.read(page * kPage);
  EXPECT_TRUE(rig.window->flush_due(now() + seconds(1)).is_never());
  EXPECT_EQ(rig.window->counters().written_back_pages, 2u);
}

TEST(WindowWriteThrough, write_back_window__has_nothing_due) {
  Rig rig(8, 8);
  rig.write(0, std::byte{0xf8});
  EXPECT_TRUE(rig.window->flush_due(now() + seconds(1)).is_never());
  EXPECT_EQ(rig.memory.get(0), first_value(0));
}

// ---- signals ----

std::byte* touched_by_handler = nullptr;

// A handler of another signal touches the page that its own thread is flushing: it runs when the page is released.
TEST(WindowSync, signal_handler__cannot_meet_a_page_that_its_thread_holds) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer blocks all signals, also SIGBUS, while it runs the handler of another one";
#endif
  Rig rig(8, 8);
  rig.write(0, std::byte{0xf9});
  touched_by_handler = rig.at(1);
  struct sigaction action = {}, before = {};
  action.sa_handler = [](int) { *static_cast<volatile std::byte*>(touched_by_handler) = std::byte{0xfa}; };
  ASSERT_EQ(::sigaction(SIGUSR1, &action, &before), 0);
  rig.memory.fences.shut();
  std::thread flusher([&] { EXPECT_EQ(rig.sync(0, kPage, kSyncFlush), URMA_CR_SUCCESS); });
  EXPECT_TRUE(eventually([&] { return rig.memory.fences.waiting() == 1; }));
  ASSERT_EQ(::pthread_kill(flusher.native_handle(), SIGUSR1), 0);
  for (int i = 0; i < 200; ++i) std::this_thread::yield();
  rig.memory.fences.open();
  flusher.join();
  EXPECT_EQ(rig.read(1), std::byte{0xfa});
  ::sigaction(SIGUSR1, &before, nullptr);
}

}  // namespace
}  // namespace ub::aperture::test
