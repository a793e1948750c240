// SPDX-License-Identifier: Apache-2.0
// Hot: urma_jfr_wr_t -> Rqe. Every element takes `stride` slots, so the ring's end needs no filler and the
// number of receives posted is a difference of indices.
#include "lib/urma/data/faults.h"
#include "lib/urma/data/perf.h"
#include "lib/urma/data/receive_queue.h"
#include "lib/urma/include/ub/umdk/urma/urma_api.h"
#include "lib/urma/library.h"
#include "lib/urma/log.h"

namespace ub::urma {
namespace {

[[gnu::noinline, gnu::cold]] urma_status_t refuse(const char* why) {
  URMA_LOG_ERROR("receive refused: %s", why);
  return URMA_EINVAL;
}

urma_status_t post_one(Jfr& jfr, const urma_jfr_wr_t& wr) {
  if (wr.src.num_sge > jfr.max_sge) return refuse("more pieces than max_sge");
  if (wr.src.num_sge != 0 && wr.src.sge == nullptr) return refuse("pieces without a list");
  if (has_faults()) [[unlikely]] {
    const urma_status_t refused = refuse_receive(jfr.pub.jfr_id.id);
    if (refused != URMA_SUCCESS) return refused;
  }
  RingProducer<Rqe>& ring = jfr.ring;
  if (ring.produced - ring.consumed_seen >= jfr.limit) {
    ring.consumed_seen = ring.indices->consumed.load(std::memory_order_acquire);
    if (ring.produced - ring.consumed_seen >= jfr.limit) return URMA_ENOMEM;
  }
  // Written in place: nothing is visible before the index moves, so a refusal half-way leaves no trace.
  Rqe& rqe = ring.at(ring.produced);
  Sge* own = rqe.sge;
  Sge* tail = reinterpret_cast<Sge*>(&rqe + 1);
  uint64_t length = 0;
  uint32_t count = 0;
  for (uint32_t i = 0; i < wr.src.num_sge; ++i) {
    const urma_sge_t& sge = wr.src.sge[i];
    if (sge.len == 0) continue;
    auto* segment = live<Segment>(sge.tseg);
    if (segment == nullptr || segment->imported) return refuse("a piece without registered segment");
    Sge& out = count < kRqeOwnSges ? own[count] : tail[count - kRqeOwnSges];
    out.address = sge.addr;
    out.length = sge.len;
    out.segment = segment->handle;
    length += sge.len;
    ++count;
  }
  if (length > UINT32_MAX) return refuse("longer than 4 GiB");
  rqe.user_ctx = wr.user_ctx;
  rqe.length = static_cast<uint32_t>(length);
  rqe.sge_count = static_cast<uint8_t>(count);
  rqe.slots = static_cast<uint8_t>(jfr.stride);
  rqe.skip = 0;
  ring.produced += jfr.stride;
  return URMA_SUCCESS;
}

}  // namespace

urma_status_t post_receives(Jfr& jfr, urma_jfr_wr_t* wr, urma_jfr_wr_t** bad_wr) {
  if (wr == nullptr || bad_wr == nullptr) [[unlikely]] {
    if (bad_wr != nullptr) *bad_wr = wr;
    return URMA_EINVAL;
  }
  MaybeLocked guard(jfr.lock, jfr.lock_free);
  urma_status_t status = URMA_SUCCESS;
  for (; wr != nullptr; wr = wr->next) {
    status = post_one(jfr, *wr);
    if (status != URMA_SUCCESS) [[unlikely]] {
      *bad_wr = wr;
      break;
    }
  }
  jfr.ring.publish();
  // Nothing takes them any more: the NIC is asked to flush.
  if (jfr.in_error.load(std::memory_order_relaxed)) [[unlikely]]
    backend().set_state(jfr.pub.jfr_id.id, QueueState::kError);
  return status;
}

}  // namespace ub::urma

using namespace ub::urma;

namespace {

urma_status_t post_receive(urma_jfr_t* jfr_handle, urma_jfr_wr_t* wr, urma_jfr_wr_t** bad_wr) {
  auto* jfr = live<Jfr>(jfr_handle);
  if (jfr == nullptr) [[unlikely]] {
    if (bad_wr != nullptr) *bad_wr = wr;
    return URMA_EINVAL;
  }
  return post_receives(*jfr, wr, bad_wr);
}

}  // namespace

urma_status_t urma_post_jfr_wr(urma_jfr_t* jfr, urma_jfr_wr_t* wr, urma_jfr_wr_t** bad_wr) {
  return with_perf<post_receive>(PerfCall::kJfrPostRecv, jfr, wr, bad_wr);
}

urma_status_t urma_recv(urma_jfr_t* jfr, urma_target_seg_t* recv_tseg, uint64_t buf, uint32_t len, uint64_t user_ctx) {
  if (jfr == nullptr || recv_tseg == nullptr) return URMA_EINVAL;
  if (buf == 0) return URMA_FAIL;
  urma_sge_t sge{};
  sge.addr = buf;
  sge.len = len;
  sge.tseg = recv_tseg;
  urma_jfr_wr_t wr{};
  wr.src.sge = &sge;
  wr.src.num_sge = 1;
  wr.user_ctx = user_ctx;
  urma_jfr_wr_t* bad = nullptr;
  return urma_post_jfr_wr(jfr, &wr, &bad);
}
