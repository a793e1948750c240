// SPDX-License-Identifier: Apache-2.0
//
// Loads and stores of the peer's memory (softub_aperture.h). The peer does nothing for them.
#include <fmt/format.h>
#include <softub_aperture.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "tools/common/tool_error.h"
#include "tools/perf/meter.h"
#include "tools/perf/pattern.h"
#include "tools/perf/tests.h"

namespace ub::tools {
namespace {

constexpr uint64_t kMostAtOnce = 8192;  // bytes of one call
constexpr uint64_t kLine = 64;

struct Path {
  std::string name;
  softub_path_t path;
};
const Path kPaths[] = {{"lane", SOFTUB_PATH_LANE}, {"frames", SOFTUB_PATH_FRAMES}, {"queue", SOFTUB_PATH_QUEUE}};

struct CloseHandle {
  void operator()(softub_aperture_t* handle) const { softub_close(handle); }
};
using Handle = std::unique_ptr<softub_aperture_t, CloseHandle>;

Handle open_handle(const Options& o, Endpoint& endpoint) {
  const softub_aperture_options_t options = {.path = wanted_path(o), .cache = SOFTUB_CACHE_NONE};
  Handle handle(softub_open(endpoint.remote_segment(), &options));
  if (!handle) throw ToolError(fmt::format("no way to load from the peer's memory (--path {})", o.path));
  return handle;
}

void expect_success(urma_cr_status_t status, const char* what) {
  if (status != URMA_CR_SUCCESS) throw ToolError(fmt::format("{} failed: {}", what, record_status_name(status)));
}

class Loads {
 public:
  Loads(const Options& o, Endpoint& endpoint)
      : o_(o),
        endpoint_(endpoint),
        handle_(open_handle(o, endpoint)),
        bytes_(endpoint.layout().size + kLine * o.tx_depth) {}

  // One load of the size, or one store and its fence.
  void one() {
    const uint32_t slot = next_++ % endpoint_.layout().slots;
    const uint64_t size = endpoint_.layout().size;
    const uint64_t there = o_.verb == Verb::kLoad ? endpoint_.remote_out(slot) : endpoint_.remote_in(slot);
    for (uint64_t done = 0; done < size; done += kMostAtOnce) {
      const auto part = static_cast<uint32_t>(std::min(size - done, kMostAtOnce));
      if (o_.verb == Verb::kLoad) {
        expect_success(softub_load(handle_.get(), there + done, bytes_.data() + done, part), "a load");
      } else {
        expect_success(softub_store(handle_.get(), there + done, bytes_.data() + done, part), "a store");
      }
    }
    if (o_.verb == Verb::kStore) {
      if (!o_.bandwidth) fence();
    } else if (o_.verify) {
      verify(bytes_.data(), slot);
    }
  }
  // As many lines as may be in flight, or one at a time if the size is another one. Returns how many there were.
  uint32_t many(uint64_t most) {
    if (o_.verb != Verb::kLoad || endpoint_.layout().size != kLine) return one(), 1;
    const auto count = static_cast<uint32_t>(std::min<uint64_t>(o_.tx_depth, most));
    at_.resize(count);
    const uint32_t first = next_;
    for (uint64_t& place : at_) place = endpoint_.remote_out(next_++ % endpoint_.layout().slots);
    expect_success(softub_load_many(handle_.get(), at_.data(), count, bytes_.data()), "a load");
    for (uint32_t i = 0; o_.verify && i < count; ++i) {
      verify(bytes_.data() + i * kLine, (first + i) % endpoint_.layout().slots);
    }
    return count;
  }
  void fence() { expect_success(softub_fence(handle_.get()), "a store"); }

 private:
  void verify(const uint8_t* bytes, uint32_t slot) {
    const uint64_t size = endpoint_.layout().size;
    const size_t at = check_pattern(bytes, size, static_cast<uint8_t>(slot + 1));
    if (at != size) endpoint_.count_error(fmt::format("load of {} bytes: byte {} is wrong", size, at));
  }

  const Options& o_;
  Endpoint& endpoint_;
  Handle handle_;
  std::vector<uint8_t> bytes_;
  std::vector<uint64_t> at_;
  uint32_t next_ = 0;
};

uint64_t end_of(const Options& o, uint64_t start) {
  if (o.duration_s <= 0) return UINT64_MAX;
  return start + static_cast<uint64_t>(o.duration_s * 1e9 / Ticks::ns_per_tick());
}

Json measure_times(const Options& o, Endpoint& endpoint, Loads& loads) {
  auto times = std::make_unique<Histogram>();
  const uint64_t rounds = o.duration_s > 0 ? UINT64_MAX : o.iterations_for(endpoint.layout().size);
  uint64_t last = Ticks::now();
  const uint64_t end = end_of(o, last);
  for (uint64_t i = 0; i < rounds && last < end; ++i) {
    loads.one();
    const uint64_t now = Ticks::now();
    times->record(now - last);
    last = now;
    throw_if_stopped();
  }
  return latency_row(*times, endpoint.layout().size, 1);
}

Json measure_rate(const Options& o, Endpoint& endpoint, Loads& loads) {
  Meter meter;
  uint64_t left = o.duration_s > 0 ? UINT64_MAX : o.iterations_for(endpoint.layout().size);
  for (const uint64_t end = end_of(o, meter.start()); left != 0 && Ticks::now() < end;) {
    const uint32_t count = loads.many(left);
    meter.add(count);
    left -= count;
    throw_if_stopped();
  }
  loads.fence();
  return meter.row(endpoint.layout().size);
}

}  // namespace

softub_path_t wanted_path(const Options& o) {
  const auto found = std::ranges::find(kPaths, o.path, &Path::name);
  return found != std::end(kPaths) ? found->path : SOFTUB_PATH_NONE;
}

std::string serving_path(const Options& o, Endpoint& endpoint) {
  const uint32_t path = open_handle(o, endpoint)->path;
  return std::ranges::find(kPaths, path, [](const Path& each) { return uint32_t{each.path}; })->name;
}

Json measure_aperture(const Options& o, Endpoint& endpoint) {
  Loads loads(o, endpoint);
  for (uint64_t i = 0; i < o.warmup; ++i) loads.one();
  return o.bandwidth ? measure_rate(o, endpoint, loads) : measure_times(o, endpoint, loads);
}

}  // namespace ub::tools
