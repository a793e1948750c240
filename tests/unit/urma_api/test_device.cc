// SPDX-License-Identifier: Apache-2.0
// What the device says of itself is what was configured.
#include <algorithm>

#include "lib/urma/device/device_profile.h"
#include "tests/unit/urma_api/fixture.h"

namespace ub::test {
namespace {

class DeviceTest : public UrmaTest {
 protected:
  void TearDown() override {
    UrmaTest::TearDown();
    settings = {};
  }
  urma_device_attr_t query() {
    urma_device_attr_t attr;
    memset(&attr, 0xa5, sizeof attr);
    EXPECT_EQ(urma_query_device(device, &attr), URMA_SUCCESS);
    return attr;
  }
  // As configured, from a new start.
  urma_device_attr_t query_with(const urma::DeviceSettings& wanted) {
    settings = wanted;
    EXPECT_EQ(urma_uninit(), URMA_SUCCESS);
    EXPECT_EQ(urma_init(nullptr), URMA_SUCCESS);
    std::string name = wanted.name;
    device = urma_get_device_by_name(name.data());
    EXPECT_NE(device, nullptr);
    return query();
  }
};

TEST_F(DeviceTest, defaults_satisfy_programs) {
  const urma_device_attr_t attr = query();
  EXPECT_EQ(attr.port_cnt, 1);
  EXPECT_EQ(attr.port_attr[0].state, URMA_PORT_ACTIVE);
  const urma_device_cap_t& cap = attr.dev_cap;
  EXPECT_GE(cap.max_jfc_depth, 8192u);
  EXPECT_GE(cap.max_jfs_depth, 15000u);
  EXPECT_GE(cap.max_jfr_depth, 32768u);
  EXPECT_GE(cap.max_jetty, 65535u);
  EXPECT_GE(cap.max_jfs_inline_len, 188u);
  EXPECT_GE(cap.max_msg_size, 8u << 20);
  for (uint32_t sge : {cap.max_jfs_sge, cap.max_jfr_sge, cap.max_jfs_rsge}) {
    EXPECT_GE(sge, 2u);
    EXPECT_LE(sge, 255u);
  }
  EXPECT_EQ(cap.trans_mode, URMA_TM_RM | URMA_TM_RC | URMA_TM_UM);
  EXPECT_EQ(cap.page_size_cap & 4096, 4096u);
  EXPECT_EQ(attr.reserved_jetty_id_min, 3u);
  EXPECT_EQ(attr.reserved_jetty_id_max, 3071u);
  for (uint32_t wanted : {1u, 2u, 4u}) {  // exactly RTP, CTP, UTP
    EXPECT_TRUE(std::any_of(std::begin(cap.priority_info), std::end(cap.priority_info),
                            [wanted](const urma_sl_info& info) { return info.tp_type.value == wanted; }));
  }
}

TEST_F(DeviceTest, profile_is_the_users) {
  urma::DeviceSettings wanted;
  wanted.name = "ub7";
  wanted.ports = 3;
  wanted.port_state = URMA_PORT_DOWN;
  wanted.port_speed = URMA_SP_25G;
  wanted.port_width = URMA_LINK_X4;
  wanted.features = 1 << 3 | 1 << 19;
  wanted.rtp_priorities = 1;
  wanted.ctp_priorities = 15;
  wanted.max_jfs_depth = 77;
  const urma_device_attr_t attr = query_with(wanted);
  EXPECT_STREQ(device->name, "ub7");
  EXPECT_EQ(attr.port_cnt, 3);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(attr.port_attr[i].state, URMA_PORT_DOWN);
    EXPECT_EQ(attr.port_attr[i].active_speed, URMA_SP_25G);
    EXPECT_EQ(attr.port_attr[i].active_width, URMA_LINK_X4);
    EXPECT_EQ(attr.port_attr[i].active_mtu, URMA_MTU_4096);
  }
  EXPECT_EQ(attr.port_attr[3].active_mtu, 0);
  EXPECT_EQ(attr.dev_cap.feature.value, 1u << 3 | 1u << 19);
  EXPECT_EQ(attr.dev_cap.feature.bs.load_store_op, 1u);
  EXPECT_EQ(attr.dev_cap.feature.bs.uboe, 1u);
  EXPECT_EQ(attr.dev_cap.priority_info[0].tp_type.value, 1u);
  EXPECT_EQ(attr.dev_cap.priority_info[1].tp_type.value, 2u);
  EXPECT_EQ(attr.dev_cap.priority_info[15].tp_type.value, 2u);
  EXPECT_EQ(attr.dev_cap.max_jfs_depth, 77u);
}

TEST(DeviceProfile, selective_retransmission_is_shown_only_where_channels_have_it) {
  constexpr uint32_t kSelectiveRetrans = 1 << 8;
  Config config;
  urma::DeviceSettings settings;
  std::string error;
  ASSERT_TRUE(urma::read_profile(config, &settings, &error));
  const uint32_t features = settings.features;
  EXPECT_EQ(features & kSelectiveRetrans, kSelectiveRetrans);
  config.transport.retransmission = "go_back_n";
  ASSERT_TRUE(urma::read_profile(config, &settings, &error));
  EXPECT_EQ(settings.features, features & ~kSelectiveRetrans) << "even where device.features names it";
}

TEST_F(DeviceTest, bad_arguments) {
  urma_device_attr_t attr;
  EXPECT_EQ(urma_query_device(nullptr, &attr), URMA_EINVAL);
  EXPECT_EQ(urma_query_device(device, nullptr), URMA_EINVAL);
}

}  // namespace
}  // namespace ub::test
