// SPDX-License-Identifier: Apache-2.0
// Channels chosen by the program. URMA API 0.9, 5.4, 5.5, 5.11. What a program chooses here is always the channel
// that it would get anyway, see tp.h.
#include "lib/urma/objects/tp.h"

#include <atomic>
#include <bit>
#include <cstring>
#include <new>
#include <optional>

#include "lib/urma/device/eid.h"
#include "lib/urma/include/ub/umdk/urma/urma_api.h"
#include "lib/urma/objects/objects.h"
#include "lib/urma/objects/order.h"
#include "lib/urma/status.h"

namespace ub::urma {
namespace {

constexpr uint32_t kAttributes = (1U << 19) - 1;  // retry_times_init .. dscp_config_mode, without the reserved ones
constexpr uint32_t kNeverSet = 1U << 16;          // udp_global_en

// One handle never names two channels, whatever the context.
std::atomic<uint64_t> last_handle{0};

void copy_attributes(uint32_t bitmap, const urma_tp_attr_value_t& from, urma_tp_attr_value_t* to) {
  auto wanted = [bitmap](int n) { return (bitmap >> n & 1) != 0; };
  if (wanted(0)) to->retry_times_init = from.retry_times_init;
  if (wanted(1)) to->at = from.at;
  if (wanted(2)) memcpy(to->sip, from.sip, sizeof to->sip);
  if (wanted(3)) memcpy(to->dip, from.dip, sizeof to->dip);
  if (wanted(4)) memcpy(to->sma, from.sma, sizeof to->sma);
  if (wanted(5)) memcpy(to->dma, from.dma, sizeof to->dma);
  if (wanted(6)) to->vlan_id = from.vlan_id;
  if (wanted(7)) to->vlan_en = from.vlan_en;
  if (wanted(8)) to->dscp = from.dscp;
  if (wanted(9)) to->at_times = from.at_times;
  if (wanted(10)) to->sl = from.sl;
  if (wanted(11)) to->ttl = from.ttl;
  if (wanted(12)) to->ack_udp_srcport = from.ack_udp_srcport;
  if (wanted(13)) to->data_udp_srcport = from.data_udp_srcport;
  if (wanted(14)) to->udp_srcport_range = from.udp_srcport_range;
  if (wanted(15)) to->spray_en = from.spray_en;
  if (wanted(17)) to->sl_bitmap = from.sl_bitmap;
  if (wanted(18)) to->dscp_config_mode = from.dscp_config_mode;
}

// Empty: none or several.
std::optional<urma_tp_type_t> kind_of(urma_get_tp_cfg_flag_t flag) {
  if (flag.bs.ctp + flag.bs.rtp + flag.bs.utp != 1) return std::nullopt;
  return flag.bs.rtp != 0 ? URMA_RTP : flag.bs.ctp != 0 ? URMA_CTP : URMA_UTP;
}

bool leads_to(const urma_context_t* ctx, const urma_active_tp_cfg_t& cfg, const urma_jetty_id_t& peer,
              urma_transport_mode_t mode) {
  return context_of(ctx).tps.leads_to(cfg.tp_handle, eid_of(peer.eid), mode);
}

}  // namespace

uint64_t TpTable::handle_of(const Key& key) {
  std::lock_guard guard(mutex_);
  auto [at, added] = handles_.try_emplace(key, 0);
  if (!added && at->second != 0) return at->second;
  uint64_t handle = last_handle.fetch_add(1) + 1;
  tps_.emplace(handle, Tp{key});
  at->second = handle;
  return handle;
}

bool TpTable::leads_to(uint64_t handle, const Eid& peer, urma_transport_mode_t mode) {
  std::lock_guard guard(mutex_);
  auto at = tps_.find(handle);
  return at != tps_.end() && at->second.key.peer == peer.bytes && at->second.key.mode == mode;
}

bool TpTable::set(uint64_t handle, uint32_t bitmap, const urma_tp_attr_value_t& values) {
  std::lock_guard guard(mutex_);
  auto at = tps_.find(handle);
  if (at == tps_.end()) return false;
  copy_attributes(bitmap, values, &at->second.values);
  at->second.set |= bitmap;
  return true;
}

bool TpTable::get(uint64_t handle, uint32_t* bitmap, urma_tp_attr_value_t* values) {
  std::lock_guard guard(mutex_);
  auto at = tps_.find(handle);
  if (at == tps_.end()) return false;
  *bitmap = at->second.set;
  memset(values, 0, sizeof *values);  // also the bits between its members, which a program may compare
  copy_attributes(at->second.set, at->second.values, values);
  return true;
}

void TpTable::clear() {
  std::lock_guard guard(mutex_);
  handles_.clear();
  tps_.clear();
}

}  // namespace ub::urma

using namespace ub;
using namespace ub::urma;

urma_status_t urma_get_tp_list(urma_context_t* ctx, urma_get_tp_cfg_t* cfg, uint32_t* tp_cnt,
                               urma_tp_info_t* tp_list) try {
  auto* context = live<Context>(ctx);
  if (context == nullptr || cfg == nullptr || tp_cnt == nullptr || tp_list == nullptr || *tp_cnt == 0) {
    return URMA_EINVAL;
  }
  std::optional<urma_tp_type_t> kind = kind_of(cfg->flag);
  if (!kind || !valid_mode(cfg->trans_mode) || !tp_type_fits(cfg->trans_mode, *kind)) return URMA_EINVAL;
  Eid peer = eid_of(cfg->peer_eid);
  if (eid_of(cfg->local_eid) != eid_of(ctx->eid) || peer == Eid{}) return URMA_EINVAL;
  tp_list[0].tp_handle = context->tps.handle_of({peer.bytes, cfg->trans_mode, *kind});
  *tp_cnt = 1;
  return URMA_SUCCESS;
} catch (const std::bad_alloc&) {
  return URMA_ENOMEM;
}

urma_target_jetty_t* urma_import_jfr_ex(urma_context_t* ctx, urma_rjfr_t* rjfr, urma_token_t* token_value,
                                        urma_import_jfr_ex_cfg_t* cfg) {
  bool complete = live<Context>(ctx) != nullptr && rjfr != nullptr && token_value != nullptr && cfg != nullptr;
  if (!complete || !leads_to(ctx, *cfg, rjfr->jfr_id, rjfr->trans_mode)) return fail(EINVAL);
  return urma_import_jfr(ctx, rjfr, token_value);
}

urma_target_jetty_t* urma_import_jetty_ex(urma_context_t* ctx, urma_rjetty_t* rjetty, urma_token_t* token_value,
                                          urma_import_jetty_ex_cfg_t* cfg) {
  bool complete = live<Context>(ctx) != nullptr && rjetty != nullptr && token_value != nullptr && cfg != nullptr;
  if (!complete || !leads_to(ctx, *cfg, rjetty->jetty_id, rjetty->trans_mode)) return fail(EINVAL);
  return urma_import_jetty(ctx, rjetty, token_value);
}

urma_status_t urma_bind_jetty_ex(urma_jetty_t* jetty, urma_target_jetty_t* tjetty, urma_bind_jetty_ex_cfg_t* cfg) {
  if (live<Jetty>(jetty) == nullptr || live<Target>(tjetty) == nullptr || cfg == nullptr) return URMA_EINVAL;
  if (!leads_to(jetty->urma_ctx, *cfg, tjetty->id, tjetty->trans_mode)) return URMA_EINVAL;
  return urma_bind_jetty(jetty, tjetty);
}

// No channel belongs to a jetty. The target of an RC jetty is as good a number: no other bound jetty has it.
int urma_get_tpn(urma_jetty_t* handle) {
  auto* jetty = live<Jetty>(handle);
  if (jetty == nullptr) return -URMA_EINVAL;
  const Target* target = jetty->sq.bound.load(std::memory_order_acquire);
  return target != nullptr ? static_cast<int>(target->handle) : 0;
}

int urma_modify_tp(urma_context_t*, uint32_t, urma_tp_cfg_t*, urma_tp_attr_t*, urma_tp_attr_mask_t) {
  return URMA_ENOPERM;
}

urma_status_t urma_set_tp_attr(const urma_context_t* ctx, const uint64_t tp_handle, const uint8_t,
                               const uint32_t tp_attr_bitmap, const urma_tp_attr_value_t* tp_attr) {
  auto* context = live<Context>(ctx);
  if (context == nullptr || tp_attr == nullptr || (tp_attr_bitmap & ~kAttributes) != 0) return URMA_EINVAL;
  return context->tps.set(tp_handle, tp_attr_bitmap & ~kNeverSet, *tp_attr) ? URMA_SUCCESS : URMA_EINVAL;
}

urma_status_t urma_get_tp_attr(const urma_context_t* ctx, const uint64_t tp_handle, uint8_t* tp_attr_cnt,
                               uint32_t* tp_attr_bitmap, urma_tp_attr_value_t* tp_attr) {
  auto* context = live<Context>(ctx);
  if (context == nullptr || tp_attr_cnt == nullptr || tp_attr_bitmap == nullptr || tp_attr == nullptr) {
    return URMA_EINVAL;
  }
  if (!context->tps.get(tp_handle, tp_attr_bitmap, tp_attr)) return URMA_EINVAL;
  *tp_attr_cnt = static_cast<uint8_t>(std::popcount(*tp_attr_bitmap));
  return URMA_SUCCESS;
}
