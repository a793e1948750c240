// SPDX-License-Identifier: Apache-2.0
// What the control calls accept, refuse and fill in.
#include <sys/mman.h>
#include <softub_api.h>
#include <urma_ubagg.h>

#include "tests/unit/urma_api/fixture.h"

namespace ub::test {
namespace {

class Arguments : public UrmaTest {
 protected:
  void SetUp() override {
    UrmaTest::SetUp();
    jfc = make_jfc();
  }
  bool jfs_accepts(urma_jfs_cfg_t cfg) {
    errno = 0;
    urma_jfs_t* jfs = urma_create_jfs(ctx, &cfg);
    if (jfs == nullptr) {
      EXPECT_EQ(errno, EINVAL);
      return false;
    }
    EXPECT_EQ(urma_delete_jfs(jfs), URMA_SUCCESS);
    return true;
  }
  urma_jfc_t* jfc = nullptr;
};

TEST_F(Arguments, jfc_depth) {
  EXPECT_EQ(make_jfc(0), nullptr);
  EXPECT_EQ(make_jfc(65537), nullptr);
  urma_jfc_t* largest = make_jfc(65536);
  ASSERT_NE(largest, nullptr);
  EXPECT_NE(largest->jfc_id.id, jfc->jfc_id.id);
  EXPECT_EQ(largest->jfc_id.uasid, ctx->uasid);
  EXPECT_TRUE(largest->urma_jfc_opt.is_actived);
  fake->next_status = Status::kNoMemory;
  EXPECT_EQ(make_jfc(), nullptr);
  EXPECT_EQ(errno, ENOMEM);
}

TEST_F(Arguments, moderation_of_a_jfc) {
  const auto modify = [&](uint32_t mask) {
    urma_jfc_attr_t attr{mask, 4, 10};
    return urma_modify_jfc(jfc, &attr);
  };
  const Moderation& told = fake->jfcs.at(static_cast<uint32_t>(jfc->handle)).moderation;
  EXPECT_EQ(modify(JFC_MODERATE_COUNT | JFC_MODERATE_PERIOD), URMA_SUCCESS);
  EXPECT_EQ(told.count, uint16_t{4});
  EXPECT_EQ(told.period, microseconds(10));
  EXPECT_EQ(modify(JFC_MODERATE_COUNT), URMA_SUCCESS);
  EXPECT_EQ(told.count, uint16_t{4});
  EXPECT_EQ(told.period, std::nullopt);
  EXPECT_EQ(modify(JFC_MODERATE_PERIOD), URMA_SUCCESS);
  EXPECT_EQ(told.count, std::nullopt);
  EXPECT_EQ(told.period, microseconds(10));
  EXPECT_EQ(modify(JFC_MODERATE_COUNT | 8), URMA_EINVAL);
  EXPECT_EQ(urma_modify_jfc(jfc, nullptr), URMA_EINVAL);
  EXPECT_EQ(urma_modify_jfc(nullptr, nullptr), URMA_EINVAL);
  fake->next_status = Status::kGone;
  EXPECT_EQ(modify(JFC_MODERATE_COUNT), URMA_FAIL);
}

TEST_F(Arguments, order_types_of_jfs) {
  struct {
    urma_transport_mode_t mode;
    uint32_t allowed;  // bit per order type
    uint32_t by_default;
  } rows[] = {{URMA_TM_RM, 1 << URMA_DEF_ORDER | 1 << URMA_OI, URMA_OI},
              {URMA_TM_RC, 1 << URMA_DEF_ORDER | 1 << URMA_OT | 1 << URMA_OL | 1 << URMA_NO, URMA_OL},
              {URMA_TM_UM, 1 << URMA_DEF_ORDER | 1 << URMA_NO, URMA_NO}};
  for (const auto& row : rows) {
    for (uint32_t order = 0; order <= 5; ++order) {
      urma_jfs_cfg_t cfg = send_cfg(jfc, row.mode);
      cfg.flag.bs.order_type = order;
      EXPECT_EQ(jfs_accepts(cfg), (row.allowed >> order & 1) != 0) << row.mode << " " << order;
    }
    urma_jfs_cfg_t cfg = send_cfg(jfc, row.mode);
    ASSERT_NE(urma_create_jfs(ctx, &cfg), nullptr);
    EXPECT_EQ(cfg.flag.bs.order_type, row.by_default);  // written back
  }
}

TEST_F(Arguments, limits_of_jfs) {
  urma_jfs_cfg_t good = send_cfg(jfc);
  EXPECT_TRUE(jfs_accepts(good));
  auto changed = [&](auto change) {
    urma_jfs_cfg_t cfg = good;
    change(cfg);
    return jfs_accepts(cfg);
  };
  EXPECT_FALSE(changed([](auto& c) { c.jfc = nullptr; }));
  EXPECT_FALSE(changed([](auto& c) { c.depth = 0; }));
  EXPECT_FALSE(changed([](auto& c) { c.depth = 16385; }));
  EXPECT_FALSE(changed([](auto& c) { c.max_sge = 17; }));
  EXPECT_FALSE(changed([](auto& c) { c.max_rsge = 17; }));
  EXPECT_FALSE(changed([](auto& c) { c.max_inline_data = 513; }));
  EXPECT_FALSE(changed([](auto& c) { c.rnr_retry = 8; }));
  EXPECT_FALSE(changed([](auto& c) { c.err_timeout = 32; }));
  EXPECT_FALSE(changed([](auto& c) { c.trans_mode = static_cast<urma_transport_mode_t>(3); }));
  EXPECT_TRUE(changed([](auto& c) { c.priority = 15; }));
  EXPECT_TRUE(changed([](auto& c) {
    c.depth = 16384;
    c.max_sge = 16;
    c.max_inline_data = 512;
  }));

  good.max_sge = 0;
  urma_jfs_t* jfs = urma_create_jfs(ctx, &good);
  EXPECT_EQ(jfs->jfs_cfg.max_sge, 1);
  EXPECT_GT(jfs->jfs_cfg.max_inline_data, 0u);  // the default in force
  const SendQueueConfig& sq = fake->queues.at(jfs->jfs_id.id).config.sq;
  EXPECT_EQ(sq.depth, 8u);
  EXPECT_EQ(sq.slot_count & (sq.slot_count - 1), 0u);
  EXPECT_EQ(sq.err_timeout, 17);
}

TEST_F(Arguments, objects_of_another_context_are_refused) {
  urma_context_t* other = urma_create_context(device, 1);
  urma_jfs_cfg_t cfg = send_cfg(jfc);
  EXPECT_EQ(urma_create_jfs(other, &cfg), nullptr);
  EXPECT_EQ(errno, EINVAL);
  urma_jfce_t* jfce = urma_create_jfce(other);
  EXPECT_EQ(make_jfc(8, jfce), nullptr);
}

TEST_F(Arguments, jetty_needs_a_fitting_shared_jfr) {
  urma_jfr_t* rm = make_jfr(jfc);
  urma_jfr_t* rc = make_jfr(jfc, URMA_TM_RC);
  EXPECT_EQ(rm->jfr_cfg.flag.bs.order_type, URMA_OI);
  urma_jetty_cfg_t cfg{};
  cfg.jfs_cfg = send_cfg(jfc);
  cfg.shared.jfr = rm;
  EXPECT_EQ(urma_create_jetty(ctx, &cfg), nullptr);  // share_jfr is mandatory
  cfg.flag.bs.share_jfr = 1;
  cfg.shared.jfr = rc;
  EXPECT_EQ(urma_create_jetty(ctx, &cfg), nullptr);
  cfg.shared.jfr = nullptr;
  EXPECT_EQ(urma_create_jetty(ctx, &cfg), nullptr);
  EXPECT_EQ(errno, EINVAL);
  cfg.shared.jfr = rm;
  urma_jetty_t* jetty = urma_create_jetty(ctx, &cfg);
  ASSERT_NE(jetty, nullptr);
  EXPECT_EQ(jetty->jetty_cfg.shared.jfc, jfc);
  EXPECT_EQ(cfg.jfs_cfg.flag.bs.order_type, URMA_OI);
  EXPECT_EQ(fake->queues.at(jetty->jetty_id.id).config.jfr, rm->jfr_id.id);
  EXPECT_FALSE(fake->queues.at(jetty->jetty_id.id).config.lower_layer_order);
  urma_jetty_t* pinned = make_jetty(jfc, rc, URMA_TM_RC);
  EXPECT_TRUE(fake->queues.at(pinned->jetty_id.id).config.lower_layer_order);
  EXPECT_FALSE(fake->queues.at(pinned->jetty_id.id).config.target_order);
}

TEST_F(Arguments, an_order_type_of_ot_leaves_the_order_to_the_target) {
  const auto config_of = [&](urma_transport_mode_t mode, uint32_t order) {
    urma_jfs_cfg_t cfg = send_cfg(jfc);
    cfg.trans_mode = mode;
    cfg.flag.bs.order_type = order;
    urma_jfs_t* jfs = urma_create_jfs(ctx, &cfg);
    EXPECT_NE(jfs, nullptr);
    return fake->queues.at(jfs->jfs_id.id).config;
  };
  EXPECT_TRUE(config_of(URMA_TM_RC, URMA_OT).target_order);
  EXPECT_FALSE(config_of(URMA_TM_RC, URMA_OT).lower_layer_order);
  EXPECT_FALSE(config_of(URMA_TM_RC, URMA_NO).target_order);
  EXPECT_FALSE(config_of(URMA_TM_RM, URMA_OI).target_order);
}

TEST_F(Arguments, wanted_ids) {
  urma_jfr_t* jfr = make_jfr(jfc);
  urma_jetty_cfg_t cfg{};
  cfg.flag.bs.share_jfr = 1;
  cfg.jfs_cfg = send_cfg(jfc);
  cfg.shared.jfr = jfr;
  cfg.id = 3;
  urma_jetty_t* first = urma_create_jetty(ctx, &cfg);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->jetty_id.id, 3u);
  urma_jetty_t* second = urma_create_jetty(ctx, &cfg);  // taken: another one
  ASSERT_NE(second, nullptr);
  EXPECT_NE(second->jetty_id.id, 3u);
  cfg.id = 2;
  EXPECT_EQ(urma_create_jetty(ctx, &cfg), nullptr);
  cfg.id = 1 << 20;
  EXPECT_EQ(urma_create_jetty(ctx, &cfg), nullptr);
}

TEST_F(Arguments, jfr_limits) {
  urma_jfr_cfg_t good{};
  good.depth = 32768;
  good.trans_mode = URMA_TM_UM;
  good.max_sge = 16;
  good.jfc = jfc;
  good.flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT;
  good.token_value.token = 4711;
  urma_jfr_t* jfr = urma_create_jfr(ctx, &good);
  ASSERT_NE(jfr, nullptr);
  EXPECT_EQ(good.flag.bs.order_type, URMA_NO);
  EXPECT_TRUE(fake->receives.at(jfr->jfr_id.id).config.token.required);
  EXPECT_EQ(fake->receives.at(jfr->jfr_id.id).config.token.value, 4711u);
  auto refused = [&](auto change) {
    urma_jfr_cfg_t cfg = good;
    change(cfg);
    return urma_create_jfr(ctx, &cfg) == nullptr && errno == EINVAL;
  };
  EXPECT_TRUE(refused([](auto& c) { c.depth = 0; }));
  EXPECT_TRUE(refused([](auto& c) { c.depth = 32769; }));
  EXPECT_TRUE(refused([](auto& c) { c.max_sge = 17; }));
  EXPECT_TRUE(refused([](auto& c) { c.jfc = nullptr; }));
  EXPECT_TRUE(refused([](auto& c) { c.min_rnr_timer = 32; }));
  EXPECT_TRUE(refused([](auto& c) { c.flag.bs.token_policy = URMA_TOKEN_SIGNED; }));

  urma_jfr_attr_t attr{JFR_RX_THRESHOLD, 100, URMA_JFR_STATE_RESET};
  EXPECT_EQ(urma_modify_jfr(jfr, &attr), URMA_SUCCESS);
  EXPECT_EQ(fake->receives.at(jfr->jfr_id.id).threshold, 800u);  // slots: 16 pieces take 8
  attr.mask = JFR_STATE;
  attr.state = URMA_JFR_STATE_ERROR;
  EXPECT_EQ(urma_modify_jfr(jfr, &attr), URMA_SUCCESS);
  attr = {};
  urma_jfr_cfg_t cfg;
  EXPECT_EQ(urma_query_jfr(jfr, &cfg, &attr), URMA_SUCCESS);
  EXPECT_EQ(attr.state, URMA_JFR_STATE_ERROR);
  EXPECT_EQ(attr.rx_threshold, 100u);
  EXPECT_EQ(cfg.depth, 32768u);
  attr.mask = 0;
  EXPECT_EQ(urma_modify_jfr(jfr, &attr), URMA_EINVAL);
}

TEST_F(Arguments, access_bits) {
  char memory[4096];
  for (uint32_t access = 0; access < 64; ++access) {
    bool local_only = access == 1;
    bool legal = access < 16 && (local_only || (access & 1) == 0) && (!(access & 4) || (access & 2)) &&
                 (!(access & 8) || (access & 6) == 6);
    urma_seg_cfg_t cfg{};
    cfg.va = reinterpret_cast<uint64_t>(memory);
    cfg.len = sizeof memory;
    cfg.flag.bs.access = access;
    urma_target_seg_t* seg = urma_register_seg(ctx, &cfg);
    EXPECT_EQ(seg != nullptr, legal) << access;
    if (seg != nullptr) {
      EXPECT_EQ(urma_unregister_seg(seg), URMA_SUCCESS);
    }
  }
  EXPECT_TRUE(fake->token_ids.empty());  // those the library allocated went with their segments
}

TEST_F(Arguments, memory_that_is_none) {
  constexpr size_t kPage = 4096;
  auto* memory =
      static_cast<char*>(mmap(nullptr, 3 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(memory, MAP_FAILED);
  ASSERT_EQ(mprotect(memory + kPage, kPage, PROT_READ), 0);
  ASSERT_EQ(munmap(memory + 2 * kPage, kPage), 0);
  auto accepted = [&](size_t offset, size_t bytes, uint32_t access) {
    urma_seg_cfg_t cfg{};
    cfg.va = reinterpret_cast<uint64_t>(memory) + offset;
    cfg.len = bytes;
    cfg.flag.bs.access = access;
    errno = 0;
    urma_target_seg_t* seg = urma_register_seg(ctx, &cfg);
    if (seg != nullptr) urma_unregister_seg(seg);
    EXPECT_EQ(errno, seg != nullptr ? 0 : EIO);
    return seg != nullptr;
  };
  constexpr uint32_t kReadWrite = URMA_ACCESS_READ | URMA_ACCESS_WRITE;
  EXPECT_TRUE(accepted(0, kPage, kReadWrite));
  EXPECT_FALSE(accepted(0, kPage + 1, kReadWrite));
  EXPECT_TRUE(accepted(0, 2 * kPage, URMA_ACCESS_READ));
  EXPECT_TRUE(accepted(kPage - 1, kPage + 1, URMA_ACCESS_LOCAL_ONLY));
  EXPECT_FALSE(accepted(0, 2 * kPage + 1, URMA_ACCESS_READ));
  EXPECT_FALSE(accepted(2 * kPage, 1, URMA_ACCESS_LOCAL_ONLY));
  munmap(memory, 2 * kPage);
}

TEST_F(Arguments, token_id_rule) {
  char memory[64];
  urma_token_id_t* token = urma_alloc_token_id(ctx);
  ASSERT_NE(token, nullptr);
  urma_seg_cfg_t cfg{};
  cfg.va = reinterpret_cast<uint64_t>(memory);
  cfg.len = sizeof memory;
  cfg.flag.bs.access = URMA_ACCESS_READ;
  cfg.token_id = token;
  EXPECT_EQ(urma_register_seg(ctx, &cfg), nullptr);
  EXPECT_EQ(errno, EINVAL);
  cfg.flag.bs.token_id_valid = 1;
  cfg.user_ctx = 99;
  urma_target_seg_t* seg = urma_register_seg(ctx, &cfg);
  ASSERT_NE(seg, nullptr);
  EXPECT_EQ(seg->token_id, token);
  EXPECT_EQ(seg->seg.token_id, token->token_id);
  EXPECT_EQ(seg->seg.attr.bs.user_token_id, 1u);
  EXPECT_EQ(seg->user_ctx, 99u);
  EXPECT_EQ(urma_free_token_id(token), URMA_EINVAL);
  EXPECT_EQ(urma_unregister_seg(seg), URMA_SUCCESS);
  EXPECT_EQ(urma_free_token_id(token), URMA_SUCCESS);
  cfg.token_id = nullptr;
  EXPECT_EQ(urma_register_seg(ctx, &cfg), nullptr);
}

TEST_F(Arguments, segment_descriptor) {
  char memory[4096];
  urma_seg_cfg_t cfg{};
  cfg.va = reinterpret_cast<uint64_t>(memory);
  cfg.len = sizeof memory;
  cfg.iova = 0x7000;
  cfg.flag.bs.user_iova = 1;
  cfg.flag.bs.access = URMA_ACCESS_READ;
  cfg.flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT;
  cfg.token_value.token = 12;
  urma_target_seg_t* seg = urma_register_seg(ctx, &cfg);
  ASSERT_NE(seg, nullptr);
  EXPECT_EQ(memcmp(&seg->seg.ubva.eid, &ctx->eid, 16), 0);
  EXPECT_EQ(seg->seg.ubva.uasid, ctx->uasid);
  EXPECT_EQ(uint64_t{seg->seg.ubva.va}, 0x7000u);  // not aligned
  EXPECT_EQ(seg->seg.attr.value, cfg.flag.value);
  EXPECT_NE(seg->seg.token_id, 0u);
  const SegmentConfig& config = fake->segments.at(static_cast<uint32_t>(seg->handle));
  EXPECT_EQ(config.address, 0x7000u);
  EXPECT_EQ(config.local_address, cfg.va);
  EXPECT_TRUE(config.token.required);
  EXPECT_EQ(config.token.value, 12u);

  urma_seg_t* copy = nullptr;
  uint32_t size = 0;
  ASSERT_EQ(urma_get_seg_ctx(seg, &copy, &size), URMA_SUCCESS);
  EXPECT_EQ(size, 48u);
  EXPECT_EQ(memcmp(copy, &seg->seg, 48), 0);
  EXPECT_EQ(urma_import_seg(ctx, copy, nullptr, 0, {}), nullptr);  // PLAIN_TEXT needs its token
  urma_token_t token{12};
  urma_target_seg_t* imported = urma_import_seg(ctx, copy, &token, 0, {});
  ASSERT_NE(imported, nullptr);
  EXPECT_EQ(imported->token_id, nullptr);
  EXPECT_EQ(urma_unregister_seg(imported), URMA_EINVAL);
  EXPECT_EQ(urma_unimport_seg(seg), URMA_EINVAL);
  EXPECT_EQ(urma_unimport_seg(imported), URMA_SUCCESS);
  urma_put_seg_ctx(copy);

  cfg.va = 0;
  EXPECT_EQ(urma_register_seg(ctx, &cfg), nullptr);
  cfg.va = 64;
  cfg.len = UINT64_MAX;
  EXPECT_EQ(urma_register_seg(ctx, &cfg), nullptr);
}

TEST_F(Arguments, rjetty_is_what_the_peer_imports) {
  urma_jfr_t* jfr = make_jfr(jfc, URMA_TM_RC);
  urma_jetty_t* jetty = make_jetty(jfc, jfr, URMA_TM_RC);
  urma_rjetty_t* blob = nullptr;
  uint32_t length = 0;
  ASSERT_EQ(urma_get_rjetty(jetty, &blob, &length), URMA_SUCCESS);
  EXPECT_EQ(length, 48u);
  EXPECT_EQ(blob->type, URMA_JETTY);
  EXPECT_EQ(blob->trans_mode, URMA_TM_RC);
  EXPECT_EQ(blob->flag.bs.order_type, URMA_OL);
  EXPECT_EQ(blob->jetty_id.id, jetty->jetty_id.id);
  blob->tp_type = URMA_RTP;
  urma_target_jetty_t* target = urma_import_jetty(ctx, blob, nullptr);
  ASSERT_NE(target, nullptr);
  EXPECT_EQ(memcmp(&target->id, &jetty->jetty_id, sizeof target->id), 0);
  const TargetConfig& config = fake->targets.at(static_cast<uint32_t>(target->handle));
  EXPECT_EQ(config.instance.uasid, FakeBackend::kUasid);
  EXPECT_EQ(config.kind, ObjectKind::kJetty);
  EXPECT_EQ(config.mode, Mode::kRc);
  urma_put_rjetty(blob);
}

TEST_F(Arguments, import_rules) {
  auto imports = [&](auto change, urma_transport_mode_t mode = URMA_TM_RM) {
    urma_rjetty_t rjetty = peer(mode);
    change(rjetty);
    urma_target_jetty_t* target = urma_import_jetty(ctx, &rjetty, nullptr);
    if (target == nullptr) return false;
    EXPECT_EQ(target->flag.bs.order_type, rjetty.flag.bs.order_type);
    EXPECT_NE(rjetty.flag.bs.order_type, 0u);
    EXPECT_EQ(urma_unimport_jetty(target), URMA_SUCCESS);
    return true;
  };
  EXPECT_TRUE(imports([](auto&) {}));
  EXPECT_TRUE(imports([](auto& r) { r.tp_type = URMA_CTP; }));
  EXPECT_FALSE(imports([](auto& r) { r.tp_type = URMA_UTP; }));
  EXPECT_TRUE(imports([](auto&) {}, URMA_TM_UM));
  EXPECT_FALSE(imports([](auto& r) { r.tp_type = URMA_RTP; }, URMA_TM_UM));
  EXPECT_FALSE(imports([](auto& r) { r.flag.bs.order_type = URMA_OT; }));
  EXPECT_TRUE(imports([](auto& r) { r.flag.bs.order_type = URMA_OT; }, URMA_TM_RC));
  EXPECT_FALSE(imports([](auto& r) { r.flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT; }));
  EXPECT_FALSE(imports([](auto& r) { r.jetty_id.id = 0; }));
  EXPECT_FALSE(imports([](auto& r) { memset(&r.jetty_id.eid, 0, 16); }));
  EXPECT_EQ(errno, EINVAL);
  EXPECT_FALSE(imports([](auto& r) { memcpy(&r.jetty_id.eid, FakeBackend::eid(99).bytes.data(), 16); }));
  EXPECT_EQ(errno, EIO);

  urma_rjfr_t rjfr{};
  rjfr.jfr_id = peer().jetty_id;
  rjfr.trans_mode = URMA_TM_RM;
  rjfr.flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT;
  urma_token_t token{5};
  urma_target_jetty_t* target = urma_import_jfr(ctx, &rjfr, &token);
  ASSERT_NE(target, nullptr);
  EXPECT_EQ(rjfr.flag.bs.order_type, URMA_OI);
  EXPECT_EQ(target->type, URMA_JFR);
  const TargetConfig& config = fake->targets.at(static_cast<uint32_t>(target->handle));
  EXPECT_TRUE(config.token.required);
  EXPECT_EQ(config.token.value, 5u);
  EXPECT_EQ(config.kind, ObjectKind::kJfr);
  EXPECT_EQ(urma_unimport_jetty(target), URMA_EINVAL);
  EXPECT_EQ(urma_unimport_jfr(target), URMA_SUCCESS);
}

TEST_F(Arguments, bind_rules) {
  urma_jfr_t* jfr = make_jfr(jfc, URMA_TM_RC);
  urma_jetty_t* a = make_jetty(jfc, jfr, URMA_TM_RC);
  urma_jetty_t* b = make_jetty(jfc, jfr, URMA_TM_RC);
  urma_target_jetty_t* x = make_target(URMA_TM_RC);
  urma_target_jetty_t* y = make_target(URMA_TM_RC);
  EXPECT_EQ(urma_unbind_jetty(a), URMA_EINVAL);
  EXPECT_EQ(urma_bind_jetty(a, x), URMA_SUCCESS);
  EXPECT_EQ(a->remote_jetty, x);
  EXPECT_EQ(fake->queues.at(a->jetty_id.id).bound, x->handle);
  EXPECT_EQ(urma_bind_jetty(a, x), URMA_SUCCESS);
  EXPECT_EQ(urma_bind_jetty(a, y), URMA_EEXIST);
  EXPECT_EQ(urma_bind_jetty(b, x), URMA_EINVAL);
  EXPECT_EQ(urma_bind_jetty(b, nullptr), URMA_EINVAL);
  EXPECT_EQ(urma_unbind_jetty(a), URMA_SUCCESS);
  EXPECT_EQ(a->remote_jetty, nullptr);
  EXPECT_EQ(urma_bind_jetty(b, x), URMA_SUCCESS);

  urma_rjetty_t other_order = peer(URMA_TM_RC);
  other_order.flag.bs.order_type = URMA_OT;
  EXPECT_EQ(urma_bind_jetty(a, urma_import_jetty(ctx, &other_order, nullptr)), URMA_ENOPERM);
  EXPECT_EQ(urma_bind_jetty(a, make_target(URMA_TM_RM)), URMA_ENOPERM);
  urma_jetty_t* rm = make_jetty(jfc, make_jfr(jfc));
  EXPECT_EQ(urma_bind_jetty(rm, y), URMA_ENOPERM);
  EXPECT_EQ(urma_unbind_jetty(rm), URMA_ENOPERM);

  urma_target_jetty_t* rm_target = make_target();
  EXPECT_EQ(urma_advise_jetty(rm, rm_target), URMA_SUCCESS);
  EXPECT_EQ(urma_advise_jetty(rm, rm_target), URMA_SUCCESS);  // as often as one likes: nothing is remembered
  EXPECT_EQ(urma_unadvise_jetty(rm, rm_target), URMA_SUCCESS);
  EXPECT_EQ(urma_advise_jetty(a, y), URMA_EINVAL);
  EXPECT_EQ(urma_advise_jetty(rm, nullptr), URMA_EINVAL);
}

TEST_F(Arguments, states_are_mapped_and_queried) {
  urma_jfs_t* jfs = make_jfs(jfc);
  urma_jfs_attr_t attr{0, URMA_JETTY_STATE_ERROR};
  EXPECT_EQ(urma_modify_jfs(jfs, &attr), URMA_EINVAL);
  attr.mask = JFS_STATE;
  EXPECT_EQ(urma_modify_jfs(jfs, &attr), URMA_SUCCESS);
  urma_jfs_cfg_t cfg;
  EXPECT_EQ(urma_query_jfs(jfs, &cfg, &attr), URMA_SUCCESS);
  EXPECT_EQ(attr.state, URMA_JETTY_STATE_ERROR);
  EXPECT_EQ(cfg.depth, 8u);
  urma_jetty_t* jetty = make_jetty(jfc, make_jfr(jfc));
  urma_jetty_attr_t jetty_attr{JETTY_RX_THRESHOLD | JETTY_STATE, 1, URMA_JETTY_STATE_ERROR};
  EXPECT_EQ(urma_modify_jetty(jetty, &jetty_attr), URMA_EINVAL);
}

TEST_F(Arguments, a_device_by_itself_is_in_standalone_mode) {
  auto set = [&](uint32_t mode, uint32_t level, uint32_t bytes = sizeof(bondp_set_bonding_mode_in_t)) {
    const uint32_t wanted[2] = {mode, level};  // numbers of any kind may come
    urma_user_ctl_in_t in{};
    urma_user_ctl_out_t out{};
    in.opcode = BONDP_USER_CTL_SET_BONDING_MODE;
    in.addr = reinterpret_cast<uint64_t>(wanted);
    in.len = bytes;
    return urma_user_ctl(ctx, &in, &out);
  };
  EXPECT_EQ(set(BONDP_BONDING_MODE_STANDALONE, BONDP_BONDING_LEVEL_IODIE), URMA_SUCCESS);
  EXPECT_EQ(set(BONDP_BONDING_MODE_STANDALONE, BONDP_BONDING_LEVEL_PORT), URMA_SUCCESS);
  EXPECT_EQ(ctx->aggr_mode, URMA_AGGR_MODE_STANDALONE);
  EXPECT_EQ(set(BONDP_BONDING_MODE_ACTIVE_BACKUP, BONDP_BONDING_LEVEL_PORT), URMA_ENOPERM);
  EXPECT_EQ(set(BONDP_BONDING_MODE_BALANCE, BONDP_BONDING_LEVEL_PORT), URMA_ENOPERM);
  EXPECT_EQ(set(BONDP_BONDING_MODE_MAX, BONDP_BONDING_LEVEL_PORT), URMA_EINVAL);
  EXPECT_EQ(set(UINT32_MAX, BONDP_BONDING_LEVEL_PORT), URMA_EINVAL);
  EXPECT_EQ(set(BONDP_BONDING_MODE_STANDALONE, BONDP_BONDING_LEVEL_MAX), URMA_EINVAL);
  EXPECT_EQ(set(BONDP_BONDING_MODE_STANDALONE, BONDP_BONDING_LEVEL_PORT, 4), URMA_EINVAL);
  urma_user_ctl_in_t nothing{};
  urma_user_ctl_out_t out{};
  nothing.opcode = BONDP_USER_CTL_SET_BONDING_MODE;
  nothing.len = sizeof(bondp_set_bonding_mode_in_t);
  EXPECT_EQ(urma_user_ctl(ctx, &nothing, &out), URMA_EINVAL);
  EXPECT_EQ(urma_user_ctl(ctx, nullptr, &out), URMA_EINVAL);
}

TEST_F(Arguments, a_token_is_set_of_what_asks_for_one) {
  auto set = [&](softub_set_token_in_t argument, uint32_t bytes = sizeof(softub_set_token_in_t)) {
    urma_user_ctl_in_t in{reinterpret_cast<uint64_t>(&argument), bytes, SOFTUB_USER_CTL_SET_TOKEN};
    urma_user_ctl_out_t out{};
    return urma_user_ctl(ctx, &in, &out);
  };
  urma_jfr_t* open = make_jfr(jfc);
  urma_jfr_cfg_t cfg = open->jfr_cfg;
  cfg.id = 0;
  cfg.flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT;
  cfg.token_value.token = 5;
  urma_jfr_t* jfr = urma_create_jfr(ctx, &cfg);
  ASSERT_NE(jfr, nullptr);
  softub_set_token_in_t in{};
  in.token.token = 7;
  in.former.token = 5;
  EXPECT_EQ(set(in), URMA_EINVAL) << "no object";
  in.jfr = jfr;
  EXPECT_EQ(set(in, sizeof in - 1), URMA_EINVAL);
  EXPECT_EQ(set(in), URMA_SUCCESS);
  EXPECT_EQ(fake->tokens[jfr->jfr_id.id], (std::pair<uint32_t, uint32_t>{7, 5}));
  EXPECT_EQ(jfr->jfr_cfg.token_value.token, 7u);
  fake->next_status = Status::kInvalid;
  in.token.token = 8;
  EXPECT_EQ(set(in), URMA_EINVAL);
  EXPECT_EQ(jfr->jfr_cfg.token_value.token, 7u) << "as it was";
  in.jfr = open;
  EXPECT_EQ(set(in), URMA_EINVAL) << "asks for none";
  in.jfr = reinterpret_cast<urma_jfr_t*>(jfc);
  EXPECT_EQ(set(in), URMA_EINVAL) << "no JFR";

  urma_jetty_grp_cfg_t group_cfg{};
  group_cfg.flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT;
  urma_jetty_grp_t* group = urma_create_jetty_grp(ctx, &group_cfg);
  in.jetty_grp = group;
  in.jfr = jfr;
  EXPECT_EQ(set(in), URMA_EINVAL) << "two objects";
  in.jfr = nullptr;
  EXPECT_EQ(set(in), URMA_SUCCESS);
  EXPECT_EQ(fake->tokens[group->jetty_grp_id.id], (std::pair<uint32_t, uint32_t>{8, 5}));
  EXPECT_EQ(group->cfg.token_value.token, 8u);
  urma_delete_jetty_grp(group);
  EXPECT_EQ(set(in), URMA_EINVAL) << "deleted";
}

TEST_F(Arguments, the_token_of_a_segment_is_set_where_it_is_registered) {
  auto set = [&](urma_target_seg_t* seg) {
    softub_set_token_in_t argument{};
    argument.seg = seg;
    argument.token.token = 7;
    argument.former.token = 5;
    urma_user_ctl_in_t in{reinterpret_cast<uint64_t>(&argument), sizeof argument, SOFTUB_USER_CTL_SET_TOKEN};
    urma_user_ctl_out_t out{};
    return urma_user_ctl(ctx, &in, &out);
  };
  static char memory[4096];
  urma_seg_cfg_t cfg{};
  cfg.va = reinterpret_cast<uint64_t>(memory);
  cfg.len = sizeof memory;
  urma_target_seg_t* open = urma_register_seg(ctx, &cfg);
  cfg.flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT;
  cfg.token_value.token = 5;
  urma_target_seg_t* segment = urma_register_seg(ctx, &cfg);
  ASSERT_NE(segment, nullptr);
  EXPECT_EQ(set(segment), URMA_SUCCESS);
  EXPECT_EQ(fake->tokens[static_cast<uint32_t>(segment->handle)], (std::pair<uint32_t, uint32_t>{7, 5}));
  EXPECT_EQ(set(open), URMA_EINVAL);
  urma_token_t token{5};
  urma_target_seg_t* imported = urma_import_seg(ctx, &segment->seg, &token, 0, {});
  ASSERT_NE(imported, nullptr);
  EXPECT_EQ(set(imported), URMA_EINVAL);
}

TEST_F(Arguments, a_segment_is_made_exclusive_where_it_is_registered) {
  auto set = [&](urma_target_seg_t* seg, uint32_t exclusive, uint32_t bytes = sizeof(softub_set_exclusive_in_t)) {
    softub_set_exclusive_in_t argument{seg, exclusive};
    urma_user_ctl_in_t in{reinterpret_cast<uint64_t>(&argument), bytes, SOFTUB_USER_CTL_SET_EXCLUSIVE};
    urma_user_ctl_out_t out{};
    return urma_user_ctl(ctx, &in, &out);
  };
  static char memory[4096];
  urma_target_seg_t* segment = make_seg(memory, sizeof memory);
  const auto handle = static_cast<uint32_t>(segment->handle);
  EXPECT_EQ(set(segment, 1), URMA_SUCCESS);
  EXPECT_TRUE(fake->exclusive.at(handle));
  EXPECT_EQ(set(segment, 0), URMA_SUCCESS);
  EXPECT_FALSE(fake->exclusive.at(handle));
  EXPECT_EQ(set(segment, 2), URMA_EINVAL);
  EXPECT_EQ(set(segment, 1, sizeof(softub_set_exclusive_in_t) - 1), URMA_EINVAL);
  EXPECT_EQ(set(nullptr, 1), URMA_EINVAL);
  fake->next_status = Status::kInvalid;
  EXPECT_EQ(set(segment, 1), URMA_EINVAL);
  fake->exclusive.clear();
  EXPECT_EQ(set(make_remote_seg(), 1), URMA_SUCCESS);
  EXPECT_TRUE(fake->exclusive.empty()) << "of an imported one, requests are marked and nothing else";
}

TEST_F(Arguments, what_is_not_built_says_so) {
  urma_user_ctl_in_t in{};
  urma_user_ctl_out_t out{};
  EXPECT_EQ(urma_user_ctl(ctx, &in, &out), URMA_ENOPERM);
  EXPECT_EQ(urma_set_context_opt(ctx, URMA_OPT_AGGR_MODE, &in, 4), URMA_EINVAL);
  uint32_t uasid = 0;
  EXPECT_EQ(urma_get_uasid(&uasid), URMA_SUCCESS);
  EXPECT_EQ(uasid, FakeBackend::kUasid);
}

}  // namespace
}  // namespace ub::test
