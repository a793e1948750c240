// SPDX-License-Identifier: Apache-2.0
//
// Faults of one thread: what is loaded, what is kept, and what happens when it cannot be.
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#include "tests/unit/threads.h"
#include "tests/unit/aperture/window/window_rig.h"

namespace ub::aperture::test {
namespace {

TEST(WindowFault, read__loads_the_page_once) {
  Rig rig(8, 8);
  EXPECT_EQ(rig.memory.load_calls, 0u);
  EXPECT_EQ(rig.read(2 * kPage + 17), first_value(2 * kPage + 17));
  EXPECT_EQ(rig.read(2 * kPage), first_value(2 * kPage));
  EXPECT_EQ(rig.read(3 * kPage - 1), first_value(3 * kPage - 1));
  EXPECT_EQ(rig.memory.loaded_blocks, 1u);
  EXPECT_EQ(rig.count_present(), 1u);
  EXPECT_EQ(rig.window->counters().missing_faults, 1u);
  EXPECT_EQ(rig.window->counters().write_faults, 0u);
}

TEST(WindowFault, write_to_a_page_that_was_read__keeps_a_twin_and_faults_once) {
  Rig rig(8, 8);
  rig.read(5);
  rig.write(5, std::byte{0xaa});
  rig.write(6, std::byte{0xbb});
  EXPECT_EQ(rig.read(5), std::byte{0xaa});
  EXPECT_EQ(rig.read(7), first_value(7));
  EXPECT_EQ(rig.window->counters().write_faults, 1u);
  EXPECT_EQ(rig.window->close(), URMA_CR_SUCCESS);
  EXPECT_EQ(rig.memory.get(5), std::byte{0xaa});
  EXPECT_EQ(rig.memory.stored_bytes, 2u);
}

TEST(WindowFault, write_to_a_missing_page__is_one_fault) {
  Rig rig(8, 8);
  rig.write(kPage + 9, std::byte{0xcc});
  EXPECT_EQ(rig.read(kPage + 10), first_value(kPage + 10));
  EXPECT_EQ(rig.window->counters().missing_faults, 1u);
  EXPECT_EQ(rig.window->counters().write_faults, 0u);
  EXPECT_EQ(rig.window->close(), URMA_CR_SUCCESS);
  EXPECT_EQ(rig.memory.get(kPage + 9), std::byte{0xcc});
  EXPECT_EQ(rig.memory.stored_bytes, 1u);
}

TEST(WindowFault, value_that_was_there__is_not_sent) {
  Rig rig(8, 8);
  rig.write(100, first_value(100));
  rig.memory.set(100, std::byte{0x5a});  // by somebody else
  EXPECT_EQ(rig.window->close(), URMA_CR_SUCCESS);
  EXPECT_EQ(rig.memory.get(100), std::byte{0x5a});
  EXPECT_EQ(rig.memory.stores, 0u);
}

TEST(WindowFault, offset__is_a_place_in_the_segment) {
  CachedWindowOptions options = options_of(8, 8);
  options.offset = 3 * kPage;
  options.bytes = 5 * kPage;
  Rig rig(options);
  EXPECT_EQ(rig.read(kPage + 1), first_value(4 * kPage + 1));
  rig.write(kPage + 1, std::byte{0x77});
  EXPECT_EQ(rig.window->close(), URMA_CR_SUCCESS);
  EXPECT_EQ(rig.memory.get(4 * kPage + 1), std::byte{0x77});
}

TEST(WindowFault, last_page__may_be_a_part_of_one) {
  CachedWindowOptions options = options_of(3, 8);
  options.segment_bytes = 2 * kPage + 100;
  Rig rig(options);
  EXPECT_EQ(rig.read(2 * kPage + 99), first_value(2 * kPage + 99));
  EXPECT_EQ(rig.read(2 * kPage + 100), std::byte{0});
  EXPECT_EQ(rig.read(3 * kPage - 1), std::byte{0});
  for (uint64_t at = 2 * kPage; at < 3 * kPage; ++at) rig.write(at, std::byte{0x99});
  EXPECT_EQ(rig.window->close(), URMA_CR_SUCCESS);
  for (uint64_t at = 2 * kPage; at < options.segment_bytes; ++at) EXPECT_EQ(rig.memory.get(at), std::byte{0x99});
}

TEST(WindowFault, faults_in_a_row__load_seven_pages_ahead) {
  CachedWindowOptions options = options_of(64, 64);
  options.prefetch_pages = 7;
  Rig rig(options);
  rig.read(10 * kPage);
  EXPECT_EQ(rig.count_present(), 1u);
  rig.read(11 * kPage);
  EXPECT_EQ(rig.count_present(), 9u);
  for (uint64_t page = 11; page < 19; ++page) EXPECT_TRUE(rig.is_present(page));
  EXPECT_EQ(rig.memory.load_calls, 2u);
  for (uint64_t page = 11; page < 27; ++page)
    EXPECT_EQ(rig.read(page * kPage + page), first_value(page * kPage + page));
  EXPECT_EQ(rig.memory.load_calls, 3u);
  EXPECT_EQ(rig.window->counters().prefetched_pages, 14u);
  EXPECT_EQ(rig.window->counters().fetched_pages, 17u);
  rig.read(60 * kPage);
  EXPECT_FALSE(rig.is_present(61));
  rig.read(61 * kPage);  // up to the end of the window
  EXPECT_TRUE(rig.is_present(63));
}

TEST(WindowFault, what_was_loaded_ahead__can_be_written) {
  CachedWindowOptions options = options_of(32, 32);
  options.prefetch_pages = 7;
  Rig rig(options);
  for (uint64_t page = 0; page < 32; ++page) rig.write(page * kPage + page, byte_of(200 + page));
  EXPECT_EQ(rig.window->close(), URMA_CR_SUCCESS);
  for (uint64_t at = 0; at < rig.memory.size(); ++at) {
    const uint64_t page = at / kPage;
    ASSERT_EQ(rig.memory.get(at), at % kPage == page ? byte_of(200 + page) : first_value(at)) << at;
  }
}

TEST(WindowFault, loading_ahead__takes_a_quarter_of_a_small_cache) {
  CachedWindowOptions options = options_of(64, 8);
  options.prefetch_pages = 7;
  Rig rig(options);
  for (uint64_t page = 0; page < 3; ++page) rig.read(page * kPage);
  EXPECT_EQ(rig.window->counters().fetched_pages, 4u);
}

TEST(WindowFault, failure_ahead__does_not_harm_the_page_that_is_wanted) {
  CachedWindowOptions options = options_of(64, 64);
  options.prefetch_pages = 7;
  Rig rig(options);
  rig.memory.bad_loads.set(5 * kPage, 1, URMA_CR_REM_ACCESS_ABORT_ERR);
  rig.read(3 * kPage);
  EXPECT_EQ(rig.read(4 * kPage), first_value(4 * kPage));
  EXPECT_EQ(rig.count_present(), 2u);
  rig.memory.bad_loads.heal();
  EXPECT_EQ(rig.read(5 * kPage), first_value(5 * kPage));
  EXPECT_EQ(rig.read(6 * kPage), first_value(6 * kPage));
}

// ---- what cannot be served ----

TEST(WindowFault, failed_load__goes_to_the_handler_before_and_may_be_tried_again) {
  Rig rig(16, 8);
  rig.memory.bad_loads.set(kPage, kPage, URMA_CR_REM_ACCESS_ABORT_ERR);
  for (int i = 0; i < 20; ++i) {  // more often than the cache has slots
    EXPECT_EQ(signal_of([&] { rig.read(kPage + 3); }), SIGBUS);
  }
  EXPECT_EQ(rig.read(0), first_value(0));
  EXPECT_EQ(rig.window->counters().failed_faults, 20u);
  rig.memory.bad_loads.heal();
  EXPECT_EQ(rig.read(kPage + 3), first_value(kPage + 3));
  for (uint64_t page = 0; page < 16; ++page) rig.read(page * kPage);
  EXPECT_EQ(rig.count_present(), 8u);
}

struct Heard {
  Rig* rig;
  std::vector<softub_fault_t> faults;
  bool answer = false;
};

bool hear(const softub_fault_t* fault, void* context) {
  auto& heard = *static_cast<Heard*>(context);
  heard.faults.push_back(*fault);
  heard.rig->memory.bad_loads.heal();
  return heard.answer;
}

TEST(WindowFault, callback__hears_what_happened_and_decides) {
  Rig rig(8, 8);
  Heard heard = {&rig, {}, false};
  heard.faults.reserve(8);
  rig.window->on_fault(hear, &heard);
  rig.memory.bad_loads.set(0, kPage, URMA_CR_ACK_TIMEOUT_ERR);
  EXPECT_EQ(signal_of([&] { rig.write(77, std::byte{1}); }), SIGBUS);
  ASSERT_EQ(heard.faults.size(), 1u);
  EXPECT_EQ(heard.faults[0].address, rig.at(77));
  EXPECT_EQ(heard.faults[0].cause, URMA_CR_ACK_TIMEOUT_ERR);
  EXPECT_TRUE(heard.faults[0].is_write);

  heard.answer = true;
  rig.memory.bad_loads.set(0, kPage, URMA_CR_REM_ACCESS_ABORT_ERR);
  EXPECT_EQ(rig.read(78), first_value(78));
  ASSERT_EQ(heard.faults.size(), 2u);
  EXPECT_FALSE(heard.faults[1].is_write);

  rig.window->on_fault(nullptr, nullptr);
  rig.memory.bad_loads.set(kPage, kPage, URMA_CR_REM_ACCESS_ABORT_ERR);
  EXPECT_EQ(signal_of([&] { rig.read(kPage); }), SIGBUS);
  EXPECT_EQ(heard.faults.size(), 2u);
}

TEST(WindowFault, without_any_handler__ends_the_process_by_sigbus) {
  EXPECT_EXIT(
      {
        Rig rig(8, 8);
        rig.memory.bad_loads.set(0, kPage, URMA_CR_REM_ACCESS_ABORT_ERR);
        rig.read(0);
      },
      testing::KilledBySignal(SIGBUS), "");
}

TEST(WindowFault, write_to_a_read_only_window__is_refused_missing_or_present) {
  CachedWindowOptions options = options_of(8, 8);
  options.read_only = true;
  Rig rig(options);
  Heard heard = {&rig, {}, false};
  heard.faults.reserve(8);
  rig.window->on_fault(hear, &heard);
  EXPECT_EQ(signal_of([&] { rig.write(1, std::byte{1}); }), SIGBUS);
  EXPECT_EQ(rig.memory.load_calls, 0u);
  EXPECT_EQ(rig.read(1), first_value(1));
  EXPECT_EQ(signal_of([&] { rig.write(1, std::byte{1}); }), SIGBUS);
  EXPECT_EQ(rig.read(1), first_value(1));
  ASSERT_EQ(heard.faults.size(), 2u);
  for (const softub_fault_t& fault : heard.faults) EXPECT_EQ(fault.cause, URMA_CR_LOC_ACCESS_ERR);
}

TEST(WindowFault, errno__is_kept) {
  Rig rig(8, 8);
  rig.memory.bad_loads.set(kPage, kPage, URMA_CR_REM_ACCESS_ABORT_ERR);
  errno = 4711;
  rig.read(0);
  rig.write(0, std::byte{1});
  EXPECT_EQ(errno, 4711);
}

// ---- system calls and other processes ----

struct Pipe {
  Pipe() { EXPECT_EQ(::pipe(ends), 0); }
  ~Pipe() {
    ::close(ends[0]);
    ::close(ends[1]);
  }
  int ends[2];
};

TEST(WindowFault, system_call__fails_with_efault_until_the_page_is_made_ready) {
  Rig rig(8, 8);
  Pipe pipe;
  EXPECT_EQ(::write(pipe.ends[1], rig.at(0), 10), -1);
  EXPECT_EQ(errno, EFAULT);
  EXPECT_EQ(rig.sync(0, 10, kSyncResident), URMA_CR_SUCCESS);
  EXPECT_EQ(::write(pipe.ends[1], rig.at(0), 10), 10);
  EXPECT_EQ(::read(pipe.ends[0], rig.at(100), 10), -1);
  EXPECT_EQ(errno, EFAULT);
  EXPECT_EQ(rig.sync(100, 10, kSyncWritable), URMA_CR_SUCCESS);
  EXPECT_EQ(::read(pipe.ends[0], rig.at(100), 10), 10);
  EXPECT_EQ(rig.window->close(), URMA_CR_SUCCESS);
  for (uint64_t i = 0; i < 10; ++i) EXPECT_EQ(rig.memory.get(100 + i), first_value(i));
}

int status_of_child(void (*touch)(Rig&), Rig& rig) {
  const pid_t child = ::fork();
  if (child == 0) {
    touch(rig);
    ::_exit(0);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

TEST(WindowFault, child_of_a_fork__has_no_window) {
  Rig rig(8, 8);
  rig.write(0, std::byte{0x42});
  for (const auto touch :
       {+[](Rig& r) { r.read(0); }, +[](Rig& r) { r.write(0, std::byte{1}); }, +[](Rig& r) { r.read(5 * kPage); }}) {
    const int status = status_of_child(touch, rig);
    EXPECT_TRUE(WIFSIGNALED(status));
    EXPECT_EQ(WTERMSIG(status), SIGSEGV);
  }
  // The child may even destroy what it has inherited, and map something of its own there.
  const int status = status_of_child(
      [](Rig& r) {
        std::byte* at = r.window->data();
        void* own = ::mmap(at, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        if (own != at) ::_exit(1);
        *at = std::byte{7};
        r.window.reset();
        if (*at != std::byte{7}) ::_exit(2);
      },
      rig);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(rig.read(0), std::byte{0x42});
  EXPECT_EQ(rig.window->close(), URMA_CR_SUCCESS);
  EXPECT_EQ(rig.memory.get(0), std::byte{0x42});
}

// Another thread's fault is served for ever, as the child sees it.
TEST(WindowFault, child_of_a_fork__makes_windows_of_its_own) {
  Rig rig(8, 8);
  rig.memory.loads.shut();
  std::thread other([&] { rig.read(0); });
  ASSERT_TRUE(ub::test::eventually([&] { return rig.memory.loads.waiting() == 1; }));
  const int status = status_of_child(
      [](Rig&) {
        ::alarm(10);
        Rig own(8, 8);
        own.write(5, std::byte{5});
        if (own.read(kPage) != first_value(kPage) || own.window->close() != URMA_CR_SUCCESS) ::_exit(1);
        if (own.memory.get(5) != std::byte{5}) ::_exit(2);
      },
      rig);
  EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  rig.memory.loads.open();
  other.join();
}

TEST(WindowFault, latencies__are_counted_for_each_kind) {
  Rig rig(8, 8);
  rig.read(0);
  rig.read(kPage);
  rig.write(0, std::byte{1});
  Histogram missing, write, waited;
  rig.window->add_latencies(FaultKind::kMissing, &missing);
  rig.window->add_latencies(FaultKind::kWrite, &write);
  rig.window->add_latencies(FaultKind::kWaited, &waited);
  EXPECT_EQ(missing.count(), 2u);
  EXPECT_EQ(write.count(), 1u);
  EXPECT_EQ(waited.count(), 0u);
  EXPECT_GT(missing.min(), 0u);
}

}  // namespace
}  // namespace ub::aperture::test
