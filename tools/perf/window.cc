// SPDX-License-Identifier: Apache-2.0
//
// Plain pointers to the peer's memory (softub_map). The peer does nothing for them.
#include <fmt/format.h>
#include <softub_aperture.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "lib/base/histogram.h"
#include "lib/base/prng.h"
#include "tools/common/probe.h"
#include "tools/common/tool_error.h"
#include "tools/perf/meter.h"
#include "tools/perf/pattern.h"
#include "tools/perf/tests.h"

namespace ub::tools {
namespace {

constexpr uint64_t kPage = 4096, kWord = 8;
constexpr uint8_t kSeed = 1;  // of the peer's pattern (Endpoint::prepare)

// An access that cannot be served cannot return either: it stands in the middle of an expression.
bool end_program(const softub_fault_t* fault, void*) {
  const std::string text =
      fmt::format("urma_perf: an access to the window failed: {}{}{}\n", record_status_name(fault->cause),
                  fault->instruction != nullptr ? ": " : "", fault->instruction != nullptr ? fault->instruction : "");
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
  ::_exit(fault->cause == URMA_CR_ACK_TIMEOUT_ERR ? kExitPeerLost : kExitFailed);
}

class Window {
 public:
  Window(const Options& o, Endpoint& endpoint)
      : bytes_(endpoint.layout().size), cache_bytes_(bytes_ * (o.cache_percent != 0 ? o.cache_percent : 100) / 100) {
    softub_map_options_t options = {};
    options.offset = endpoint.remote_out(0);
    options.bytes = bytes_;
    options.way = o.uncached ? SOFTUB_WAY_UNCACHED : SOFTUB_WAY_CACHED;
    options.cache_bytes = cache_bytes_;
    options.prefetch_pages = o.prefetch == 0  ? SOFTUB_NO_PREFETCH
                             : o.prefetch > 0 ? static_cast<uint32_t>(o.prefetch)
                                              : 0;
    options.flags = SOFTUB_MAP_READ_ONLY;
    options.path = wanted_path(o);
    start_ = static_cast<const std::byte*>(softub_map(endpoint.remote_segment(), &options));
    if (start_ == nullptr) throw ToolError(fmt::format("the peer's memory cannot be mapped (--path {})", o.path));
    softub_on_fault(at(0), end_program, nullptr);
  }
  ~Window() { softub_unmap(at(0)); }
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  uint64_t bytes() const { return bytes_; }
  const std::byte* data() const { return start_; }
  uint64_t word(uint64_t place) const { return *reinterpret_cast<const volatile uint64_t*>(start_ + place); }
  // All pages are missing again.
  void drop() { sync(bytes_, SOFTUB_DISCARD); }
  // As many as may be are present.
  void fill() { sync(cache_bytes_, SOFTUB_PREFETCH); }

 private:
  void sync(uint64_t bytes, uint32_t what) {
    const urma_cr_status_t status = softub_sync(at(0), bytes, what);
    if (status != URMA_CR_SUCCESS) throw ToolError(fmt::format("softub_sync failed: {}", record_status_name(status)));
  }
  void* at(uint64_t place) const { return const_cast<std::byte*>(start_ + place); }

  const std::byte* start_ = nullptr;
  uint64_t bytes_, cache_bytes_;
};

// The words that map_lat reads, one after the other.
class Places {
 public:
  Places(const Options& o, Window& window)
      : window_(window), random_(1), in_turn_(!o.uncached && o.cache_percent == 0), pages_(window.bytes() / kPage) {
    std::iota(pages_.begin(), pages_.end(), 0);
    for (size_t i = pages_.size() - 1; i > 0; --i) std::swap(pages_[i], pages_[random_.below(i + 1)]);
  }
  // Each page once, without neighbours in a row, and then all anew; or any of them.
  uint64_t next() {
    if (!in_turn_) return random_.below(window_.bytes() / kWord) * kWord;
    if (next_ == pages_.size()) next_ = 0;
    if (next_ == 0) window_.drop();
    return pages_[next_++] * kPage;
  }

 private:
  Window& window_;
  Prng random_;
  bool in_turn_;
  std::vector<uint64_t> pages_;
  size_t next_ = 0;
};

bool is_right(uint64_t word, uint64_t place, uint64_t bytes) {
  const auto* at = reinterpret_cast<const uint8_t*>(&word);
  for (uint64_t i = 0; i < kWord; ++i) {
    if (at[i] != pattern_byte(kSeed, bytes - 1 - place - i)) return false;
  }
  return true;
}

Json measure_times(const Options& o, Endpoint& endpoint, Window& window) {
  auto times = std::make_unique<Histogram>();
  const uint64_t accesses = o.duration_s > 0 ? UINT64_MAX : o.iterations_for(window.bytes());
  Places places(o, window);
  for (uint64_t i = 0; i < o.warmup; ++i) static_cast<void>(window.word(places.next()));
  const uint64_t begun = Ticks::now();
  const auto limit = o.duration_s > 0 ? static_cast<uint64_t>(o.duration_s * 1e9 / Ticks::ns_per_tick()) : UINT64_MAX;
  for (uint64_t i = 0; i < accesses && Ticks::now() - begun < limit; ++i) {
    const uint64_t place = places.next();
    const uint64_t start = Ticks::now();
    const uint64_t value = window.word(place);
    times->record(Ticks::now() - start);
    if (o.verify && !is_right(value, place, window.bytes())) {
      endpoint.count_error(fmt::format("the word at byte {} of the window is wrong", place));
    }
    throw_if_stopped();
  }
  return latency_row(*times, window.bytes(), 1);
}

// Reads all of the window once; the ticks it took.
uint64_t scan(const Options& o, Endpoint& endpoint, Window& window) {
  const uint64_t start = Ticks::now();
  for (uint64_t place = 0; place < window.bytes(); place += kWord) static_cast<void>(window.word(place));
  const uint64_t took = Ticks::now() - start;
  if (!o.verify) return took;
  const auto* bytes = reinterpret_cast<const uint8_t*>(window.data());
  const size_t wrong = check_pattern(bytes, window.bytes(), kSeed);
  if (wrong != window.bytes()) endpoint.count_error(fmt::format("byte {} of the window is wrong", wrong));
  return took;
}

Json measure_scans(const Options& o, Endpoint& endpoint, Window& window) {
  uint64_t all = 0, best = UINT64_MAX, count = 0;
  const uint64_t scans = o.duration_s > 0 ? UINT64_MAX : o.iterations_for(window.bytes());
  const auto limit = o.duration_s > 0 ? static_cast<uint64_t>(o.duration_s * 1e9 / Ticks::ns_per_tick()) : UINT64_MAX;
  for (uint64_t i = 0; i < o.warmup; ++i) scan(o, endpoint, window);
  for (; count < scans && all < limit; ++count) {
    if (!o.uncached) window.drop();
    const uint64_t took = scan(o, endpoint, window);
    all += took;
    best = std::min(best, took);
    throw_if_stopped();
  }
  const double mib = static_cast<double>(window.bytes()) / (1 << 20);
  const auto seconds = [](uint64_t ticks) { return static_cast<double>(ticks) * Ticks::ns_per_tick() / 1e9; };
  const double scans_per_second = static_cast<double>(count) / seconds(all);
  return {{"bytes", window.bytes()},
          {"iterations", count},
          {"seconds", seconds(all)},
          {"bw_peak_mib_s", mib / seconds(best)},
          {"bw_average_mib_s", mib * scans_per_second},
          {"msg_rate_mpps", scans_per_second / 1e6}};
}

}  // namespace

Json measure_window(const Options& o, Endpoint& endpoint) {
  Window window(o, endpoint);
  if (o.cache_percent != 0) window.fill();
  return o.bandwidth ? measure_scans(o, endpoint, window) : measure_times(o, endpoint, window);
}

}  // namespace ub::tools
