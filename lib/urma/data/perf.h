// SPDX-License-Identifier: Apache-2.0
// perf.h - the latency statistics behind urma_start_perf (urma_perf.h). Off, a data call pays for one load of a
// line that nobody writes and one branch; on, for two looks at the clock and an entry into a histogram.
//
// Thread: any.
#pragma once

#include <atomic>
#include <cstdint>

namespace ub::urma {

enum class PerfCall : uint8_t {
  kJettyPostSend,
  kJfsPostSend,
  kJettyPostRecv,
  kJfrPostRecv,
  kPollJfc,
  kWaitJfc,
  kAckJfc,
  kRearmJfc,
};
constexpr unsigned kPerfCalls = 8;

struct alignas(64) PerfSwitch {
  std::atomic<bool> on{false};
};
[[gnu::visibility("hidden")]] extern PerfSwitch perf_switch;  // reached without the table of global offsets

// Enters the time from its construction to its end.
class PerfSpan {
 public:
  explicit PerfSpan(PerfCall call);
  ~PerfSpan();
  PerfSpan(const PerfSpan&) = delete;
  PerfSpan& operator=(const PerfSpan&) = delete;

 private:
  const PerfCall call_;
  const int64_t start_ns_;
};

template <auto kCall, class... Arguments>
[[gnu::noinline, gnu::cold]] auto perf_measured(PerfCall call, Arguments... arguments) {
  PerfSpan span(call);
  return kCall(arguments...);
}

// `kCall(arguments...)`, measured if somebody wants that. A function and values, not a lambda: they stay in registers.
template <auto kCall, class... Arguments>
[[gnu::always_inline]] inline auto with_perf(PerfCall call, Arguments... arguments) {
  if (perf_switch.on.load(std::memory_order_relaxed)) [[unlikely]]
    return perf_measured<kCall>(call, arguments...);
  return kCall(arguments...);
}

// In a forked child: nothing is measured, and locks that other threads of the parent held are forgotten.
void abandon_perf();

}  // namespace ub::urma
