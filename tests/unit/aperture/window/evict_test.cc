// SPDX-License-Identifier: Apache-2.0
//
// Full caches: what goes, what is sent for it, and what others do meanwhile.
#include <thread>

#include "lib/base/prng.h"
#include "tests/unit/aperture/window/window_rig.h"
#include "tests/unit/threads.h"

namespace ub::aperture::test {
namespace {

using ub::test::eventually;

TEST(WindowEviction, present_pages__are_never_more_than_the_cache) {
  Rig rig(40, 10);
  for (uint64_t page = 0; page < 40; ++page) {
    EXPECT_EQ(rig.read(page * kPage), first_value(page * kPage));
    EXPECT_LE(rig.count_present(), 10u);
  }
  EXPECT_EQ(rig.count_present(), 10u);
  EXPECT_EQ(rig.window->counters().evicted_pages, 30u);
  EXPECT_EQ(rig.memory.stores, 0u);
}

TEST(WindowEviction, dirty_page__is_sent_as_the_bytes_that_differ_before_it_goes) {
  Rig rig(40, 8);
  rig.write(3, std::byte{0xf0});
  rig.write(64 + 5, std::byte{0xf1});
  rig.write(4095, std::byte{0xf2});
  for (uint64_t page = 1; page < 40; ++page) rig.read(page * kPage);
  EXPECT_FALSE(rig.is_present(0));
  EXPECT_EQ(rig.memory.get(3), std::byte{0xf0});
  EXPECT_EQ(rig.memory.get(64 + 5), std::byte{0xf1});
  EXPECT_EQ(rig.memory.get(4095), std::byte{0xf2});
  EXPECT_EQ(rig.memory.stored_bytes, 3u);
  EXPECT_EQ(rig.window->counters().written_back_bytes, 3u);
  EXPECT_EQ(rig.window->counters().written_back_lines, 3u);
  EXPECT_EQ(rig.window->counters().written_back_pages, 1u);
  EXPECT_EQ(rig.read(3), std::byte{0xf0});
}

TEST(WindowEviction, page_that_comes_and_goes__keeps_every_write) {
  Rig rig(16, 8);
  for (uint64_t round = 1; round < 20; ++round) {
    for (uint64_t page = 0; page < 16; ++page) {
      const uint64_t at = page * kPage + page * 64;
      EXPECT_EQ(rig.read(at), round == 1 ? first_value(at) : byte_of(round - 1 + page));
      rig.write(at, byte_of(round + page));
    }
  }
  EXPECT_EQ(rig.window->close(), URMA_CR_SUCCESS);
  for (uint64_t page = 0; page < 16; ++page) EXPECT_EQ(rig.memory.get(page * kPage + page * 64), byte_of(19 + page));
}

TEST(WindowEviction, pages_that_faults_asked_for__stay_longer_than_those_loaded_ahead) {
  Rig rig(32, 8);
  EXPECT_EQ(rig.sync(0, 8 * kPage, kSyncPrefetch), URMA_CR_SUCCESS);  // the first counts as asked for
  rig.write(5 * kPage, std::byte{1});
  for (uint64_t page = 8; page < 14; ++page) rig.read(page * kPage);
  EXPECT_TRUE(rig.is_present(0));
  EXPECT_TRUE(rig.is_present(5));
  EXPECT_FALSE(rig.is_present(1));
  EXPECT_FALSE(rig.is_present(7));
}

// A write fails: the page stays as it is, others go instead, and nothing is lost.
TEST(WindowEviction, page_that_cannot_be_written_back__stays) {
  Rig rig(40, 8);
  rig.write(100, std::byte{0xe1});
  rig.memory.bad_stores.set(0, kPage, URMA_CR_REM_ACCESS_ABORT_ERR);
  for (uint64_t page = 1; page < 40; ++page) EXPECT_EQ(rig.read(page * kPage), first_value(page * kPage));
  EXPECT_TRUE(rig.is_present(0));
  EXPECT_EQ(rig.read(100), std::byte{0xe1});
  rig.write(101, std::byte{0xe2});
  EXPECT_EQ(rig.window->counters().write_faults, 0u);  // it has stayed writable
  EXPECT_GT(rig.window->counters().failed_write_backs, 0u);
  EXPECT_EQ(rig.window->close(), URMA_CR_REM_ACCESS_ABORT_ERR);
  rig.memory.bad_stores.heal();
  EXPECT_EQ(rig.window->close(), URMA_CR_SUCCESS);
  EXPECT_EQ(rig.memory.get(100), std::byte{0xe1});
  EXPECT_EQ(rig.memory.get(101), std::byte{0xe2});
}

TEST(WindowEviction, nothing_can_go__is_an_error_of_the_access) {
  Rig rig(16, 8);
  for (uint64_t page = 0; page < 8; ++page) rig.write(page * kPage, std::byte{0xd7});
  rig.memory.bad_stores.set(0, 8 * kPage, URMA_CR_ACK_TIMEOUT_ERR);
  EXPECT_EQ(signal_of([&] { rig.read(9 * kPage); }), SIGBUS);
  EXPECT_EQ(rig.count_present(), 8u);
  rig.memory.bad_stores.heal();
  EXPECT_EQ(rig.read(9 * kPage), first_value(9 * kPage));
  EXPECT_EQ(rig.window->close(), URMA_CR_SUCCESS);
  for (uint64_t page = 0; page < 8; ++page) EXPECT_EQ(rig.memory.get(page * kPage), std::byte{0xd7});
}

TEST(WindowEviction, one_bad_page__does_not_keep_its_neighbours_back) {
  Rig rig(16, 16);
  for (uint64_t page = 0; page < 16; ++page) rig.write(page * kPage, std::byte{0xd8});
  rig.memory.bad_stores.set(7 * kPage, kPage, URMA_CR_REM_ACCESS_ABORT_ERR);
  EXPECT_EQ(rig.window->close(), URMA_CR_REM_ACCESS_ABORT_ERR);
  for (uint64_t page = 0; page < 16; ++page) {
    EXPECT_EQ(rig.memory.get(page * kPage), page == 7 ? first_value(7 * kPage) : std::byte{0xd8});
  }
  EXPECT_EQ(rig.window->counters().written_back_pages, 15u);
}

// ---- two threads ----

// Everything is in cache and dirty; the next access has to evict, and is held while its stores are under way.
struct HeldEviction {
  HeldEviction() : rig(9, 8) {
    for (uint64_t page = 0; page < 8; ++page) rig.write(page * kPage, byte_of(page + 50));
    rig.memory.fences.shut();
    evictor = std::thread([this] { value = rig.read(8 * kPage); });
    EXPECT_TRUE(eventually([this] { return rig.memory.fences.waiting() == 1; }));
  }
  void finish() {
    rig.memory.fences.open();
    evictor.join();
    EXPECT_EQ(value, first_value(8 * kPage));
  }
  Rig rig;
  std::byte value{};
  std::thread evictor;
};

// Which page goes is the clock's choice: all are written to, by a thread each, so that one of them must wait.
TEST(WindowEviction, writer_between_comparison_and_drop__waits_and_its_write_is_kept) {
  HeldEviction held;
  std::atomic<uint32_t> done{0};
  std::vector<std::thread> writers;
  for (uint64_t page = 0; page < 8; ++page) {
    writers.emplace_back([&held, &done, page] {
      held.rig.write(page * kPage, byte_of(page + 150));
      ++done;
    });
  }
  EXPECT_TRUE(eventually([&] { return done == 7 && held.rig.window->counters().page_waits == 1; }));
  EXPECT_EQ(done, 7u);
  held.finish();
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(held.rig.window->close(), URMA_CR_SUCCESS);
  for (uint64_t page = 0; page < 8; ++page) EXPECT_EQ(held.rig.memory.get(page * kPage), byte_of(page + 150));
}

TEST(WindowEviction, reader_of_a_page_that_goes__sees_what_was_written) {
  HeldEviction held;
  for (uint64_t page = 0; page < 8; ++page) EXPECT_EQ(held.rig.read(page * kPage), byte_of(page + 50));
  held.finish();
  for (uint64_t page = 0; page < 8; ++page) EXPECT_EQ(held.rig.read(page * kPage), byte_of(page + 50));
}

// What is present and not chosen can be used while an eviction hangs, and missing pages find other victims.
TEST(WindowEviction, other_pages__are_served_meanwhile) {
  HeldEviction held;
  std::thread other([&] { held.rig.window->sync(held.rig.at(0), kPage, kSyncPrefetch); });
  held.finish();
  other.join();
}

// One thread writes each byte once while another makes the page clean and writable again and again. A byte that came
// between the twin's making and the page's becoming writable would never be sent.
TEST(WindowFaults, first_write_after_a_flush__loses_no_write_of_others) {
  constexpr uint64_t kPages = 16;
  Rig rig(kPages, kPages);
  std::atomic<uint64_t> page{0};
  std::thread flusher([&] {
    for (uint64_t round = 0, now; (now = page) < kPages; ++round) {
      rig.sync(now * kPage, kPage, kSyncFlush);
      rig.write(now * kPage, byte_of(round));
    }
  });
  Prng random(9);
  for (uint64_t at = 0; at < kPages * kPage; ++at) {
    page = at / kPage;
    if (at % kPage == 0) continue;  // the flusher's
    rig.write(at, ~first_value(at));
    for (uint64_t pauses = random.below(100); pauses > 0; --pauses) urma::cpu_relax();
  }
  page = kPages;
  flusher.join();
  EXPECT_EQ(rig.window->close(), URMA_CR_SUCCESS);
  uint64_t lost = 0;
  for (uint64_t at = 0; at < kPages * kPage; ++at) lost += at % kPage != 0 && rig.memory.get(at) != ~first_value(at);
  EXPECT_EQ(lost, 0u);
}

TEST(WindowFaults, two_threads__load_a_page_once) {
  Rig rig(8, 8);
  rig.memory.loads.shut();
  std::byte first{}, second{};
  std::thread a([&] { first = rig.read(kPage + 1); });
  EXPECT_TRUE(eventually([&] { return rig.memory.loads.waiting() == 1; }));
  std::thread b([&] { second = rig.read(kPage + 2); });
  EXPECT_TRUE(eventually([&] { return rig.window->counters().page_waits == 1; }));
  rig.memory.loads.open();
  a.join();
  b.join();
  EXPECT_EQ(first, first_value(kPage + 1));
  EXPECT_EQ(second, first_value(kPage + 2));
  EXPECT_EQ(rig.memory.loaded_blocks, 1u);
  Histogram waited;
  rig.window->add_latencies(FaultKind::kWaited, &waited);
  EXPECT_EQ(waited.count(), 1u);
}

TEST(WindowFaults, failed_load__fails_for_those_who_waited_too) {
  Rig rig(8, 8);
  rig.memory.loads.shut();
  rig.memory.bad_loads.set(kPage, kPage, URMA_CR_REM_ACCESS_ABORT_ERR);
  int first = 0, second = 0;
  std::thread a([&] { first = signal_of([&] { rig.read(kPage); }); });
  EXPECT_TRUE(eventually([&] { return rig.memory.loads.waiting() == 1; }));
  std::thread b([&] { second = signal_of([&] { rig.write(kPage, std::byte{1}); }); });
  EXPECT_TRUE(eventually([&] { return rig.window->counters().page_waits == 1; }));
  rig.memory.loads.open();
  a.join();
  b.join();
  EXPECT_EQ(first, SIGBUS);
  EXPECT_EQ(second, SIGBUS);
}

TEST(WindowFaults, four_paths__are_used_at_once_and_a_fifth_thread_waits) {
  Rig rig(8, 8);
  rig.memory.loads.shut();
  std::vector<std::thread> threads;
  for (uint64_t page = 0; page < 5; ++page) threads.emplace_back([&rig, page] { rig.read(page * kPage); });
  EXPECT_TRUE(eventually([&] { return rig.memory.loads.waiting() == 4 && rig.window->counters().path_waits == 1; }));
  EXPECT_EQ(rig.memory.loads.waiting(), 4u);
  rig.memory.loads.open();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(rig.memory.loaded_blocks, 5u);
}

// More threads than slots fault at once: those without a slot wait for those that have one.
TEST(WindowFaults, more_threads_than_slots__all_get_their_page) {
  Rig rig(12, 8);
  rig.memory.loads.shut();
  std::vector<std::thread> threads;
  std::atomic<uint32_t> right{0};
  for (uint64_t page = 0; page < 12; ++page) {
    threads.emplace_back([&, page] { right += rig.read(page * kPage) == first_value(page * kPage); });
  }
  EXPECT_TRUE(eventually([&] { return rig.window->counters().slot_waits > 0; }));
  rig.memory.loads.open();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 12u);
}

TEST(WindowFaults, other_windows__do_not_wait) {
  Rig slow(4, 8), quick(4, 8);
  slow.memory.loads.shut();
  std::thread waits([&] { slow.read(0); });
  EXPECT_TRUE(eventually([&] { return slow.memory.loads.waiting() == 1; }));
  EXPECT_EQ(quick.read(kPage), first_value(kPage));
  slow.memory.loads.open();
  waits.join();
}

// ---- unmapping ----

// The destructor waits for the fault: otherwise a path would be destroyed while it is used, which it tells. Then the
// access runs again, into the window or into nothing.
TEST(WindowUnmap, fault_that_is_served__is_waited_for) {
  Rig rig(8, 8);
  rig.memory.loads.shut();
  int signal = -1;
  std::thread reader([&] { signal = signal_of([&] { rig.read(0); }); });
  EXPECT_TRUE(eventually([&] { return rig.memory.loads.waiting() == 1; }));
  std::atomic<bool> gone{false};
  std::thread unmapper([&] {
    rig.window.reset();
    gone = true;
  });
  for (int i = 0; i < 100; ++i) std::this_thread::yield();
  EXPECT_FALSE(gone);
  rig.memory.loads.open();
  reader.join();
  unmapper.join();
  EXPECT_TRUE(gone);
  EXPECT_TRUE(signal == 0 || signal == SIGBUS || signal == SIGSEGV) << signal;
}

// A bad access, like one to memory that was freed. The window of another test may not lie there, so it runs alone.
TEST(WindowUnmap, access_afterwards__is_a_bad_access) {
  EXPECT_EXIT(
      {
        Rig rig(8, 8);
        std::byte* at = rig.at(kPage);
        *at = std::byte{1};
        rig.window.reset();
        *static_cast<volatile std::byte*>(at) = std::byte{2};
      },
      testing::KilledBySignal(SIGSEGV), "");
}

}  // namespace
}  // namespace ub::aperture::test
