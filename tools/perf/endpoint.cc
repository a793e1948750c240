// SPDX-License-Identifier: Apache-2.0
#include "tools/perf/endpoint.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "tools/common/hex.h"
#include "tools/common/tool_error.h"
#include "tools/perf/memory.h"
#include "tools/perf/pattern.h"

namespace ub::tools {
namespace {

constexpr uint64_t kMemoryPerDirection = 16u << 20;
constexpr uint64_t kReceiveMemory = 32u << 20;
constexpr int kBatch = 16;
constexpr uint32_t kReceiveBatch = 16;
constexpr uint32_t kUsualInline = 220;
constexpr uint32_t kStalledDepth = 64;

uint64_t align64(uint64_t n) { return (n + 63) / 64 * 64; }

template <class T>
T* need(T* object, const char* what) {
  if (object == nullptr) throw ToolError(fmt::format("cannot {}: {}", what, std::strerror(errno)));
  return object;
}

void need_success(urma_status_t status, const char* what) {
  if (status == URMA_SUCCESS) return;
  throw ToolError(fmt::format("cannot {}: {}", what, status == URMA_FAIL ? "failed" : std::strerror(status)));
}

uint32_t slots_for(const Options& o, uint64_t stride) {
  if (!o.bandwidth || o.verb == Verb::kMap) return 1;
  const uint64_t fit = kMemoryPerDirection / o.jettys / stride;
  return static_cast<uint32_t>(std::clamp<uint64_t>(fit, 1, o.tx_depth));
}

// What liburma has to say, if it is worth a user's attention.
void print_log(int level, char* text) {
  if (level <= URMA_VLOG_LEVEL_WARNING) fmt::print(stderr, "{}{}", text, std::strchr(text, '\n') ? "" : "\n");
}

}  // namespace

const char* record_status_name(int status) {
  static const char* const kNames[] = {"success",
                                       "unsupported opcode",
                                       "local length error",
                                       "local operation error",
                                       "local access error",
                                       "remote response length error",
                                       "remote side does not support the request",
                                       "remote operation error",
                                       "remote access refused",
                                       "no acknowledgement from the peer",
                                       "peer had no receive posted",
                                       "flushed",
                                       "suspended",
                                       "flush done",
                                       "never started",
                                       "local data poisoned",
                                       "remote data poisoned"};
  return status >= 0 && status < static_cast<int>(std::size(kNames)) ? kNames[status] : "unknown status";
}

// ---- set-up ---------------------------------------------------------------------------------------------------

Endpoint::Endpoint(const Options& options) : options_(options) {
  try {
    open_device();
    check_limits();
    create_queues();
    allocate_memory();
  } catch (...) {
    close();
    throw;
  }
}

Endpoint::~Endpoint() { close(); }

void Endpoint::open_device() {
  urma_register_log_func(print_log);
  urma_status_t status = urma_init(nullptr);
  if (status != URMA_SUCCESS && status != URMA_EEXIST) throw ToolError("liburma does not start (urma_init)");
  initialised_ = true;
  int count = 0;
  urma_device_t** list = urma_get_device_list(&count);
  urma_device_t* device = nullptr;
  if (!options_.device.empty()) {
    std::string name = options_.device;
    device = urma_get_device_by_name(name.data());
  } else if (count > 0) {
    device = list[0];
  }
  std::string names;
  for (int i = 0; i < count; ++i) names += fmt::format("{}{}", i != 0 ? ", " : "", list[i]->name);
  urma_free_device_list(list);
  if (device == nullptr) {
    throw ToolError(options_.device.empty() ? "there is no URMA device"
                                            : fmt::format("there is no device {}, only: {}", options_.device, names));
  }
  context_ = urma_create_context(device, options_.eid_index);
  if (context_ == nullptr) {
    throw ToolError(
        fmt::format("cannot open address {} of {}: {}", options_.eid_index, device->name, std::strerror(errno)));
  }
  need_success(urma_query_device(device, &attr_), "query the device");
}

void Endpoint::check_limits() const {
  const urma_device_cap_t& cap = attr_.dev_cap;
  auto limit = [](const char* option, uint64_t wanted, uint64_t most) {
    if (wanted > most) throw ToolError(kExitUsage, fmt::format("{} {}: the device allows {}", option, wanted, most));
  };
  limit("-s", options_.max_size(), cap.max_msg_size);
  limit("-t", options_.tx_depth, cap.max_jfs_depth);
  limit("-r", options_.rx_depth, cap.max_jfr_depth);
  limit("--jettys", options_.jettys, cap.max_jetty);
  if (options_.inline_bytes > 0) limit("-I", static_cast<uint64_t>(options_.inline_bytes), cap.max_jfs_inline_len);
}

namespace {
int epoll_of(const urma_jfce_t* jfce) {
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  epoll_event event = {};
  event.events = EPOLLIN;
  if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, jfce->fd, &event) != 0) throw ToolError("cannot make an epoll");
  return epoll;
}
}  // namespace

void Endpoint::create_event_channels() {
  tx_jfce_ = need(urma_create_jfce(context_), "create an event channel");
  rx_jfce_ = need(urma_create_jfce(context_), "create an event channel");
  if (!options_.epoll) return;
  tx_epoll_ = epoll_of(tx_jfce_);
  rx_epoll_ = epoll_of(rx_jfce_);
}

void Endpoint::create_queues() {
  const urma_device_cap_t& cap = attr_.dev_cap;
  if (options_.inline_bytes >= 0) {
    inline_bytes_ = static_cast<uint32_t>(options_.inline_bytes);
  } else if (!options_.bandwidth) {
    inline_bytes_ = std::min(kUsualInline, cap.max_jfs_inline_len);
  }
  if (getrandom(&token_, sizeof token_, 0) != sizeof token_) throw ToolError("no random numbers");

  urma_jfc_cfg_t jfc = {};
  if (options_.events) create_event_channels();
  jfc.jfce = tx_jfce_;
  jfc.depth =
      static_cast<uint32_t>(std::min<uint64_t>(uint64_t{options_.jettys} * options_.tx_depth + 16, cap.max_jfc_depth));
  tx_jfc_ = need(urma_create_jfc(context_, &jfc), "create a completion queue");
  jfc.jfce = rx_jfce_;
  jfc.depth = std::min(options_.rx_depth + 16, cap.max_jfc_depth);
  rx_jfc_ = need(urma_create_jfc(context_, &jfc), "create a completion queue");
  jfc.jfce = nullptr;
  jfc.depth = 16;
  control_jfc_ = need(urma_create_jfc(context_, &jfc), "create a completion queue");

  urma_jfr_cfg_t jfr = {};
  jfr.depth = options_.verb == Verb::kSend ? options_.rx_depth : 1;
  jfr.trans_mode = options_.rc ? URMA_TM_RC : URMA_TM_RM;
  jfr.max_sge = 1;
  jfr.min_rnr_timer = URMA_TYPICAL_MIN_RNR_TIMER;
  jfr.jfc = rx_jfc_;
  jfr.flag.bs.token_policy = options_.token ? URMA_TOKEN_PLAIN_TEXT : URMA_TOKEN_NONE;
  jfr.token_value = token_;
  jfr_ = need(urma_create_jfr(context_, &jfr), "create a receive queue");

  queues_.resize(options_.jettys);
  for (Queue& q : queues_) create_jetty(q, tx_jfc_, options_.tx_depth);
  create_jetty(control_, control_jfc_, 4);
  if (options_.stalled) create_jetty(stalled_, control_jfc_, kStalledDepth);
}

void Endpoint::create_jetty(Queue& q, urma_jfc_t* send_jfc, uint32_t depth) {
  urma_jetty_cfg_t cfg = {};
  cfg.flag.bs.share_jfr = URMA_SHARE_JFR;
  cfg.shared.jfr = jfr_;
  cfg.jfs_cfg.depth = depth;
  cfg.jfs_cfg.trans_mode = options_.rc ? URMA_TM_RC : URMA_TM_RM;
  cfg.jfs_cfg.max_sge = 1;
  cfg.jfs_cfg.max_inline_data = inline_bytes_;
  cfg.jfs_cfg.rnr_retry = URMA_TYPICAL_RNR_RETRY;
  cfg.jfs_cfg.err_timeout = URMA_TYPICAL_ERR_TIMEOUT;
  cfg.jfs_cfg.jfc = send_jfc;
  q.jetty = need(urma_create_jetty(context_, &cfg), "create a jetty");
}

void Endpoint::allocate_memory() {
  uint64_t in_bytes = 0;
  for (uint64_t size : options_.sizes) {
    const uint64_t stride = align64(size);
    out_bytes_ = std::max(out_bytes_, options_.jettys * slots_for(options_, stride) * stride);
  }
  out_bytes_ = (out_bytes_ + 4095) / 4096 * 4096;
  in_bytes = out_bytes_;
  if (options_.verb == Verb::kSend) {
    // Receives stay posted from one size to the next, so they have room for the largest.
    receive_stride_ = align64(options_.max_size());
    receive_slots_ =
        static_cast<uint32_t>(std::clamp<uint64_t>(kReceiveMemory / receive_stride_, 2, options_.rx_depth));
    receives_ = options_.verify ? receive_slots_ : options_.rx_depth;
    in_bytes = std::max(in_bytes, receive_slots_ * receive_stride_);
  }
  memory_bytes_ = (kControlBytes + out_bytes_ + in_bytes + 4095) / 4096 * 4096;
  memory_ = take_memory(options_, memory_bytes_);

  urma_seg_cfg_t seg = {};
  seg.va = reinterpret_cast<uint64_t>(memory_);
  seg.len = memory_bytes_;
  seg.token_value = token_;
  seg.flag.bs.token_policy = options_.token ? URMA_TOKEN_PLAIN_TEXT : URMA_TOKEN_NONE;
  seg.flag.bs.access = URMA_ACCESS_READ | URMA_ACCESS_WRITE | URMA_ACCESS_ATOMIC;
  segment_ = need(urma_register_seg(context_, &seg), "register memory");

  if (options_.verb == Verb::kSend) {
    receive_wrs_.resize(receives_);
    receive_sges_.resize(receives_);
    std::vector<uint32_t> all(receives_);
    for (uint32_t i = 0; i < receives_; ++i) {
      all[i] = i;
      uint8_t* buffer = memory_ + kControlBytes + out_bytes_ + (i % receive_slots_) * receive_stride_;
      receive_sges_[i].addr = reinterpret_cast<uint64_t>(buffer);
      receive_sges_[i].len = static_cast<uint32_t>(options_.max_size());
      receive_sges_[i].tseg = segment_;
      receive_wrs_[i].src = {&receive_sges_[i], 1};
      receive_wrs_[i].user_ctx = i;
    }
    post_receives(all.data(), receives_);
    receives_advertised_ = receives_posted_;
    control(kCredit) = receives_;  // the peer's, which has as many
  }
}

Json Endpoint::introduction() const {
  Json jettys = Json::array();
  for (const Queue& q : queues_) jettys.push_back(to_hex(q.jetty->jetty_id));
  Json all = {{"jettys", jettys},
              {"control", to_hex(control_.jetty->jetty_id)},
              {"segment", to_hex(segment_->seg)},
              {"token", token_.token},
              {"eid", eid()}};
  if (options_.stalled) all["stalled"] = to_hex(stalled_.jetty->jetty_id);
  return all;
}

void Endpoint::connect(const Json& peer) {
  remote_token_.token = peer.at("token").get<uint32_t>();
  if (peer.at("jettys").size() != queues_.size()) throw ToolError("the peer has another number of jettys");
  for (size_t i = 0; i < queues_.size(); ++i) import_jetty(queues_[i], peer.at("jettys")[i].get<std::string>());
  import_jetty(control_, peer.at("control").get<std::string>());
  if (options_.stalled) import_jetty(stalled_, peer.at("stalled").get<std::string>());
  auto seg = from_hex<urma_seg_t>(peer.at("segment").get<std::string>());
  if (seg.len < memory_bytes_) throw ToolError("the peer has less memory than agreed");
  urma_import_seg_flag_t flag = {};
  flag.bs.access = URMA_ACCESS_READ | URMA_ACCESS_WRITE | URMA_ACCESS_ATOMIC;
  remote_segment_ = need(urma_import_seg(context_, &seg, &remote_token_, 0, flag), "import the peer's memory");
}

void Endpoint::import_jetty(Queue& q, const std::string& raw_id) {
  urma_rjetty_t r = {};
  r.jetty_id = from_hex<urma_jetty_id_t>(raw_id);
  r.trans_mode = options_.rc ? URMA_TM_RC : URMA_TM_RM;
  r.type = URMA_JETTY;
  r.tp_type = options_.ctp ? URMA_CTP : URMA_RTP;
  r.flag.bs.token_policy = options_.token ? URMA_TOKEN_PLAIN_TEXT : URMA_TOKEN_NONE;
  q.target =
      need(urma_import_jetty(context_, &r, &remote_token_), "import the peer's jetty (is its address reachable?)");
  if (options_.rc) {
    urma_status_t status = urma_bind_jetty(q.jetty, q.target);
    if (status != URMA_EEXIST) need_success(status, "bind to the peer's jetty");
  }
}

softub_transports_t Endpoint::transports() const {
  softub_transports_t packets;
  need_success(softub_get_transports(queues_[0].target, &packets), "ask which transport serves");
  return packets;
}

void Endpoint::close() {
  auto each = [&](auto&& f) {
    for (Queue& q : queues_) f(q);
    f(control_);
    f(stalled_);
  };
  each([&](Queue& q) {
    if (q.target == nullptr) return;
    if (options_.rc) urma_unbind_jetty(q.jetty);
    urma_unimport_jetty(q.target);
    q.target = nullptr;
  });
  if (remote_segment_ != nullptr) urma_unimport_seg(remote_segment_);
  if (segment_ != nullptr) urma_unregister_seg(segment_);
  each([](Queue& q) {
    if (q.jetty != nullptr) urma_delete_jetty(q.jetty);
    q.jetty = nullptr;
  });
  if (jfr_ != nullptr) urma_delete_jfr(jfr_);
  for (urma_jfc_t* jfc : {tx_jfc_, rx_jfc_, control_jfc_}) {
    if (jfc != nullptr) urma_delete_jfc(jfc);
  }
  for (int epoll : {tx_epoll_, rx_epoll_}) {
    if (epoll >= 0) ::close(epoll);
  }
  for (urma_jfce_t* jfce : {tx_jfce_, rx_jfce_}) {
    if (jfce != nullptr) urma_delete_jfce(jfce);
  }
  if (context_ != nullptr) urma_delete_context(context_);
  if (initialised_) urma_uninit();
  give_memory(options_, memory_);
}

std::string Endpoint::eid() const {
  char text[INET6_ADDRSTRLEN] = "?";
  const urma_eid_t& e = context_->eid;
  const bool v4 = e.in4.reserved == 0 && e.in4.prefix == htonl(0xffff);
  inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? static_cast<const void*>(&e.in4.addr) : e.raw, text, sizeof text);
  return text;
}

// ---- one size -------------------------------------------------------------------------------------------------

void Endpoint::prepare(uint64_t size) {
  layout_.size = size;
  layout_.stride = align64(size);
  layout_.slots = slots_for(options_, layout_.stride);
  depth_ = options_.verify ? std::min(options_.tx_depth, layout_.slots) : options_.tx_depth;
  cq_mod_ = std::min(options_.cq_mod, std::max(depth_ / 2, 1u));
  if (options_.verb != Verb::kSend) std::memset(in_slot(0, 0), 0, memory_bytes_ - kControlBytes - out_bytes_);
  control(kDone) = 0;
  for (uint32_t j = 0; j < options_.jettys; ++j) {
    if (!options_.by_aperture()) build_requests(j);
    if (options_.verb == Verb::kRead || options_.verb == Verb::kLoad || options_.verb == Verb::kMap) {
      for (uint32_t k = 0; k < layout_.slots; ++k)
        fill_pattern(out_slot(j, k), size, static_cast<uint8_t>(j * 7 + k + 1));
    }
  }
}

void Endpoint::build_requests(uint32_t jetty) {
  Queue& q = queues_[jetty];
  const uint32_t slots = layout_.slots;
  const uint64_t remote_base = remote_segment_->seg.ubva.va + kControlBytes;
  q.requests.assign(slots, {});
  q.local.assign(slots, {});
  q.remote.assign(slots, {});
  q.next = 0;
  q.posted = 0;
  for (uint32_t k = 0; k < slots; ++k) {
    const uint64_t offset = (uint64_t{jetty} * slots + k) * layout_.stride;
    const uint64_t atomic_word = uint64_t{jetty} * slots * layout_.stride;  // one for each jetty
    const bool read = options_.verb == Verb::kRead, atomic = options_.verb == Verb::kAtomic;
    q.local[k].addr = reinterpret_cast<uint64_t>(read ? in_slot(jetty, k) : out_slot(jetty, k));
    q.local[k].len = static_cast<uint32_t>(layout_.size);
    q.local[k].tseg = segment_;
    q.remote[k].addr = remote_base + (read ? offset : out_bytes_ + (atomic ? atomic_word : offset));
    q.remote[k].len = static_cast<uint32_t>(layout_.size);
    q.remote[k].tseg = remote_segment_;

    urma_jfs_wr_t& wr = q.requests[k];
    wr.tjetty = q.target;
    switch (options_.verb) {
      case Verb::kWrite:
        wr.opcode = URMA_OPC_WRITE;
        wr.rw.src = {&q.local[k], 1};
        wr.rw.dst = {&q.remote[k], 1};
        break;
      case Verb::kRead:
        wr.opcode = URMA_OPC_READ;
        wr.rw.src = {&q.remote[k], 1};
        wr.rw.dst = {&q.local[k], 1};
        break;
      case Verb::kSend:
        wr.opcode = URMA_OPC_SEND;
        wr.send.src = {&q.local[k], 1};
        break;
      case Verb::kAtomic:
        wr.opcode = options_.compare_swap ? URMA_OPC_CAS : URMA_OPC_FADD;
        if (options_.compare_swap) {
          wr.cas.dst = &q.remote[k];
          wr.cas.src = &q.local[k];
        } else {
          wr.faa.dst = &q.remote[k];
          wr.faa.src = &q.local[k];
          wr.faa.operand = 1;
        }
        break;
      case Verb::kLoad:
      case Verb::kStore:
      case Verb::kMap:
        break;  // no requests
    }
    const bool carries_payload = options_.verb == Verb::kWrite || options_.verb == Verb::kSend;
    wr.flag.bs.inline_flag = carries_payload && layout_.size <= inline_bytes_;
  }
}

// ---- requests -------------------------------------------------------------------------------------------------

// In ping-pong tests the last byte counts the messages; with --verify all bytes depend on that number.
void Endpoint::prepare_payload(Queue& q, uint32_t jetty, uint32_t slot) {
  const auto seed = static_cast<uint8_t>(q.posted + 1);
  switch (options_.verb) {
    case Verb::kWrite:
    case Verb::kSend:
      if (options_.verify) {
        fill_pattern(out_slot(jetty, slot), layout_.size, seed);
      } else {
        out_slot(jetty, slot)[layout_.size - 1] = seed;
      }
      break;
    case Verb::kRead:
      std::memset(in_slot(jetty, slot), 0xee, layout_.size);
      break;
    case Verb::kAtomic:
      if (options_.compare_swap) {
        q.requests[slot].cas.cmp_data = q.posted;
        q.requests[slot].cas.swap_data = q.posted + 1;
      }
      break;
    case Verb::kLoad:
    case Verb::kStore:
    case Verb::kMap:
      break;
  }
}

// Strong orders are spread evenly over the requests.
urma_place_order_t Endpoint::order_of(uint64_t number) const {
  if (options_.strong_percent < 0) return URMA_NO_ORDER;
  const auto share = static_cast<uint64_t>(options_.strong_percent);
  return (number + 1) * share / 100 != number * share / 100 ? URMA_STRONG_ORDER : URMA_RELAX_ORDER;
}

void Endpoint::post(uint32_t jetty, uint32_t count, bool last) {
  Queue& q = queues_[jetty];
  const bool touch_payload = options_.verify || !options_.bandwidth || options_.compare_swap;
  while (count > 0) {
    const uint32_t chain = std::min(count, layout_.slots);  // a request occurs once in a list
    urma_jfs_wr_t* first = &q.requests[q.next];
    for (uint32_t i = 0; i < chain; ++i) {
      urma_jfs_wr_t& wr = q.requests[q.next];
      if (touch_payload) prepare_payload(q, jetty, q.next);
      wr.flag.bs.place_order = order_of(q.posted);
      ++q.posted;
      ++q.unsignaled;
      const bool signal = q.unsignaled >= cq_mod_ || (last && count == chain && i + 1 == chain);
      wr.flag.bs.complete_enable = signal;
      if (signal) {
        wr.user_ctx = uint64_t{jetty} << 32 | q.unsignaled;
        q.unsignaled = 0;
      }
      if (++q.next == layout_.slots) q.next = 0;
      wr.next = i + 1 < chain ? &q.requests[q.next] : nullptr;
    }
    urma_jfs_wr_t* bad = nullptr;
    urma_status_t status = urma_post_jetty_send_wr(q.jetty, first, &bad);
    if (status != URMA_SUCCESS) [[unlikely]] {
      throw ToolError(fmt::format("posting a request failed: {}", std::strerror(status)));
    }
    q.outstanding += chain;
    outstanding_ += chain;
    count -= chain;
    sends_posted_ += chain;
  }
}

uint32_t Endpoint::reap() {
  urma_cr_t records[kBatch];
  const int n = urma_poll_jfc(tx_jfc_, kBatch, records);
  if (n < 0) throw ToolError("polling completions failed");
  uint32_t ended = 0;
  for (int i = 0; i < n; ++i) {
    check_record(records[i], "a request");
    const auto jetty = static_cast<uint32_t>(records[i].user_ctx >> 32);
    const auto covered = static_cast<uint32_t>(records[i].user_ctx);
    if (jetty >= queues_.size() || covered > queues_[jetty].outstanding) {
      throw ToolError(kExitWrongData, "a completion came twice or names no request of ours");
    }
    Queue& q = queues_[jetty];
    if (options_.verify) check_completed(q, jetty, covered);
    q.outstanding -= covered;
    ended += covered;
  }
  outstanding_ -= ended;
  progress_.ended(ended, ended * layout_.size);
  return ended;
}

// The oldest `count` requests of the queue have ended.
void Endpoint::check_completed(Queue& q, uint32_t jetty, uint32_t count) {
  const uint32_t slots = layout_.slots;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t slot = (q.next + 2 * slots - (q.outstanding - i) % slots) % slots;
    if (options_.verb == Verb::kRead) {
      const size_t at = check_pattern(in_slot(jetty, slot), layout_.size, static_cast<uint8_t>(jetty * 7 + slot + 1));
      if (at != layout_.size) count_error(fmt::format("READ of {} bytes: byte {} is wrong", layout_.size, at));
    } else if (options_.verb == Verb::kAtomic && !options_.bandwidth) {
      uint64_t old;
      std::memcpy(&old, out_slot(jetty, slot), 8);
      if (old != q.posted - q.outstanding + i) {
        count_error(fmt::format("atomic returned {}, expected {}", old, q.posted - q.outstanding + i));
      }
    }
  }
}

void Endpoint::check_record(const urma_cr_t& record, const char* what) const {
  if (record.status == URMA_CR_SUCCESS) [[likely]]
    return;
  const bool lost = record.status == URMA_CR_ACK_TIMEOUT_ERR;
  throw RequestFailed(lost ? kExitPeerLost : kExitFailed,
                      fmt::format("{} failed: {} (status {})", what, record_status_name(record.status),
                                  static_cast<int>(record.status)));
}

// ---- receives -------------------------------------------------------------------------------------------------

void Endpoint::post_receives(const uint32_t* slots, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    receive_wrs_[slots[i]].next = i + 1 < count ? &receive_wrs_[slots[i + 1]] : nullptr;
  }
  urma_jfr_wr_t* bad = nullptr;
  urma_status_t status = urma_post_jfr_wr(jfr_, &receive_wrs_[slots[0]], &bad);
  if (status != URMA_SUCCESS) throw ToolError(fmt::format("posting a receive failed: {}", std::strerror(status)));
  receives_posted_ += count;
}

uint32_t Endpoint::receive() {
  urma_cr_t records[kReceiveBatch];
  uint32_t slots[kReceiveBatch];
  const int n = urma_poll_jfc(rx_jfc_, kReceiveBatch, records);
  if (n <= 0) {
    if (n < 0) throw ToolError("polling completions failed");
    return 0;
  }
  for (int i = 0; i < n; ++i) {
    check_record(records[i], "a receive");
    slots[i] = static_cast<uint32_t>(records[i].user_ctx);
    if (slots[i] >= receives_) throw ToolError(kExitWrongData, "a completion names no receive of ours");
    if (records[i].completion_len != layout_.size) {
      throw ToolError(kExitWrongData,
                      fmt::format("received {} bytes instead of {}", records[i].completion_len, layout_.size));
    }
    if (options_.verify) {
      const auto* at = reinterpret_cast<const uint8_t*>(receive_sges_[slots[i]].addr);
      const size_t bad = check_pattern(at, layout_.size, at[layout_.size - 1]);
      if (bad != layout_.size) count_error(fmt::format("SEND of {} bytes: byte {} is wrong", layout_.size, bad));
    }
  }
  messages_received_ += static_cast<uint32_t>(n);
  post_receives(slots, static_cast<uint32_t>(n));
  return static_cast<uint32_t>(n);
}

void Endpoint::wait_event(bool rx) {
  urma_jfc_t* jfc = rx ? rx_jfc_ : tx_jfc_;
  urma_jfc_t* got[1] = {};
  need_success(urma_rearm_jfc(jfc, false), "arm the completion queue");
  int patience_ms = 100;
  if (options_.epoll) {
    epoll_event event;
    epoll_wait(rx ? rx_epoll_ : tx_epoll_, &event, 1, patience_ms);
    patience_ms = 0;
  }
  const int n = urma_wait_jfc(rx ? rx_jfce_ : tx_jfce_, 1, patience_ms, got);
  if (n > 0) {
    uint32_t events = 1;
    urma_ack_jfc(got, &events, 1);
  }
}

// ---- control words --------------------------------------------------------------------------------------------

bool Endpoint::control_idle() {
  urma_cr_t record;
  if (control_busy_ && urma_poll_jfc(control_jfc_, 1, &record) == 1) {
    check_record(record, "a control message");
    control_busy_ = false;
  }
  return !control_busy_;
}

bool Endpoint::write_control(ControlWord word, uint64_t value) {
  if (!control_idle()) return false;
  control(kSource) = value;
  urma_sge_t from = control_sge(kSource, false), to = control_sge(word, true);
  urma_jfs_wr_t wr = {}, *bad = nullptr;
  wr.opcode = URMA_OPC_WRITE;
  wr.flag.bs.complete_enable = 1;
  wr.tjetty = control_.target;
  wr.rw.src = {&from, 1};
  wr.rw.dst = {&to, 1};
  need_success(urma_post_jetty_send_wr(control_.jetty, &wr, &bad), "post a control message");
  control_busy_ = true;
  return true;
}

urma_sge_t Endpoint::control_sge(ControlWord word, bool remote) const {
  urma_sge_t sge = {};
  sge.addr = remote ? remote_segment_->seg.ubva.va + word : reinterpret_cast<uint64_t>(memory_ + word);
  sge.len = 8;
  sge.tseg = remote ? remote_segment_ : segment_;
  return sge;
}

void Endpoint::stall() {
  urma_sge_t from = control_sge(kStalled, false), to = control_sge(kStalled, true);
  urma_jfs_wr_t wr = {}, *bad = nullptr;
  wr.opcode = URMA_OPC_SEND;
  wr.flag.bs.place_order = URMA_RELAX_ORDER;
  wr.tjetty = stalled_.target;
  wr.send.src = {&from, 1};
  need_success(urma_post_jetty_send_wr(stalled_.jetty, &wr, &bad), "post a message that nobody receives");
  wr = {};
  wr.opcode = URMA_OPC_WRITE;
  wr.flag.bs.place_order = URMA_STRONG_ORDER;
  wr.tjetty = stalled_.target;
  wr.rw.src = {&from, 1};
  wr.rw.dst = {&to, 1};
  for (uint32_t i = 1; i < kStalledDepth; ++i) {
    need_success(urma_post_jetty_send_wr(stalled_.jetty, &wr, &bad), "post a request that waits");
  }
}

void Endpoint::advertise_receives() {
  if (receives_posted_ - receives_advertised_ < std::max(receives_ / 4, 1u)) return;
  const uint64_t now = receives_posted_;
  if (write_control(kCredit, now)) receives_advertised_ = now;
}

// ---- checks ---------------------------------------------------------------------------------------------------

void Endpoint::count_error(const std::string& what) {
  if (data_errors_++ == 0) first_error_ = what;
}

void Endpoint::check_target_memory(const std::vector<uint64_t>& posted) {
  for (uint32_t j = 0; j < options_.jettys && j < posted.size(); ++j) {
    if (options_.verb == Verb::kAtomic) {
      uint64_t sum;
      std::memcpy(&sum, in_slot(j, 0), 8);
      if (sum != posted[j]) count_error(fmt::format("atomics: the sum is {}, expected {}", sum, posted[j]));
    } else if (options_.verb == Verb::kWrite) {
      const uint64_t first = posted[j] > layout_.slots ? posted[j] - layout_.slots : 0;
      for (uint64_t n = first; n < posted[j]; ++n) {  // the last message that went to each slot
        const size_t at = check_pattern(in_slot(j, static_cast<uint32_t>(n % layout_.slots)), layout_.size,
                                        static_cast<uint8_t>(n + 1));
        if (at != layout_.size) count_error(fmt::format("WRITE of {} bytes: byte {} is wrong", layout_.size, at));
      }
    }
  }
}

}  // namespace ub::tools
