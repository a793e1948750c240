// SPDX-License-Identifier: Apache-2.0
// bench_api.cc - nanoseconds of a posting or polling call of liburma alone: the NIC behind it does nothing, its part of
// the rings is done between the timed batches. Beside it, in the same run, the least that such a call can do: one cache
// line written to a ring, or read from one, and its index published. Locked is the default; lock_free is the flag.
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstring>
#include <vector>

#include "lib/urma/backends/placement.h"
#include "tests/unit/urma_api/fake_backend.h"
#include "urma_api.h"

namespace {

using namespace ub;

class SilentBackend : public test::FakeBackend {
 public:
  void posted(uint32_t) override {}
  void drive() override {}
  void completions_read(uint32_t) override {}
};

SilentBackend* nic = nullptr;

}  // namespace

namespace ub::urma {

Placement place_nic(uint32_t) {
  Placement placement;
  auto backend = std::make_unique<SilentBackend>();
  nic = backend.get();
  placement.backend = std::move(backend);
  return placement;
}

}  // namespace ub::urma

namespace {

constexpr uint32_t kBatch = 1024;

void check(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "bench_api: %s fails\n", what);
  std::exit(1);
}

// A jetty with queues of kBatch, its segment and a peer.
struct Stage {
  explicit Stage(bool lock_free) {
    check(urma_init(nullptr) == URMA_SUCCESS, "urma_init");
    char name[] = "softub0";
    urma_context_t* ctx = urma_create_context(urma_get_device_by_name(name), 0);
    check(ctx != nullptr, "urma_create_context");
    urma_jfc_cfg_t jfc_cfg{};
    jfc_cfg.depth = kBatch;
    jfc_cfg.flag.bs.lock_free = lock_free;
    jfc = urma_create_jfc(ctx, &jfc_cfg);
    urma_jfr_cfg_t jfr_cfg{};
    jfr_cfg.depth = kBatch;
    jfr_cfg.trans_mode = URMA_TM_RM;
    jfr_cfg.max_sge = 1;
    jfr_cfg.flag.bs.lock_free = lock_free;
    jfr_cfg.jfc = jfc;
    jfr = urma_create_jfr(ctx, &jfr_cfg);
    urma_jetty_cfg_t cfg{};
    cfg.flag.bs.share_jfr = 1;
    cfg.shared.jfr = jfr;
    cfg.jfs_cfg.depth = kBatch;
    cfg.jfs_cfg.trans_mode = URMA_TM_RM;
    cfg.jfs_cfg.max_sge = 1;
    cfg.jfs_cfg.max_inline_data = 64;
    cfg.jfs_cfg.flag.bs.lock_free = lock_free;
    cfg.jfs_cfg.jfc = jfc;
    jetty = urma_create_jetty(ctx, &cfg);
    urma_seg_cfg_t seg{};
    seg.va = reinterpret_cast<uint64_t>(memory);
    seg.len = sizeof memory;
    seg.flag.bs.access = URMA_ACCESS_READ | URMA_ACCESS_WRITE;
    seg.flag.bs.token_policy = URMA_TOKEN_NONE;
    local = urma_register_seg(ctx, &seg);
    urma_rjetty_t peer{};
    peer.jetty_id = jetty->jetty_id;
    memcpy(peer.jetty_id.eid.raw, test::FakeBackend::eid(50).bytes.data(), 16);
    peer.trans_mode = URMA_TM_RM;
    peer.type = URMA_JETTY;
    target = urma_import_jetty(ctx, &peer, nullptr);
    urma_seg_t there{};
    memcpy(&there.ubva.eid, peer.jetty_id.eid.raw, 16);
    there.ubva.uasid = peer.jetty_id.uasid;
    there.ubva.va = 0x10000;
    there.len = 4096;
    urma_token_t token{};
    remote = urma_import_seg(ctx, &there, &token, 0, {});
    check(jfc != nullptr && jfr != nullptr && jetty != nullptr && local != nullptr && target != nullptr &&
              remote != nullptr,
          "making the objects");
  }
  ~Stage() { urma_uninit(); }

  // What the NIC does when all was sent, and all receives were used.
  void finish_all() {
    auto& queue = nic->queues.at(jetty->jetty_id.id).config.sq;
    queue.indices->retired.fetch_add(kBatch);
    queue.indices->consumed.store(queue.indices->produced.load());
    auto& receives = *nic->receives.at(jfr->jfr_id.id).config.indices;
    receives.consumed.store(receives.produced.load());
  }
  void complete_all() {
    Cqe cqe{};
    cqe.local_id = jetty->jetty_id.id;
    for (uint32_t i = 0; i < kBatch; ++i) check(nic->produce(nic->jfcs.rbegin()->first, cqe), "a completion");
  }

  alignas(64) char memory[4096] = {};
  urma_jfc_t* jfc = nullptr;
  urma_jfr_t* jfr = nullptr;
  urma_jetty_t* jetty = nullptr;
  urma_target_seg_t* local = nullptr;
  urma_target_jetty_t* target = nullptr;
  urma_target_seg_t* remote = nullptr;
};

// Times `batch`, which makes kBatch operations, with `between` after it.
template <class Batch, class Between>
void run(benchmark::State& state, Batch&& batch, Between&& between) {
  double total = 0;
  for (auto _ : state) {
    const auto begin = std::chrono::steady_clock::now();
    batch();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    state.SetIterationTime(took.count());
    total += took.count();
    between();
  }
  state.counters["ns"] = total * 1e9 / (static_cast<double>(state.iterations()) * kBatch);
}

struct Request {
  Request(Stage& s, urma_opcode_t opcode, uint32_t bytes, bool inlined) {
    near = {reinterpret_cast<uint64_t>(s.memory), bytes, s.local, nullptr};
    far = {0x10000, bytes, s.remote, nullptr};
    wr.opcode = opcode;
    wr.tjetty = s.target;
    wr.flag.bs.inline_flag = inlined;
    if (opcode == URMA_OPC_WRITE) {
      wr.rw.src = {&near, 1};
      wr.rw.dst = {&far, 1};
    } else {
      wr.send.src = {&near, 1};
    }
  }
  urma_sge_t near{}, far{};
  urma_jfs_wr_t wr{};
};

void post(benchmark::State& state, bool lock_free, urma_opcode_t opcode, uint32_t bytes, bool inlined) {
  Stage s(lock_free);
  Request request(s, opcode, bytes, inlined);
  urma_jfs_wr_t* bad = nullptr;
  bool good = true;
  run(
      state,
      [&] {
        for (uint32_t i = 0; i < kBatch; ++i)
          good &= urma_post_jetty_send_wr(s.jetty, &request.wr, &bad) == URMA_SUCCESS;
      },
      [&] { s.finish_all(); });
  check(good, "urma_post_jetty_send_wr");
}

void post_list(benchmark::State& state, bool lock_free) {
  constexpr uint32_t kList = 16;
  Stage s(lock_free);
  Request request(s, URMA_OPC_WRITE, 64, false);
  std::vector<urma_jfs_wr_t> list(kList, request.wr);
  for (uint32_t i = 0; i + 1 < kList; ++i) list[i].next = &list[i + 1];
  urma_jfs_wr_t* bad = nullptr;
  bool good = true;
  run(
      state,
      [&] {
        for (uint32_t i = 0; i < kBatch / kList; ++i)
          good &= urma_post_jetty_send_wr(s.jetty, list.data(), &bad) == URMA_SUCCESS;
      },
      [&] { s.finish_all(); });
  check(good, "urma_post_jetty_send_wr");
}

void post_receive(benchmark::State& state, bool lock_free) {
  Stage s(lock_free);
  urma_sge_t piece{reinterpret_cast<uint64_t>(s.memory), 64, s.local, nullptr};
  urma_jfr_wr_t wr{};
  wr.src = {&piece, 1};
  urma_jfr_wr_t* bad = nullptr;
  bool good = true;
  run(
      state,
      [&] {
        for (uint32_t i = 0; i < kBatch; ++i) good &= urma_post_jfr_wr(s.jfr, &wr, &bad) == URMA_SUCCESS;
      },
      [&] { s.finish_all(); });
  check(good, "urma_post_jfr_wr");
}

// `at_once` records a call; 0: a poll that finds none.
void poll(benchmark::State& state, bool lock_free, uint32_t at_once) {
  Stage s(lock_free);
  std::vector<urma_cr_t> records(std::max(at_once, 1u));
  const uint32_t calls = kBatch / std::max(at_once, 1u);
  const auto room = static_cast<uint32_t>(records.size());
  bool good = true;
  auto refill = [&] {
    if (at_once != 0) s.complete_all();
  };
  refill();
  run(
      state,
      [&] {
        for (uint32_t i = 0; i < calls; ++i)
          good &= urma_poll_jfc(s.jfc, static_cast<int>(room), records.data()) == static_cast<int>(at_once);
      },
      refill);
  check(good, "urma_poll_jfc");
}

void bare_push(benchmark::State& state) {
  std::vector<Cqe> slots(kBatch);
  QueueIndices indices{};
  Cqe slot{};
  run(
      state,
      [&] {
        for (uint32_t i = 0; i < kBatch; ++i) {
          benchmark::DoNotOptimize(slot);
          memcpy(&slots[i], &slot, sizeof slot);
          indices.produced.store(i + 1, std::memory_order_release);
        }
      },
      [] {});
}

void bare_pop(benchmark::State& state) {
  std::vector<Cqe> slots(kBatch);
  QueueIndices indices{};
  indices.produced.store(kBatch);
  Cqe slot{};
  run(
      state,
      [&] {
        for (uint32_t i = 0; i < kBatch && i != indices.produced.load(std::memory_order_acquire); ++i) {
          memcpy(&slot, &slots[i], sizeof slot);
          benchmark::DoNotOptimize(slot);
          indices.consumed.store(i + 1, std::memory_order_release);
        }
      },
      [] {});
}

template <class Function, class... Args>
void add(const std::string& name, Function function, Args... args) {
  benchmark::RegisterBenchmark(name.c_str(), function, args...)->UseManualTime();
}

void add_all() {
  add("bare_push", bare_push);
  add("bare_pop", bare_pop);
  for (const bool lock_free : {false, true}) {
    const std::string how = lock_free ? "/lock_free" : "/locked";
    add("post_write_64" + how, post, lock_free, URMA_OPC_WRITE, 64u, false);
    add("post_write_64_inline" + how, post, lock_free, URMA_OPC_WRITE, 64u, true);
    add("post_send_64" + how, post, lock_free, URMA_OPC_SEND, 64u, false);
    add("post_write_64_lists_of_16" + how, post_list, lock_free);
    add("post_receive" + how, post_receive, lock_free);
    add("poll_empty" + how, poll, lock_free, 0u);
    add("poll_1" + how, poll, lock_free, 1u);
    add("poll_16_per_record" + how, poll, lock_free, 16u);
  }
}

}  // namespace

int main(int argc, char** argv) {
  add_all();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
