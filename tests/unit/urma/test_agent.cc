// SPDX-License-Identifier: Apache-2.0
// Copies and atomics for the daemon: right bytes, only in registered memory, and never after a range was removed.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "lib/base/atomic_operation.h"
#include "lib/urma/backends/daemon/agent.h"
#include "lib/urma/backends/private_memory.h"

namespace ub::urma {
namespace {

class AgentTest : public testing::Test {
 protected:
  uint64_t address(size_t offset) const { return reinterpret_cast<uint64_t>(memory) + offset; }

  // What the daemon does: writes an operation and publishes it.
  ipc::AgentOp& ask(ipc::AgentOpKind kind, uint64_t at, uint32_t bytes) {
    uint32_t n = page->ops_produced.load();
    ipc::AgentOp& op = page->ops[n % ipc::kAgentOps];
    op = {};
    op.kind = kind;
    op.address = at;
    op.bytes = bytes;
    op.old = 77;
    page->ops_produced.store(n + 1);
    return op;
  }
  std::byte* data(const ipc::AgentOp& op) { return page->agent_data + (&op - page->ops) * ipc::kAgentBytes; }
  bool done() { return page->ops_consumed.load() == page->ops_produced.load(); }

  std::shared_ptr<std::byte> page_memory = private_memory(sizeof(ipc::AppPage));
  ipc::AppPage* page = reinterpret_cast<ipc::AppPage*>(page_memory.get());
  alignas(64) std::byte memory[64 * 1024] = {};
  Agent agent;
};

TEST_F(AgentTest, gathers_and_places) {
  agent.add(address(0), sizeof memory);
  std::memset(memory + 100, 5, 5000);
  ipc::AgentOp& gather = ask(ipc::AgentOpKind::kGather, address(100), 5000);
  ipc::AgentOp& place = ask(ipc::AgentOpKind::kPlace, address(9000), 8192);
  std::memset(data(place), 6, 8192);
  ipc::AgentOp& last = ask(ipc::AgentOpKind::kPlace, address(30'001), 13);
  last.final = true;
  std::memset(data(last), 7, 13);
  EXPECT_TRUE(agent.has_work(*page));
  EXPECT_TRUE(agent.serve(*page));
  EXPECT_TRUE(done());
  EXPECT_FALSE(agent.has_work(*page));
  EXPECT_FALSE(agent.serve(*page));
  EXPECT_TRUE(gather.done_ok && place.done_ok && last.done_ok);
  EXPECT_EQ(std::memcmp(data(gather), memory + 100, 5000), 0);
  EXPECT_EQ(memory[9000], std::byte{6});
  EXPECT_EQ(memory[9000 + 8191], std::byte{6});
  EXPECT_EQ(memory[30'000], std::byte{});
  EXPECT_EQ(memory[30'001], std::byte{7});
  EXPECT_EQ(memory[30'013], std::byte{7});
  EXPECT_EQ(memory[30'014], std::byte{});
}

TEST_F(AgentTest, atomics) {
  agent.add(address(0), 64);
  uint64_t word = 40;
  std::memcpy(memory, &word, 8);
  ipc::AgentOp& add = ask(ipc::AgentOpKind::kAtomic, address(0), 8);
  add.atomic_op = static_cast<uint8_t>(AtomicOp::kFetchAdd);
  add.operand = 2;
  ipc::AgentOp& swap = ask(ipc::AgentOpKind::kAtomic, address(0), 4);
  swap.atomic_op = static_cast<uint8_t>(AtomicOp::kCompareSwap);
  swap.compare = 42;
  swap.operand = 50;
  ipc::AgentOp& crooked = ask(ipc::AgentOpKind::kAtomic, address(4), 8);
  crooked.atomic_op = static_cast<uint8_t>(AtomicOp::kFetchAdd);
  agent.serve(*page);
  EXPECT_TRUE(add.done_ok && swap.done_ok);
  EXPECT_EQ(add.old, 40u);
  EXPECT_EQ(swap.old, 42u);
  EXPECT_FALSE(crooked.done_ok);
  std::memcpy(&word, memory, 8);
  EXPECT_EQ(word, 50u);
}

TEST_F(AgentTest, atomics_of_every_number_that_is_one) {
  agent.add(address(0), 64);
  for (uint32_t number = 0; number < 256; ++number) {
    const uint64_t before = 40;
    std::memcpy(memory, &before, sizeof before);
    ipc::AgentOp& op = ask(ipc::AgentOpKind::kAtomic, address(0), 8);
    op.atomic_op = static_cast<uint8_t>(number);
    op.operand = 7;
    agent.serve(*page);
    EXPECT_EQ(op.done_ok != 0, number >= 1 && number <= 12) << number;
    EXPECT_EQ(op.old, op.done_ok != 0 ? before : 0) << number;
    const bool changed = std::memcmp(memory, &before, sizeof before) != 0;
    EXPECT_FALSE(changed && op.done_ok == 0) << number;
  }
}

TEST_F(AgentTest, wide_atomics) {
  if (!has_wide_atomics()) GTEST_SKIP() << "the CPU has no atomics of 16 bytes";
  agent.add(address(0), 64);
  const uint128 before = make_uint128(~uint64_t{0}, 5);
  std::memcpy(memory + 16, &before, 16);
  ipc::AgentOp& add = ask(ipc::AgentOpKind::kAtomic, address(16), 16);
  add.atomic_op = static_cast<uint8_t>(AtomicOp::kFetchAdd);
  add.operand = 1;
  ipc::AgentOp& vain = ask(ipc::AgentOpKind::kAtomic, address(16), 16);
  vain.atomic_op = static_cast<uint8_t>(AtomicOp::kCompareSwap);
  vain.compare = make_uint128(0, 5);
  ipc::AgentOp& swap = ask(ipc::AgentOpKind::kAtomic, address(16), 16);
  swap.atomic_op = static_cast<uint8_t>(AtomicOp::kCompareSwap);
  swap.compare = make_uint128(0, 6);
  swap.operand = make_uint128(7, 8);
  ipc::AgentOp& crooked = ask(ipc::AgentOpKind::kAtomic, address(8), 16);
  crooked.atomic_op = static_cast<uint8_t>(AtomicOp::kSwap);
  agent.serve(*page);
  EXPECT_TRUE(add.done_ok && vain.done_ok && swap.done_ok);
  EXPECT_TRUE(add.old == before);
  EXPECT_TRUE(vain.old == make_uint128(0, 6) && swap.old == make_uint128(0, 6));
  EXPECT_FALSE(crooked.done_ok);
  uint64_t halves[2];
  std::memcpy(halves, memory + 16, 16);
  EXPECT_EQ(halves[0], 7u);
  EXPECT_EQ(halves[1], 8u);
}

TEST_F(AgentTest, only_registered_memory) {
  auto ok = [&](size_t offset, uint32_t bytes) {
    ipc::AgentOp& op = ask(ipc::AgentOpKind::kGather, address(offset), bytes);
    agent.serve(*page);
    return op.done_ok != 0;
  };
  EXPECT_FALSE(ok(0, 1));
  agent.add(address(1000), 1000);
  EXPECT_TRUE(ok(1000, 1000));
  EXPECT_FALSE(ok(999, 2));
  EXPECT_FALSE(ok(1999, 2));
  EXPECT_FALSE(ok(2000, 1));
  EXPECT_FALSE(ok(1000, ipc::kAgentBytes + 1));
  agent.add(address(2000), 1000);  // next to it
  EXPECT_TRUE(ok(1500, 1500));
  agent.add(address(1500), 100);  // within, twice
  agent.add(address(1500), 100);
  agent.remove(address(1000), 1000);
  EXPECT_FALSE(ok(1000, 1));
  EXPECT_TRUE(ok(1500, 100));
  EXPECT_FALSE(ok(1500, 101));
  EXPECT_TRUE(ok(2000, 1000));
  agent.remove(address(1500), 100);
  EXPECT_TRUE(ok(1500, 100));
  agent.remove(address(1500), 100);
  EXPECT_FALSE(ok(1500, 100));
  agent.remove(address(2000), 1000);
  EXPECT_FALSE(ok(2000, 1));
}

TEST_F(AgentTest, random_registrations_agree_with_a_plain_count) {
  uint32_t covers[256] = {};
  std::vector<std::pair<uint32_t, uint32_t>> ranges;
  uint32_t seed = 1;
  auto next = [&](uint32_t n) { return (seed = seed * 1664525 + 1013904223) / 65536 % n; };
  for (int step = 0; step < 3000; ++step) {
    if (ranges.empty() || next(100) < 50) {
      uint32_t from = next(255), bytes = 1 + next(255 - from);
      agent.add(address(from), bytes);
      ranges.emplace_back(from, bytes);
      for (uint32_t i = from; i < from + bytes; ++i) ++covers[i];
    } else {
      std::swap(ranges[next(static_cast<uint32_t>(ranges.size()))], ranges.back());
      auto [from, bytes] = ranges.back();
      ranges.pop_back();
      agent.remove(address(from), bytes);
      for (uint32_t i = from; i < from + bytes; ++i) --covers[i];
    }
    uint32_t from = next(250), bytes = 1 + next(5);
    bool expected = std::all_of(covers + from, covers + from + bytes, [](uint32_t n) { return n != 0; });
    ipc::AgentOp& op = ask(ipc::AgentOpKind::kGather, address(from), bytes);
    agent.serve(*page);
    ASSERT_EQ(op.done_ok != 0, expected) << step;
  }
}

TEST_F(AgentTest, an_index_that_cannot_be_is_ignored) {
  page->ops_produced.store(ipc::kAgentOps + 1);
  EXPECT_FALSE(agent.serve(*page));
  EXPECT_EQ(page->ops_consumed.load(), 0u);
  EXPECT_FALSE(agent.has_work(*page));
}

// The memory goes away as soon as remove() returned; an access after that would kill the test.
TEST_F(AgentTest, nothing_is_touched_after_remove) {
  constexpr size_t kBytes = 64 * 1024;
  void* range = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(range, MAP_FAILED);
  std::atomic<bool> stop{false};
  std::thread server([&] {
    while (!stop.load()) {
      while (page->ops_produced.load() - page->ops_consumed.load() < 64) {
        ask(ipc::AgentOpKind::kPlace, reinterpret_cast<uint64_t>(range), 8192);
      }
      agent.serve(*page);
    }
  });
  for (int round = 0; round < 300; ++round) {
    mprotect(range, kBytes, PROT_READ | PROT_WRITE);
    agent.add(reinterpret_cast<uint64_t>(range), kBytes);
    std::this_thread::yield();
    agent.remove(reinterpret_cast<uint64_t>(range), kBytes);
    mprotect(range, kBytes, PROT_NONE);
  }
  stop.store(true);
  server.join();
  munmap(range, kBytes);
}

}  // namespace
}  // namespace ub::urma
