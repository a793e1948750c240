// SPDX-License-Identifier: Apache-2.0
// Calls that are there to link against and answer "not supported": URMA_ENOPERM, or NULL with errno EPERM.
// NULL arguments are EINVAL even here where the call says so.
#include <cerrno>

#include "lib/urma/include/ub/umdk/urma/urma_api.h"
#include "lib/urma/include/ub/umdk/urma/urma_perf.h"
#include "lib/urma/include/ub/umdk/urma/urma_provider.h"
#include "lib/urma/include/ub/umdk/urma/urma_ubagg.h"
#include "lib/urma/objects.h"
#include "lib/urma/status.h"

using namespace ub::urma;

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

// ---- driver control, statistics -------------------------------------------------------------------------------

urma_status_t urma_user_ctl(urma_context_t* ctx, urma_user_ctl_in_t* in, urma_user_ctl_out_t* out) {
  if (live<Context>(ctx) == nullptr || in == nullptr || out == nullptr) return URMA_EINVAL;
  return URMA_ENOPERM;  // every command is one of bonding devices
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
