// SPDX-License-Identifier: Apache-2.0
// Calls that are there to link against and answer "not supported": URMA_ENOPERM, or NULL with errno EPERM.
// NULL arguments are EINVAL even here where the call says so.
#include <cerrno>
#include <cstdlib>

#include "lib/urma/include/ub/umdk/urma/urma_api.h"
#include "lib/urma/include/ub/umdk/urma/urma_perf.h"
#include "lib/urma/include/ub/umdk/urma/urma_provider.h"
#include "lib/urma/include/ub/umdk/urma/urma_ubagg.h"
#include "lib/urma/objects.h"
#include "lib/urma/status.h"

using namespace ub::urma;

// ---- channels chosen by the program ---------------------------------------------------------------------------

urma_target_jetty_t* urma_import_jfr_ex(urma_context_t* ctx, urma_rjfr_t* rjfr, urma_token_t* token_value,
                                        urma_import_jfr_ex_cfg_t* cfg) {
  bool complete = ctx != nullptr && rjfr != nullptr && token_value != nullptr && cfg != nullptr;
  return fail(complete ? EPERM : EINVAL);
}

urma_target_jetty_t* urma_import_jetty_ex(urma_context_t* ctx, urma_rjetty_t* rjetty, urma_token_t* token_value,
                                          urma_import_jetty_ex_cfg_t* cfg) {
  bool complete = ctx != nullptr && rjetty != nullptr && token_value != nullptr && cfg != nullptr;
  return fail(complete ? EPERM : EINVAL);
}

urma_status_t urma_bind_jetty_ex(urma_jetty_t* jetty, urma_target_jetty_t* tjetty, urma_bind_jetty_ex_cfg_t* cfg) {
  return jetty != nullptr && tjetty != nullptr && cfg != nullptr ? URMA_ENOPERM : URMA_EINVAL;
}

int urma_get_tpn(urma_jetty_t* jetty) { return live<Jetty>(jetty) != nullptr ? -URMA_ENOPERM : -URMA_EINVAL; }

int urma_modify_tp(urma_context_t*, uint32_t, urma_tp_cfg_t*, urma_tp_attr_t*, urma_tp_attr_mask_t) {
  return URMA_ENOPERM;
}

urma_status_t urma_get_tp_list(urma_context_t* ctx, urma_get_tp_cfg_t* cfg, uint32_t* tp_cnt, urma_tp_info_t* tp_list) {
  if (live<Context>(ctx) == nullptr || cfg == nullptr || tp_cnt == nullptr || tp_list == nullptr) return URMA_EINVAL;
  return URMA_ENOPERM;
}

urma_status_t urma_set_tp_attr(const urma_context_t* ctx, const uint64_t, const uint8_t, const uint32_t,
                               const urma_tp_attr_value_t* tp_attr) {
  return live<Context>(ctx) != nullptr && tp_attr != nullptr ? URMA_ENOPERM : URMA_EINVAL;
}

urma_status_t urma_get_tp_attr(const urma_context_t* ctx, const uint64_t, uint8_t* tp_attr_cnt,
                               uint32_t* tp_attr_bitmap, urma_tp_attr_value_t* tp_attr) {
  bool complete = tp_attr_cnt != nullptr && tp_attr_bitmap != nullptr && tp_attr != nullptr;
  return live<Context>(ctx) != nullptr && complete ? URMA_ENOPERM : URMA_EINVAL;
}

// ---- asynchronous connect -------------------------------------------------------------------------------------

urma_notifier_t* urma_create_notifier(urma_context_t* ctx) {
  return fail(live<Context>(ctx) != nullptr ? EPERM : EINVAL);
}
urma_status_t urma_delete_notifier(urma_notifier_t* notifier) {
  return notifier != nullptr ? URMA_ENOPERM : URMA_EINVAL;
}
urma_target_jetty_t* urma_import_jetty_async(urma_notifier_t* notifier, const urma_rjetty_t* rjetty,
                                             const urma_token_t*, uint64_t, int) {
  return fail(notifier != nullptr && rjetty != nullptr ? EPERM : EINVAL);
}
urma_status_t urma_unimport_jetty_async(urma_target_jetty_t* tjetty) {
  return tjetty != nullptr ? URMA_ENOPERM : URMA_EINVAL;
}
urma_status_t urma_bind_jetty_async(urma_notifier_t* notifier, urma_jetty_t* jetty, urma_target_jetty_t* tjetty,
                                    uint64_t, int) {
  return notifier != nullptr && jetty != nullptr && tjetty != nullptr ? URMA_ENOPERM : URMA_EINVAL;
}
urma_status_t urma_unbind_jetty_async(urma_jetty_t* jetty) { return jetty != nullptr ? URMA_ENOPERM : URMA_EINVAL; }
int urma_wait_notify(urma_notifier_t*, uint32_t, urma_notify_t*, int) { return -1; }
urma_status_t urma_ack_notify(urma_context_t* ctx, uint32_t, urma_notify_t* notify) {
  return live<Context>(ctx) != nullptr && notify != nullptr ? URMA_SUCCESS : URMA_EINVAL;
}

// ---- step-wise creation ---------------------------------------------------------------------------------------

#define UNSUPPORTED_STEPS(kind)                                                                                        \
  urma_status_t urma_alloc_##kind(urma_context_t* ctx, urma_##kind##_cfg_t* cfg, urma_##kind##_t** out) {              \
    return ctx != nullptr && cfg != nullptr && out != nullptr ? URMA_ENOPERM : URMA_EINVAL;                            \
  }                                                                                                                    \
  urma_status_t urma_set_##kind##_opt(urma_##kind##_t* object, uint64_t, void* buf, uint32_t) {                        \
    return object != nullptr && buf != nullptr ? URMA_ENOPERM : URMA_EINVAL;                                           \
  }                                                                                                                    \
  urma_status_t urma_active_##kind(urma_##kind##_t* object) { return object != nullptr ? URMA_ENOPERM : URMA_EINVAL; } \
  urma_status_t urma_get_##kind##_opt(urma_##kind##_t* object, uint64_t, void* buf, uint32_t) {                        \
    return object != nullptr && buf != nullptr ? URMA_ENOPERM : URMA_EINVAL;                                           \
  }                                                                                                                    \
  urma_status_t urma_deactive_##kind(urma_##kind##_t* object) {                                                        \
    return object != nullptr ? URMA_ENOPERM : URMA_EINVAL;                                                             \
  }                                                                                                                    \
  urma_status_t urma_free_##kind(urma_##kind##_t* object) { return object != nullptr ? URMA_ENOPERM : URMA_EINVAL; }

UNSUPPORTED_STEPS(jfc)
UNSUPPORTED_STEPS(jfs)
UNSUPPORTED_STEPS(jfr)
UNSUPPORTED_STEPS(jetty)

// ---- driver control, addresses, statistics --------------------------------------------------------------------

urma_status_t urma_user_ctl(urma_context_t* ctx, urma_user_ctl_in_t* in, urma_user_ctl_out_t* out) {
  if (live<Context>(ctx) == nullptr || in == nullptr || out == nullptr) return URMA_EINVAL;
  return URMA_ENOPERM;  // every command is one of bonding devices
}

urma_net_addr_info_t* urma_get_net_addr_list(urma_context_t* ctx, uint32_t* cnt) {
  if (live<Context>(ctx) == nullptr || cnt == nullptr) return fail(EINVAL);
  *cnt = 0;
  return fail(EPERM);
}
void urma_free_net_addr_list(urma_net_addr_info_t* net_addr_list) { free(net_addr_list); }

urma_status_t urma_get_eid_by_ip(const urma_context_t* ctx, const urma_net_addr_t* net_addr, urma_eid_t* eid) {
  bool complete = live<Context>(ctx) != nullptr && net_addr != nullptr && eid != nullptr;
  return complete ? URMA_ENOPERM : URMA_EINVAL;
}
urma_status_t urma_get_ip_by_eid(const urma_context_t* ctx, const urma_eid_t* eid, urma_net_addr_t* net_addr) {
  bool complete = live<Context>(ctx) != nullptr && net_addr != nullptr && eid != nullptr;
  return complete ? URMA_ENOPERM : URMA_EINVAL;
}
urma_status_t urma_get_smac(const urma_context_t* ctx, uint8_t* mac) {
  return live<Context>(ctx) != nullptr && mac != nullptr ? URMA_ENOPERM : URMA_EINVAL;
}
urma_status_t urma_get_dmac(const urma_context_t* ctx, const urma_net_addr_t* net_addr, uint8_t* mac) {
  bool complete = live<Context>(ctx) != nullptr && net_addr != nullptr && mac != nullptr;
  return complete ? URMA_ENOPERM : URMA_EINVAL;
}

urma_status_t urma_start_perf(void) { return URMA_ENOPERM; }
urma_status_t urma_stop_perf(void) { return URMA_ENOPERM; }
urma_status_t urma_get_perf_info(char* perf_buf, uint32_t* length) {
  return perf_buf != nullptr && length != nullptr ? URMA_ENOPERM : URMA_EINVAL;
}

urma_status_t urma_write_affinity(urma_jfs_t*, urma_target_jetty_t*, urma_target_seg_t*, urma_target_seg_t*, uint64_t,
                                  uint64_t, uint32_t, urma_jfs_wr_flag_t, uint64_t, uint32_t, uint32_t) {
  return URMA_EINVAL;  // bonding devices only
}

// Drivers of other devices have no place here.
int urma_register_provider_ops(urma_provider_ops_t* provider_ops) { return provider_ops != nullptr ? -EPERM : -EINVAL; }
int urma_unregister_provider_ops(urma_provider_ops_t* provider_ops) {
  return provider_ops != nullptr ? -EPERM : -EINVAL;
}
