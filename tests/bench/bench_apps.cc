// SPDX-License-Identifier: Apache-2.0
//
// One of the applications of ub_apps.py, which tells it line by line on the standard input what to do next:
//
//   attach        starts the library and answers "attached"
//   make N        N jettys and a segment; answers with its address
//   import HEX    the peer's address; answers "imported"
//   run SECONDS   WRITEs of 64 bytes, from each jetty to the one of the same number; answers "COUNT FAILED"
//   end           gives everything back, answers "ended" and ends
//
// Anything that fails ends it with a sentence and status 1.
#include <softub_api.h>
#include <urma_api.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>
#include <vector>

namespace {

constexpr uint32_t kDepth = 16;  // of each send queue
constexpr uint32_t kWindow = 64;
constexpr uint32_t kBytes = 64;
constexpr size_t kMemory = 2 * kWindow * kBytes;  // sources, and targets for the peer

void check(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "bench_apps: %s fails\n", what);
  std::exit(1);
}

std::string to_hex(const std::string& bytes) {
  std::string text;
  char digits[3];
  for (const char c : bytes)
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(c)), text += digits;
  return text;
}

template <typename T>
void take_hex(const char** from, T* to) {
  auto* bytes = reinterpret_cast<unsigned char*>(to);
  for (size_t i = 0; i < sizeof(T); ++i, *from += 2) check(std::sscanf(*from, "%2hhx", bytes + i) == 1, "the address");
}

class App {
 public:
  explicit App(bool own_memory) : own_memory_(own_memory) {}

  void attach() {
    check(urma_init(nullptr) == URMA_SUCCESS, "urma_init");
    int count = 0;
    urma_device_t** devices = urma_get_device_list(&count);
    check(count > 0, "urma_get_device_list");
    check((context_ = urma_create_context(devices[0], 0)) != nullptr, "urma_create_context");
    urma_free_device_list(devices);
  }

  std::string make(uint32_t jettys) {
    check((jfce_ = urma_create_jfce(context_)) != nullptr, "urma_create_jfce");
    urma_jfc_cfg_t jfc_cfg = {};
    jfc_cfg.depth = 2 * kWindow;
    jfc_cfg.jfce = jfce_;
    check((jfc_ = urma_create_jfc(context_, &jfc_cfg)) != nullptr, "urma_create_jfc");
    urma_jfr_cfg_t jfr_cfg = {};
    jfr_cfg.depth = 1;
    jfr_cfg.trans_mode = URMA_TM_RM;
    jfr_cfg.jfc = jfc_;
    check((jfr_ = urma_create_jfr(context_, &jfr_cfg)) != nullptr, "urma_create_jfr");
    urma_jetty_cfg_t cfg = {};
    cfg.flag.bs.share_jfr = URMA_SHARE_JFR;
    cfg.shared.jfr = jfr_;
    cfg.jfs_cfg.depth = kDepth;
    cfg.jfs_cfg.trans_mode = URMA_TM_RM;
    cfg.jfs_cfg.rnr_retry = URMA_TYPICAL_RNR_RETRY;
    cfg.jfs_cfg.err_timeout = URMA_TYPICAL_ERR_TIMEOUT;
    cfg.jfs_cfg.jfc = jfc_;
    for (uint32_t i = 0; i < jettys; ++i) {
      jettys_.push_back(urma_create_jetty(context_, &cfg));
      check(jettys_.back() != nullptr, "urma_create_jetty");
    }
    register_memory();
    std::string address(reinterpret_cast<const char*>(&segment_->seg), sizeof segment_->seg);
    for (const urma_jetty_t* jetty : jettys_)
      address.append(reinterpret_cast<const char*>(&jetty->jetty_id), sizeof jetty->jetty_id);
    return to_hex(address);
  }

  void import(const std::string& hex) {
    const char* at = hex.c_str();
    urma_seg_t seg;
    take_hex(&at, &seg);
    urma_import_seg_flag_t flag = {};
    flag.bs.access = URMA_ACCESS_READ | URMA_ACCESS_WRITE;
    urma_token_t token = {};
    check((peer_segment_ = urma_import_seg(context_, &seg, &token, 0, flag)) != nullptr, "urma_import_seg");
    for (size_t i = 0; i < jettys_.size(); ++i) {
      urma_rjetty_t peer = {};
      take_hex(&at, &peer.jetty_id);
      peer.trans_mode = URMA_TM_RM;
      peer.type = URMA_JETTY;
      targets_.push_back(urma_import_jetty(context_, &peer, &token));
      check(targets_.back() != nullptr, "urma_import_jetty");
    }
  }

  // As many under way as one queue holds; sleeps while nothing completes.
  void run(double seconds) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    const uint64_t most = kDepth;  // all of them may be on one queue at times
    posted_ = done_ = failed_ = 0;
    while (std::chrono::steady_clock::now() < end) {
      while (posted_ - done_ < most) post();
      if (poll() == 0) wait();
    }
    const uint64_t in_time = done_;
    while (done_ < posted_) {
      if (poll() == 0) wait();
    }
    std::printf("%llu %llu\n", static_cast<unsigned long long>(in_time), static_cast<unsigned long long>(failed_));
  }

  void end() {
    for (urma_target_jetty_t* target : targets_) check(urma_unimport_jetty(target) == 0, "urma_unimport_jetty");
    if (peer_segment_ != nullptr) check(urma_unimport_seg(peer_segment_) == URMA_SUCCESS, "urma_unimport_seg");
    for (urma_jetty_t* jetty : jettys_) check(urma_delete_jetty(jetty) == URMA_SUCCESS, "urma_delete_jetty");
    check(urma_uninit() == URMA_SUCCESS, "urma_uninit");  // and what is left
  }

 private:
  void register_memory() {
    memory_ = static_cast<char*>(own_memory_ ? std::aligned_alloc(4096, kMemory) : softub_alloc(kMemory));
    check(memory_ != nullptr, "softub_alloc");
    std::memset(memory_, 0, kMemory);
    urma_seg_cfg_t cfg = {};
    cfg.va = reinterpret_cast<uint64_t>(memory_);
    cfg.len = kMemory;
    cfg.flag.bs.token_policy = URMA_TOKEN_NONE;
    cfg.flag.bs.access = URMA_ACCESS_READ | URMA_ACCESS_WRITE;
    check((segment_ = urma_register_seg(context_, &cfg)) != nullptr, "urma_register_seg");
  }

  void post() {
    const size_t jetty = posted_ % jettys_.size();
    const uint64_t at = posted_ % kWindow * kBytes;
    urma_sge_t here = {}, there = {};
    here.addr = segment_->seg.ubva.va + at;
    there.addr = peer_segment_->seg.ubva.va + kMemory / 2 + at;
    here.len = there.len = kBytes;
    here.tseg = segment_;
    there.tseg = peer_segment_;
    urma_jfs_wr_t wr = {}, *bad = nullptr;
    wr.opcode = URMA_OPC_WRITE;
    wr.flag.bs.complete_enable = 1;
    wr.tjetty = targets_[jetty];
    wr.rw.src = {&here, 1};
    wr.rw.dst = {&there, 1};
    check(urma_post_jetty_send_wr(jettys_[jetty], &wr, &bad) == URMA_SUCCESS, "urma_post_jetty_send_wr");
    ++posted_;
  }

  int poll() {
    urma_cr_t records[kWindow];
    const int count = urma_poll_jfc(jfc_, kWindow, records);
    check(count >= 0, "urma_poll_jfc");
    for (int i = 0; i < count; ++i) failed_ += records[i].status != URMA_CR_SUCCESS;
    done_ += static_cast<uint64_t>(count);
    return count;
  }

  void wait() {
    check(urma_rearm_jfc(jfc_, false) == URMA_SUCCESS, "urma_rearm_jfc");
    if (poll() != 0) return;  // came before it was armed; an event may be there, and the next wait finds it
    urma_jfc_t* event = nullptr;
    uint32_t one = 1;
    const int count = urma_wait_jfc(jfce_, 1, 10'000, &event);
    check(count == 1, "a completion");
    urma_ack_jfc(&event, &one, 1);
  }

  const bool own_memory_;
  urma_context_t* context_ = nullptr;
  urma_jfce_t* jfce_ = nullptr;
  urma_jfc_t* jfc_ = nullptr;
  urma_jfr_t* jfr_ = nullptr;
  std::vector<urma_jetty_t*> jettys_;
  std::vector<urma_target_jetty_t*> targets_;
  urma_target_seg_t *segment_ = nullptr, *peer_segment_ = nullptr;
  char* memory_ = nullptr;
  uint64_t posted_ = 0, done_ = 0, failed_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  App app(argc > 1 && std::strcmp(argv[1], "--own-memory") == 0);
  std::string word;
  while (std::cin >> word) {
    if (word == "attach") {
      app.attach();
      std::printf("attached\n");
    } else if (word == "make") {
      uint32_t jettys = 0;
      std::cin >> jettys;
      std::printf("%s\n", app.make(jettys).c_str());
    } else if (word == "import") {
      std::cin >> word;
      app.import(word);
      std::printf("imported\n");
    } else if (word == "run") {
      double seconds = 0;
      std::cin >> seconds;
      app.run(seconds);
    } else {
      app.end();
      std::printf("ended\n");
      return 0;
    }
    std::fflush(stdout);
  }
  return 1;
}
