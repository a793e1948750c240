// SPDX-License-Identifier: Apache-2.0
// Faults on demand: what liburma does of them by itself, and what it asks of the NIC.
#include <softub_api.h>

#include "tests/unit/urma_api/fixture.h"

namespace ub::test {
namespace {

class Faults : public UrmaTest {
 protected:
  void SetUp() override {
    UrmaTest::SetUp();
    jfc = make_jfc(64);
    jfr = make_jfr(jfc);
    jetty = make_jetty(jfc, jfr);
    target = make_target();
    local = make_seg(memory, sizeof memory);
    remote = make_remote_seg();
    piece = {reinterpret_cast<uint64_t>(memory), 8, local, nullptr};
    far = {0x10000, 8, remote, nullptr};
  }
  urma_jfs_wr_t request(urma_opcode_t op) {
    urma_jfs_wr_t wr{};
    wr.opcode = op;
    wr.tjetty = target;
    wr.flag.bs.complete_enable = 1;
    (op == URMA_OPC_READ ? wr.rw.dst : wr.rw.src) = {&piece, 1};
    (op == URMA_OPC_READ ? wr.rw.src : wr.rw.dst) = {&far, 1};
    return wr;
  }
  // Posts a request that the fake ends, and polls. -1: it was refused.
  int run(urma_opcode_t op = URMA_OPC_WRITE, CrStatus status = CrStatus::kSuccess) {
    urma_jfs_wr_t wr = request(op);
    urma_jfs_wr_t* bad = nullptr;
    if (urma_post_jetty_send_wr(jetty, &wr, &bad) != URMA_SUCCESS) return -1;
    EXPECT_TRUE(fake->finish(jetty->jetty_id.id, status));
    urma_cr_t cr;
    EXPECT_EQ(urma_poll_jfc(jfc, 1, &cr), 1);
    return cr.status;
  }
  urma_status_t receive() {
    urma_jfr_wr_t wr{};
    wr.src = {&piece, 1};
    urma_jfr_wr_t* bad = nullptr;
    const urma_status_t status = urma_post_jfr_wr(jfr, &wr, &bad);
    EXPECT_EQ(bad, status == URMA_SUCCESS ? nullptr : &wr);
    return status;
  }
  static softub_injected_t injected() {
    softub_injected_t counts{};
    EXPECT_EQ(softub_get_injected(&counts), URMA_SUCCESS);
    return counts;
  }
  QueueState state() { return fake->queues.at(jetty->jetty_id.id).state; }

  alignas(64) char memory[4096]{};
  urma_jfc_t* jfc = nullptr;
  urma_jfr_t* jfr = nullptr;
  urma_jetty_t* jetty = nullptr;
  urma_target_jetty_t* target = nullptr;
  urma_target_seg_t *local = nullptr, *remote = nullptr;
  urma_sge_t piece{}, far{};
};

TEST_F(Faults, a_completion_that_succeeded_says_another_status) {
  ASSERT_EQ(softub_inject("completion every=2 op=READ status=REM_OPERATION_ERR"), URMA_SUCCESS);
  EXPECT_EQ(run(URMA_OPC_READ), URMA_CR_SUCCESS);
  EXPECT_EQ(run(URMA_OPC_WRITE), URMA_CR_SUCCESS);
  EXPECT_EQ(run(URMA_OPC_READ, CrStatus::kAckTimeout), URMA_CR_ACK_TIMEOUT_ERR) << "it failed by itself";
  EXPECT_EQ(run(URMA_OPC_READ), URMA_CR_REM_OPERATION_ERR);
  EXPECT_EQ(injected().completions, 1u);
  EXPECT_EQ(state(), QueueState::kReady);
  ASSERT_EQ(softub_inject(nullptr), URMA_SUCCESS);
  EXPECT_EQ(injected().completions, 0u);
  EXPECT_EQ(run(URMA_OPC_READ), URMA_CR_SUCCESS);
}

TEST_F(Faults, many_completions_of_one_poll_are_judged_one_by_one) {
  ASSERT_EQ(softub_inject("completion every=3 status=LOC_LEN_ERR"), URMA_SUCCESS);
  for (uint64_t i = 0; i < 40; ++i) {
    Cqe cqe = fake->send_cqe(jetty->jetty_id.id, CrStatus::kSuccess);
    cqe.user_ctx = i;
    ASSERT_TRUE(fake->produce(static_cast<uint32_t>(jfc->handle), cqe));
  }
  urma_cr_t cr[64];
  const int first = urma_poll_jfc(jfc, 64, cr);
  ASSERT_GT(first, 0);
  ASSERT_EQ(first + urma_poll_jfc(jfc, 64, cr + first), 40);
  for (uint64_t i = 0; i < 40; ++i) {
    EXPECT_EQ(cr[i].user_ctx, i);
    EXPECT_EQ(cr[i].status, i % 3 == 2 ? URMA_CR_LOC_LEN_ERR : URMA_CR_SUCCESS);
  }
}

TEST_F(Faults, a_flush_leaves_the_queue_in_error) {
  ASSERT_EQ(softub_inject("completion status=WR_FLUSH_ERR side=send"), URMA_SUCCESS);
  EXPECT_EQ(run(), URMA_CR_WR_FLUSH_ERR);
  EXPECT_EQ(state(), QueueState::kError);
}

TEST_F(Faults, a_receive_that_is_flushed_leaves_its_jfr_in_error) {
  ASSERT_EQ(softub_inject("completion status=WR_FLUSH_ERR side=receive"), URMA_SUCCESS);
  Cqe cqe = fake->send_cqe(jetty->jetty_id.id, CrStatus::kSuccess);
  cqe.flags |= kCqeReceive;
  ASSERT_TRUE(fake->produce(static_cast<uint32_t>(jfc->handle), cqe));
  urma_cr_t cr;
  ASSERT_EQ(urma_poll_jfc(jfc, 1, &cr), 1);
  EXPECT_EQ(cr.status, URMA_CR_WR_FLUSH_ERR);
  EXPECT_EQ(fake->receives.at(jfr->jfr_id.id).state, QueueState::kError);
  EXPECT_EQ(state(), QueueState::kReady);
}

TEST_F(Faults, a_list_is_posted_up_to_the_request_that_is_refused) {
  ASSERT_EQ(softub_inject("post nth=2"), URMA_SUCCESS);
  urma_jfs_wr_t list[3] = {request(URMA_OPC_WRITE), request(URMA_OPC_WRITE), request(URMA_OPC_WRITE)};
  list[0].next = &list[1];
  list[1].next = &list[2];
  urma_jfs_wr_t* bad = nullptr;
  EXPECT_EQ(urma_post_jetty_send_wr(jetty, list, &bad), URMA_ENOMEM);
  EXPECT_EQ(bad, &list[1]);
  EXPECT_EQ(fake->elements(jetty->jetty_id.id).size(), 1u);
  EXPECT_EQ(urma_post_jetty_send_wr(jetty, bad, &bad), URMA_SUCCESS);
  EXPECT_EQ(fake->elements(jetty->jetty_id.id).size(), 3u);
  EXPECT_EQ(injected().posts, 1u);
}

TEST_F(Faults, receives_are_refused_where_they_are_meant) {
  ASSERT_EQ(softub_inject("post side=receive error=EINVAL count=1"), URMA_SUCCESS);
  EXPECT_EQ(run(), URMA_CR_SUCCESS);
  EXPECT_EQ(receive(), URMA_EINVAL);
  EXPECT_EQ(receive(), URMA_SUCCESS);
}

TEST_F(Faults, a_bad_request_is_not_counted) {
  ASSERT_EQ(softub_inject("post nth=1"), URMA_SUCCESS);
  urma_jfs_wr_t wr = request(URMA_OPC_WRITE);
  wr.tjetty = nullptr;
  urma_jfs_wr_t* bad = nullptr;
  EXPECT_EQ(urma_post_jetty_send_wr(jetty, &wr, &bad), URMA_EINVAL);
  EXPECT_EQ(injected().posts, 0u);
  EXPECT_EQ(run(), -1);
  EXPECT_EQ(injected().posts, 1u);
}

TEST_F(Faults, the_nic_is_asked_for_its_part) {
  ASSERT_EQ(softub_inject("rnr count=3; stop after=1s; completion status=LOC_LEN_ERR"), URMA_SUCCESS);
  ASSERT_TRUE(fake->nic_plan.rnr && fake->nic_plan.stop);
  EXPECT_FALSE(fake->nic_plan.port_down);
  EXPECT_EQ(fake->nic_plan.rnr->choice.at_most, 3u);
  EXPECT_EQ(fake->nic_plan.stop->after, seconds(1));
  fake->nic_counts = {.rnr = 4, .ports_down = 5, .stops = 6};
  const softub_injected_t counts = injected();
  EXPECT_EQ(counts.rnr, 4u);
  EXPECT_EQ(counts.ports_down, 5u);
  EXPECT_EQ(counts.stops, 6u);
}

TEST_F(Faults, what_is_refused_changes_nothing) {
  ASSERT_EQ(softub_inject("completion status=LOC_LEN_ERR"), URMA_SUCCESS);
  EXPECT_EQ(softub_inject("completion"), URMA_EINVAL);
  fake->inject_status = Status::kInvalid;
  EXPECT_EQ(softub_inject("stop"), URMA_ENOPERM);
  fake->inject_status = Status::kNoMemory;
  EXPECT_EQ(softub_inject("rnr"), URMA_ENOMEM);
  fake->inject_status = Status::kGone;
  EXPECT_EQ(softub_inject(""), URMA_FAIL);
  EXPECT_EQ(softub_get_injected(nullptr), URMA_EINVAL);
  EXPECT_EQ(run(), URMA_CR_LOC_LEN_ERR);
}

TEST(FaultsAtStart, come_from_the_configuration_and_end_with_the_library) {
  EXPECT_EQ(softub_inject(""), URMA_FAIL);
  softub_injected_t counts;
  EXPECT_EQ(softub_get_injected(&counts), URMA_FAIL);
  settings.faults = "rnr nth=2";
  ASSERT_EQ(urma_init(nullptr), URMA_SUCCESS);
  ASSERT_TRUE(fake->nic_plan.rnr);
  EXPECT_EQ(fake->nic_plan.rnr->choice.by, fault::By::kNth);
  EXPECT_EQ(urma_uninit(), URMA_SUCCESS);
  settings.faults.clear();
  ASSERT_EQ(urma_init(nullptr), URMA_SUCCESS);
  EXPECT_FALSE(fake->nic_plan.rnr);
  EXPECT_EQ(urma_uninit(), URMA_SUCCESS);
}

// ---- an impaired network ----

TEST_F(Faults, impairments__go_to_the_nic_and_what_is_not_named_stays) {
  ASSERT_EQ(softub_impair("loss=1%; at 2s down", "delay=5us"), URMA_SUCCESS);
  EXPECT_DOUBLE_EQ(fake->sends_with.first.loss, 0.01);
  ASSERT_EQ(fake->sends_with.changes.size(), 1u);
  EXPECT_TRUE(fake->sends_with.changes[0].spec.down);
  EXPECT_EQ(fake->receives_with.first.delay, microseconds(5));
  ASSERT_EQ(softub_impair(nullptr, ""), URMA_SUCCESS);
  EXPECT_DOUBLE_EQ(fake->sends_with.first.loss, 0.01);
  EXPECT_EQ(fake->receives_with, impair::Script{});
}

TEST_F(Faults, impairments__that_are_wrong_or_refused_change_nothing) {
  ASSERT_EQ(softub_impair("loss=1%", nullptr), URMA_SUCCESS);
  EXPECT_EQ(softub_impair("delay=1us", "loss=2"), URMA_EINVAL);
  EXPECT_EQ(softub_impair("loss=", nullptr), URMA_EINVAL);
  fake->impair_status = Status::kInvalid;
  EXPECT_EQ(softub_impair("clear", nullptr), URMA_ENOPERM);
  fake->impair_status = Status::kGone;
  EXPECT_EQ(softub_impair("clear", nullptr), URMA_FAIL);
  EXPECT_DOUBLE_EQ(fake->sends_with.first.loss, 0.01);
}

}  // namespace
}  // namespace ub::test
