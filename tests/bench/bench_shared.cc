// SPDX-License-Identifier: Apache-2.0
//
// What a load costs in a shared window (SOFTUB_WAY_SHARED) beside local memory: each load's place is what the load
// before it found, in random order, over so many bytes that caches do not help. Usage: bench_shared [MiB] [rounds]. It
// prints the medians of the rounds, which alternate, and that of the quotients of each pair. Times are of the CPU that
// this thread had, as other programs' turns are nobody's loads.
#include <softub_aperture.h>
#include <softub_api.h>
#include <sys/mman.h>
#include <time.h>
#include <urma_api.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

namespace {

constexpr size_t kLine = 64;
constexpr uint32_t kToken = 0x5afe;

void check(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "bench_shared: %s failed\n", what);
  std::exit(1);
}

// Each line holds the number of the next one; all of them are one circle.
void make_circle(char* memory, size_t lines) {
  std::vector<uint64_t> order(lines);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937_64(1));
  for (size_t i = 0; i < lines; ++i) std::memcpy(memory + order[i] * kLine, &order[(i + 1) % lines], sizeof order[i]);
}

double now_ns() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

// Nanoseconds of a load.
double chase(const char* memory, size_t loads) {
  uint64_t at = 0;
  const double begin = now_ns();
  for (size_t i = 0; i < loads; ++i) at = *reinterpret_cast<const volatile uint64_t*>(memory + at * kLine);
  const double spent = now_ns() - begin;
  check(at != UINT64_MAX, "the circle");
  return spent / static_cast<double>(loads);
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

// A segment that we offer, and import as another program would.
char* map_shared(urma_context_t* context, size_t bytes) {
  char* memory = static_cast<char*>(softub_alloc_shared(bytes, SOFTUB_SHARE_READ));
  check(memory != nullptr, "softub_alloc_shared");
  make_circle(memory, bytes / kLine);
  urma_seg_cfg_t config{};
  config.va = reinterpret_cast<uintptr_t>(memory);
  config.len = bytes;
  config.token_value.token = kToken;
  config.flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT;
  config.flag.bs.access = URMA_ACCESS_READ;
  urma_target_seg_t* registered = urma_register_seg(context, &config);
  check(registered != nullptr, "urma_register_seg");
  urma_import_seg_flag_t flag{};
  flag.bs.access = URMA_ACCESS_READ;
  urma_token_t token{kToken};
  urma_target_seg_t* imported = urma_import_seg(context, &registered->seg, &token, 0, flag);
  check(imported != nullptr, "urma_import_seg");
  softub_map_options_t options{};
  options.way = SOFTUB_WAY_SHARED;
  char* window = static_cast<char*>(softub_map(imported, &options));
  check(window != nullptr, "softub_map");
  return window;
}

}  // namespace

int main(int argc, char** argv) {
  const size_t bytes = (argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 256) << 20;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 11;
  const size_t loads = std::min<size_t>(bytes / kLine, 1'000'000);
  setenv("SOFTUB_PORT_KINDS", "shm", 0);
  setenv("SOFTUB_DEVICE_EIDS", "127.0.0.1", 0);
  check(urma_init(nullptr) == URMA_SUCCESS, "urma_init");
  int count = 0;
  urma_device_t** devices = urma_get_device_list(&count);
  check(devices != nullptr && count > 0, "urma_get_device_list");
  urma_context_t* context = urma_create_context(devices[0], 0);
  check(context != nullptr, "urma_create_context");
  const char* window = map_shared(context, bytes);

  void* local = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  check(local != MAP_FAILED, "mmap");
  madvise(local, bytes, MADV_NOHUGEPAGE);  // pages of the same size
  make_circle(static_cast<char*>(local), bytes / kLine);

  std::vector<double> of_window, of_local, quotients;
  chase(window, bytes / kLine);  // maps all pages
  for (int i = 0; i < rounds; ++i) {
    of_local.push_back(chase(static_cast<const char*>(local), loads));
    of_window.push_back(chase(window, loads));
    quotients.push_back(of_window.back() / of_local.back());
  }
  std::printf("%zu MiB, %zu loads a round, %d rounds: local %.1f ns, shared window %.1f ns, quotient %.3f\n",
              bytes >> 20, loads, rounds, median(of_local), median(of_window), median(quotients));
  return 0;
}
