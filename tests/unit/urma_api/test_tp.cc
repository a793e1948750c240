// SPDX-License-Identifier: Apache-2.0
// Channels that the program chooses: handles, what is refused, and attributes that are read back.
#include "softub_api.h"
#include "tests/unit/urma_api/fixture.h"

namespace ub::test {
namespace {

class Tp : public UrmaTest {
 protected:
  enum Kind : uint32_t { kCtp = 1, kRtp = 2, kUtp = 4 };  // bits of urma_get_tp_cfg_flag_t

  urma_get_tp_cfg_t query(urma_transport_mode_t mode = URMA_TM_RM, uint32_t kind = kRtp) {
    urma_get_tp_cfg_t cfg{};
    cfg.flag.value = kind;
    cfg.trans_mode = mode;
    cfg.local_eid = ctx->eid;
    cfg.peer_eid = peer().jetty_id.eid;
    return cfg;
  }
  urma_status_t list(urma_get_tp_cfg_t cfg) {
    uint32_t count = 1;
    urma_tp_info_t info{};
    return urma_get_tp_list(ctx, &cfg, &count, &info);
  }
  uint64_t handle(urma_get_tp_cfg_t cfg) {
    uint32_t count = 1;
    urma_tp_info_t info{};
    EXPECT_EQ(urma_get_tp_list(ctx, &cfg, &count, &info), URMA_SUCCESS);
    EXPECT_EQ(count, 1u);
    return info.tp_handle;
  }
  urma_active_tp_cfg_t channel(urma_transport_mode_t mode = URMA_TM_RM) {
    urma_active_tp_cfg_t cfg{};
    cfg.tp_handle = handle(query(mode));
    return cfg;
  }

  urma_token_t token{};
};

TEST_F(Tp, one_handle_for_each_peer_mode_and_kind) {
  urma_get_tp_cfg_t cfg = query();
  uint32_t count = 4;
  urma_tp_info_t info[4]{};
  EXPECT_EQ(urma_get_tp_list(ctx, &cfg, &count, info), URMA_SUCCESS);
  EXPECT_EQ(count, 1u);
  EXPECT_NE(info[0].tp_handle, 0u);
  EXPECT_EQ(info[1].tp_handle, 0u);
  EXPECT_EQ(handle(query()), info[0].tp_handle);
  EXPECT_NE(handle(query(URMA_TM_RC)), info[0].tp_handle);
  EXPECT_NE(handle(query(URMA_TM_RM, kCtp)), info[0].tp_handle);
  cfg.peer_eid.raw[15] = 51;
  EXPECT_NE(handle(cfg), info[0].tp_handle);
}

TEST_F(Tp, list_refuses_bad_arguments) {
  urma_get_tp_cfg_t cfg = query();
  uint32_t count = 1;
  urma_tp_info_t info{};
  EXPECT_EQ(urma_get_tp_list(nullptr, &cfg, &count, &info), URMA_EINVAL);
  EXPECT_EQ(urma_get_tp_list(ctx, nullptr, &count, &info), URMA_EINVAL);
  EXPECT_EQ(urma_get_tp_list(ctx, &cfg, nullptr, &info), URMA_EINVAL);
  EXPECT_EQ(urma_get_tp_list(ctx, &cfg, &count, nullptr), URMA_EINVAL);
  count = 0;
  EXPECT_EQ(urma_get_tp_list(ctx, &cfg, &count, &info), URMA_EINVAL);
  EXPECT_EQ(list(query(static_cast<urma_transport_mode_t>(3))), URMA_EINVAL);
  EXPECT_EQ(list(query(URMA_TM_RM, 0)), URMA_EINVAL);
  EXPECT_EQ(list(query(URMA_TM_RM, kRtp | kCtp)), URMA_EINVAL);
  cfg = query();
  cfg.local_eid.raw[15] = 2;  // of the device, but not of this context
  EXPECT_EQ(list(cfg), URMA_EINVAL);
  cfg = query();
  cfg.peer_eid = {};
  EXPECT_EQ(list(cfg), URMA_EINVAL);
}

TEST_F(Tp, kinds_go_with_modes) {
  for (urma_transport_mode_t mode : {URMA_TM_RM, URMA_TM_RC}) {
    EXPECT_EQ(list(query(mode, kRtp)), URMA_SUCCESS);
    EXPECT_EQ(list(query(mode, kCtp)), URMA_SUCCESS);
    EXPECT_EQ(list(query(mode, kUtp)), URMA_EINVAL);
  }
  EXPECT_EQ(list(query(URMA_TM_UM, kUtp)), URMA_SUCCESS);
  EXPECT_EQ(list(query(URMA_TM_UM, kCtp)), URMA_SUCCESS);
  EXPECT_EQ(list(query(URMA_TM_UM, kRtp)), URMA_EINVAL);
}

TEST_F(Tp, import_jetty_over_a_channel) {
  urma_rjetty_t rjetty = peer();
  urma_active_tp_cfg_t cfg = channel();
  urma_target_jetty_t* target = urma_import_jetty_ex(ctx, &rjetty, &token, &cfg);
  ASSERT_NE(target, nullptr);
  EXPECT_EQ(target->tp_type, URMA_RTP);
  EXPECT_EQ(rjetty.flag.bs.order_type, uint32_t{URMA_OI});  // written back
  EXPECT_EQ(urma_unimport_jetty(target), URMA_SUCCESS);

  auto refused = [&](urma_context_t* c, urma_rjetty_t* r, urma_token_t* t, urma_active_tp_cfg_t* x) {
    errno = 0;
    EXPECT_EQ(urma_import_jetty_ex(c, r, t, x), nullptr);
    EXPECT_EQ(errno, EINVAL);
  };
  refused(nullptr, &rjetty, &token, &cfg);
  refused(ctx, nullptr, &token, &cfg);
  refused(ctx, &rjetty, nullptr, &cfg);
  refused(ctx, &rjetty, &token, nullptr);
  urma_active_tp_cfg_t unknown = cfg;
  unknown.tp_handle += 1000;
  refused(ctx, &rjetty, &token, &unknown);
  unknown.tp_handle = 0;
  refused(ctx, &rjetty, &token, &unknown);
  urma_rjetty_t elsewhere = rjetty;
  elsewhere.jetty_id.eid.raw[15] = 51;
  refused(ctx, &elsewhere, &token, &cfg);
  urma_rjetty_t other_mode = peer(URMA_TM_RC);
  refused(ctx, &other_mode, &token, &cfg);
  urma_context_t* second = urma_create_context(device, 0);
  refused(second, &rjetty, &token, &cfg);  // given out by another context
  urma_rjetty_t no_id = peer(URMA_TM_RM, 0);
  refused(ctx, &no_id, &token, &cfg);  // what the plain call refuses
  EXPECT_TRUE(fake->targets.empty());
}

TEST_F(Tp, import_jfr_over_a_channel) {
  urma_rjfr_t rjfr{};
  rjfr.jfr_id = peer().jetty_id;
  rjfr.trans_mode = URMA_TM_RM;
  urma_active_tp_cfg_t cfg = channel();
  urma_target_jetty_t* target = urma_import_jfr_ex(ctx, &rjfr, &token, &cfg);
  ASSERT_NE(target, nullptr);
  EXPECT_EQ(target->type, URMA_JFR);
  EXPECT_EQ(urma_unimport_jfr(target), URMA_SUCCESS);

  auto refused = [&](urma_context_t* c, urma_rjfr_t* r, urma_token_t* t, urma_active_tp_cfg_t* x) {
    errno = 0;
    EXPECT_EQ(urma_import_jfr_ex(c, r, t, x), nullptr);
    EXPECT_EQ(errno, EINVAL);
  };
  refused(nullptr, &rjfr, &token, &cfg);
  refused(ctx, nullptr, &token, &cfg);
  refused(ctx, &rjfr, nullptr, &cfg);
  refused(ctx, &rjfr, &token, nullptr);
  cfg.tp_handle = 0;
  refused(ctx, &rjfr, &token, &cfg);
}

TEST_F(Tp, bind_over_a_channel) {
  urma_jfc_t* jfc = make_jfc();
  urma_jfr_t* jfr = make_jfr(jfc, URMA_TM_RC);
  urma_jetty_t *a = make_jetty(jfc, jfr, URMA_TM_RC), *b = make_jetty(jfc, jfr, URMA_TM_RC);
  urma_target_jetty_t *x = make_target(URMA_TM_RC), *y = make_target(URMA_TM_RC);
  urma_active_tp_cfg_t cfg = channel(URMA_TM_RC), unknown{};
  EXPECT_EQ(urma_bind_jetty_ex(nullptr, x, &cfg), URMA_EINVAL);
  EXPECT_EQ(urma_bind_jetty_ex(a, nullptr, &cfg), URMA_EINVAL);
  EXPECT_EQ(urma_bind_jetty_ex(a, x, nullptr), URMA_EINVAL);
  EXPECT_EQ(urma_bind_jetty_ex(a, x, &unknown), URMA_EINVAL);
  EXPECT_EQ(a->remote_jetty, nullptr);
  EXPECT_EQ(urma_bind_jetty_ex(a, x, &cfg), URMA_SUCCESS);
  EXPECT_EQ(a->remote_jetty, x);
  EXPECT_EQ(urma_bind_jetty_ex(a, x, &cfg), URMA_SUCCESS);
  EXPECT_EQ(urma_bind_jetty_ex(a, y, &cfg), URMA_EEXIST);
  EXPECT_EQ(urma_bind_jetty_ex(b, x, &cfg), URMA_EINVAL);
  urma_active_tp_cfg_t rm = channel(URMA_TM_RM);
  EXPECT_EQ(urma_bind_jetty_ex(b, make_target(URMA_TM_RM), &rm), URMA_ENOPERM);
}

TEST_F(Tp, number) {
  urma_jfc_t* jfc = make_jfc();
  urma_jfr_t* jfr = make_jfr(jfc, URMA_TM_RC);
  urma_jetty_t *a = make_jetty(jfc, jfr, URMA_TM_RC), *b = make_jetty(jfc, jfr, URMA_TM_RC);
  EXPECT_EQ(urma_get_tpn(nullptr), -URMA_EINVAL);
  EXPECT_EQ(urma_get_tpn(a), 0);
  ASSERT_EQ(urma_bind_jetty(a, make_target(URMA_TM_RC)), URMA_SUCCESS);
  ASSERT_EQ(urma_bind_jetty(b, make_target(URMA_TM_RC)), URMA_SUCCESS);
  int number = urma_get_tpn(a);
  EXPECT_GT(number, 0);
  EXPECT_EQ(urma_get_tpn(a), number);
  EXPECT_NE(urma_get_tpn(b), number);
  ASSERT_EQ(urma_unbind_jetty(a), URMA_SUCCESS);
  EXPECT_EQ(urma_get_tpn(a), 0);
  ASSERT_EQ(urma_delete_jetty(a), URMA_SUCCESS);
  EXPECT_EQ(urma_get_tpn(a), -URMA_EINVAL);
  EXPECT_EQ(urma_modify_tp(ctx, 0, nullptr, nullptr, {}), URMA_ENOPERM);  // user TP
}

TEST_F(Tp, attributes_are_read_back) {
  uint64_t tp = handle(query()), other = handle(query(URMA_TM_RC));
  uint8_t count = 99;
  uint32_t bitmap = 99;
  urma_tp_attr_value_t got;
  EXPECT_EQ(urma_get_tp_attr(ctx, tp, &count, &bitmap, &got), URMA_SUCCESS);
  EXPECT_EQ(count, 0);
  EXPECT_EQ(bitmap, 0u);

  urma_tp_attr_value_t values{};
  values.retry_times_init = 5;
  values.at = 21;
  values.dip[15] = 9;
  values.dscp = 33;
  values.data_udp_srcport = 4711;
  values.sl_bitmap = 0xabcd;
  values.udp_global_en = 1;
  uint32_t wanted = 1U << 0 | 1U << 3 | 1U << 13 | 1U << 16 | 1U << 17;
  EXPECT_EQ(urma_set_tp_attr(ctx, tp, 5, wanted, &values), URMA_SUCCESS);
  EXPECT_EQ(urma_get_tp_attr(ctx, tp, &count, &bitmap, &got), URMA_SUCCESS);
  EXPECT_EQ(count, 4);
  EXPECT_EQ(bitmap, wanted & ~(1U << 16));
  EXPECT_EQ(got.retry_times_init, 5);
  EXPECT_EQ(got.at, 0);  // was not in the bitmap
  EXPECT_EQ(got.dip[15], 9);
  EXPECT_EQ(got.dscp, 0);
  EXPECT_EQ(+got.data_udp_srcport, 4711);
  EXPECT_EQ(+got.sl_bitmap, 0xabcd);
  EXPECT_EQ(got.udp_global_en, 0);

  values.retry_times_init = 1;
  EXPECT_EQ(urma_set_tp_attr(ctx, tp, 1, 1U << 8, &values), URMA_SUCCESS);
  EXPECT_EQ(urma_get_tp_attr(ctx, tp, &count, &bitmap, &got), URMA_SUCCESS);
  EXPECT_EQ(count, 5);
  EXPECT_EQ(got.dscp, 33);
  EXPECT_EQ(got.retry_times_init, 5);
  EXPECT_EQ(urma_get_tp_attr(ctx, other, &count, &bitmap, &got), URMA_SUCCESS);
  EXPECT_EQ(bitmap, 0u);
}

TEST_F(Tp, each_attribute_has_its_bit) {
  urma_tp_attr_value_t ones;
  memset(&ones, 0xff, sizeof ones);
  int bits_set = 0;
  for (int n = 0; n <= 18; ++n) {
    urma_get_tp_cfg_t cfg = query();
    cfg.peer_eid.raw[14] = static_cast<uint8_t>(100 + n);
    uint64_t tp = handle(cfg);
    ASSERT_EQ(urma_set_tp_attr(ctx, tp, 1, 1U << n, &ones), URMA_SUCCESS);
    uint8_t count, bytes[sizeof ones];
    uint32_t bitmap;
    urma_tp_attr_value_t got;
    ASSERT_EQ(urma_get_tp_attr(ctx, tp, &count, &bitmap, &got), URMA_SUCCESS);
    memcpy(bytes, &got, sizeof bytes);
    int bits = 0;
    for (uint8_t byte : bytes) bits += __builtin_popcount(byte);
    EXPECT_EQ(bits == 0, n == 16) << n;
    bits_set += bits;
  }
  // 3+5, two addresses, two MAC addresses, 12+1+6+5+4, TTL, two ports, range 4, spray 1, sl_bitmap, mode 1.
  EXPECT_EQ(bits_set, 8 + 256 + 96 + 28 + 8 + 32 + 4 + 1 + 16 + 1);
}

TEST_F(Tp, attributes_refuse_bad_arguments) {
  uint64_t tp = handle(query());
  urma_tp_attr_value_t values{};
  uint8_t count;
  uint32_t bitmap;
  EXPECT_EQ(urma_set_tp_attr(nullptr, tp, 1, 1, &values), URMA_EINVAL);
  EXPECT_EQ(urma_set_tp_attr(ctx, tp, 1, 1, nullptr), URMA_EINVAL);
  EXPECT_EQ(urma_set_tp_attr(ctx, tp + 1000, 1, 1, &values), URMA_EINVAL);
  EXPECT_EQ(urma_set_tp_attr(ctx, tp, 1, 1U << 19, &values), URMA_EINVAL);
  EXPECT_EQ(urma_get_tp_attr(nullptr, tp, &count, &bitmap, &values), URMA_EINVAL);
  EXPECT_EQ(urma_get_tp_attr(ctx, tp, nullptr, &bitmap, &values), URMA_EINVAL);
  EXPECT_EQ(urma_get_tp_attr(ctx, tp, &count, nullptr, &values), URMA_EINVAL);
  EXPECT_EQ(urma_get_tp_attr(ctx, tp, &count, &bitmap, nullptr), URMA_EINVAL);
  EXPECT_EQ(urma_get_tp_attr(ctx, tp + 1000, &count, &bitmap, &values), URMA_EINVAL);
}

// ---- which transport serves (softub_api.h) ----

ChannelInfo channel_to(uint32_t uasid, bool compact, bool repeats, uint64_t packets) {
  ChannelInfo c{};
  c.peer = {FakeBackend::eid(50), uasid};
  c.compact = compact;
  c.repeats = repeats;
  c.tx_packets = packets;
  return c;
}

TEST_F(Tp, packets_to_the_instance_of_a_target_are_counted_by_transport) {
  fake->channel_list = {channel_to(77, false, false, 1), channel_to(77, false, false, 10),
                        channel_to(77, true, false, 100), channel_to(77, true, true, 1000),
                        channel_to(78, true, true, 10000)};
  softub_transports_t packets{9, 9, 9};
  ASSERT_EQ(softub_get_transports(make_target(), &packets), URMA_SUCCESS);
  EXPECT_EQ(packets.rtp, 11u);
  EXPECT_EQ(packets.ctp, 100u);
  EXPECT_EQ(packets.ctp_repeats, 1000u);
}

TEST_F(Tp, transports_of_what_is_no_import_are_not_known) {
  softub_transports_t packets{9, 9, 9};
  EXPECT_EQ(softub_get_transports(nullptr, &packets), URMA_EINVAL);
  urma_target_jetty_t* target = make_target();
  EXPECT_EQ(softub_get_transports(target, nullptr), URMA_EINVAL);
  ASSERT_EQ(urma_unimport_jetty(target), URMA_SUCCESS);
  EXPECT_EQ(softub_get_transports(target, &packets), URMA_EINVAL);
  EXPECT_EQ(packets.rtp, 9u);
}

}  // namespace
}  // namespace ub::test
