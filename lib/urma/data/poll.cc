// SPDX-License-Identifier: Apache-2.0
// Hot: Cqe -> urma_cr_t.
#include <algorithm>
#include <cstring>

#include "lib/urma/data/faults.h"
#include "lib/urma/data/perf.h"
#include "lib/urma/include/ub/umdk/urma/urma_api.h"
#include "lib/urma/objects/jfc.h"

namespace ub::urma {
namespace {

constexpr uint32_t kPollsPerDrive = 16;  // polls that found something; one that finds nothing always drives

// The marker that lets urma_flush_* hand out requests. `user_data` is echoed by the Core, and objects stay
// objects of their kind for ever, so a stale one only fails the check.
[[gnu::noinline, gnu::cold]] void note_marker(const Cqe& cqe) {
  if ((cqe.flags & kCqeJetty) != 0) {
    if (auto* jetty = live<Jetty>(reinterpret_cast<urma_jetty_t*>(cqe.user_data))) {
      jetty->sq.marker_polled.store(true, std::memory_order_release);
    }
  } else if (auto* jfs = live<Jfs>(reinterpret_cast<urma_jfs_t*>(cqe.user_data))) {
    jfs->sq.marker_polled.store(true, std::memory_order_release);
  }
}

// With faults (faults.h), or as if there were none.
template <bool kFaults>
uint32_t take_records(Jfc& jfc, uint32_t room, urma_cr_t* cr) {
  uint32_t count;
  uint32_t changed = 0;  // by faults, by bit
  bool was_full = false;
  {
    MaybeLocked guard(jfc.lock, jfc.lock_free);
    uint32_t consumed = jfc.indices->consumed.load(std::memory_order_relaxed);
    uint32_t produced = jfc.indices->produced.load(std::memory_order_acquire);
    count = std::min(produced - consumed, room);
    for (uint32_t i = 0; i < count; ++i) {
      const Cqe& cqe = jfc.slots[(consumed + i) & jfc.mask];
      __builtin_prefetch(&jfc.slots[(consumed + i + 1) & jfc.mask]);
      convert(cqe, cr[i]);
      if constexpr (kFaults) changed |= uint32_t{change_record(cqe, jfc.pub.jfc_id.id, cr[i])} << i;
      if (cqe.status == CrStatus::kWrFlushDone || cqe.status == CrStatus::kWrSuspendDone) [[unlikely]]
        note_marker(cqe);
    }
    if (count != 0) was_full = consume(jfc, produced, consumed + count);
  }
  if (was_full) [[unlikely]]
    tell_read(jfc);
  if constexpr (kFaults) stop_queues(cr, changed);
  return count;
}

[[gnu::noinline, gnu::cold]] uint32_t take_with_faults(Jfc& jfc, uint32_t room, urma_cr_t* cr) {
  return take_records<true>(jfc, std::min(room, kRecordsAtOnce), cr);
}

uint32_t take(Jfc& jfc, uint32_t room, urma_cr_t* cr) {
  if (has_faults()) [[unlikely]]
    return take_with_faults(jfc, room, cr);
  return take_records<false>(jfc, room, cr);
}

bool has_records(const Jfc& jfc) {
  return jfc.indices->produced.load(std::memory_order_acquire) != jfc.indices->consumed.load(std::memory_order_relaxed);
}

// Measured or not (perf.h), it has two callers: without the attribute it would be a call of its own for both.
[[gnu::always_inline]] inline int poll(Jfc& jfc, uint32_t room, urma_cr_t* cr) {
  // Spinning pollers take no lock as long as there is nothing to take.
  if (has_records(jfc)) {
    uint32_t count = take(jfc, room, cr);
    if (count != 0) {
      // Not a read-modify-write: a race between pollers costs a drive more or less.
      uint32_t polls = jfc.polls.load(std::memory_order_relaxed) + 1;
      jfc.polls.store(polls, std::memory_order_relaxed);
      if (polls % kPollsPerDrive == 0) backend().drive();
      return static_cast<int>(count);
    }
  }
  tell_if_drained(jfc);
  backend().drive();
  return has_records(jfc) ? static_cast<int>(take(jfc, room, cr)) : 0;
}

}  // namespace

void convert(const Cqe& cqe, urma_cr_t& cr) {
  memset(&cr, 0, sizeof cr);
  cr.status = static_cast<urma_cr_status_t>(cqe.status);
  cr.user_ctx = cqe.user_ctx;
  // 0xff on the send side is no value of the enumeration: written as the number it is.
  auto opcode = static_cast<uint32_t>(cqe.opcode);
  static_assert(sizeof cr.opcode == sizeof opcode);
  memcpy(&cr.opcode, &opcode, sizeof opcode);
  cr.flag.bs.s_r = (cqe.flags & kCqeReceive) != 0;
  cr.flag.bs.jetty = (cqe.flags & kCqeJetty) != 0;
  cr.completion_len = cqe.length;
  cr.local_id = cqe.local_id;
  memcpy(cr.remote_id.eid.raw, cqe.remote_eid, sizeof cqe.remote_eid);
  cr.remote_id.uasid = cr.flag.bs.s_r ? cqe.remote_uasid : 0;
  cr.remote_id.id = cqe.remote_id;
  cr.imm_data = cqe.immediate;  // SEND_WITH_INV: token id, token value, as in urma_cr_token_t
  cr.tpn = cqe.tpn;
  cr.user_data = cqe.user_data;
}
static_assert(sizeof(urma_cr_t) == 80);
static_assert(kCqeReceive == 1 && kCqeJetty == 2, "bits of urma_cr_flag_t");

}  // namespace ub::urma

using namespace ub::urma;

namespace {

int poll_handle(urma_jfc_t* jfc_handle, int cr_cnt, urma_cr_t* cr) {
  auto* jfc = live<Jfc>(jfc_handle);
  if (jfc == nullptr || cr_cnt < 0 || (cr == nullptr && cr_cnt != 0)) [[unlikely]]
    return -1;
  if (cr_cnt == 0) return 0;
  return ub::urma::poll(*jfc, static_cast<uint32_t>(cr_cnt), cr);
}

}  // namespace

int urma_poll_jfc(urma_jfc_t* jfc, int cr_cnt, urma_cr_t* cr) {
  return with_perf<poll_handle>(PerfCall::kPollJfc, jfc, cr_cnt, cr);
}
