// SPDX-License-Identifier: Apache-2.0
// Calls that are there to link against and answer "not supported": URMA_ENOPERM, or NULL with errno EPERM.
// NULL arguments are EINVAL even here where the call says so.
#include <cerrno>

#include "lib/urma/include/ub/umdk/urma/urma_api.h"
#include "lib/urma/include/ub/umdk/urma/urma_provider.h"
#include "lib/urma/include/ub/umdk/urma/urma_ubagg.h"

urma_status_t urma_write_affinity(urma_jfs_t*, urma_target_jetty_t*, urma_target_seg_t*, urma_target_seg_t*, uint64_t,
                                  uint64_t, uint32_t, urma_jfs_wr_flag_t, uint64_t, uint32_t, uint32_t) {
  return URMA_EINVAL;  // bonding devices only
}

// Drivers of other devices have no place here.
int urma_register_provider_ops(urma_provider_ops_t* provider_ops) { return provider_ops != nullptr ? -EPERM : -EINVAL; }
int urma_unregister_provider_ops(urma_provider_ops_t* provider_ops) {
  return provider_ops != nullptr ? -EPERM : -EINVAL;
}
