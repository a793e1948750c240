// SPDX-License-Identifier: Apache-2.0
// bench_window.cc - what a fault of a cached window costs whose remote memory answers at once. Beside it, in the same
// run, bare faults of the same kind: a handler of SIGBUS that only asks the kernel for what such a fault needs.
//
//   bench_window [pages (2000)] [rounds (5)]
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "lib/base/histogram.h"
#include "lib/base/prng.h"
#include "lib/urma/aperture/window/cached_window.h"
#include "lib/urma/clock.h"

namespace {

using namespace ub;
using namespace ub::aperture;

void check(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "bench_window: %s fails\n", what);
  std::exit(1);
}

// Remote memory that answers at once.
class InstantPath final : public RemotePath {
 public:
  explicit InstantPath(std::byte* memory) : memory_(memory) {}
  urma_cr_status_t load(std::span<const LoadBlock> blocks) override {
    for (const LoadBlock& block : blocks) std::memcpy(block.to, memory_ + block.at % kBytes, block.bytes);
    return URMA_CR_SUCCESS;
  }
  urma_cr_status_t store(const StoreBlock& block) override {
    for (uint32_t i = 0; i < block.bytes; ++i) {
      if ((block.enables[i / 64] >> (i % 64) & 1) != 0) {
        memory_[block.at % kBytes + i] = static_cast<const std::byte*>(block.from)[i];
      }
    }
    return URMA_CR_SUCCESS;
  }
  urma_cr_status_t fence() override { return URMA_CR_SUCCESS; }
  urma_cr_status_t atomic(const RemoteAtomic&, uint64_t*) override { return URMA_CR_UNSUPPORTED_OPCODE_ERR; }
  bool is_signal_safe() const override { return true; }
  bool is_broken() const override { return false; }

  static constexpr uint64_t kBytes = 64 * kPageBytes;  // the segment repeats it, so that it lies in the CPU's cache

 private:
  std::byte* memory_;
};

// Bare faults. `room`: so many pages may be present; each fault beyond drops the oldest, protecting it first if it is
// dirty, as an eviction has to.
struct Bare {
  uint64_t pages;
  uint64_t room;
  bool oldest_is_dirty;
  int fd = -1;
  std::byte* memory = nullptr;
  uint64_t faults = 0;
  std::vector<std::byte*> present;

  Bare(uint64_t p, uint64_t r, bool dirty) : pages(p), room(r), oldest_is_dirty(dirty), present(r) {
    constexpr int kUserModeOnly = 1;
    fd = static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC | kUserModeOnly));
    check(fd >= 0, "userfaultfd");
    uffdio_api api = {};
    api.api = UFFD_API;
    api.features = UFFD_FEATURE_SIGBUS | UFFD_FEATURE_PAGEFAULT_FLAG_WP;
    check(::ioctl(fd, UFFDIO_API, &api) == 0, "UFFDIO_API");
    void* at = ::mmap(nullptr, pages * kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(at != MAP_FAILED, "mmap");
    memory = static_cast<std::byte*>(at);
    ::madvise(at, pages * kPageBytes, MADV_NOHUGEPAGE);
    uffdio_register watched = {};
    watched.range = {reinterpret_cast<uint64_t>(at), pages * kPageBytes};
    watched.mode = UFFDIO_REGISTER_MODE_MISSING | UFFDIO_REGISTER_MODE_WP;
    check(::ioctl(fd, UFFDIO_REGISTER, &watched) == 0, "UFFDIO_REGISTER");
  }
  ~Bare() {
    ::munmap(memory, pages * kPageBytes);
    ::close(fd);
  }
  void set_protection(std::byte* page, bool protect) {
    uffdio_writeprotect change = {};
    change.range = {reinterpret_cast<uint64_t>(page), kPageBytes};
    change.mode = protect ? UFFDIO_WRITEPROTECT_MODE_WP : 0;
    check(::ioctl(fd, UFFDIO_WRITEPROTECT, &change) == 0, "UFFDIO_WRITEPROTECT");
  }
  void fill(std::byte* page, bool writable) {
    if (std::byte*& oldest = present[faults++ % room]; oldest != nullptr) {
      if (oldest_is_dirty) set_protection(oldest, true);
      ::madvise(oldest, kPageBytes, MADV_DONTNEED);
      oldest = page;
    } else {
      oldest = page;
    }
    static std::byte from[kPageBytes];
    uffdio_copy copy = {};
    copy.dst = reinterpret_cast<uint64_t>(page);
    copy.src = reinterpret_cast<uint64_t>(from);
    copy.len = kPageBytes;
    copy.mode = writable ? 0 : UFFDIO_COPY_MODE_WP;
    check(::ioctl(fd, UFFDIO_COPY, &copy) == 0, "UFFDIO_COPY");
  }
};

Bare* bare = nullptr;

void on_bare_fault(int, siginfo_t* info, [[maybe_unused]] void* machine) {
  bool is_present = false, is_write = false;
#if defined(__x86_64__)
  const auto error = static_cast<ucontext_t*>(machine)->uc_mcontext.gregs[REG_ERR];
  is_present = (error & 1) != 0;
  is_write = (error & 2) != 0;
#endif
  std::byte* page = reinterpret_cast<std::byte*>(reinterpret_cast<uint64_t>(info->si_addr) / kPageBytes * kPageBytes);
  if (is_present) {
    bare->set_protection(page, false);
  } else {
    bare->fill(page, is_write);
  }
}

// The handlers of bare faults and of windows take turns.
struct BareHandler {
  BareHandler() {
    struct sigaction ours = {};
    ours.sa_sigaction = on_bare_fault;
    ours.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
    check(::sigaction(SIGBUS, &ours, &before) == 0, "sigaction");
  }
  ~BareHandler() { ::sigaction(SIGBUS, &before, nullptr); }
  struct sigaction before;
};

enum class Access { kRead, kWrite };

// Touches the pages in an order without neighbours, and records each access.
void touch(std::byte* memory, const std::vector<uint32_t>& order, Access access, Histogram* times) {
  for (const uint32_t page : order) {
    auto& byte = *reinterpret_cast<volatile uint8_t*>(memory + uint64_t{page} * kPageBytes);
    const int64_t begun = urma::now_ns();
    if (access == Access::kWrite) {
      byte = 1;
    } else {
      [[maybe_unused]] const uint8_t value = byte;
    }
    times->record(static_cast<uint64_t>(urma::now_ns() - begun));
  }
}

struct Row {
  const char* name;
  bool twins_are_there;  // the memory of the window's twins was touched before
  Access before;         // each page is touched so before the access that counts, if `touched_before`
  bool touched_before;
  Access access;
  bool full_cache;
};

std::unique_ptr<CachedWindow> map_window(uint64_t pages, uint64_t room, uint32_t ahead, std::byte* remote) {
  CachedWindowOptions options;
  options.segment_bytes = options.bytes = pages * kPageBytes;
  options.cache_bytes = room * kPageBytes;
  options.prefetch_pages = ahead;
  std::vector<std::unique_ptr<RemotePath>> paths;
  paths.push_back(std::make_unique<InstantPath>(remote));
  WindowError error;
  auto window = CachedWindow::create(options, std::move(paths), &error);
  if (window == nullptr) std::fprintf(stderr, "%s\n", error.why.c_str());
  check(window != nullptr, "CachedWindow::create");
  return window;
}

void run_row(const Row& row, const std::vector<uint32_t>& order, std::byte* remote, Histogram* bare_times,
             Histogram* window_times) {
  const uint64_t pages = order.size();
  const uint64_t room = row.full_cache ? 64 : pages;
  Histogram ignored;
  {
    Bare faults(pages, room, row.access == Access::kWrite);
    bare = &faults;
    const BareHandler handler;
    if (row.touched_before) touch(faults.memory, order, row.before, &ignored);
    touch(faults.memory, order, row.access, bare_times);
  }
  const auto window = map_window(pages, room, 0, remote);
  if (row.twins_are_there) {
    touch(window->data(), order, Access::kWrite, &ignored);
    check(window->sync(window->data(), window->bytes(), kSyncInvalidate) == URMA_CR_SUCCESS, "sync");
  }
  if (row.touched_before) touch(window->data(), order, row.before, &ignored);
  touch(window->data(), order, row.access, window_times);
}

double microseconds_of(uint64_t ns) { return static_cast<double>(ns) / 1000; }

}  // namespace

int main(int argc, char** argv) {
  const auto pages = static_cast<uint32_t>(argc > 1 ? std::atoi(argv[1]) : 2000);
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 5;
  check(pages >= 128 && rounds > 0, "128 pages or more, in a round or more,");
  std::vector<std::byte> remote(InstantPath::kBytes);
  Prng random(1);
  random.fill(remote.data(), remote.size());
  std::vector<uint32_t> order(pages);
  for (uint32_t i = 0; i < pages; ++i) order[i] = i;
  for (uint32_t i = pages - 1; i > 0; --i) std::swap(order[i], order[random.below(i + 1)]);

  constexpr Row kRows[] = {
      {"read, missing", false, Access::kRead, false, Access::kRead, false},
      {"write, clean, first twin in its slot", false, Access::kRead, true, Access::kWrite, false},
      {"write, clean", true, Access::kRead, true, Access::kWrite, false},
      {"write, missing", true, Access::kRead, false, Access::kWrite, false},
      {"read, missing, a clean page goes", false, Access::kRead, true, Access::kRead, true},
      {"write, missing, a dirty page goes", true, Access::kWrite, true, Access::kWrite, true},
  };
  std::printf("%-36s %10s %10s %10s %10s   us\n", "", "bare p50", "bare p99", "p50", "p99");
  for (const Row& row : kRows) {
    auto bare_times = std::make_unique<Histogram>(), window_times = std::make_unique<Histogram>();
    for (int round = 0; round < rounds; ++round)
      run_row(row, order, remote.data(), bare_times.get(), window_times.get());
    std::printf("%-36s %10.2f %10.2f %10.2f %10.2f\n", row.name, microseconds_of(bare_times->percentile(50)),
                microseconds_of(bare_times->percentile(99)), microseconds_of(window_times->percentile(50)),
                microseconds_of(window_times->percentile(99)));
  }
  auto in_a_row = std::make_unique<Histogram>();
  for (int round = 0; round < rounds; ++round) {
    const auto window = map_window(pages, pages, 7, remote.data());
    const int64_t begun = urma::now_ns();
    for (uint32_t page = 0; page < pages; ++page) {
      (void)*reinterpret_cast<volatile uint8_t*>(window->data() + uint64_t{page} * kPageBytes);
    }
    in_a_row->record(static_cast<uint64_t>(urma::now_ns() - begun) / pages);
  }
  std::printf("%-36s %10s %10s %10.2f   each page, seven loaded ahead\n", "read, in a row", "", "",
              microseconds_of(in_a_row->percentile(50)));
  return 0;
}
