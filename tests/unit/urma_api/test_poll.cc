// SPDX-License-Identifier: Apache-2.0
// Completions become records; a full queue is reported as read; flush; deletion takes its records along.
#include <thread>

#include "tests/unit/urma_api/fixture.h"

namespace ub::test {
namespace {

// As a number: 0xff is none of the enumeration.
uint32_t opcode_of(const urma_cr_t& cr) {
  uint32_t opcode;
  memcpy(&opcode, &cr.opcode, sizeof opcode);
  return opcode;
}

class Poll : public UrmaTest {
 protected:
  void SetUp() override {
    UrmaTest::SetUp();
    jfc = make_jfc(8);
  }
  static Cqe numbered(uint64_t n) {
    Cqe cqe{};
    cqe.user_ctx = n;
    return cqe;
  }
  // Handle of the newest JFC.
  uint32_t handle() const { return fake->jfcs.rbegin()->first; }
  urma_jfc_t* jfc = nullptr;
};

TEST_F(Poll, fills_every_byte) {
  Cqe cqe{};
  cqe.user_ctx = 0x1111111122222222;
  cqe.immediate = 0x3333333344444444;
  memcpy(cqe.remote_eid, FakeBackend::eid(50).bytes.data(), 16);
  cqe.remote_uasid = 77;
  cqe.remote_id = 2000;
  cqe.local_id = 1030;
  cqe.length = 55;
  cqe.tpn = 6;
  cqe.opcode = CrOpcode::kWriteImm;
  cqe.flags = kCqeReceive | kCqeJetty | kCqeSolicited;
  cqe.user_data = 0x5555;
  ASSERT_TRUE(fake->produce(handle(), cqe));
  urma_cr_t a, b;
  memset(&a, 0xaa, sizeof a);
  ASSERT_EQ(urma_poll_jfc(jfc, 1, &a), 1);
  EXPECT_EQ(a.status, URMA_CR_SUCCESS);
  EXPECT_EQ(a.user_ctx, cqe.user_ctx);
  EXPECT_EQ(a.opcode, URMA_CR_OPC_WRITE_WITH_IMM);
  EXPECT_EQ(a.flag.value, 3);
  EXPECT_EQ(a.completion_len, 55u);
  EXPECT_EQ(a.local_id, 1030u);
  EXPECT_EQ(memcmp(a.remote_id.eid.raw, cqe.remote_eid, 16), 0);
  EXPECT_EQ(a.remote_id.uasid, 77u);
  EXPECT_EQ(a.remote_id.id, 2000u);
  EXPECT_EQ(a.imm_data, cqe.immediate);
  EXPECT_EQ(a.tpn, 6u);
  EXPECT_EQ(a.user_data, 0x5555u);
  // The same record over other garbage is the same 80 bytes.
  ASSERT_TRUE(fake->produce(handle(), cqe));
  memset(&b, 0x55, sizeof b);
  ASSERT_EQ(urma_poll_jfc(jfc, 1, &b), 1);
  EXPECT_EQ(memcmp(&a, &b, 80), 0);
  cqe.opcode = CrOpcode::kNone;
  cqe.status = CrStatus::kAckTimeout;
  ASSERT_TRUE(fake->produce(handle(), cqe));
  ASSERT_EQ(urma_poll_jfc(jfc, 1, &a), 1);
  EXPECT_EQ(opcode_of(a), 0xffu);
  EXPECT_EQ(a.status, URMA_CR_ACK_TIMEOUT_ERR);
}

// Its number is in the place of the sender's uasid, and is for whoever takes over the ring of a daemon.
TEST_F(Poll, a_send_completion_names_no_sender) {
  Cqe cqe{};
  cqe.flags = kCqeJetty;
  cqe.stamp = 77;
  ASSERT_TRUE(fake->produce(handle(), cqe));
  urma_cr_t cr;
  ASSERT_EQ(urma_poll_jfc(jfc, 1, &cr), 1);
  EXPECT_EQ(cr.remote_id.uasid, 0u);
}

TEST_F(Poll, counts_and_arguments) {
  urma_cr_t cr[100];
  EXPECT_EQ(urma_poll_jfc(jfc, 0, nullptr), 0);
  EXPECT_EQ(urma_poll_jfc(jfc, -1, cr), -1);
  EXPECT_EQ(urma_poll_jfc(jfc, 1, nullptr), -1);
  EXPECT_EQ(urma_poll_jfc(nullptr, 1, cr), -1);
  EXPECT_EQ(urma_poll_jfc(jfc, 100, cr), 0);
  uint64_t next = 0, expected = 0;
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 7; ++i) ASSERT_TRUE(fake->produce(handle(), numbered(next++)));
    ASSERT_EQ(urma_poll_jfc(jfc, 3, cr), 3);
    ASSERT_EQ(urma_poll_jfc(jfc, 100, cr + 3), 4);
    for (int i = 0; i < 7; ++i) EXPECT_EQ(cr[i].user_ctx, expected++);
  }
}

TEST_F(Poll, empty_queue_drives_and_looks_again) {
  fake->on_drive = [this] { fake->produce(handle(), numbered(9)); };
  urma_cr_t cr;
  EXPECT_EQ(urma_poll_jfc(jfc, 1, &cr), 1);
  EXPECT_EQ(cr.user_ctx, 9u);
  fake->on_drive = nullptr;
  // A poller that always finds something drives too.
  uint32_t before = fake->drives;
  for (int i = 0; i < 100; ++i) {
    fake->produce(handle(), numbered(i));
    ASSERT_EQ(urma_poll_jfc(jfc, 1, &cr), 1);
  }
  EXPECT_GT(fake->drives, before);
}

TEST_F(Poll, reading_a_full_queue_is_told) {
  urma_cr_t cr[8];
  for (int i = 0; i < 7; ++i) fake->produce(handle(), numbered(i));
  EXPECT_EQ(urma_poll_jfc(jfc, 1, cr), 1);
  EXPECT_EQ(fake->reads_told, 0u);
  for (int i = 0; i < 2; ++i) fake->produce(handle(), numbered(i));
  EXPECT_FALSE(fake->produce(handle(), numbered(0)));
  EXPECT_EQ(urma_poll_jfc(jfc, 1, cr), 1);
  EXPECT_EQ(fake->reads_told, 1u);
  // A Core that parked before the queue looked full to us hears of it when the queue runs empty.
  EXPECT_EQ(urma_poll_jfc(jfc, 8, cr), 7);
  EXPECT_EQ(urma_poll_jfc(jfc, 8, cr), 0);
  EXPECT_EQ(fake->reads_told, 2u);
  EXPECT_EQ(urma_poll_jfc(jfc, 8, cr), 0);
  EXPECT_EQ(fake->reads_told, 2u);
}

TEST_F(Poll, deletion_takes_its_records_along) {
  urma_jfs_t* a = make_jfs(jfc);
  urma_jfs_t* b = make_jfs(jfc);
  for (uint64_t i = 0; i < 3; ++i) {
    for (urma_jfs_t* jfs : {a, b}) {
      Cqe cqe = fake->send_cqe(jfs->jfs_id.id, CrStatus::kSuccess);
      cqe.user_ctx = i;
      ASSERT_TRUE(fake->produce(handle(), cqe));
    }
  }
  ASSERT_EQ(urma_delete_jfs(a), URMA_SUCCESS);
  urma_cr_t cr[8];
  ASSERT_EQ(urma_poll_jfc(jfc, 8, cr), 3);
  for (uint64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(cr[i].user_ctx, i);
    EXPECT_EQ(cr[i].user_data, reinterpret_cast<uintptr_t>(b));
  }
}

TEST_F(Poll, flush_follows_the_marker) {
  char memory[64];
  urma_target_seg_t* seg = make_seg(memory, sizeof memory);
  urma_jetty_t* jetty = make_jetty(jfc, make_jfr(jfc));
  urma_sge_t sge{reinterpret_cast<uint64_t>(memory), 8, seg, nullptr};
  urma_jfs_wr_t wr{};
  wr.opcode = URMA_OPC_SEND;
  wr.tjetty = make_target();
  wr.send.src = {&sge, 1};
  urma_jfs_wr_t* bad = nullptr;
  for (wr.user_ctx = 0; wr.user_ctx < 5; ++wr.user_ctx) {
    ASSERT_EQ(urma_post_jetty_send_wr(jetty, &wr, &bad), URMA_SUCCESS);
  }
  urma_cr_t cr[8];
  EXPECT_EQ(urma_flush_jetty(jetty, 8, cr), 0);
  urma_jetty_attr_t attr{JETTY_STATE, 0, URMA_JETTY_STATE_ERROR};
  ASSERT_EQ(urma_modify_jetty(jetty, &attr), URMA_SUCCESS);
  ASSERT_EQ(urma_modify_jetty(jetty, &attr), URMA_SUCCESS);  // one marker only
  EXPECT_EQ(urma_flush_jetty(jetty, 8, cr), 0);
  ASSERT_EQ(urma_poll_jfc(jfc, 8, cr), 1);
  EXPECT_EQ(cr[0].status, URMA_CR_WR_FLUSH_ERR_DONE);
  EXPECT_EQ(cr[0].flag.value, 2);
  EXPECT_EQ(cr[0].local_id, jetty->jetty_id.id);
  EXPECT_EQ(urma_flush_jetty(jetty, 0, cr), -URMA_EINVAL);
  EXPECT_EQ(urma_flush_jetty(jetty, 9, cr), -URMA_EINVAL);
  ASSERT_EQ(urma_flush_jetty(jetty, 3, cr), 3);
  for (uint64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(cr[i].status, URMA_CR_WR_UNHANDLED);
    EXPECT_EQ(cr[i].user_ctx, i);
    EXPECT_EQ(opcode_of(cr[i]), 0xffu);
    EXPECT_EQ(cr[i].flag.bs.jetty, 1);
  }
  // READY drops the rest and starts with an empty queue of full depth.
  attr.state = URMA_JETTY_STATE_READY;
  ASSERT_EQ(urma_modify_jetty(jetty, &attr), URMA_SUCCESS);
  for (int i = 0; i < 8; ++i) ASSERT_EQ(urma_post_jetty_send_wr(jetty, &wr, &bad), URMA_SUCCESS);
  EXPECT_EQ(urma_post_jetty_send_wr(jetty, &wr, &bad), URMA_ENOMEM);
  EXPECT_EQ(urma_flush_jetty(jetty, 8, cr), 0);
}

TEST_F(Poll, several_pollers_get_each_record_once) {
  constexpr uint64_t kRecords = 20000;
  jfc = make_jfc(32);
  std::atomic<uint64_t> sum{0}, seen{0};
  auto poller = [&] {
    urma_cr_t cr[4];
    while (seen < kRecords) {
      int n = urma_poll_jfc(jfc, 4, cr);
      ASSERT_GE(n, 0);
      for (int i = 0; i < n; ++i) sum += cr[i].user_ctx;
      seen += static_cast<uint64_t>(n);
      if (n == 0) std::this_thread::yield();
    }
  };
  std::thread a(poller), b(poller);
  for (uint64_t i = 1; i <= kRecords; ++i) {
    while (!fake->produce(handle(), numbered(i))) std::this_thread::yield();
  }
  a.join();
  b.join();
  EXPECT_EQ(seen, kRecords);
  EXPECT_EQ(sum, kRecords * (kRecords + 1) / 2);
}

}  // namespace
}  // namespace ub::test
