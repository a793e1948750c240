// SPDX-License-Identifier: Apache-2.0
// bench_line_cache.cc - nanoseconds of a load or store of 8 bytes that finds its line in the cache of a handle: in a
// row, at places that nobody foretells, and each after the one before. Beside it, in the same run, the least that it
// could be: a load of an array as large as the cache, by a function that is not inlined either. A miss is one whose
// path answers at once.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "lib/base/prng.h"
#include "tests/unit/aperture/cached_handle.h"

namespace {

using namespace ub::aperture;

constexpr uint64_t kBytes = sizeof softub_line_cache_t::lines;
constexpr size_t kPlaces = 1 << 16;  // more than a CPU learns by heart

enum class Walk { kInARow, kAnywhere };

[[gnu::noinline]] uint64_t load_array(const uint8_t* array, uint64_t at) {
  uint64_t word;
  std::memcpy(&word, array + at, sizeof word);
  return word;
}

[[gnu::noinline]] uint64_t load_handle(softub_aperture_t* handle, uint64_t at) {
  uint64_t word = 0;
  if (softub_load(handle, at, &word, sizeof word) != URMA_CR_SUCCESS) std::abort();
  return word;
}

[[gnu::noinline]] void store_handle(softub_aperture_t* handle, uint64_t at, uint64_t word) {
  if (softub_store(handle, at, &word, sizeof word) != URMA_CR_SUCCESS) std::abort();
}

// A handle whose lines are all there, in ways that do not follow from their addresses.
struct Stage {
  Stage() {
    ub::Prng random(1);
    std::vector<uint64_t> lines(kBytes / kLineBytes);
    for (size_t i = 0; i < lines.size(); ++i) lines[i] = i * kLineBytes;
    for (size_t i = lines.size() - 1; i > 0; --i) std::swap(lines[i], lines[random.below(i + 1)]);
    for (const uint64_t at : lines) load_handle(&handle.pub, at);
  }
  ~Stage() {
    // What was measured were hits.
    if (far.loads != kBytes / kLineBytes) std::abort();
  }

  test::FarMemory far{kBytes};
  test::CachedHandle handle{far, 0x7000'0000, SOFTUB_CACHE_WRITE_BACK};
};

std::vector<uint64_t> places(Walk walk) {
  ub::Prng random(2);
  std::vector<uint64_t> places(kPlaces);
  for (size_t i = 0; i < kPlaces; ++i) {
    places[i] = walk == Walk::kInARow ? i * 8 % kBytes : random.below(kBytes / 8) * 8;
  }
  return places;
}

template <class Access>
void run(benchmark::State& state, Walk walk, Access access) {
  const std::vector<uint64_t> order = places(walk);
  size_t i = 0;
  uint64_t sum = 0;
  for (auto _ : state) sum += access(order[i++ % kPlaces]);
  benchmark::DoNotOptimize(sum);
}

// All words are 0, but the CPU does not know.
template <class Access>
void follow(benchmark::State& state, Access access) {
  uint64_t at = 0, step = 0;
  for (auto _ : state) {
    at = access(at) + step;
    step = (step + 72) % kBytes;
  }
  benchmark::DoNotOptimize(at);
}

void array(benchmark::State& state, Walk walk) {
  const std::vector<uint8_t> bytes(kBytes);
  run(state, walk, [&](uint64_t at) { return load_array(bytes.data(), at); });
}
void hit(benchmark::State& state, Walk walk) {
  Stage stage;
  run(state, walk, [&](uint64_t at) { return load_handle(&stage.handle.pub, at); });
}
void store_hit(benchmark::State& state, Walk walk) {
  Stage stage;
  run(state, walk, [&](uint64_t at) {
    store_handle(&stage.handle.pub, at, 1);
    return at;
  });
}
void chain_array(benchmark::State& state) {
  const std::vector<uint8_t> bytes(kBytes);
  follow(state, [&](uint64_t at) { return load_array(bytes.data(), at); });
}
void chain_hit(benchmark::State& state) {
  Stage stage;
  follow(state, [&](uint64_t at) { return load_handle(&stage.handle.pub, at); });
}
void invalidate_all(benchmark::State& state) {
  Stage stage;
  for (auto _ : state) {
    benchmark::DoNotOptimize(stage.handle.cache.sync(0, SOFTUB_TO_THE_END, SOFTUB_INVALIDATE));
  }
}
// A real one costs a remote load more.
void miss_without_its_load(benchmark::State& state) {
  test::FarMemory far{16 * kBytes};
  test::CachedHandle handle{far, 0x7000'0000, SOFTUB_CACHE_WRITE_BACK};
  uint64_t at = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(load_handle(&handle.pub, at));
    at = (at + kLineBytes) % far.bytes.size();
  }
}

BENCHMARK_CAPTURE(array, in_a_row, Walk::kInARow);
BENCHMARK_CAPTURE(hit, in_a_row, Walk::kInARow);
BENCHMARK_CAPTURE(store_hit, in_a_row, Walk::kInARow);
BENCHMARK_CAPTURE(array, anywhere, Walk::kAnywhere);
BENCHMARK_CAPTURE(hit, anywhere, Walk::kAnywhere);
BENCHMARK_CAPTURE(store_hit, anywhere, Walk::kAnywhere);
BENCHMARK(chain_array);
BENCHMARK(chain_hit);
BENCHMARK(invalidate_all);
BENCHMARK(miss_without_its_load);

}  // namespace

BENCHMARK_MAIN();
