// SPDX-License-Identifier: Apache-2.0
// Segments: memory registered here, and descriptors of memory elsewhere. URMA API 0.9, 6.4.
#include <cstdlib>
#include <cstring>
#include <utility>

#include "lib/ipc/mapped.h"
#include "lib/urma/device/eid.h"
#include "lib/urma/include/ub/umdk/urma/softub_aperture.h"
#include "lib/urma/include/ub/umdk/urma/urma_api.h"
#include "lib/urma/library.h"
#include "lib/urma/log.h"
#include "lib/urma/objects/children.h"
#include "lib/urma/objects/find.h"
#include "lib/urma/objects/segment_memory.h"
#include "lib/urma/objects/token.h"
#include "lib/urma/status.h"

using namespace ub;
using namespace ub::urma;

namespace {

constexpr uint32_t kAccessMask = URMA_ACCESS_LOCAL_ONLY | URMA_ACCESS_READ | URMA_ACCESS_WRITE | URMA_ACCESS_ATOMIC;
static_assert(kAccessLocalOnly == URMA_ACCESS_LOCAL_ONLY && kAccessRead == URMA_ACCESS_READ &&
              kAccessWrite == URMA_ACCESS_WRITE && kAccessAtomic == URMA_ACCESS_ATOMIC);

bool legal_access(uint32_t access) {
  if ((access & ~kAccessMask) != 0) return false;
  if ((access & URMA_ACCESS_LOCAL_ONLY) != 0) return access == URMA_ACCESS_LOCAL_ONLY;
  if ((access & URMA_ACCESS_WRITE) != 0 && (access & URMA_ACCESS_READ) == 0) return false;
  constexpr uint32_t kBoth = URMA_ACCESS_READ | URMA_ACCESS_WRITE;
  return (access & URMA_ACCESS_ATOMIC) == 0 || (access & kBoth) == kBoth;
}

bool check(const urma_context_t* ctx, const urma_seg_cfg_t& cfg) {
  const auto& flag = cfg.flag.bs;
  uint64_t start = flag.user_iova ? cfg.iova : cfg.va;
  if (cfg.va == 0 || cfg.len == 0 || cfg.va + cfg.len < cfg.va || start + cfg.len < start) {
    URMA_LOG_ERROR("segment of 0x%llx bytes at 0x%llx (iova 0x%llx) is empty, at 0, or wraps",
                   static_cast<unsigned long long>(cfg.len), static_cast<unsigned long long>(cfg.va),
                   static_cast<unsigned long long>(cfg.iova));
    return false;
  }
  if (is_window_memory(cfg.va, cfg.len)) {
    URMA_LOG_ERROR("segment at 0x%llx: memory of a window (softub_map) is no memory for a segment",
                   static_cast<unsigned long long>(cfg.va));
    return false;
  }
  if (!legal_access(flag.access)) {
    URMA_LOG_ERROR("access 0x%x: LOCAL_ONLY excludes the others, WRITE needs READ, ATOMIC needs both", flag.access);
    return false;
  }
  if (flag.token_policy > URMA_TOKEN_PLAIN_TEXT) {
    URMA_LOG_ERROR("token policy %u is not supported", flag.token_policy);
    return false;
  }
  if ((cfg.token_id != nullptr) != (flag.token_id_valid != 0)) {
    URMA_LOG_ERROR("token_id_valid must be 1 exactly when token_id is set");
    return false;
  }
  if (cfg.token_id != nullptr) {
    auto* token = live<TokenId>(cfg.token_id);
    if (token == nullptr || token->pub.urma_ctx != ctx) {
      URMA_LOG_ERROR("the token id is not one of this context");
      return false;
    }
  }
  return true;
}

// The NIC touches it later on behalf of peers: better refused now than a crash then.
bool usable(const urma_seg_cfg_t& cfg) {
  const bool writable = (cfg.flag.bs.access & (URMA_ACCESS_WRITE | URMA_ACCESS_ATOMIC)) != 0;
  if (ipc::is_mapped(cfg.va, cfg.len, writable)) return true;
  URMA_LOG_ERROR("segment of 0x%llx bytes at 0x%llx: not all of it is mapped memory that can be read%s",
                 static_cast<unsigned long long>(cfg.len), static_cast<unsigned long long>(cfg.va),
                 writable ? " and written" : "");
  return false;
}

// Whose memory is it? Logs that nobody's.
bool find_owner(const urma_context_t& ctx, const urma_seg_t& seg, uint32_t* uasid) {
  std::string why;
  if (find_instance(eid_of(ctx.eid), eid_of(seg.ubva.eid), seg.token_id, true, uasid, &why) == Status::kOk) {
    return true;
  }
  URMA_LOG_ERROR("segment not imported: %s", why.c_str());
  return false;
}

// Copies what posting needs next to the magic.
void set_key(Segment& segment, uint32_t token_policy, uint32_t token_value) {
  segment.token_id = segment.pub.seg.token_id;
  segment.uasid = segment.pub.seg.ubva.uasid;
  segment.token_required = token_policy == URMA_TOKEN_PLAIN_TEXT;
  segment.token_value = segment.token_required ? token_value : 0;
}

}  // namespace

urma_target_seg_t* urma_register_seg(urma_context_t* ctx, urma_seg_cfg_t* seg_cfg) {
  if (live<Context>(ctx) == nullptr || seg_cfg == nullptr || !check(ctx, *seg_cfg)) return fail(EINVAL);
  const urma_seg_cfg_t& cfg = *seg_cfg;
  if (!usable(cfg)) return fail(EIO);
  Library& library = Library::get();
  auto* segment = library.take<Segment>();
  if (segment == nullptr) return fail(ENOMEM);

  int error = 0;
  TokenId* token = live<TokenId>(cfg.token_id);
  bool own_token = token == nullptr;
  if (own_token) {
    token = create_token_id(ctx, {}, &error);
    if (token == nullptr) {
      library.give(segment);
      return fail(error);
    }
    token->internal = true;
  }

  SegmentConfig config;
  config.memory = reinterpret_cast<std::byte*>(cfg.va);
  config.address = cfg.flag.bs.user_iova ? cfg.iova : cfg.va;
  config.local_address = cfg.va;
  config.length = cfg.len;
  config.token_id = token->pub.token_id;
  config.token.required = cfg.flag.bs.token_policy == URMA_TOKEN_PLAIN_TEXT;
  config.token.value = cfg.token_value.token;
  config.access = static_cast<uint8_t>(cfg.flag.bs.access);
  RegisteredSegment registered;
  Status status = backend().register_segment(config, &registered);
  if (status != Status::kOk) {
    if (own_token) destroy_token_id(*token);
    library.give(segment);
    return fail(errno_of(status));
  }

  urma_target_seg_t& pub = segment->pub;
  memcpy(&pub.seg.ubva.eid, &ctx->eid, sizeof ctx->eid);
  pub.seg.ubva.uasid = ctx->uasid;
  pub.seg.ubva.va = config.address;
  pub.seg.len = cfg.len;
  pub.seg.attr.value = cfg.flag.value;  // the same bits; token_id_valid is user_token_id there
  pub.seg.attr.bs.has_user_info = 0;
  pub.seg.token_id = registered.token_id;
  pub.user_ctx = cfg.user_ctx;
  pub.urma_ctx = ctx;
  pub.token_id = &token->pub;
  pub.handle = registered.handle;
  segment->handle = registered.handle;
  if (registered.shareable != 0) pub.seg.attr.value |= kSegmentShareable;
  set_key(*segment, cfg.flag.bs.token_policy, cfg.token_value.token);
  token->pub.ref.atomic_cnt.fetch_add(1);
  add_child(ctx);
  segment->magic = live_magic<Segment>();
  return &pub;
}

urma_status_t urma_unregister_seg(urma_target_seg_t* target_seg) {
  auto* segment = live<Segment>(target_seg);
  if (segment == nullptr || segment->imported) return URMA_EINVAL;
  softub_unpublish(target_seg);
  Status status = backend().unregister_segment(segment->handle);
  if (status != Status::kOk) return status_of(status);
  segment->magic = 0;
  if (auto* token = live<TokenId>(segment->pub.token_id)) {
    token->pub.ref.atomic_cnt.fetch_sub(1);
    if (token->internal) destroy_token_id(*token);
  }
  drop_child(segment->pub.urma_ctx);
  Library::get().give(segment);
  return URMA_SUCCESS;
}

urma_target_seg_t* urma_import_seg(urma_context_t* ctx, urma_seg_t* seg, urma_token_t* token_value, uint64_t,
                                   urma_import_seg_flag_t flag) {
  if (live<Context>(ctx) == nullptr || seg == nullptr) return fail(EINVAL);
  uint32_t policy = seg->attr.bs.token_policy;
  if (policy > URMA_TOKEN_PLAIN_TEXT || (policy != URMA_TOKEN_NONE && token_value == nullptr)) {
    URMA_LOG_ERROR("segment with token policy %u: unsupported, or its token is missing", policy);
    return fail(EINVAL);
  }
  if (flag.bs.mapping == URMA_SEG_MAPPED) {
    URMA_LOG_ERROR("remote segments cannot be mapped");
    return fail(EINVAL);
  }
  Library& library = Library::get();
  uint32_t uasid = seg->ubva.uasid;
  if (uasid == 0 && !find_owner(*ctx, *seg, &uasid)) return fail(EIO);
  auto* segment = library.take<Segment>();
  if (segment == nullptr) return fail(ENOMEM);
  segment->pub.seg = *seg;
  segment->pub.urma_ctx = ctx;
  segment->imported = true;
  set_key(*segment, policy, token_value != nullptr ? token_value->token : 0);
  segment->uasid = uasid;
  if ((seg->attr.value & kSegmentShareable) != 0) segment->mapped = map_segment(*segment);
  add_child(ctx);
  segment->magic = live_magic<Segment>();
  return &segment->pub;
}

urma_status_t urma_unimport_seg(urma_target_seg_t* tseg) {
  auto* segment = live<Segment>(tseg);
  if (segment == nullptr || !segment->imported) return URMA_EINVAL;
  segment->magic = 0;
  if (const auto mapped = std::exchange(segment->mapped, nullptr)) unmap_segment(*mapped);
  drop_child(segment->pub.urma_ctx);
  Library::get().give(segment);
  return URMA_SUCCESS;
}

urma_status_t urma_get_seg_ctx(urma_target_seg_t* tseg, urma_seg_t** seg, uint32_t* size) {
  auto* segment = live<Segment>(tseg);
  if (segment == nullptr || seg == nullptr || size == nullptr) return URMA_EINVAL;
  auto* out = static_cast<urma_seg_t*>(malloc(sizeof(urma_seg_t)));
  if (out == nullptr) return URMA_ENOMEM;
  *out = segment->pub.seg;
  *seg = out;
  *size = sizeof *out;
  return URMA_SUCCESS;
}

void urma_put_seg_ctx(urma_seg_t* seg) { free(seg); }
