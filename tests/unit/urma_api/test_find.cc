// SPDX-License-Identifier: Apache-2.0
// Imports without a uasid: whose the id is, is found out before, and requests go there and nowhere else.
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <string>

#include "tests/unit/urma_api/fixture.h"

using namespace ub;
using namespace ub::test;

namespace {

std::atomic<time_t> seconds_ahead;  // of the machine's clock

}  // namespace

// The clock of this program.
extern "C" int clock_gettime(clockid_t clock, timespec* now) noexcept {
  const long status = syscall(SYS_clock_gettime, clock, now);
  if (status == 0) now->tv_sec += seconds_ahead;
  return static_cast<int>(status);
}

namespace {

class Find : public UrmaTest {
 protected:
  static std::array<uint8_t, 16> far_eid() { return FakeBackend::eid(50).bytes; }
  // The instance `uasid` of the peer has these.
  void own(uint32_t uasid, uint32_t id, uint32_t token_id) {
    fake->owners[{far_eid(), id, false}] = uasid;
    fake->owners[{far_eid(), token_id, true}] = uasid;
  }
  urma_target_jetty_t* import_jetty(uint32_t id) {
    urma_rjetty_t rjetty = peer(URMA_TM_RM, id, 0);
    return urma_import_jetty(ctx, &rjetty, nullptr);
  }
  const TargetConfig& config_of(const urma_target_jetty_t* target) {
    return fake->targets.at(static_cast<uint32_t>(target->handle));
  }
  urma_target_jetty_t* import_jetty(urma_notifier_t* notifier, uint32_t id, uint64_t user_ctx) {
    urma_rjetty_t rjetty = peer(URMA_TM_RM, id, 0);
    return urma_import_jetty_async(notifier, &rjetty, nullptr, user_ctx, -1);
  }
  // Eight bytes to memory of `segment`, over the channel to `target`; and eight to memory of `notified`, if given.
  urma_status_t write(urma_jetty_t* jetty, urma_target_jetty_t* target, urma_target_seg_t* segment,
                      urma_target_seg_t* notified = nullptr) {
    uint64_t bytes = 5;
    urma_sge_t near{}, remote[2]{};
    near.addr = reinterpret_cast<uint64_t>(&bytes);
    near.len = remote[0].len = remote[1].len = sizeof bytes;
    remote[0].addr = 0x10000;
    remote[0].tseg = segment;
    remote[1].addr = 0x10008;
    remote[1].tseg = notified;
    urma_jfs_wr_t wr{};
    wr.opcode = notified == nullptr ? URMA_OPC_WRITE : URMA_OPC_WRITE_NOTIFY;
    wr.tjetty = target;
    wr.flag.bs.inline_flag = 1;
    wr.rw.src = {&near, 1};
    wr.rw.dst = {remote, notified == nullptr ? 1U : 2U};
    urma_jfs_wr_t* bad = nullptr;
    return urma_post_jetty_send_wr(jetty, &wr, &bad);
  }
};

TEST_F(Find, import_takes_the_instance_that_has_the_id) {
  own(71, 5000, 6000);
  urma_target_jetty_t* target = import_jetty(5000);
  ASSERT_NE(target, nullptr);
  EXPECT_EQ(config_of(target).instance.uasid, 71u);
  EXPECT_EQ(config_of(target).id, 5000u);
  EXPECT_EQ(target->id.uasid, 0u) << "what the program named stays";
  urma_unimport_jetty(target);
}

TEST_F(Find, jfr_and_group_are_found_too) {
  own(71, 5000, 6000);
  urma_rjfr_t rjfr{};
  memcpy(rjfr.jfr_id.eid.raw, far_eid().data(), 16);
  rjfr.jfr_id.id = 5000;
  rjfr.trans_mode = URMA_TM_UM;
  rjfr.tp_type = URMA_UTP;
  urma_target_jetty_t* jfr = urma_import_jfr(ctx, &rjfr, nullptr);
  ASSERT_NE(jfr, nullptr);
  EXPECT_EQ(config_of(jfr).instance.uasid, 71u);
  urma_unimport_jfr(jfr);
  urma_rjetty_t group = peer(URMA_TM_RM, 5000, 0);
  group.type = URMA_JETTY_GROUP;
  urma_target_jetty_t* target = urma_import_jetty(ctx, &group, nullptr);
  ASSERT_NE(target, nullptr);
  EXPECT_EQ(config_of(target).instance.uasid, 71u);
  urma_unimport_jetty(target);
}

TEST_F(Find, who_names_a_uasid_is_not_asked) {
  urma_target_jetty_t* target = make_target(URMA_TM_RM, 77);
  urma_target_seg_t* segment = make_remote_seg(77);
  ASSERT_TRUE(target != nullptr && segment != nullptr);
  EXPECT_EQ(fake->looks, 0u);
  urma_unimport_seg(segment);
  urma_unimport_jetty(target);
}

TEST_F(Find, nobodys_id_is_refused_with_a_line) {
  errno = 0;
  EXPECT_EQ(import_jetty(5001), nullptr);
  EXPECT_NE(errno, 0);
  EXPECT_TRUE(fake->targets.empty());
  errno = 0;
  EXPECT_EQ(make_remote_seg(0, URMA_TOKEN_NONE, 0, 6001), nullptr);
  EXPECT_NE(errno, 0);
}

TEST_F(Find, a_slow_answer_is_waited_for) {
  own(71, 5000, 6000);
  fake->busy_looks = 20;
  urma_target_jetty_t* target = import_jetty(5000);
  ASSERT_NE(target, nullptr);
  EXPECT_EQ(fake->looks, 21u);
  fake->busy_looks = 3;
  urma_target_seg_t* segment = make_remote_seg(0, URMA_TOKEN_NONE, 0, 6000);
  ASSERT_NE(segment, nullptr);
  EXPECT_EQ(fake->looks, 25u);
  urma_unimport_seg(segment);
  urma_unimport_jetty(target);
}

TEST_F(Find, no_answer_ends_the_import) {
  own(71, 5000, 6000);
  fake->busy_looks = UINT32_MAX;
  fake->on_drive = [] { ++seconds_ahead; };  // between two looks
  EXPECT_EQ(import_jetty(5000), nullptr);
  fake->on_drive = nullptr;
  seconds_ahead = 0;
  EXPECT_EQ(fake->looks, 5u) << "the last one when four seconds are over";
  fake->busy_looks = 0;
}

// Target and segment of one instance go together, however each was named; those of two never do.
TEST_F(Find, memory_of_another_instance_is_refused) {
  own(71, 5000, 6000);
  own(72, 5001, 6001);
  urma_jfc_t* jfc = make_jfc();
  urma_jfr_t* jfr = make_jfr(jfc);
  urma_jetty_t* jetty = make_jetty(jfc, jfr);
  ASSERT_NE(jetty, nullptr);
  urma_target_jetty_t* by_id = import_jetty(5000);
  urma_target_jetty_t* by_uasid = make_target(URMA_TM_RM, 71);
  urma_target_seg_t* named = make_remote_seg(71);
  urma_target_seg_t* found = make_remote_seg(0, URMA_TOKEN_NONE, 0, 6000);
  urma_target_seg_t* others_named = make_remote_seg(72);
  urma_target_seg_t* others_found = make_remote_seg(0, URMA_TOKEN_NONE, 0, 6001);
  ASSERT_TRUE(by_id != nullptr && by_uasid != nullptr && named != nullptr && found != nullptr &&
              others_named != nullptr && others_found != nullptr);
  for (urma_target_jetty_t* target : {by_id, by_uasid}) {
    EXPECT_EQ(write(jetty, target, named), URMA_SUCCESS);
    EXPECT_EQ(write(jetty, target, found), URMA_SUCCESS);
    EXPECT_EQ(write(jetty, target, others_named), URMA_EINVAL);
    EXPECT_EQ(write(jetty, target, others_found), URMA_EINVAL);
    EXPECT_EQ(write(jetty, target, named, found), URMA_SUCCESS);
    EXPECT_EQ(write(jetty, target, named, others_named), URMA_EINVAL);
    EXPECT_EQ(write(jetty, target, named, others_found), URMA_EINVAL);
    EXPECT_EQ(write(jetty, target, others_found, named), URMA_EINVAL);
  }
  EXPECT_EQ(fake->elements(jetty->jetty_id.id).size(), 6u);
  for (urma_target_seg_t* segment : {named, found, others_named, others_found}) urma_unimport_seg(segment);
  for (urma_target_jetty_t* target : {by_id, by_uasid}) urma_unimport_jetty(target);
  urma_delete_jetty(jetty);
  urma_delete_jfr(jfr);
  urma_delete_jfc(jfc);
}

TEST_F(Find, an_asynchronous_import_is_of_the_instance_that_was_found) {
  own(71, 5000, 6000);
  own(72, 5001, 6001);
  urma_jfc_t* jfc = make_jfc();
  urma_jfr_t* jfr = make_jfr(jfc);
  urma_jetty_t* jetty = make_jetty(jfc, jfr);
  urma_notifier_t* notifier = urma_create_notifier(ctx);
  ASSERT_TRUE(jetty != nullptr && notifier != nullptr);
  fake->busy_looks = 3;
  urma_target_jetty_t* target = import_jetty(notifier, 5000, 1);
  urma_notify_t got{};
  ASSERT_EQ(urma_wait_notify(notifier, 1, &got, -1), 1);
  EXPECT_EQ(got.status, URMA_SUCCESS);
  EXPECT_EQ(config_of(target).instance.uasid, 71u);
  urma_target_seg_t* segment = make_remote_seg(0, URMA_TOKEN_NONE, 0, 6000);
  urma_target_seg_t* others = make_remote_seg(0, URMA_TOKEN_NONE, 0, 6001);
  EXPECT_EQ(write(jetty, target, segment), URMA_SUCCESS);
  EXPECT_EQ(write(jetty, target, others), URMA_EINVAL);
  for (urma_target_seg_t* each : {segment, others}) urma_unimport_seg(each);
  urma_unimport_jetty(target);
  urma_delete_notifier(notifier);
  urma_delete_jetty(jetty);
  urma_delete_jfr(jfr);
  urma_delete_jfc(jfc);
}

TEST_F(Find, an_asynchronous_import_that_waits_lets_others_go_on) {
  own(0, 5001, 6001);  // never answers
  own(71, 5000, 6000);
  urma_notifier_t* notifier = urma_create_notifier(ctx);
  ASSERT_NE(notifier, nullptr);
  urma_target_jetty_t* silent = import_jetty(notifier, 5001, 1);
  urma_target_jetty_t* target = import_jetty(notifier, 5000, 2);
  urma_notify_t got{};
  ASSERT_EQ(urma_wait_notify(notifier, 1, &got, -1), 1);
  EXPECT_EQ(got.user_ctx, 2u);
  EXPECT_EQ(got.status, URMA_SUCCESS);
  EXPECT_EQ(urma_unimport_jetty(silent), URMA_SUCCESS);
  EXPECT_EQ(urma_unimport_jetty(target), URMA_SUCCESS);
  EXPECT_EQ(urma_delete_notifier(notifier), URMA_SUCCESS);
}

}  // namespace
