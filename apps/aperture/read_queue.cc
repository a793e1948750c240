// SPDX-License-Identifier: Apache-2.0
#include "apps/aperture/read_queue.h"

#include "apps/aperture/failure.h"

namespace ub::apps {

using tools::RequestFailed;
using tools::ToolError;

ReadQueue::ReadQueue(urma_context_t* context) : context_(context) {
  try {
    urma_jfc_cfg_t jfc = {};
    jfc.depth = 4;
    jfc_ = need(urma_create_jfc(context, &jfc), "create a completion queue");
    urma_jfr_cfg_t jfr = {};
    jfr.depth = 1;
    jfr.trans_mode = URMA_TM_RM;
    jfr.jfc = jfc_;
    jfr_ = need(urma_create_jfr(context, &jfr), "create a receive queue");
    urma_jetty_cfg_t jetty = {};
    jetty.flag.bs.share_jfr = URMA_SHARE_JFR;
    jetty.shared.jfr = jfr_;
    jetty.jfs_cfg.depth = 2;
    jetty.jfs_cfg.trans_mode = URMA_TM_RM;
    jetty.jfs_cfg.rnr_retry = URMA_TYPICAL_RNR_RETRY;
    jetty.jfs_cfg.err_timeout = URMA_TYPICAL_ERR_TIMEOUT;
    jetty.jfs_cfg.jfc = jfc_;
    jetty_ = need(urma_create_jetty(context, &jetty), "create a queue");
  } catch (...) {
    close();
    throw;
  }
}

ReadQueue::~ReadQueue() { close(); }

void ReadQueue::close() {
  if (line_segment_ != nullptr) urma_unregister_seg(line_segment_);
  if (owner_ != nullptr) urma_unimport_jetty(owner_);
  if (jetty_ != nullptr) urma_delete_jetty(jetty_);
  if (jfr_ != nullptr) urma_delete_jfr(jfr_);
  if (jfc_ != nullptr) urma_delete_jfc(jfc_);
}

void ReadQueue::connect(urma_jetty_id_t owner, urma_target_seg_t* memory) {
  urma_rjetty_t there = {};
  there.jetty_id = owner;
  there.trans_mode = URMA_TM_RM;
  there.type = URMA_JETTY;
  owner_ = need(urma_import_jetty(context_, &there, nullptr), "find a way to the server's NIC");
  urma_seg_cfg_t line = {};
  line.va = reinterpret_cast<uint64_t>(line_);
  line.len = kLine;
  line.flag.bs.access = URMA_ACCESS_LOCAL_ONLY;
  line_segment_ = need(urma_register_seg(context_, &line), "register memory");
  memory_ = memory;
}

const void* ReadQueue::read(uint64_t at) {
  urma_sge_t from = {}, to = {};
  from.addr = memory_->seg.ubva.va + at;
  from.len = kLine;
  from.tseg = memory_;
  to.addr = reinterpret_cast<uint64_t>(line_);
  to.len = kLine;
  to.tseg = line_segment_;
  urma_jfs_wr_t wr = {}, *bad = nullptr;
  wr.opcode = URMA_OPC_READ;
  wr.flag.bs.complete_enable = 1;
  wr.tjetty = owner_;
  wr.rw.src = {&from, 1};
  wr.rw.dst = {&to, 1};
  if (urma_post_jetty_send_wr(jetty_, &wr, &bad) != URMA_SUCCESS) throw ToolError("a READ cannot be posted");
  urma_cr_t record = {};
  int ended;
  while ((ended = urma_poll_jfc(jfc_, 1, &record)) == 0) continue;
  if (ended < 0) throw ToolError("polling completions failed");
  if (record.status == URMA_CR_SUCCESS) return line_;
  const bool lost = record.status == URMA_CR_ACK_TIMEOUT_ERR;
  throw RequestFailed(lost ? tools::kExitPeerLost : tools::kExitFailed,
                      lost ? std::string("the server's NIC does not answer any more")
                           : "a READ failed with status " + std::to_string(static_cast<int>(record.status)));
}

}  // namespace ub::apps
