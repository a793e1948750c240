// SPDX-License-Identifier: Apache-2.0
// Calls that are there to link against and answer "not supported": URMA_ENOPERM, or NULL with errno EPERM.
// NULL arguments are EINVAL even here where the call says so.
#include <cerrno>
#include <cstring>

#include "lib/urma/include/ub/umdk/urma/urma_api.h"
#include "lib/urma/include/ub/umdk/urma/urma_provider.h"
#include "lib/urma/include/ub/umdk/urma/urma_ubagg.h"
#include "lib/urma/objects/objects.h"
#include "lib/urma/status.h"

using namespace ub::urma;

namespace {

// A device by itself is in the mode "stand-alone" already; no other one can be had.
urma_status_t set_bonding_mode(const urma_user_ctl_in_t& in) {
  bondp_set_bonding_mode_in_t wanted;
  if (in.addr == 0 || in.len < sizeof wanted) return URMA_EINVAL;
  memcpy(&wanted, reinterpret_cast<const void*>(in.addr), sizeof wanted);
  const auto mode = static_cast<uint32_t>(wanted.bonding_mode), level = static_cast<uint32_t>(wanted.bonding_level);
  if (mode >= BONDP_BONDING_MODE_MAX || level >= BONDP_BONDING_LEVEL_MAX) return URMA_EINVAL;
  return mode == BONDP_BONDING_MODE_STANDALONE ? URMA_SUCCESS : URMA_ENOPERM;
}

}  // namespace

urma_status_t urma_user_ctl(urma_context_t* ctx, urma_user_ctl_in_t* in, urma_user_ctl_out_t* out) {
  if (live<Context>(ctx) == nullptr || in == nullptr || out == nullptr) return URMA_EINVAL;
  if (in->opcode == BONDP_USER_CTL_SET_BONDING_MODE) return set_bonding_mode(*in);
  return URMA_ENOPERM;  // every other command is one of bonding devices
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
