// SPDX-License-Identifier: Apache-2.0
// Work requests become elements of the rings, or are refused.
#include <sched.h>
#include <softub_api.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <functional>
#include <numeric>

#include "lib/base/atomic_operation.h"
#include "tests/unit/urma_api/fixture.h"

namespace {

std::function<void()> on_yield;  // what another thread does with the processor that it is left

}  // namespace

extern "C" int sched_yield() noexcept {
  if (on_yield) on_yield();
  return static_cast<int>(syscall(SYS_sched_yield));
}

namespace ub::test {
namespace {

class Post : public UrmaTest {
 protected:
  void SetUp() override {
    UrmaTest::SetUp();
    jfc = make_jfc(64);
    jfs = make_jfs(jfc);
    target = make_target();
    local = make_seg(memory, sizeof memory);
    remote = make_remote_seg();
    pieces[0] = {va(0), 100, local, nullptr};
    far[0] = {0x10000, 100, remote, nullptr};
  }
  uint64_t va(size_t offset) { return reinterpret_cast<uint64_t>(memory + offset); }
  uint32_t id() const { return jfs->jfs_id.id; }

  urma_jfs_wr_t request(urma_opcode_t opcode) {
    urma_jfs_wr_t wr{};
    wr.opcode = opcode;
    wr.tjetty = target;
    wr.user_ctx = 0xfedcba9876543210;
    wr.flag.bs.complete_enable = 1;
    return wr;
  }
  urma_jfs_wr_t write(uint32_t local_pieces = 1) {
    urma_jfs_wr_t wr = request(URMA_OPC_WRITE);
    wr.rw.src = {pieces, local_pieces};
    wr.rw.dst = {far, 1};
    return wr;
  }
  urma_jfs_wr_t send(uint32_t local_pieces = 1) {
    urma_jfs_wr_t wr = request(URMA_OPC_SEND);
    wr.send.src = {pieces, local_pieces};
    return wr;
  }
  urma_status_t post(urma_jfs_wr_t& wr) {
    urma_jfs_wr_t* bad = nullptr;
    urma_status_t status = urma_post_jfs_wr(jfs, &wr, &bad);
    EXPECT_EQ(bad, status == URMA_SUCCESS ? nullptr : &wr);
    return status;
  }
  // Posts, and returns the element that came of it.
  const Wqe& posted(urma_jfs_wr_t& wr) {
    EXPECT_EQ(post(wr), URMA_SUCCESS);
    auto elements = fake->elements(id());
    EXPECT_FALSE(elements.empty());
    return *elements.back();
  }

  alignas(64) char memory[65536]{};
  urma_jfc_t* jfc = nullptr;
  urma_jfs_t* jfs = nullptr;
  urma_target_jetty_t* target = nullptr;
  urma_target_seg_t* local = nullptr;
  urma_target_seg_t* remote = nullptr;
  urma_sge_t pieces[20]{};
  urma_sge_t far[2]{};
};

TEST_F(Post, write) {
  urma_jfs_wr_t wr = write();
  wr.flag.bs.fence = 1;
  wr.flag.bs.solicited_enable = 1;
  wr.flag.bs.comp_order = 1;
  wr.flag.bs.place_order = URMA_STRONG_ORDER;
  const Wqe& wqe = posted(wr);
  EXPECT_EQ(wqe.op, WrOp::kWrite);
  EXPECT_EQ(wqe.flags, kWrSignaled | kWrFence | kWrSolicited | kWrCompOrder);
  EXPECT_EQ(wqe.place_order, 2);
  EXPECT_EQ(wqe.slots, 1);
  EXPECT_EQ(wqe.sge_count, 1);
  EXPECT_EQ(wqe.target, target->handle);
  EXPECT_EQ(wqe.user_ctx, 0xfedcba9876543210u);
  EXPECT_EQ(wqe.remote_address, 0x10000u);
  EXPECT_EQ(wqe.token_id, 5u);
  EXPECT_EQ(wqe.length, 100u);
  EXPECT_EQ(wqe.sge.address, va(0));
  EXPECT_EQ(wqe.sge.length, 100u);
  EXPECT_EQ(wqe.sge.segment, local->handle);
  EXPECT_EQ(fake->doorbells, std::vector<uint32_t>{id()});
}

TEST_F(Post, write_imm_with_token) {
  far[0].tseg = make_remote_seg(77, URMA_TOKEN_PLAIN_TEXT, 0xc0ffee, 9);
  urma_jfs_wr_t wr = write();
  wr.opcode = URMA_OPC_WRITE_IMM;
  wr.rw.notify_data = 0x1122334455667788;
  const Wqe& wqe = posted(wr);
  EXPECT_EQ(wqe.op, WrOp::kWriteImm);
  EXPECT_TRUE(wqe.flags & kWrToken);
  EXPECT_EQ(wqe.token_id, 9u);
  EXPECT_EQ(wqe.token_value, 0xc0ffeeu);
  EXPECT_EQ(wqe.immediate, 0x1122334455667788u);
}

TEST_F(Post, write_notify_uses_both_destinations) {
  urma_user_tseg_t key{};
  key.token_id = 31;
  far[1].addr = 0x11000;
  far[1].user_tseg = &key;
  pieces[1] = {va(1000), 28, local, nullptr};
  urma_jfs_wr_t wr = write(2);
  wr.opcode = URMA_OPC_WRITE_NOTIFY;
  wr.rw.dst.num_sge = 2;
  wr.rw.notify_data = 17;
  const Wqe& wqe = posted(wr);
  EXPECT_EQ(wqe.op, WrOp::kWriteNotify);
  EXPECT_EQ(wqe.slots, 3);
  EXPECT_EQ(wqe.length, 128u);
  EXPECT_EQ(wqe.immediate, 17u);
  EXPECT_EQ(extra_of(wqe).notify_address, 0x11000u);
  EXPECT_EQ(extra_of(wqe).notify_token_id, 31u);
  EXPECT_EQ(sge_of(wqe, 1).address, va(1000));
  wr.rw.dst.num_sge = 1;
  EXPECT_EQ(post(wr), URMA_EINVAL);
}

TEST_F(Post, exclusive_segments_mark_the_requests_to_them) {
  auto set = [&](urma_target_seg_t* seg, uint32_t exclusive) {
    softub_set_exclusive_in_t argument{seg, exclusive};
    urma_user_ctl_in_t in{reinterpret_cast<uint64_t>(&argument), sizeof argument, SOFTUB_USER_CTL_SET_EXCLUSIVE};
    urma_user_ctl_out_t out{};
    ASSERT_EQ(urma_user_ctl(ctx, &in, &out), URMA_SUCCESS);
  };
  urma_jfs_wr_t wr = write();
  EXPECT_EQ(posted(wr).exclusive, 0);
  set(local, 1);
  EXPECT_EQ(posted(wr).exclusive, 0) << "its own memory has nothing to do with it";
  set(remote, 1);
  EXPECT_EQ(posted(wr).exclusive, 1);
  urma_jfs_wr_t message = send();
  EXPECT_EQ(posted(message).exclusive, 0);
  set(remote, 0);
  EXPECT_EQ(posted(wr).exclusive, 0);
  far[1] = {0x11000, 8, make_remote_seg(), nullptr};
  wr.opcode = URMA_OPC_WRITE_NOTIFY;
  wr.rw.dst.num_sge = 2;
  EXPECT_EQ(posted(wr).exclusive, 0);
  set(far[1].tseg, 1);
  EXPECT_EQ(posted(wr).exclusive, 1) << "the packet has one bit for both addresses";
}

TEST_F(Post, inline_write_notify_keeps_its_extra) {
  urma_user_tseg_t key{};
  far[1].addr = 0x11000;
  far[1].user_tseg = &key;
  std::iota(memory, memory + 100, 1);
  pieces[0].len = 60;
  urma_jfs_wr_t wr = write();
  wr.opcode = URMA_OPC_WRITE_NOTIFY;
  wr.rw.dst.num_sge = 2;
  wr.flag.bs.inline_flag = 1;
  const Wqe& wqe = posted(wr);
  EXPECT_EQ(extra_of(wqe).notify_address, 0x11000u);
  EXPECT_EQ(memcmp(inline_bytes(wqe), memory, 60), 0);
}

TEST_F(Post, read_has_its_pieces_the_other_way) {
  pieces[1] = {va(4096), 0, nullptr, nullptr};  // empty: skipped, needs no segment
  pieces[2] = {va(8192), 50, local, nullptr};
  urma_jfs_wr_t wr = request(URMA_OPC_READ);
  wr.rw.dst = {pieces, 3};
  wr.rw.src = {far, 1};
  wr.flag.bs.inline_flag = 1;  // without meaning
  const Wqe& wqe = posted(wr);
  EXPECT_EQ(wqe.op, WrOp::kRead);
  EXPECT_EQ(wqe.flags & kWrInline, 0);
  EXPECT_EQ(wqe.sge_count, 2);
  EXPECT_EQ(wqe.length, 150u);
  EXPECT_EQ(sge_of(wqe, 1).address, va(8192));
}

TEST_F(Post, empty_messages) {
  urma_jfs_wr_t empty = send(0);
  empty.send.src.sge = nullptr;
  EXPECT_EQ(posted(empty).length, 0u);
  pieces[0] = {0, 0, nullptr, nullptr};
  urma_jfs_wr_t zero = write();
  EXPECT_EQ(posted(zero).sge_count, 0);
  urma_jfs_wr_t nop = request(URMA_OPC_NOP);
  nop.tjetty = nullptr;
  EXPECT_EQ(posted(nop).op, WrOp::kNop);
}

TEST_F(Post, atomics) {
  pieces[0] = {va(64), 8, local, nullptr};
  far[0].len = 8;
  urma_jfs_wr_t cas = request(URMA_OPC_CAS);
  cas.cas.dst = far;
  cas.cas.src = pieces;
  cas.cas.cmp_data = 3;
  cas.cas.swap_data = 4;
  const Wqe& wqe = posted(cas);
  EXPECT_EQ(wqe.op, WrOp::kCompareSwap);
  EXPECT_EQ(wqe.slots, 2);
  EXPECT_EQ(wqe.length, 8u);
  EXPECT_EQ(wqe.immediate, 4u);
  EXPECT_EQ(extra_of(wqe).compare, 3u);
  EXPECT_EQ(wqe.sge.address, va(64));

  const std::pair<urma_opcode_t, WrOp> fetches[] = {{URMA_OPC_FADD, WrOp::kFetchAdd},
                                                    {URMA_OPC_FSUB, WrOp::kFetchSub},
                                                    {URMA_OPC_FAND, WrOp::kFetchAnd},
                                                    {URMA_OPC_FOR, WrOp::kFetchOr},
                                                    {URMA_OPC_FXOR, WrOp::kFetchXor}};
  for (auto [opcode, op] : fetches) {
    urma_jfs_wr_t wr = request(opcode);
    wr.faa.dst = far;
    wr.faa.src = pieces;
    wr.faa.operand = 6;
    EXPECT_EQ(posted(wr).op, op);
    EXPECT_EQ(fake->elements(id()).back()->immediate, 6u);
  }
  auto refused = [&](uint64_t address, uint32_t length, uint32_t room) {
    far[0].addr = address;
    far[0].len = length;
    pieces[0].len = room;
    return post(cas) == URMA_EINVAL;
  };
  EXPECT_TRUE(refused(0x10004, 8, 8));
  EXPECT_TRUE(refused(0x10002, 4, 8));
  EXPECT_TRUE(refused(0x10000, 32, 32));
  EXPECT_TRUE(refused(0x10000, 8, 4));
  EXPECT_FALSE(refused(0x10004, 4, 8));
  EXPECT_EQ(fake->elements(id()).back()->sge.length, 4u);
}

// Operands of 16 bytes are given by their addresses.
TEST_F(Post, wide_atomics) {
  pieces[0] = {va(64), 16, local, nullptr};
  far[0].len = 16;
  urma_jfs_wr_t cas = request(URMA_OPC_CAS);
  cas.cas.dst = far;
  cas.cas.src = pieces;
  uint64_t compare[2] = {1, 2}, swap[2] = {3, 4}, operand[2] = {5, 6};
  cas.cas.cmp_addr = reinterpret_cast<uint64_t>(compare);
  cas.cas.swap_addr = reinterpret_cast<uint64_t>(swap);
  urma_jfs_wr_t fadd = request(URMA_OPC_FADD);
  fadd.faa.dst = far;
  fadd.faa.src = pieces;
  fadd.faa.operand_addr = reinterpret_cast<uint64_t>(operand);
  if (!has_wide_atomics()) {
    EXPECT_EQ(post(cas), URMA_EINVAL);
    GTEST_SKIP() << "the CPU has no atomics of 16 bytes";
  }
  const Wqe& wqe = posted(cas);
  EXPECT_EQ(wqe.length, 16u);
  EXPECT_TRUE(operand_of(wqe) == make_uint128(3, 4));
  EXPECT_TRUE(compare_of(wqe) == make_uint128(1, 2));
  EXPECT_TRUE(operand_of(posted(fadd)) == make_uint128(5, 6));
  cas.cas.cmp_addr = 0;
  EXPECT_EQ(post(cas), URMA_EINVAL);
  cas.opcode = URMA_OPC_SWAP;  // compares nothing
  EXPECT_TRUE(operand_of(posted(cas)) == make_uint128(3, 4));
  cas.cas.swap_addr = 0;
  EXPECT_EQ(post(cas), URMA_EINVAL);
  fadd.faa.operand_addr = 0;
  EXPECT_EQ(post(fadd), URMA_EINVAL);
  fadd.faa.operand_addr = reinterpret_cast<uint64_t>(operand);
  far[0].addr += 8;
  EXPECT_EQ(post(fadd), URMA_EINVAL);
}

TEST_F(Post, send_and_invalidate) {
  urma_jfs_wr_t wr = send();
  wr.opcode = URMA_OPC_SEND_INVALIDATE;
  EXPECT_EQ(post(wr), URMA_EINVAL);
  wr.send.tseg = make_remote_seg(77, URMA_TOKEN_PLAIN_TEXT, 0xabcd, 21);
  const Wqe& wqe = posted(wr);
  EXPECT_EQ(wqe.op, WrOp::kSendInvalidate);
  EXPECT_EQ(wqe.token_id, 21u);
  EXPECT_EQ(wqe.token_value, 0xabcdu);
  EXPECT_EQ(wqe.immediate, 0xabcdull << 32 | 21);
}

TEST_F(Post, inline_copies_at_once) {
  std::iota(memory, memory + 200, 1);
  pieces[0] = {va(0), 10, nullptr, nullptr};
  pieces[1] = {va(50), 30, nullptr, nullptr};
  urma_jfs_wr_t wr = send(2);
  EXPECT_EQ(post(wr), URMA_EINVAL);  // not inline: segments are needed
  wr.flag.bs.inline_flag = 1;
  const Wqe& wqe = posted(wr);
  memset(memory, 0, 200);
  EXPECT_TRUE(wqe.flags & kWrInline);
  EXPECT_EQ(wqe.sge_count, 0);
  EXPECT_EQ(wqe.length, 40u);
  EXPECT_EQ(wqe.slots, wqe_slots(WrOp::kSend, 0, 40));
  EXPECT_EQ(static_cast<int>(inline_bytes(wqe)[9]), 10);
  EXPECT_EQ(static_cast<int>(inline_bytes(wqe)[10]), 51);
  pieces[0].len = jfs->jfs_cfg.max_inline_data - 30;
  EXPECT_EQ(post(wr), URMA_SUCCESS);
  ++pieces[0].len;
  EXPECT_EQ(post(wr), URMA_EINVAL);
}

TEST_F(Post, refuses_what_it_must) {
  auto refused = [&](urma_jfs_wr_t wr) { return post(wr) == URMA_EINVAL; };
  urma_jfs_wr_t wr = request(static_cast<urma_opcode_t>(0x7f));
  EXPECT_TRUE(refused(wr));
  EXPECT_TRUE(refused(request(URMA_OPC_FLUSH_DMA)));
  EXPECT_TRUE(refused(request(URMA_OPC_WRITE)));  // no pieces at all
  for (auto& piece : pieces) piece = {va(0), 10, local, nullptr};
  EXPECT_FALSE(refused(write(4)));
  EXPECT_TRUE(refused(write(5)));  // max_sge
  wr = write();
  wr.tjetty = nullptr;
  EXPECT_TRUE(refused(wr));
  wr.tjetty = make_target(URMA_TM_UM);
  EXPECT_TRUE(refused(wr));
  wr = write();
  pieces[0].tseg = remote;
  EXPECT_TRUE(refused(wr));
  pieces[0].tseg = local;
  far[0].tseg = nullptr;
  EXPECT_TRUE(refused(wr));
  far[0].tseg = make_remote_seg(78);  // of another instance than the target
  EXPECT_TRUE(refused(wr));
  far[0].tseg = remote;
  EXPECT_FALSE(refused(wr));
  for (int i = 0; i < 4; ++i) pieces[i].len = 1u << 30;
  EXPECT_FALSE(refused(write(1)));
  EXPECT_TRUE(refused(write(2)));
  EXPECT_TRUE(refused(write(4)));  // 2^32: must not wrap
  urma_jfs_wr_t* bad = nullptr;
  EXPECT_EQ(urma_post_jfs_wr(nullptr, &wr, &bad), URMA_EINVAL);
  EXPECT_EQ(urma_post_jfs_wr(jfs, nullptr, &bad), URMA_EINVAL);
  EXPECT_EQ(urma_post_jfs_wr(jfs, &wr, nullptr), URMA_EINVAL);
}

TEST_F(Post, datagrams_are_short_sends) {
  jfs = make_jfs(jfc, URMA_TM_UM);
  target = make_target(URMA_TM_UM);
  pieces[0].len = FakeBackend::kMtu;
  urma_jfs_wr_t wr = send();
  wr.flag.bs.fence = 1;
  wr.flag.bs.place_order = URMA_STRONG_ORDER;
  const Wqe& wqe = posted(wr);
  EXPECT_EQ(wqe.flags, kWrSignaled);  // order does not apply
  EXPECT_EQ(wqe.place_order, 0);
  ++pieces[0].len;
  EXPECT_EQ(post(wr), URMA_EINVAL);
  pieces[0].len = 10;
  urma_jfs_wr_t wrong = write();
  EXPECT_EQ(post(wrong), URMA_EINVAL);
}

TEST_F(Post, connected_jetty_sends_to_its_target) {
  urma_jetty_t* jetty = make_jetty(jfc, make_jfr(jfc, URMA_TM_RC), URMA_TM_RC);
  urma_target_jetty_t* bound = make_target(URMA_TM_RC);
  urma_jfs_wr_t wr = write();
  wr.tjetty = nullptr;
  urma_jfs_wr_t* bad = nullptr;
  EXPECT_EQ(urma_post_jetty_send_wr(jetty, &wr, &bad), URMA_EINVAL);
  ASSERT_EQ(urma_bind_jetty(jetty, bound), URMA_SUCCESS);
  EXPECT_EQ(urma_post_jetty_send_wr(jetty, &wr, &bad), URMA_SUCCESS);
  EXPECT_EQ(fake->elements(jetty->jetty_id.id)[0]->target, bound->handle);
  ASSERT_EQ(urma_unbind_jetty(jetty), URMA_SUCCESS);
  EXPECT_EQ(urma_post_jetty_send_wr(jetty, &wr, &bad), URMA_EINVAL);
}

TEST_F(Post, chain_stops_at_the_first_bad_one) {
  urma_jfs_wr_t chain[4] = {write(), write(), write(), write()};
  for (int i = 0; i < 3; ++i) chain[i].next = &chain[i + 1];
  chain[2].tjetty = nullptr;
  urma_jfs_wr_t* bad = nullptr;
  EXPECT_EQ(urma_post_jfs_wr(jfs, chain, &bad), URMA_EINVAL);
  EXPECT_EQ(bad, &chain[2]);
  EXPECT_EQ(fake->elements(id()).size(), 2u);
  EXPECT_EQ(fake->doorbells.size(), 1u);
}

TEST_F(Post, depth_counts_requests) {
  urma_jfs_wr_t wr = write();
  for (int i = 0; i < 8; ++i) EXPECT_EQ(post(wr), URMA_SUCCESS);
  EXPECT_EQ(post(wr), URMA_ENOMEM);
  EXPECT_EQ(fake->doorbells.size(), 8u);
  EXPECT_TRUE(fake->finish(id()));
  EXPECT_EQ(post(wr), URMA_SUCCESS);
  EXPECT_EQ(post(wr), URMA_ENOMEM);
}

// The driver published the completion and lost the processor before it counted the request.
TEST_F(Post, waits_for_a_request_that_is_being_retired) {
  urma_jfs_wr_t wr = write();
  for (int i = 0; i < 8; ++i) EXPECT_EQ(post(wr), URMA_SUCCESS);
  fake->queues.at(id()).config.sq.indices->retiring.store(1);
  int yields = 0;
  on_yield = [&] {
    if (++yields == 3) fake->finish(id());
  };
  EXPECT_EQ(post(wr), URMA_SUCCESS);
  on_yield = nullptr;
  EXPECT_EQ(yields, 3);
  EXPECT_EQ(post(wr), URMA_ENOMEM);
}

TEST_F(Post, largest_requests_fit_at_full_depth_and_never_wrap) {
  urma_jfs_cfg_t cfg = send_cfg(jfc, URMA_TM_RM, 5);
  cfg.max_sge = 7;
  cfg.max_inline_data = 300;
  jfs = urma_create_jfs(ctx, &cfg);
  for (auto& piece : pieces) piece = {va(0), 10, local, nullptr};
  far[1] = far[0];
  std::iota(memory, memory + 300, 1);
  const SendQueueConfig& sq = fake->queues.at(id()).config.sq;
  for (uint32_t round = 0; round < 400; ++round) {
    urma_jfs_wr_t wr = write(round % 8 == 0 ? 0 : round % 7);
    if (round % 5 == 0) {
      wr.opcode = URMA_OPC_WRITE_NOTIFY;
      wr.rw.dst.num_sge = 2;
    }
    if (round % 3 == 0) {
      pieces[0].len = 300;
      wr.rw.src.num_sge = 1;
      wr.flag.bs.inline_flag = 1;
    }
    wr.user_ctx = round;
    const Wqe& wqe = posted(wr);
    pieces[0].len = 10;
    auto slot = static_cast<size_t>(&wqe - sq.slots);
    ASSERT_LE(slot + wqe.slots, sq.slot_count);
    if ((wqe.flags & kWrInline) != 0) {
      ASSERT_EQ(memcmp(inline_bytes(wqe), memory, 300), 0);
    }
    if (fake->elements(id()).size() == 5) {
      urma_jfs_wr_t more = write();
      ASSERT_EQ(post(more), URMA_ENOMEM);
      for (uint32_t i = 0; i <= round % 5; ++i) ASSERT_TRUE(fake->finish(id()));
      urma_cr_t cr[8];
      ASSERT_EQ(urma_poll_jfc(jfc, 8, cr), static_cast<int>(round % 5 + 1));
    }
  }
}

TEST_F(Post, convenience_calls) {
  urma_jfs_wr_flag_t flag{};
  flag.bs.complete_enable = 1;
  EXPECT_EQ(urma_write(jfs, target, remote, local, 0x10040, va(0), 64, flag, 1), URMA_SUCCESS);
  EXPECT_EQ(urma_read(jfs, target, local, remote, va(0), 0x10080, 32, flag, 2), URMA_SUCCESS);
  EXPECT_EQ(urma_send(jfs, target, local, va(0), 16, flag, 3), URMA_SUCCESS);
  auto elements = fake->elements(id());
  ASSERT_EQ(elements.size(), 3u);
  EXPECT_EQ(elements[0]->remote_address, 0x10040u);
  EXPECT_EQ(elements[1]->op, WrOp::kRead);
  EXPECT_EQ(elements[1]->remote_address, 0x10080u);
  EXPECT_EQ(elements[1]->sge.address, va(0));
  EXPECT_EQ(elements[2]->user_ctx, 3u);
  EXPECT_EQ(urma_write(jfs, target, nullptr, local, 0, va(0), 64, flag, 1), URMA_EINVAL);
  EXPECT_EQ(urma_write(jfs, target, remote, nullptr, 0x10000, va(0), 64, flag, 1), URMA_EINVAL);
  flag.bs.inline_flag = 1;
  EXPECT_EQ(urma_write(jfs, target, remote, nullptr, 0x10000, va(0), 64, flag, 1), URMA_SUCCESS);
}

TEST_F(Post, receives) {
  urma_jfr_t* jfr = make_jfr(jfc, URMA_TM_RM, 3, 5);
  for (auto& piece : pieces) piece = {va(64), 100, local, nullptr};
  pieces[1].len = 0;
  urma_jfr_wr_t chain[4]{};
  for (uint32_t i = 0; i < 4; ++i) chain[i] = {{pieces, 5}, i + 7, i < 3 ? &chain[i + 1] : nullptr};
  urma_jfr_wr_t* bad = nullptr;
  EXPECT_EQ(urma_post_jfr_wr(jfr, chain, &bad), URMA_ENOMEM);
  EXPECT_EQ(bad, &chain[3]);
  for (uint32_t i = 0; i < 3; ++i) {
    const Rqe* rqe = fake->take_receive(jfr->jfr_id.id);
    ASSERT_NE(rqe, nullptr);
    EXPECT_EQ(rqe->user_ctx, i + 7);
    EXPECT_EQ(rqe->sge_count, 4);
    EXPECT_EQ(rqe->length, 400u);
    EXPECT_EQ(rqe->skip, 0);
    EXPECT_EQ(sge_of(*rqe, 3).segment, local->handle);
  }
  EXPECT_EQ(fake->take_receive(jfr->jfr_id.id), nullptr);
  urma_jfr_wr_t wr{{pieces, 6}, 0, nullptr};
  EXPECT_EQ(urma_post_jfr_wr(jfr, &wr, &bad), URMA_EINVAL);
  wr.src.num_sge = 1;
  pieces[0].tseg = remote;
  EXPECT_EQ(urma_post_jfr_wr(jfr, &wr, &bad), URMA_EINVAL);
  EXPECT_EQ(urma_recv(jfr, local, va(0), 10, 1), URMA_SUCCESS);
  EXPECT_EQ(urma_recv(jfr, local, 0, 10, 1), URMA_FAIL);
  EXPECT_EQ(urma_recv(jfr, nullptr, va(0), 10, 1), URMA_EINVAL);

  urma_jetty_t* jetty = make_jetty(jfc, jfr);
  pieces[0].tseg = local;
  EXPECT_EQ(urma_post_jetty_recv_wr(jetty, &wr, &bad), URMA_SUCCESS);
  EXPECT_NE(fake->take_receive(jfr->jfr_id.id), nullptr);
  EXPECT_NE(fake->take_receive(jfr->jfr_id.id), nullptr);
}

TEST_F(Post, many_threads_post_to_one_queue) {
  jfs = make_jfs(jfc, URMA_TM_RM, 4096);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < 1000; ++i) {
        urma_jfs_wr_t wr = write();
        wr.user_ctx = static_cast<uint64_t>(t) << 32 | i;
        urma_jfs_wr_t* bad = nullptr;
        ASSERT_EQ(urma_post_jfs_wr(jfs, &wr, &bad), URMA_SUCCESS);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  uint64_t next[4] = {};
  auto elements = fake->elements(id());
  ASSERT_EQ(elements.size(), 4000u);
  for (const Wqe* wqe : elements) EXPECT_EQ(wqe->user_ctx & 0xffffffff, next[wqe->user_ctx >> 32]++);
}

}  // namespace
}  // namespace ub::test
