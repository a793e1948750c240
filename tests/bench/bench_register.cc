// SPDX-License-Identifier: Apache-2.0
// bench_register.cc - what registering memory costs: time, and whether pages are pinned or brought in for it. Beside
// it, in the same run, what a NIC that pins has to do at least: mlock of the same memory. Fails if anything is pinned.
//
//   bench_register [--mib 1024] [--touch] [--rounds 5]
#include <sys/mman.h>
#include <urma_api.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

namespace {

void check(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "bench_register: %s fails\n", what);
  std::exit(1);
}

// A line of /proc/self/status, in KiB.
long status_kib(const char* name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(name)) return std::strtol(line.c_str() + std::strlen(name) + 1, nullptr, 10);
  }
  return 0;
}

template <class Function>
double milliseconds(Function&& function) {
  const auto begin = std::chrono::steady_clock::now();
  function();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<long>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

urma_context_t* open_context() {
  check(urma_init(nullptr) == URMA_SUCCESS, "urma_init");
  int count = 0;
  urma_device_t** devices = urma_get_device_list(&count);
  check(count > 0, "urma_get_device_list");
  urma_context_t* context = urma_create_context(devices[0], 0);
  urma_free_device_list(devices);
  check(context != nullptr, "urma_create_context");
  return context;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Time of registering memory, and whether it is pinned.");
  size_t mib = 1024;
  int rounds = 5;
  bool touch = false;
  app.add_option("--mib", mib, "MiB of malloc'ed memory")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--rounds", rounds, "medians of so many")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_flag("--touch", touch, "write to every page before");
  CLI11_PARSE(app, argc, argv);

  urma_context_t* context = open_context();
  const size_t bytes = mib << 20;
  void* memory = std::malloc(bytes);
  check(memory != nullptr, "malloc");
  if (touch) std::memset(memory, 1, bytes);
  urma_seg_cfg_t cfg{};
  cfg.va = reinterpret_cast<uint64_t>(memory);
  cfg.len = bytes;
  cfg.flag.bs.access = URMA_ACCESS_READ | URMA_ACCESS_WRITE | URMA_ACCESS_ATOMIC;
  cfg.flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT;
  cfg.token_value.token = 0x1234;

  const long resident = status_kib("VmRSS:"), locked = status_kib("VmLck:"), pinned = status_kib("VmPin:");
  long more_resident = 0;
  std::vector<double> on, off;
  for (int round = 0; round < rounds; ++round) {
    urma_target_seg_t* segment = nullptr;
    on.push_back(milliseconds([&] { segment = urma_register_seg(context, &cfg); }));
    check(segment != nullptr, "urma_register_seg");
    more_resident = std::max(more_resident, status_kib("VmRSS:") - resident);
    check(status_kib("VmLck:") == locked && status_kib("VmPin:") == pinned, "leaving the memory unpinned");
    off.push_back(milliseconds([&] { check(urma_unregister_seg(segment) == URMA_SUCCESS, "urma_unregister_seg"); }));
  }
  std::printf("register %zu MiB: %.3f ms, unregister: %.3f ms, pinned: 0 KiB, resident: %+ld KiB\n", mib, median(on),
              median(off), more_resident);
  int result = 0;
  const double pin = milliseconds([&] { result = mlock(memory, bytes); });
  if (result == 0) {
    std::printf("mlock of the same memory: %.1f ms, %.0fx\n", pin, pin / median(on));
  } else {
    std::printf("mlock of the same memory: refused (%s)\n", std::strerror(errno));
  }
  std::free(memory);
  check(urma_delete_context(context) == URMA_SUCCESS && urma_uninit() == URMA_SUCCESS, "closing");
  return 0;
}
