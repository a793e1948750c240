// SPDX-License-Identifier: Apache-2.0
#include "apps/kv_store/objects.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <string_view>

#include "apps/aperture/failure.h"
#include "tools/common/tool_error.h"

namespace ub::kv {

using apps::need;

urma_token_t random_token() {
  urma_token_t token;
  if (getrandom(&token, sizeof token, 0) != static_cast<ssize_t>(sizeof token)) {
    throw tools::ToolError("no random numbers");
  }
  return token;
}

Jfce make_jfce(urma_context_t* context) { return Jfce(need(urma_create_jfce(context), "create an event channel")); }

Jfc make_jfc(urma_context_t* context, uint32_t depth, urma_jfce_t* jfce) {
  urma_jfc_cfg_t cfg = {};
  cfg.depth = depth;
  cfg.jfce = jfce;
  return Jfc(need(urma_create_jfc(context, &cfg), "create a completion queue"));
}

Jfr make_jfr(urma_context_t* context, uint32_t depth, urma_jfc_t* jfc, urma_token_t token) {
  urma_jfr_cfg_t cfg = {};
  cfg.depth = depth;
  cfg.trans_mode = URMA_TM_RM;
  cfg.max_sge = 1;
  cfg.min_rnr_timer = URMA_TYPICAL_MIN_RNR_TIMER;
  cfg.jfc = jfc;
  cfg.flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT;
  cfg.token_value = token;
  return Jfr(need(urma_create_jfr(context, &cfg), "create a receive queue"));
}

Jetty make_jetty(urma_context_t* context, uint32_t depth, urma_jfc_t* jfc, urma_jfr_t* jfr, uint32_t inline_bytes) {
  urma_jetty_cfg_t cfg = {};
  cfg.flag.bs.share_jfr = URMA_SHARE_JFR;
  cfg.shared.jfr = jfr;
  cfg.jfs_cfg.depth = depth;
  cfg.jfs_cfg.trans_mode = URMA_TM_RM;
  cfg.jfs_cfg.max_sge = 1;
  cfg.jfs_cfg.max_inline_data = inline_bytes;
  cfg.jfs_cfg.rnr_retry = URMA_TYPICAL_RNR_RETRY;
  cfg.jfs_cfg.err_timeout = URMA_TYPICAL_ERR_TIMEOUT;
  cfg.jfs_cfg.jfc = jfc;
  return Jetty(need(urma_create_jetty(context, &cfg), "create a queue"));
}

TargetJetty import_jetty(urma_context_t* context, const urma_jetty_id_t& id, urma_token_t token) {
  urma_rjetty_t there = {};
  there.jetty_id = id;
  there.trans_mode = URMA_TM_RM;
  there.type = URMA_JETTY;
  there.tp_type = URMA_RTP;
  there.flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT;
  return TargetJetty(need(urma_import_jetty(context, &there, &token), "find a way to the peer's NIC"));
}

Memory allocate(uint64_t bytes) { return Memory(need(softub_alloc(bytes), fmt::format("allocate {} bytes", bytes))); }
Memory allocate_for_clients(uint64_t bytes) {
  const bool by_daemon = std::string_view(softub_placement()) == "daemon";
  const uint32_t rights = SOFTUB_SHARE_READ | (by_daemon ? 0 : SOFTUB_SHARE_WRITE);
  return Memory(need(softub_alloc_shared(bytes, rights), fmt::format("allocate {} bytes", bytes)));
}

Segment register_memory(urma_context_t* context, void* memory, uint64_t bytes, uint32_t access, urma_token_t token) {
  urma_seg_cfg_t cfg = {};
  cfg.va = reinterpret_cast<uint64_t>(memory);
  cfg.len = bytes;
  cfg.token_value = token;
  cfg.flag.bs.token_policy = access == URMA_ACCESS_LOCAL_ONLY ? URMA_TOKEN_NONE : URMA_TOKEN_PLAIN_TEXT;
  cfg.flag.bs.access = access;
  return Segment(need(urma_register_seg(context, &cfg), "register memory"));
}

TargetSegment import_memory(urma_context_t* context, const urma_seg_t& segment, urma_token_t token, uint32_t access) {
  urma_seg_t there = segment;
  urma_import_seg_flag_t flag = {};
  flag.bs.access = access;
  return TargetSegment(need(urma_import_seg(context, &there, &token, 0, flag), "import the server's memory"));
}

Aperture open_aperture(urma_target_seg_t* segment) {
  return Aperture(need(softub_open(segment, nullptr), "open a handle on the server's memory"));
}

}  // namespace ub::kv
