// SPDX-License-Identifier: Apache-2.0
#include "apps/file_copy/nic.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <cerrno>
#include <cstring>

#include "tools/common/tool_error.h"

namespace ub::apps {

using tools::kExitFailed;
using tools::kExitPeerLost;
using tools::RequestFailed;
using tools::ToolError;

namespace {

template <class T>
T* need(T* object, const char* what) {
  if (object == nullptr) throw ToolError(fmt::format("cannot {}: {}", what, std::strerror(errno)));
  return object;
}

urma_token_t random_token() {
  urma_token_t token;
  if (getrandom(&token, sizeof token, 0) != static_cast<ssize_t>(sizeof token)) throw ToolError("no random numbers");
  return token;
}

}  // namespace

Nic::Nic(const std::string& device, uint32_t in_flight) {
  try {
    const urma_status_t status = urma_init(nullptr);
    if (status != URMA_SUCCESS && status != URMA_EEXIST) throw ToolError("liburma does not start");
    initialised_ = true;
    int count = 0;
    urma_device_t** list = urma_get_device_list(&count);
    std::string name = device;
    urma_device_t* chosen = !name.empty() ? urma_get_device_by_name(name.data()) : count > 0 ? list[0] : nullptr;
    urma_free_device_list(list);
    if (chosen == nullptr) throw ToolError(name.empty() ? "there is no URMA device" : "there is no device " + name);
    context_ = need(urma_create_context(chosen, 0), "open the device");
    urma_device_attr_t attr = {};
    if (urma_query_device(chosen, &attr) != URMA_SUCCESS) throw ToolError("cannot query the device");
    max_message_ = attr.dev_cap.max_msg_size;
    token_ = random_token();

    urma_jfc_cfg_t jfc = {};
    jfc.depth = in_flight + 4;
    jfc_ = need(urma_create_jfc(context_, &jfc), "create a completion queue");
    urma_jfr_cfg_t jfr = {};
    jfr.depth = 1;
    jfr.trans_mode = URMA_TM_RM;
    jfr.jfc = jfc_;
    jfr.flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT;
    jfr.token_value = token_;
    jfr_ = need(urma_create_jfr(context_, &jfr), "create a receive queue");
    urma_jetty_cfg_t jetty = {};
    jetty.flag.bs.share_jfr = URMA_SHARE_JFR;
    jetty.shared.jfr = jfr_;
    jetty.jfs_cfg.depth = in_flight;
    jetty.jfs_cfg.trans_mode = URMA_TM_RM;
    jetty.jfs_cfg.rnr_retry = URMA_TYPICAL_RNR_RETRY;
    jetty.jfs_cfg.err_timeout = URMA_TYPICAL_ERR_TIMEOUT;
    jetty.jfs_cfg.jfc = jfc_;
    jetty_ = need(urma_create_jetty(context_, &jetty), "create a jetty");
  } catch (...) {
    close();
    throw;
  }
}

Nic::~Nic() { close(); }

void Nic::close() {
  if (jetty_ != nullptr) urma_delete_jetty(jetty_);
  if (jfr_ != nullptr) urma_delete_jfr(jfr_);
  if (jfc_ != nullptr) urma_delete_jfc(jfc_);
  if (context_ != nullptr) urma_delete_context(context_);
  if (initialised_) urma_uninit();
}

SharedMemory::SharedMemory(Nic& nic, void* memory, uint64_t bytes) : token_(random_token()) {
  urma_seg_cfg_t cfg = {};
  cfg.va = reinterpret_cast<uint64_t>(memory);
  cfg.len = bytes;
  cfg.token_value = token_;
  cfg.flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT;
  cfg.flag.bs.access = URMA_ACCESS_READ | URMA_ACCESS_WRITE;
  segment_ = need(urma_register_seg(nic.context(), &cfg), "register memory");
}

SharedMemory::~SharedMemory() { urma_unregister_seg(segment_); }

RemoteMemory::RemoteMemory(Nic& nic, const Address& address) : nic_(nic) {
  urma_rjetty_t jetty = {};
  jetty.jetty_id = address.jetty;
  jetty.trans_mode = URMA_TM_RM;
  jetty.type = URMA_JETTY;
  jetty.tp_type = URMA_RTP;
  jetty.flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT;
  urma_token_t token = address.jetty_token;
  target_ = need(urma_import_jetty(nic.context(), &jetty, &token), "find a way to the receiver's NIC");
  urma_seg_t segment = address.segment;
  urma_import_seg_flag_t flag = {};
  flag.bs.access = URMA_ACCESS_READ | URMA_ACCESS_WRITE;
  token = address.segment_token;
  segment_ = urma_import_seg(nic.context(), &segment, &token, 0, flag);
  if (segment_ == nullptr) {
    urma_unimport_jetty(target_);
    throw ToolError("cannot import the receiver's memory");
  }
}

RemoteMemory::~RemoteMemory() {
  urma_unimport_seg(segment_);
  urma_unimport_jetty(target_);
}

void RemoteMemory::write(uint64_t offset, const void* local, uint32_t bytes, const SharedMemory& memory) {
  urma_sge_t from = {}, to = {};
  from.addr = reinterpret_cast<uint64_t>(local);
  from.len = bytes;
  from.tseg = memory.segment();
  to.addr = segment_->seg.ubva.va + offset;
  to.len = bytes;
  to.tseg = segment_;
  urma_jfs_wr_t wr = {}, *bad = nullptr;
  wr.opcode = URMA_OPC_WRITE;
  wr.flag.bs.complete_enable = 1;
  wr.tjetty = target_;
  wr.rw.src = {&from, 1};
  wr.rw.dst = {&to, 1};
  const urma_status_t status = urma_post_jetty_send_wr(nic_.jetty(), &wr, &bad);
  if (status != URMA_SUCCESS) throw ToolError(fmt::format("a WRITE cannot be posted: {}", std::strerror(status)));
}

uint32_t RemoteMemory::poll() {
  urma_cr_t records[16];
  const int n = urma_poll_jfc(nic_.jfc(), 16, records);
  if (n < 0) throw ToolError("polling completions failed");
  for (int i = 0; i < n; ++i) {
    if (records[i].status == URMA_CR_SUCCESS) continue;
    const bool lost = records[i].status == URMA_CR_ACK_TIMEOUT_ERR;
    throw RequestFailed(lost ? kExitPeerLost : kExitFailed,
                        lost ? std::string("the receiver's NIC does not answer any more")
                             : fmt::format("a WRITE failed with status {}", static_cast<int>(records[i].status)));
  }
  return static_cast<uint32_t>(n);
}

}  // namespace ub::apps
