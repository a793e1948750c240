// SPDX-License-Identifier: Apache-2.0
// Every thread enters into one of a few sets of histograms, under a lock that it hardly ever meets another thread at;
// readers add the sets up.
#include "lib/urma/data/perf.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <new>

#include "lib/base/histogram.h"
#include "lib/urma/clock.h"
#include "lib/urma/include/ub/umdk/urma/urma_perf.h"
#include "lib/urma/spinlock.h"

namespace ub::urma {

PerfSwitch perf_switch;

namespace {

constexpr const char* kNames[kPerfCalls] = {
    "UB_JETTY_POST_SEND", "UB_JFS_POST_SEND", "UB_JETTY_POST_RECV", "UB_POST_JFR_RECV",
    "UB_POLL_JFC",        "UB_WAIT_JFC",      "UB_ACK_JFC",         "UB_REARM_JFC",
};

constexpr unsigned kSets = 8;

struct alignas(64) Set {
  SpinLock lock;
  Histogram calls[kPerfCalls];
};

// 4 MiB, made by the first start and kept: calls that began before a stop enter their time after it.
struct Recording {
  std::mutex control;  // start, and reading; the sets have locks of their own
  Set sets[kSets];
  Histogram sum;  // of a reader
};
std::atomic<Recording*> recording{nullptr};

unsigned own_set() {
  static std::atomic<unsigned> threads{0};
  thread_local const unsigned set = threads.fetch_add(1, std::memory_order_relaxed) % kSets;
  return set;
}

// Null: out of memory.
Recording* make_recording() {
  Recording* present = recording.load(std::memory_order_acquire);
  if (present != nullptr) return present;
  auto* made = new (std::nothrow) Recording;
  if (made == nullptr || recording.compare_exchange_strong(present, made, std::memory_order_acq_rel)) return made;
  delete made;  // another thread was faster
  return present;
}

void clear(Recording& r) {
  for (Set& set : r.sets) {
    std::lock_guard guard(set.lock);
    for (Histogram& histogram : set.calls) histogram.clear();
  }
}

// Under `control`.
const Histogram& add_up(Recording& r, unsigned call) {
  r.sum.clear();
  for (Set& set : r.sets) {
    std::lock_guard guard(set.lock);
    r.sum.merge(set.calls[call]);
  }
  return r.sum;
}

struct Row {
  unsigned long long samples = 0, average = 0, least = 0, largest = 0, p50 = 0, p90 = 0, p99 = 0, p9999 = 0;
};

Row row_of(const Histogram& h) {
  return {h.count(),        static_cast<uint64_t>(h.mean()),
          h.min(),          h.max(),
          h.percentile(50), h.percentile(90),
          h.percentile(99), h.percentile(99.99)};
}

constexpr size_t kLineBytes = 20 + 8 * 21 + 2;  // a name and eight numbers of 20 digits, at most

class Table {
 public:
  Table() {
    int n = snprintf(text_, sizeof text_, "%-20s %11s %11s %11s %11s %11s %11s %11s %11s\n", "call [ns]", "samples",
                     "average", "min", "max", "p50", "p90", "p99", "p99.99");
    bytes_ = static_cast<size_t>(n);
  }
  void add(const char* name, const Row& row) {
    int n = snprintf(text_ + bytes_, sizeof text_ - bytes_,
                     "%-20s %11llu %11llu %11llu %11llu %11llu %11llu %11llu %11llu\n", name, row.samples, row.average,
                     row.least, row.largest, row.p50, row.p90, row.p99, row.p9999);
    bytes_ += static_cast<size_t>(n);
  }
  const char* text() const { return text_; }
  size_t bytes() const { return bytes_ + 1; }  // with NUL

 private:
  char text_[(1 + kPerfCalls) * kLineBytes + 1];
  size_t bytes_ = 0;
};
static_assert(sizeof(Table) <= 2048, "what urma_perf.h promises");

Table make_table() {
  Table table;
  Recording* r = recording.load(std::memory_order_acquire);
  std::unique_lock<std::mutex> guard;
  if (r != nullptr) guard = std::unique_lock(r->control);
  for (unsigned call = 0; call < kPerfCalls; ++call) {
    table.add(kNames[call], r != nullptr ? row_of(add_up(*r, call)) : Row{});
  }
  return table;
}

}  // namespace

PerfSpan::PerfSpan(PerfCall call) : call_(call), start_ns_(now_ns()) {}

PerfSpan::~PerfSpan() {
  const auto took = static_cast<uint64_t>(now_ns() - start_ns_);
  Recording* r = recording.load(std::memory_order_acquire);
  if (r == nullptr) return;  // a forked child
  Set& set = r->sets[own_set()];
  std::lock_guard guard(set.lock);
  set.calls[static_cast<unsigned>(call_)].record(took);
}

void abandon_perf() {
  perf_switch.on.store(false, std::memory_order_relaxed);
  recording.store(nullptr, std::memory_order_release);
}

}  // namespace ub::urma

using namespace ub::urma;

urma_status_t urma_start_perf(void) {
  Recording* r = make_recording();
  if (r == nullptr) return URMA_ENOMEM;
  std::lock_guard guard(r->control);
  if (perf_switch.on.load(std::memory_order_relaxed)) return URMA_EEXIST;
  clear(*r);
  perf_switch.on.store(true, std::memory_order_release);
  return URMA_SUCCESS;
}

urma_status_t urma_stop_perf(void) { return perf_switch.on.exchange(false) ? URMA_SUCCESS : URMA_FAIL; }

urma_status_t urma_get_perf_info(char* perf_buf, uint32_t* length) {
  if (perf_buf == nullptr || length == nullptr) return URMA_EINVAL;
  const Table table = make_table();
  if (*length < table.bytes()) return URMA_EINVAL;
  memcpy(perf_buf, table.text(), table.bytes());
  *length = static_cast<uint32_t>(table.bytes());
  return URMA_SUCCESS;
}
