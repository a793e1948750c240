// SPDX-License-Identifier: Apache-2.0
//
// Starts the library, makes objects of one kind until it is refused, and tells what it was told, for
// daemon_bad_input.py:
//
//   quota_app KIND [MOST]     none, jfc, jfr, jfs, jetty, segment, target or memory (pieces of 1 MiB)
//
// Prints the library's log line by line, then "init STATUS" or "made N KIND: ERRNO". Ends with 0 if the library
// started and MOST objects were made; 3: refused before; 1: it does not start.
#include <errno.h>
#include <softub_api.h>
#include <urma_api.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>

namespace {

urma_context_t* context;
urma_jfc_t* jfc;
urma_jfr_t* jfr;
alignas(4096) char memory[4096];

void print(int, char* line) { std::printf("log: %s\n", line); }

urma_jfc_t* make_jfc() {
  urma_jfc_cfg_t cfg = {};
  cfg.depth = 16;
  return urma_create_jfc(context, &cfg);
}

urma_jfr_t* make_jfr() {
  urma_jfr_cfg_t cfg = {};
  cfg.depth = 16;
  cfg.trans_mode = URMA_TM_RM;
  cfg.jfc = jfc;
  return urma_create_jfr(context, &cfg);
}

urma_jfs_cfg_t jfs_config() {
  urma_jfs_cfg_t cfg = {};
  cfg.depth = 16;
  cfg.trans_mode = URMA_TM_RM;
  cfg.jfc = jfc;
  return cfg;
}

bool make_jfs() {
  urma_jfs_cfg_t cfg = jfs_config();
  return urma_create_jfs(context, &cfg) != nullptr;
}

bool make_jetty() {
  urma_jetty_cfg_t cfg = {};
  cfg.flag.bs.share_jfr = URMA_SHARE_JFR;
  cfg.shared.jfr = jfr;
  cfg.jfs_cfg = jfs_config();
  return urma_create_jetty(context, &cfg) != nullptr;
}

bool make_segment() {
  urma_seg_cfg_t cfg = {};
  cfg.va = reinterpret_cast<uint64_t>(memory);
  cfg.len = sizeof memory;
  cfg.flag.bs.token_policy = URMA_TOKEN_NONE;
  cfg.flag.bs.access = URMA_ACCESS_READ | URMA_ACCESS_WRITE;
  return urma_register_seg(context, &cfg) != nullptr;
}

bool make_target() {
  urma_rjetty_t peer = {};
  peer.jetty_id = jfr->jfr_id;
  peer.trans_mode = URMA_TM_RM;
  peer.type = URMA_JFR;
  urma_token_t token = {};
  static uint32_t number = 1000;
  peer.jetty_id.id = ++number;
  return urma_import_jetty(context, &peer, &token) != nullptr;
}

const std::map<std::string, std::function<bool()>> kKinds = {
    {"none", [] { return true; }},
    {"jfc", [] { return make_jfc() != nullptr; }},
    {"jfr", [] { return make_jfr() != nullptr; }},
    {"jfs", make_jfs},
    {"jetty", make_jetty},
    {"segment", make_segment},
    {"target", make_target},
    {"memory", [] { return softub_alloc(1 << 20) != nullptr; }},
};

}  // namespace

int main(int argc, char** argv) {
  const auto kind = kKinds.find(argc > 1 ? argv[1] : "");
  if (kind == kKinds.end()) {
    std::fprintf(stderr, "usage: quota_app KIND [MOST]\n");
    return 2;
  }
  setvbuf(stdout, nullptr, _IOLBF, 0);
  urma_register_log_func(print);
  const urma_status_t status = urma_init(nullptr);
  std::printf("init %d\n", status);
  if (status != URMA_SUCCESS) return 1;
  int count = 0;
  urma_device_t** devices = urma_get_device_list(&count);
  context = count > 0 ? urma_create_context(devices[0], 0) : nullptr;
  urma_free_device_list(devices);
  if (context == nullptr) {
    std::printf("no device\n");
    return 1;
  }
  jfc = make_jfc();
  jfr = make_jfr();
  const int most = argc > 2 ? std::atoi(argv[2]) : 0;
  int made = 0;
  errno = 0;
  while (made < most && kind->second()) ++made;
  std::printf("made %d %s: %s\n", made, argv[1], strerrorname_np(errno));
  urma_uninit();
  return made == most ? 0 : 3;
}
