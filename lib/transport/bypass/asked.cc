// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/bypass/asked.h"

#include <algorithm>

namespace ub::bypass {

void lay_out_asked(CoreState& s, AskedState& asked, Arena& arena) {
  asked.handles.init(arena, kMaxHandles);
  asked.records = arena.take<Asked>(kMaxHandles * kRecordsPerHandle);
  asked.by_tassn = arena.take<uint16_t>(1 << 16);
  asked.rests_until = arena.take<Instant>(1 << 16);
  asked.timers = s.timer_numbers.take(kMaxHandles);
  // An answer to a former life of this instance names a TASSN that is not used soon.
  asked.next_tassn = static_cast<uint16_t>(s.config.incarnation * 0x9e3779b97f4a7c15 >> 48);
}

bool find_tassn(AskedState& asked, Instant now, uint16_t* tassn) {
  constexpr uint32_t kLooks = 256;
  for (uint32_t i = 0; i < kLooks; ++i) {
    const uint16_t t = asked.next_tassn++;
    const uint16_t user = asked.by_tassn[t];
    if (user != 0 && (user != kResting || now < asked.rests_until[t])) continue;
    *tassn = t;
    return true;
  }
  return false;
}

Asked* find_asked(AskedState& asked, uint16_t tassn, uint32_t* handle) {
  const uint16_t user = asked.by_tassn[tassn];
  if (user == 0 || user == kResting) return nullptr;
  *handle = (user - 1u) / kRecordsPerHandle + 1;
  return &asked.records[user - 1];
}

void rest_tassn(AskedState& asked, Instant now, uint16_t tassn) {
  asked.by_tassn[tassn] = kResting;
  asked.rests_until[tassn] = now + kTassnRest;
}

void finish(AskedState& asked, uint32_t handle, Asked& record, Outcome outcome) {
  record.stage = Stage::kDone;
  record.outcome = outcome;
  --asked.handles[handle].under_way;
}

void break_handle(CoreState& s, AskedState& asked, uint32_t handle) {
  Handle& h = asked.handles[handle];
  h.broken = true;
  h.looks_at = Instant::never();
  for (uint32_t i = 0; i < kRecordsPerHandle; ++i) {
    Asked& record = asked.record(handle, i);
    if (!record.waits()) continue;
    rest_tassn(asked, s.now, record.tassn);
    finish(asked, handle, record, Outcome::kUnanswered);
  }
  s.timers.cancel(asked.timers.of(handle - 1));
}

Duration patience(const Handle& handle, uint8_t tries) {
  constexpr Duration kLeast = microseconds(100);
  constexpr Duration kMost = milliseconds(50);
  constexpr uint8_t kMostDoublings = 9;
  const Duration first = std::min(std::max(kLeast, handle.round_trip * 8), handle.timeout / 16);
  return std::min(first * (1 << std::min(tries, kMostDoublings)), std::max(first, kMost));
}

}  // namespace ub::bypass
