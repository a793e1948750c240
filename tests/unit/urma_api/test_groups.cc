// SPDX-License-Identifier: Apache-2.0
// Jetty groups: what may be created, joined, imported and deleted. URMA API 0.9, 5.8.
#include "tests/unit/urma_api/fixture.h"

namespace ub::test {
namespace {

class GroupTest : public UrmaTest {
 protected:
  static urma_jetty_grp_cfg_t group_cfg(const char* name) {
    urma_jetty_grp_cfg_t cfg{};
    snprintf(cfg.name, sizeof cfg.name, "%s", name);
    return cfg;
  }
  urma_jetty_grp_t* make_group(const char* name) {
    urma_jetty_grp_cfg_t cfg = group_cfg(name);
    return urma_create_jetty_grp(ctx, &cfg);
  }
  urma_jetty_t* make_member(urma_jetty_grp_t* group, urma_transport_mode_t mode = URMA_TM_RM,
                            uint32_t token_policy = URMA_TOKEN_NONE, uint32_t token = 0) {
    urma_jfc_t* jfc = make_jfc();
    urma_jfr_cfg_t jfr_cfg{};
    jfr_cfg.depth = 8;
    jfr_cfg.trans_mode = mode;
    jfr_cfg.jfc = jfc;
    jfr_cfg.flag.bs.token_policy = token_policy;
    jfr_cfg.token_value.token = token;
    urma_jetty_cfg_t cfg{};
    cfg.flag.bs.share_jfr = 1;
    cfg.jfs_cfg = send_cfg(jfc, mode);
    cfg.shared.jfr = urma_create_jfr(ctx, &jfr_cfg);
    cfg.jetty_grp = group;
    return urma_create_jetty(ctx, &cfg);
  }
};

TEST_F(GroupTest, limits_are_told) {
  urma_device_attr_t attr;
  ASSERT_EQ(urma_query_device(device, &attr), URMA_SUCCESS);
  EXPECT_GE(attr.dev_cap.max_jetty_grp, 1u);
  EXPECT_EQ(attr.dev_cap.max_jetty_in_jetty_grp, URMA_MAX_JETTY_IN_JETTY_GRP);
}

TEST_F(GroupTest, members_come_and_go) {
  urma_jetty_grp_t* group = make_group("workers");
  ASSERT_NE(group, nullptr);
  EXPECT_EQ(group->urma_ctx, ctx);
  EXPECT_EQ(memcmp(&group->jetty_grp_id.eid, &ctx->eid, sizeof ctx->eid), 0);
  EXPECT_EQ(group->jetty_grp_id.uasid, ctx->uasid);
  EXPECT_NE(group->jetty_grp_id.id, 0u);
  EXPECT_EQ(group->jetty_cnt, 0u);
  urma_jetty_t *a = make_member(group), *b = make_member(group);
  ASSERT_NE(a, nullptr);
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(fake->queues.at(a->jetty_id.id).config.group, group->jetty_grp_id.id);
  EXPECT_EQ(group->jetty_cnt, 2u);
  EXPECT_EQ(group->jetty_list[0], a);
  EXPECT_EQ(urma_delete_jetty_grp(group), URMA_ENOPERM);
  EXPECT_EQ(urma_delete_jetty(a), URMA_SUCCESS);
  EXPECT_EQ(group->jetty_cnt, 1u);
  EXPECT_EQ(group->jetty_list[0], b);
  EXPECT_EQ(urma_delete_jetty(b), URMA_SUCCESS);
  EXPECT_EQ(urma_delete_jetty_grp(group), URMA_SUCCESS);
  EXPECT_EQ(urma_delete_jetty_grp(group), URMA_EINVAL);
  EXPECT_TRUE(fake->groups.empty());
}

// From then on another one may take its place.
TEST_F(GroupTest, a_member_leaves_before_it_is_destroyed) {
  urma_jetty_grp_t* group = make_group("workers");
  urma_jetty_t* jetty = make_member(group);
  ASSERT_NE(jetty, nullptr);
  uint32_t members = 1;
  fake->on_destroy_jetty = [&] { members = group->jetty_cnt; };
  EXPECT_EQ(urma_delete_jetty(jetty), URMA_SUCCESS);
  fake->on_destroy_jetty = nullptr;
  EXPECT_EQ(members, 0u);
}

TEST_F(GroupTest, the_same_name_is_the_same_group) {
  urma_jetty_grp_t* group = make_group("one");
  ASSERT_NE(group, nullptr);
  EXPECT_EQ(make_group("one"), group);
  EXPECT_NE(make_group("two"), group);
  urma_context_t* other = urma_create_context(device, 0);
  urma_jetty_grp_cfg_t cfg = group_cfg("one");
  urma_jetty_grp_t* elsewhere = urma_create_jetty_grp(other, &cfg);
  EXPECT_NE(elsewhere, nullptr);
  EXPECT_NE(elsewhere, group);
  EXPECT_EQ(urma_delete_context(other), URMA_EAGAIN);
}

TEST_F(GroupTest, nonsense_is_refused) {
  urma_jetty_grp_cfg_t cfg = group_cfg("x");
  EXPECT_EQ(urma_create_jetty_grp(nullptr, &cfg), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(urma_create_jetty_grp(ctx, nullptr), nullptr);
  memset(cfg.name, 'x', sizeof cfg.name);
  EXPECT_EQ(urma_create_jetty_grp(ctx, &cfg), nullptr);
  EXPECT_EQ(errno, EINVAL);
  cfg = group_cfg("x");
  cfg.policy = static_cast<urma_jetty_grp_policy_t>(3);
  EXPECT_EQ(urma_create_jetty_grp(ctx, &cfg), nullptr);
  cfg = group_cfg("x");
  cfg.flag.bs.token_policy = URMA_TOKEN_SIGNED;
  EXPECT_EQ(urma_create_jetty_grp(ctx, &cfg), nullptr);
  cfg = group_cfg("x");
  cfg.id = 2;
  EXPECT_EQ(urma_create_jetty_grp(ctx, &cfg), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(urma_delete_jetty_grp(nullptr), URMA_EINVAL);
  fake->next_status = Status::kNoMemory;
  EXPECT_EQ(make_group("full"), nullptr);
  EXPECT_EQ(errno, ENOMEM);
}

TEST_F(GroupTest, members_must_fit) {
  urma_jetty_grp_cfg_t cfg = group_cfg("guarded");
  cfg.flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT;
  cfg.token_value.token = 7;
  urma_jetty_grp_t* group = urma_create_jetty_grp(ctx, &cfg);
  ASSERT_NE(group, nullptr);
  EXPECT_EQ(make_member(group), nullptr) << "no token";
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(make_member(group, URMA_TM_RM, URMA_TOKEN_PLAIN_TEXT, 8), nullptr) << "another token";
  EXPECT_EQ(make_member(group, URMA_TM_RC, URMA_TOKEN_PLAIN_TEXT, 7), nullptr) << "not RM";
  EXPECT_NE(make_member(group, URMA_TM_RM, URMA_TOKEN_PLAIN_TEXT, 7), nullptr);
  urma_context_t* other = urma_create_context(device, 0);
  cfg = group_cfg("of another context");
  urma_jetty_grp_t* foreign = urma_create_jetty_grp(other, &cfg);
  EXPECT_EQ(make_member(foreign), nullptr);
  EXPECT_EQ(errno, EINVAL);
}

TEST_F(GroupTest, are_imported) {
  urma_rjetty_t remote = peer();
  remote.type = URMA_JETTY_GROUP;
  remote.policy = URMA_JETTY_GRP_POLICY_HASH_HINT;
  urma_target_jetty_t* target = urma_import_jetty(ctx, &remote, nullptr);
  ASSERT_NE(target, nullptr);
  EXPECT_EQ(target->type, URMA_JETTY_GROUP);
  EXPECT_EQ(target->policy, URMA_JETTY_GRP_POLICY_HASH_HINT);
  EXPECT_EQ(fake->targets.at(static_cast<uint32_t>(target->handle)).kind, ObjectKind::kGroup);
  EXPECT_EQ(urma_unimport_jetty(target), URMA_SUCCESS);
  remote = peer(URMA_TM_RC);
  remote.type = URMA_JETTY_GROUP;
  EXPECT_EQ(urma_import_jetty(ctx, &remote, nullptr), nullptr);
  EXPECT_EQ(errno, EINVAL);
}

}  // namespace
}  // namespace ub::test
