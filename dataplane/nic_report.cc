// SPDX-License-Identifier: Apache-2.0
#include "dataplane/nic_report.h"

#include <algorithm>
#include <iterator>

#include "lib/transport/roce/qp.h"

namespace ub {
namespace {

// Jettys and JFSs share a table; their send queues say which records are in use.
void count_jettys(const CoreState& s, StatsObjects& objects) {
  for (uint32_t i = 1; i <= s.queues.high_water(); ++i) {
    const SendQueue& q = s.queues[i];
    if (q.in_use) ++(s.jettys[q.jetty].kind == ObjectKind::kJfs ? objects.jfs : objects.jetty);
  }
}

std::vector<StatsSegment> list_segments(const CoreState& s) {
  std::vector<StatsSegment> rows;
  for (uint32_t i = 1; i <= s.segments.high_water(); ++i) {
    const Segment& segment = s.segments[i];
    if (!segment.in_use) continue;
    StatsSegment row;
    row.address = segment.address;
    row.length = segment.length;
    row.token_id = segment.token_id;
    row.access = segment.access;
    row.token_required = segment.token.required;
    rows.push_back(row);
  }
  return rows;
}

template <class T>
StatsPool use_of(const Slab<T>& pool, uint64_t refused) {
  return {pool.in_use(), pool.high_water(), pool.capacity(), refused};
}

}  // namespace

NicReport report_nic(const CoreState& s) {
  NicReport report;
  report.segments = list_segments(s);
  StatsObjects& objects = report.objects;
  count_jettys(s, objects);
  objects.jfc = s.jfcs.in_use();
  objects.jfr = s.jfrs.in_use();
  objects.groups = s.groups.in_use();
  objects.segments = s.segments.in_use();
  objects.targets = s.targets.in_use();
  objects.peers = s.peers.in_use();
  objects.channels = s.channels.in_use();
  objects.links = s.links.in_use();
  const StatsPool pools[] = {
      use_of(s.kept.small(), 0),
      use_of(s.kept.large(), s.counters[Counter::kRxNoReorderBuffer]),
      use_of(s.reorder, 0),  // these two have one for each channel
      use_of(s.recovery, 0),
      use_of(s.resent, s.counters[Counter::kTpTxNoRecord]),
  };
  static_assert(std::size(pools) == kStatsPools);
  std::copy(std::begin(pools), std::end(pools), objects.pools);
  return report;
}

OperationCounts count_operations(const CoreState& s, const roce::State* roce) {
  EndedWork sum = s.of_gone;
  for (uint32_t i = 1; i <= s.queues.high_water(); ++i) {
    const SendQueue& q = s.queues[i];
    if (q.in_use) (q.unreliable ? sum.datagrams : sum.requests) += q.indices->retired.load(std::memory_order_relaxed);
  }
  for (uint32_t i = 1; i <= s.jfcs.high_water(); ++i) {
    if (s.jfcs[i].in_use) sum.completions += s.jfcs[i].produced;
  }
  for (uint32_t i = 1; roce != nullptr && i <= roce->qps.high_water(); ++i) {
    const roce::Qp& qp = roce->qps[i];
    if (qp.in_use) sum.of_queue_pairs += qp.ring.indices->retired.load(std::memory_order_relaxed);
  }
  return {sum.requests, sum.datagrams, sum.of_queue_pairs, sum.completions};
}

}  // namespace ub
