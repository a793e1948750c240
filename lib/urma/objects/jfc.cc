// SPDX-License-Identifier: Apache-2.0
// Completion queues: bringing up and down. Reading is in poll.cc, events are in jfce.cc and events.cc.
#include "lib/urma/objects/jfc.h"

#include "lib/urma/events/jfce.h"
#include "lib/urma/include/ub/umdk/urma/urma_api.h"
#include "lib/urma/library.h"
#include "lib/urma/log.h"
#include "lib/urma/objects/life.h"
#include "lib/urma/status.h"

namespace ub::urma {
namespace {

bool check(const urma_context_t* ctx, const urma_jfc_cfg_t& cfg) {
  const urma_device_cap_t& caps = Library::get().caps();
  if (cfg.depth == 0 || cfg.depth > caps.max_jfc_depth) {
    URMA_LOG_ERROR("JFC depth %u is not in 1 .. %u", cfg.depth, caps.max_jfc_depth);
    return false;
  }
  if (cfg.ceqn >= caps.ceq_cnt) {
    URMA_LOG_ERROR("JFC ceqn %u is not below %u", cfg.ceqn, caps.ceq_cnt);
    return false;
  }
  if (cfg.jfce != nullptr) {
    auto* jfce = live<Jfce>(cfg.jfce);
    if (jfce == nullptr || jfce->pub.urma_ctx != ctx) {
      URMA_LOG_ERROR("the JFCE is not one of this context");
      return false;
    }
  }
  return true;
}

// For the configuration in jfc.pub, which was checked. The ring is new: so are the indices into it.
Status bring_up(Jfc& jfc) {
  const urma_jfc_cfg_t& cfg = jfc.pub.jfc_cfg;
  uint32_t slots = round_up_pow2(cfg.depth);
  if (!jfc.ring.allocate(slots)) return Status::kNoMemory;
  jfc.slots = jfc.ring.slots<Cqe>();
  jfc.indices = jfc.ring.indices();
  jfc.mask = slots - 1;
  jfc.depth = cfg.depth;
  jfc.lock_free = cfg.flag.bs.lock_free;
  jfc.told_consumed.store(0, std::memory_order_relaxed);
  jfc.jfce = reinterpret_cast<Jfce*>(cfg.jfce);
  if (jfc.jfce != nullptr) readmit_events(*jfc.jfce, jfc);
  context_of(jfc.pub.urma_ctx).async.readmit(jfc.async);
  JfcConfig config;
  config.slots = jfc.slots;
  config.slot_count = slots;
  config.depth = cfg.depth;
  config.indices = jfc.indices;
  config.cookie = reinterpret_cast<uintptr_t>(&jfc);
  // Events may name the queue as soon as the Core knows it.
  jfc.magic = live_magic<Jfc>();
  Status status = backend().create_jfc(config, &jfc.handle);
  if (status != Status::kOk) {
    make_inactive(jfc);
    jfc.ring.release();
    return status;
  }
  jfc.pub.jfc_id = full_id(*jfc.pub.urma_ctx, Library::get().next_jfc_id());
  jfc.pub.handle = jfc.handle;
  jfc.pub.urma_jfc_opt.is_actived = true;
  if (jfc.jfce != nullptr) jfc.jfce->pub.ref.atomic_cnt.fetch_add(1);
  return Status::kOk;
}

}  // namespace

bool consume(Jfc& jfc, uint32_t produced, uint32_t consumed) {
  uint32_t before = jfc.indices->consumed.load(std::memory_order_relaxed);
  jfc.indices->consumed.store(consumed, std::memory_order_release);
  return produced - before >= jfc.depth;
}

void tell_read(Jfc& jfc) {
  jfc.told_consumed.store(jfc.indices->consumed.load(std::memory_order_relaxed), std::memory_order_relaxed);
  backend().completions_read(jfc.handle);
}

void tell_if_drained(Jfc& jfc) {
  uint32_t consumed = jfc.indices->consumed.load(std::memory_order_relaxed);
  uint32_t read = consumed - jfc.told_consumed.load(std::memory_order_relaxed);
  if (read > jfc.depth / 4) [[unlikely]]
    tell_read(jfc);
}

void purge(Jfc& jfc, const void* user_data) {
  if (jfc.lock_free) return;
  bool was_full = false;
  {
    MaybeLocked guard(jfc.lock, false);
    uint32_t produced = jfc.indices->produced.load(std::memory_order_acquire);
    uint32_t consumed = jfc.indices->consumed.load(std::memory_order_relaxed);
    // The records that stay move towards the producer, so that only our own index changes.
    uint32_t to = produced;
    for (uint32_t from = produced; from != consumed;) {
      const Cqe& cqe = jfc.slots[--from & jfc.mask];
      if (cqe.user_data == reinterpret_cast<uintptr_t>(user_data)) continue;
      if (--to != from) jfc.slots[to & jfc.mask] = cqe;
    }
    if (to != consumed) was_full = consume(jfc, produced, to);
  }
  if (was_full) tell_read(jfc);
}

void leave_jfc(urma_jfc_t* handle, const void* user_data) {
  auto* jfc = live<Jfc>(handle);
  if (jfc == nullptr) return;
  purge(*jfc, user_data);
  jfc->users.fetch_sub(1);
}

urma_status_t activate(Jfc& jfc) {
  if (!check(jfc.pub.urma_ctx, jfc.pub.jfc_cfg)) return URMA_EINVAL;
  return activated(bring_up(jfc));
}

urma_status_t deactivate(Jfc& jfc) {
  urma_jfc_t& pub = jfc.pub;
  if (jfc.users.load(std::memory_order_acquire) != 0) {
    URMA_LOG_ERROR("JFC %u is still used by a JFS, JFR or jetty", pub.jfc_id.id);
    return URMA_FAIL;
  }
  auto acked = [&] {
    return all_acked(jfc.events_handed_out.load(), pub.comp_events_acked) &&
           all_acked(jfc.async.handed_out.load(), pub.async_events_acked);
  };
  if (pub.jfc_cfg.flag.bs.non_blocking && acks_missing(pub, acked)) return URMA_EAGAIN;
  Status status = backend().destroy_jfc(jfc.handle);
  if (status != Status::kOk) return status_of(status);
  if (jfc.jfce != nullptr) drop_events(*jfc.jfce, jfc);
  context_of(pub.urma_ctx).async.remove(jfc.async);
  wait_for_acks(pub, acked);
  make_inactive(jfc);
  if (jfc.jfce != nullptr) jfc.jfce->pub.ref.atomic_cnt.fetch_sub(1);
  jfc.ring.release();
  pub.urma_jfc_opt.is_actived = false;
  return URMA_SUCCESS;
}

}  // namespace ub::urma

using namespace ub;
using namespace ub::urma;

urma_jfc_t* urma_create_jfc(urma_context_t* ctx, urma_jfc_cfg_t* jfc_cfg) {
  if (live<Context>(ctx) == nullptr || jfc_cfg == nullptr || !check(ctx, *jfc_cfg)) return fail(EINVAL);
  auto* jfc = new_inactive<Jfc>(ctx, *jfc_cfg);
  return jfc != nullptr ? created(*jfc, bring_up(*jfc)) : fail(ENOMEM);
}

urma_status_t urma_modify_jfc(urma_jfc_t* jfc, urma_jfc_attr_t* attr) {
  const auto* object = live<Jfc>(jfc);
  if (object == nullptr || attr == nullptr) return URMA_EINVAL;
  if ((attr->mask & ~(JFC_MODERATE_COUNT | JFC_MODERATE_PERIOD)) != 0) return URMA_EINVAL;
  Moderation wanted;
  if ((attr->mask & JFC_MODERATE_COUNT) != 0) wanted.count = attr->moderate_count;
  if ((attr->mask & JFC_MODERATE_PERIOD) != 0) wanted.period = microseconds(attr->moderate_period);
  return status_of(backend().moderate_jfc(object->handle, wanted));
}

urma_status_t urma_delete_jfc(urma_jfc_t* jfc) { return delete_object<Jfc>(jfc); }
