// SPDX-License-Identifier: Apache-2.0
//
// What tests/bench/instructions runs under callgrind for its second column: the operations of count_core through
// liburma's calls, from a jetty to another one of the same process. The NIC is the usual one, embedded, and the wire
// its loopback port: both ends are one Core, and a poll drives both.
//
//   count_api --operation "WRITE 64" --window 64 --count 256
//   count_api ... --record FILE        while urma_admin records all that enters the Core
//   count_api ... --shared-memory      in memory that the NIC accesses without packets (docs/same-host-design.md)
//
// Collect measured_section() alone.
#include <softub_aperture.h>
#include <unistd.h>
#include <urma_api.h>

#include <CLI/CLI.hpp>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

namespace ub::bench {
namespace {

constexpr uint32_t kDepth = 128;
constexpr uint32_t kPolled = 16;  // completions taken by a call, at most
// Operations before those that are counted: by then this thread is the one that the NIC is biased to
// (dataplane/ownership.h), and the turns that are timed after a picture of the statistics are over.
constexpr uint32_t kWarmUp = 2048;
constexpr size_t kMemory = size_t{1} << 20;

void check(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "count_api: %s fails\n", what);
  std::exit(1);
}

struct Operation {
  const char* name;
  urma_opcode_t opcode;
  uint32_t bytes;
};
constexpr Operation kOperations[] = {
    {"WRITE 64", URMA_OPC_WRITE, 64}, {"READ 64", URMA_OPC_READ, 64},         {"SEND 64", URMA_OPC_SEND, 64},
    {"FADD 8", URMA_OPC_FADD, 8},     {"WRITE 65536", URMA_OPC_WRITE, 65536},
};

// A jetty with queues of its own and memory.
struct Side {
  Side(urma_context_t* context, bool shared)
      : memory(static_cast<char*>(shared ? softub_alloc_shared(kMemory, SOFTUB_SHARE_WRITE)
                                         : std::aligned_alloc(4096, kMemory))) {
    check(memory != nullptr, "allocating memory");
    std::memset(memory, 0, kMemory);
    urma_jfc_cfg_t jfc_cfg = {};
    jfc_cfg.depth = 2 * kDepth;
    check((jfc = urma_create_jfc(context, &jfc_cfg)) != nullptr, "urma_create_jfc");
    urma_jfr_cfg_t jfr_cfg = {};
    jfr_cfg.depth = kDepth;
    jfr_cfg.trans_mode = URMA_TM_RM;
    jfr_cfg.max_sge = 1;
    jfr_cfg.jfc = jfc;
    check((jfr = urma_create_jfr(context, &jfr_cfg)) != nullptr, "urma_create_jfr");
    urma_jetty_cfg_t cfg = {};
    cfg.flag.bs.share_jfr = URMA_SHARE_JFR;
    cfg.shared.jfr = jfr;
    cfg.jfs_cfg.depth = kDepth;
    cfg.jfs_cfg.trans_mode = URMA_TM_RM;
    cfg.jfs_cfg.max_sge = 1;
    cfg.jfs_cfg.rnr_retry = URMA_TYPICAL_RNR_RETRY;
    cfg.jfs_cfg.err_timeout = URMA_TYPICAL_ERR_TIMEOUT;
    cfg.jfs_cfg.jfc = jfc;
    check((jetty = urma_create_jetty(context, &cfg)) != nullptr, "urma_create_jetty");
    urma_seg_cfg_t seg = {};
    seg.va = reinterpret_cast<uintptr_t>(memory);
    seg.len = kMemory;
    seg.flag.bs.token_policy = URMA_TOKEN_NONE;
    seg.flag.bs.access = URMA_ACCESS_READ | URMA_ACCESS_WRITE | URMA_ACCESS_ATOMIC;
    check((segment = urma_register_seg(context, &seg)) != nullptr, "urma_register_seg");
  }

  char* memory;
  urma_jfc_t* jfc = nullptr;
  urma_jfr_t* jfr = nullptr;
  urma_jetty_t* jetty = nullptr;
  urma_target_seg_t* segment = nullptr;
};

class Exchange {
 public:
  Exchange(urma_context_t* context, const Operation& operation, uint32_t window, bool shared)
      : op_(operation),
        window_(window),
        stride_(operation.bytes < 64 ? 64 : operation.bytes),
        a_(context, false),
        b_(context, shared) {
    urma_rjetty_t peer = {};
    peer.jetty_id = b_.jetty->jetty_id;
    peer.trans_mode = URMA_TM_RM;
    peer.type = URMA_JETTY;
    urma_token_t token = {};
    check((target_ = urma_import_jetty(context, &peer, &token)) != nullptr, "urma_import_jetty");
    urma_import_seg_flag_t flag = {};
    flag.bs.access = URMA_ACCESS_READ | URMA_ACCESS_WRITE | URMA_ACCESS_ATOMIC;
    remote_ = urma_import_seg(context, &b_.segment->seg, &token, 0, flag);
    check(remote_ != nullptr, "urma_import_seg");
    for (uint32_t i = 0; i < window_ && op_.opcode == URMA_OPC_SEND; ++i) post_receive();
  }

  // `count` operations, in whole windows.
  void run(uint64_t count) {
    for (uint64_t done = 0; done < count; done += window_) {
      for (uint32_t i = 0; i < window_; ++i) post();
      for (uint32_t left = window_; left > 0;) {
        left -= poll(a_.jfc);
        if (op_.opcode != URMA_OPC_SEND) continue;
        for (uint32_t n = poll(b_.jfc); n > 0; --n) post_receive();
      }
    }
  }

 private:
  urma_sge_t piece(const urma_target_seg_t* segment, const char* memory, uint64_t number, uint32_t bytes) const {
    return {reinterpret_cast<uintptr_t>(memory) + number * stride_ % kMemory, bytes,
            const_cast<urma_target_seg_t*>(segment), nullptr};
  }

  void post() {
    urma_sge_t here = piece(a_.segment, a_.memory, posted_, op_.bytes);
    urma_sge_t there = piece(remote_, b_.memory, posted_++, op_.bytes);
    urma_jfs_wr_t wr = {}, *bad = nullptr;
    wr.opcode = op_.opcode;
    wr.flag.bs.complete_enable = 1;
    wr.tjetty = target_;
    switch (op_.opcode) {
      case URMA_OPC_WRITE:
        wr.rw.src = {&here, 1};
        wr.rw.dst = {&there, 1};
        break;
      case URMA_OPC_READ:
        wr.rw.src = {&there, 1};
        wr.rw.dst = {&here, 1};
        break;
      case URMA_OPC_FADD:
        wr.faa.dst = &there;
        wr.faa.src = &here;
        wr.faa.operand = 1;
        break;
      default:
        wr.send.src = {&here, 1};
    }
    check(urma_post_jetty_send_wr(a_.jetty, &wr, &bad) == URMA_SUCCESS, "urma_post_jetty_send_wr");
  }
  void post_receive() {
    urma_sge_t here = piece(b_.segment, b_.memory, received_++, static_cast<uint32_t>(stride_));
    urma_jfr_wr_t wr = {}, *bad = nullptr;
    wr.src = {&here, 1};
    check(urma_post_jetty_recv_wr(b_.jetty, &wr, &bad) == URMA_SUCCESS, "urma_post_jetty_recv_wr");
  }
  static uint32_t poll(urma_jfc_t* jfc) {
    urma_cr_t records[kPolled];
    const int count = urma_poll_jfc(jfc, kPolled, records);
    check(count >= 0, "urma_poll_jfc");
    for (int i = 0; i < count; ++i) check(records[i].status == URMA_CR_SUCCESS, "an operation");
    return static_cast<uint32_t>(count);
  }

  Operation op_;
  uint32_t window_;
  uint64_t stride_;
  Side a_, b_;
  urma_target_jetty_t* target_ = nullptr;
  urma_target_seg_t* remote_ = nullptr;
  uint64_t posted_ = 0, received_ = 0;
};

// A call of its own, found by name.
[[gnu::noinline]] void measured_section(Exchange& exchange, uint64_t count) { exchange.run(count); }

// As a user begins it, from outside.
void begin_recording(const std::string& file) {
  const std::filesystem::path here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  const std::string admin = (here / "../../tools/admin/urma_admin").lexically_normal();
  const std::string command = admin + " record on " + file + " --size 1G -i " + std::to_string(getpid());
  check(std::system(command.c_str()) == 0, command.c_str());
}

int run(const std::string& name, uint32_t window, uint64_t count, bool shared, const std::string& record) {
  check(urma_init(nullptr) == URMA_SUCCESS, "urma_init");
  int devices_found = 0;
  urma_device_t** devices = urma_get_device_list(&devices_found);
  check(devices_found > 0, "urma_get_device_list");
  urma_context_t* context = urma_create_context(devices[0], 0);
  urma_free_device_list(devices);
  check(context != nullptr, "urma_create_context");
  bool known = false;
  for (const Operation& op : kOperations) {
    if (name != op.name) continue;
    known = true;
    Exchange exchange(context, op, window, shared);
    if (!record.empty()) begin_recording(record);
    exchange.run(kWarmUp);
    measured_section(exchange, count);
  }
  check(known, "finding the operation");
  check(urma_uninit() == URMA_SUCCESS, "urma_uninit");
  return 0;
}

}  // namespace
}  // namespace ub::bench

int main(int argc, char** argv) {
  CLI::App app{"One operation through liburma, for a profiler"};
  std::string name, record;
  uint32_t window = 1;
  uint64_t count = 256;
  bool shared = false;
  app.add_option("--operation", name, "\"WRITE 64\", ..., \"WRITE 65536\"");
  app.add_option("--window", window, "operations posted together")->check(CLI::Range(1, 64));
  app.add_option("--count", count, "operations, a multiple of the window");
  app.add_flag("--shared-memory", shared, "the memory is such as others may map, so no packets are needed");
  app.add_option("--record", record, "record the NIC (docs/recording.md) to this file, which must not exist");
  CLI11_PARSE(app, argc, argv);
  return ub::bench::run(name, window, count, shared, record);
}
