// SPDX-License-Identifier: Apache-2.0
// bench_uncached.cc - what an access to an uncached window costs when its path answers at once, beside the least that a
// trap costs in the same run: a SIGSEGV whose handler only steps over the instruction. Nanoseconds, one thread.
//
//   bench_uncached [accesses]
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "lib/urma/aperture/uncached/uncached_window.h"

namespace {

using namespace ub::aperture;

constexpr size_t kBytes = 4096;

// Remote memory that is here.
class InstantPath final : public RemotePath {
 public:
  urma_cr_status_t load(std::span<const LoadBlock> blocks) override {
    for (const LoadBlock& block : blocks) std::memcpy(block.to, memory_ + block.at, block.bytes);
    return URMA_CR_SUCCESS;
  }
  urma_cr_status_t store(const StoreBlock& block) override {
    std::memcpy(memory_ + block.at, block.from, block.bytes);
    return URMA_CR_SUCCESS;
  }
  urma_cr_status_t fence() override { return URMA_CR_SUCCESS; }
  urma_cr_status_t atomic(const RemoteAtomic& request, uint64_t* old) override {
    *old = static_cast<uint64_t>(
        ub::run_atomic({memory_ + request.at, request.op, request.bytes, request.operand, request.compare}));
    return URMA_CR_SUCCESS;
  }
  bool is_signal_safe() const override { return true; }
  bool is_broken() const override { return false; }

 private:
  alignas(64) std::byte memory_[kBytes] = {};
};

// The floor: `mov (%reg), %rax` has three bytes.
void step_over(int, siginfo_t*, void* machine) { static_cast<ucontext_t*>(machine)->uc_mcontext.gregs[REG_RIP] += 3; }

template <class Access>
void measure(const char* what, int accesses, Access access) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> times;
  for (int i = 0; i < accesses + 100; ++i) {
    const auto begin = Clock::now();
    access();
    if (i >= 100) times.push_back(std::chrono::duration<double, std::nano>(Clock::now() - begin).count());
  }
  std::sort(times.begin(), times.end());
  const auto at = [&](double part) { return times[static_cast<size_t>(part * static_cast<double>(times.size() - 1))]; };
  std::printf("%-36s p50 %7.0f   p99 %7.0f\n", what, at(0.5), at(0.99));
}

}  // namespace

int main(int argc, char** argv) {
  const int accesses = argc > 1 ? std::atoi(argv[1]) : 100000;
  if (accesses <= 0) {
    std::fprintf(stderr, "usage: bench_uncached [accesses]\n");
    return 2;
  }
  // The clock, which is in all of the others.
  measure("nothing", accesses, [] {});

  void* closed = ::mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  struct sigaction action = {}, before = {};
  action.sa_sigaction = step_over;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  ::sigaction(SIGSEGV, &action, &before);
  measure("SIGSEGV, the handler steps over it", accesses, [&] {
    asm volatile("movq (%0), %%rax" : : "D"(closed) : "rax");
  });
  ::sigaction(SIGSEGV, &before, nullptr);

  std::vector<std::unique_ptr<RemotePath>> paths;
  paths.push_back(std::make_unique<InstantPath>());
  WindowError error;
  const auto window = UncachedWindow::create({.bytes = kBytes}, std::move(paths), &error);
  if (window == nullptr) {
    std::fprintf(stderr, "bench_uncached: %s\n", error.why.c_str());
    return 1;
  }
  std::byte* const at = window->data();
  measure("load, 8 bytes", accesses, [&] { asm volatile("movq (%0), %%rax" : : "D"(at) : "rax"); });
  measure("store, 8 bytes", accesses, [&] { asm volatile("movq %%rax, (%0)" : : "D"(at) : "memory"); });
  measure("add to memory, 8 bytes", accesses, [&] { asm volatile("addq $1, (%0)" : : "D"(at) : "memory"); });
  measure("lock add, 8 bytes", accesses, [&] { asm volatile("lock addq $1, (%0)" : : "D"(at) : "memory"); });
  measure("lock add, 1 byte", accesses, [&] { asm volatile("lock addb $1, (%0)" : : "D"(at) : "memory"); });
  measure("load, 16 bytes (movups)", accesses, [&] { asm volatile("movups (%0), %%xmm0" : : "D"(at) : "xmm0"); });
  measure("store, 16 bytes (movups)", accesses, [&] { asm volatile("movups %%xmm0, (%0)" : : "D"(at) : "memory"); });
  measure("add of a double (addsd)", accesses, [&] { asm volatile("addsd (%0), %%xmm0" : : "D"(at) : "xmm0"); });
  measure("rep stosb, 4096 bytes", accesses / 10, [&] {
    void* to = at;
    size_t count = kBytes;
    asm volatile("rep stosb" : "+D"(to), "+c"(count) : "a"(0) : "memory");
  });
  return 0;
}
