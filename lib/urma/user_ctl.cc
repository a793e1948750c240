// SPDX-License-Identifier: Apache-2.0
// The commands of urma_user_ctl: that of bonding devices which a single device understands, and ours (softub_api.h).
#include <cstring>

#include "lib/urma/include/ub/umdk/urma/softub_api.h"
#include "lib/urma/include/ub/umdk/urma/urma_api.h"
#include "lib/urma/include/ub/umdk/urma/urma_ubagg.h"
#include "lib/urma/library.h"
#include "lib/urma/log.h"
#include "lib/urma/objects/objects.h"
#include "lib/urma/status.h"

using namespace ub;
using namespace ub::urma;

namespace {

template <class Argument>
bool read_argument(const urma_user_ctl_in_t& in, Argument* out) {
  if (in.addr == 0 || in.len < sizeof *out) return false;
  memcpy(out, reinterpret_cast<const void*>(in.addr), sizeof *out);
  return true;
}

// A device by itself is in the mode "stand-alone" already; no other one can be had.
urma_status_t set_bonding_mode(const urma_user_ctl_in_t& in) {
  struct {  // bondp_set_bonding_mode_in_t with numbers, because an application may give some that name nothing
    uint32_t mode, level;
  } wanted;
  static_assert(sizeof wanted == sizeof(bondp_set_bonding_mode_in_t));
  if (!read_argument(in, &wanted)) return URMA_EINVAL;
  if (wanted.mode >= BONDP_BONDING_MODE_MAX || wanted.level >= BONDP_BONDING_LEVEL_MAX) return URMA_EINVAL;
  return wanted.mode == BONDP_BONDING_MODE_STANDALONE ? URMA_SUCCESS : URMA_ENOPERM;
}

bool needs_token(uint32_t policy, const char* what) {
  if (policy == URMA_TOKEN_PLAIN_TEXT) return true;
  URMA_LOG_ERROR("the token of a %s was not set: its policy asks for none", what);
  return false;
}

urma_status_t set_segment_token(const urma_context_t* ctx, const softub_set_token_in_t& in) {
  auto* segment = live<Segment>(in.seg);
  if (segment == nullptr || segment->imported || segment->pub.urma_ctx != ctx) return URMA_EINVAL;
  if (!needs_token(segment->pub.seg.attr.bs.token_policy, "segment")) return URMA_EINVAL;
  const Status status = backend().set_segment_token(segment->handle, in.token.token, in.former.token);
  if (status == Status::kOk) segment->token_value = in.token.token;
  return status_of(status);
}

// Of a JFR or group: `cfg` is its configuration, which keeps policy and value of the token.
template <class Cfg>
urma_status_t set_queue_token(uint32_t id, Cfg& cfg, const char* what, const softub_set_token_in_t& in) {
  if (!needs_token(cfg.flag.bs.token_policy, what)) return URMA_EINVAL;
  const Status status = backend().set_queue_token(id, in.token.token, in.former.token);
  if (status == Status::kOk) cfg.token_value = in.token;
  return status_of(status);
}

urma_status_t set_token(const urma_context_t* ctx, const urma_user_ctl_in_t& control) {
  softub_set_token_in_t in;
  if (!read_argument(control, &in)) return URMA_EINVAL;
  if ((in.seg != nullptr) + (in.jfr != nullptr) + (in.jetty_grp != nullptr) != 1) return URMA_EINVAL;
  if (in.seg != nullptr) return set_segment_token(ctx, in);
  if (in.jfr != nullptr) {
    auto* jfr = live<Jfr>(in.jfr);
    if (jfr == nullptr || jfr->pub.urma_ctx != ctx) return URMA_EINVAL;
    return set_queue_token(jfr->pub.jfr_id.id, jfr->pub.jfr_cfg, "JFR", in);
  }
  auto* group = live<JettyGroup>(in.jetty_grp);
  if (group == nullptr || group->pub.urma_ctx != ctx) return URMA_EINVAL;
  return set_queue_token(group->pub.jetty_grp_id.id, group->pub.cfg, "jetty group", in);
}

urma_status_t set_exclusive(const urma_context_t* ctx, const urma_user_ctl_in_t& control) {
  softub_set_exclusive_in_t in;
  if (!read_argument(control, &in) || in.exclusive > 1) return URMA_EINVAL;
  auto* segment = live<Segment>(in.seg);
  if (segment == nullptr || segment->pub.urma_ctx != ctx) return URMA_EINVAL;
  const bool exclusive = in.exclusive != 0;
  if (!segment->imported) return status_of(backend().set_segment_exclusive(segment->handle, exclusive));
  segment->exclusive.store(exclusive, std::memory_order_relaxed);
  return URMA_SUCCESS;
}

}  // namespace

urma_status_t urma_user_ctl(urma_context_t* ctx, urma_user_ctl_in_t* in, urma_user_ctl_out_t* out) {
  if (live<Context>(ctx) == nullptr || in == nullptr || out == nullptr) return URMA_EINVAL;
  switch (in->opcode) {
    case BONDP_USER_CTL_SET_BONDING_MODE:
      return set_bonding_mode(*in);
    case SOFTUB_USER_CTL_SET_TOKEN:
      return set_token(ctx, *in);
    case SOFTUB_USER_CTL_SET_EXCLUSIVE:
      return set_exclusive(ctx, *in);
    default:
      return URMA_ENOPERM;  // every other command is one of bonding devices
  }
}
