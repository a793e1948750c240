// SPDX-License-Identifier: Apache-2.0
#include "dataplane/softubd/starvation.h"

#include <algorithm>
#include <utility>

namespace ub {

namespace {

constexpr int64_t kHardlyAny = 16;  // a part of the time between two readings: CPU that is enough for any copy
constexpr int64_t kMuch = 4;        // a part of it, too: waiting that counts

bool is_stopped(const ThreadReading& t) { return t.state == 'T' || t.state == 't'; }
bool is_dead(const ThreadReading& t) { return t.state == 'Z' || t.state == 'X'; }

const ThreadReading* find(const ProcessReading& reading, int tid) {
  const auto it = std::lower_bound(reading.threads.begin(), reading.threads.end(), tid,
                                   [](const ThreadReading& t, int wanted) { return t.tid < wanted; });
  return it != reading.threads.end() && it->tid == tid ? &*it : nullptr;
}

// A wait that goes on is not in `waited` yet, so a thread that never got a CPU shows by its runs.
bool is_starved(const ThreadReading& before, const ThreadReading& now, Duration between) {
  if (now.state != 'R' || now.ran - before.ran > between / kHardlyAny) return false;
  const bool never_ran = before.state == 'R' && now.runs == before.runs;
  return never_ran || now.waited - before.waited >= between / kMuch;
}

}  // namespace

Condition StarvationJudge::judge(ProcessReading now) {
  const ProcessReading before = std::exchange(before_, std::move(now));
  const std::vector<ThreadReading>& threads = before_.threads;
  if (threads.empty()) return Condition::kUnseen;
  if (std::all_of(threads.begin(), threads.end(), is_dead)) return Condition::kUnseen;
  if (std::all_of(threads.begin(), threads.end(), [](const auto& t) { return is_stopped(t) || is_dead(t); })) {
    return Condition::kStopped;
  }
  if (before.threads.empty()) return Condition::kUnclear;
  const Duration between = before_.at - before.at;
  bool ran = false;
  for (const ThreadReading& thread : threads) {
    const ThreadReading* then = find(before, thread.tid);
    if (then == nullptr) continue;  // whoever makes threads runs
    if (is_starved(*then, thread, between)) return Condition::kStarved;
    ran |= thread.ran - then->ran > between / kHardlyAny;
  }
  return ran ? Condition::kRan : Condition::kAsleep;
}

}  // namespace ub
