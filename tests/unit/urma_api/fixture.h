// SPDX-License-Identifier: Apache-2.0
//
// A started library on a fake back end, and short ways to make its objects.
#pragma once

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "lib/urma/backends/placement.h"
#include "tests/unit/urma_api/fake_backend.h"
#include "urma_api.h"

namespace ub::test {

extern FakeBackend* fake;              // of the running library
extern bool refuse_placement;          // makes urma_init fail
extern urma::DeviceSettings settings;  // of the next urma_init

class UrmaTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(urma_init(nullptr), URMA_SUCCESS);
    char name[] = "softub0";
    device = urma_get_device_by_name(name);
    ASSERT_NE(device, nullptr);
    ctx = urma_create_context(device, 0);
    ASSERT_NE(ctx, nullptr);
  }
  void TearDown() override { EXPECT_EQ(urma_uninit(), URMA_SUCCESS); }

  urma_jfc_t* make_jfc(uint32_t depth = 16, urma_jfce_t* jfce = nullptr, bool lock_free = false) {
    urma_jfc_cfg_t cfg{};
    cfg.depth = depth;
    cfg.jfce = jfce;
    cfg.flag.bs.lock_free = lock_free;
    return urma_create_jfc(ctx, &cfg);
  }
  static urma_jfs_cfg_t send_cfg(urma_jfc_t* jfc, urma_transport_mode_t mode = URMA_TM_RM, uint32_t depth = 8) {
    urma_jfs_cfg_t cfg{};
    cfg.depth = depth;
    cfg.trans_mode = mode;
    cfg.max_sge = 4;
    cfg.rnr_retry = 7;
    cfg.err_timeout = 17;
    cfg.jfc = jfc;
    return cfg;
  }
  urma_jfs_t* make_jfs(urma_jfc_t* jfc, urma_transport_mode_t mode = URMA_TM_RM, uint32_t depth = 8) {
    urma_jfs_cfg_t cfg = send_cfg(jfc, mode, depth);
    return urma_create_jfs(ctx, &cfg);
  }
  urma_jfr_t* make_jfr(urma_jfc_t* jfc, urma_transport_mode_t mode = URMA_TM_RM, uint32_t depth = 8,
                       uint8_t max_sge = 1) {
    urma_jfr_cfg_t cfg{};
    cfg.depth = depth;
    cfg.trans_mode = mode;
    cfg.max_sge = max_sge;
    cfg.min_rnr_timer = 12;
    cfg.jfc = jfc;
    return urma_create_jfr(ctx, &cfg);
  }
  urma_jetty_t* make_jetty(urma_jfc_t* jfc, urma_jfr_t* jfr, urma_transport_mode_t mode = URMA_TM_RM,
                           uint32_t depth = 8) {
    urma_jetty_cfg_t cfg{};
    cfg.flag.bs.share_jfr = 1;
    cfg.jfs_cfg = send_cfg(jfc, mode, depth);
    cfg.shared.jfr = jfr;
    return urma_create_jetty(ctx, &cfg);
  }
  urma_target_seg_t* make_seg(void* memory, uint64_t len, uint32_t policy = URMA_TOKEN_NONE, uint32_t token = 0) {
    urma_seg_cfg_t cfg{};
    cfg.va = reinterpret_cast<uint64_t>(memory);
    cfg.len = len;
    cfg.flag.bs.access = URMA_ACCESS_READ | URMA_ACCESS_WRITE | URMA_ACCESS_ATOMIC;
    cfg.flag.bs.token_policy = policy;
    cfg.token_value.token = token;
    return urma_register_seg(ctx, &cfg);
  }
  static urma_rjetty_t peer(urma_transport_mode_t mode = URMA_TM_RM, uint32_t id = 2000, uint32_t uasid = 77) {
    urma_rjetty_t rjetty{};
    memcpy(rjetty.jetty_id.eid.raw, FakeBackend::eid(50).bytes.data(), 16);
    rjetty.jetty_id.uasid = uasid;
    rjetty.jetty_id.id = id;
    rjetty.trans_mode = mode;
    rjetty.type = URMA_JETTY;
    rjetty.tp_type = mode == URMA_TM_UM ? URMA_UTP : URMA_RTP;
    return rjetty;
  }
  urma_target_jetty_t* make_target(urma_transport_mode_t mode = URMA_TM_RM, uint32_t uasid = 77) {
    urma_rjetty_t rjetty = peer(mode, 2000, uasid);
    return urma_import_jetty(ctx, &rjetty, nullptr);
  }
  // A segment of 1 MiB at 0x10000 of the peer.
  urma_target_seg_t* make_remote_seg(uint32_t uasid = 77, uint32_t policy = URMA_TOKEN_NONE, uint32_t token = 0,
                                     uint32_t token_id = 5) {
    urma_seg_t seg{};
    memcpy(&seg.ubva.eid, FakeBackend::eid(50).bytes.data(), 16);
    seg.ubva.uasid = uasid;
    seg.ubva.va = 0x10000;
    seg.len = 1 << 20;
    seg.attr.bs.token_policy = policy;
    seg.token_id = token_id;
    urma_token_t value{token};
    return urma_import_seg(ctx, &seg, &value, 0, {});
  }

  urma_device_t* device = nullptr;
  urma_context_t* ctx = nullptr;
};

}  // namespace ub::test
