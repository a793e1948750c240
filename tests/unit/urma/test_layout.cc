// SPDX-License-Identifier: Apache-2.0
//
// The public headers as a C++ program sees them: numbers and layout (same table as in C), signatures of all
// calls of URMA API 0.9, and the helpers that need no device: EIDs, names, text to number, containers, clock.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <time.h>
#include <ub/umdk/urma/ub_barrier.h>
#include <ub/umdk/urma/ub_bitmap.h>
#include <ub/umdk/urma/ub_dstring.h>
#include <ub/umdk/urma/ub_get_clock.h>
#include <ub/umdk/urma/ub_hash.h>
#include <ub/umdk/urma/ub_hmap.h>
#include <ub/umdk/urma/ub_list.h>
#include <ub/umdk/urma/ub_perf_cycle.h>
#include <ub/umdk/urma/ub_util.h>
#include <ub/umdk/urma/urma_api.h>
#include <ub/umdk/urma/urma_log.h>
#include <ub/umdk/urma/urma_perf.h>
#include <ub/umdk/urma/urma_provider.h>
#include <ub/umdk/urma/urma_types_str.h>
#include <ub/umdk/urma/urma_ubagg.h>

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <string>
#include <type_traits>
#include <vector>

extern "C" int layout_wrong_bits_c(void (*report)(const char*, unsigned long long));
#include "test_layout_c.c"

// ---- Signatures: exact type, and C linkage (declaring it again with another linkage would not compile) ----

#define FUNCTION(name, ...)                                                     \
  static_assert(std::is_same_v<decltype(name), __VA_ARGS__>, #name " differs"); \
  extern "C" decltype(name) name

FUNCTION(urma_init, urma_status_t(urma_init_attr_t*));
FUNCTION(urma_uninit, urma_status_t());
FUNCTION(urma_get_device_list, urma_device_t**(int*));
FUNCTION(urma_free_device_list, void(urma_device_t**));
FUNCTION(urma_get_device_by_name, urma_device_t*(char*));
FUNCTION(urma_get_device_by_eid, urma_device_t*(urma_eid_t, urma_transport_type_t));
FUNCTION(urma_get_eid_list, urma_eid_info_t*(urma_device_t*, uint32_t*));
FUNCTION(urma_free_eid_list, void(urma_eid_info_t*));
FUNCTION(urma_query_device, urma_status_t(urma_device_t*, urma_device_attr_t*));
FUNCTION(urma_create_context, urma_context_t*(urma_device_t*, uint32_t));
FUNCTION(urma_delete_context, urma_status_t(urma_context_t*));
FUNCTION(urma_set_context_opt, urma_status_t(urma_context_t*, urma_opt_name_t, const void*, size_t));
FUNCTION(urma_get_uasid, urma_status_t(uint32_t*));
FUNCTION(urma_u32_to_eid, void(uint32_t, urma_eid_t*));
FUNCTION(urma_str_to_eid, int(const char*, urma_eid_t*));
FUNCTION(urma_create_jfc, urma_jfc_t*(urma_context_t*, urma_jfc_cfg_t*));
FUNCTION(urma_modify_jfc, urma_status_t(urma_jfc_t*, urma_jfc_attr_t*));
FUNCTION(urma_delete_jfc, urma_status_t(urma_jfc_t*));
FUNCTION(urma_delete_jfc_batch, urma_status_t(urma_jfc_t**, int, urma_jfc_t**));
FUNCTION(urma_create_jfce, urma_jfce_t*(urma_context_t*));
FUNCTION(urma_delete_jfce, urma_status_t(urma_jfce_t*));
FUNCTION(urma_poll_jfc, int(urma_jfc_t*, int, urma_cr_t*));
FUNCTION(urma_rearm_jfc, urma_status_t(urma_jfc_t*, bool));
FUNCTION(urma_wait_jfc, int(urma_jfce_t*, uint32_t, int, urma_jfc_t**));
FUNCTION(urma_ack_jfc, void(urma_jfc_t**, uint32_t*, uint32_t));
FUNCTION(urma_create_jfs, urma_jfs_t*(urma_context_t*, urma_jfs_cfg_t*));
FUNCTION(urma_modify_jfs, urma_status_t(urma_jfs_t*, urma_jfs_attr_t*));
FUNCTION(urma_query_jfs, urma_status_t(urma_jfs_t*, urma_jfs_cfg_t*, urma_jfs_attr_t*));
FUNCTION(urma_delete_jfs, urma_status_t(urma_jfs_t*));
FUNCTION(urma_delete_jfs_batch, urma_status_t(urma_jfs_t**, int, urma_jfs_t**));
FUNCTION(urma_flush_jfs, int(urma_jfs_t*, int, urma_cr_t*));
FUNCTION(urma_create_jfr, urma_jfr_t*(urma_context_t*, urma_jfr_cfg_t*));
FUNCTION(urma_modify_jfr, urma_status_t(urma_jfr_t*, urma_jfr_attr_t*));
FUNCTION(urma_query_jfr, urma_status_t(urma_jfr_t*, urma_jfr_cfg_t*, urma_jfr_attr_t*));
FUNCTION(urma_delete_jfr, urma_status_t(urma_jfr_t*));
FUNCTION(urma_delete_jfr_batch, urma_status_t(urma_jfr_t**, int, urma_jfr_t**));
FUNCTION(urma_import_jfr, urma_target_jetty_t*(urma_context_t*, urma_rjfr_t*, urma_token_t*));
FUNCTION(urma_import_jfr_ex,
         urma_target_jetty_t*(urma_context_t*, urma_rjfr_t*, urma_token_t*, urma_import_jfr_ex_cfg_t*));
FUNCTION(urma_unimport_jfr, urma_status_t(urma_target_jetty_t*));
FUNCTION(urma_advise_jfr, urma_status_t(urma_jfs_t*, urma_target_jetty_t*));
FUNCTION(urma_advise_jfr_async, urma_status_t(urma_jfs_t*, urma_target_jetty_t*, urma_advise_async_cb_func, void*));
FUNCTION(urma_unadvise_jfr, urma_status_t(urma_jfs_t*, urma_target_jetty_t*));
FUNCTION(urma_create_jetty, urma_jetty_t*(urma_context_t*, urma_jetty_cfg_t*));
FUNCTION(urma_modify_jetty, urma_status_t(urma_jetty_t*, urma_jetty_attr_t*));
FUNCTION(urma_query_jetty, urma_status_t(urma_jetty_t*, urma_jetty_cfg_t*, urma_jetty_attr_t*));
FUNCTION(urma_delete_jetty, urma_status_t(urma_jetty_t*));
FUNCTION(urma_delete_jetty_batch, urma_status_t(urma_jetty_t**, int, urma_jetty_t**));
FUNCTION(urma_import_jetty, urma_target_jetty_t*(urma_context_t*, urma_rjetty_t*, urma_token_t*));
FUNCTION(urma_import_jetty_ex,
         urma_target_jetty_t*(urma_context_t*, urma_rjetty_t*, urma_token_t*, urma_import_jetty_ex_cfg_t*));
FUNCTION(urma_unimport_jetty, urma_status_t(urma_target_jetty_t*));
FUNCTION(urma_advise_jetty, urma_status_t(urma_jetty_t*, urma_target_jetty_t*));
FUNCTION(urma_unadvise_jetty, urma_status_t(urma_jetty_t*, urma_target_jetty_t*));
FUNCTION(urma_bind_jetty, urma_status_t(urma_jetty_t*, urma_target_jetty_t*));
FUNCTION(urma_bind_jetty_ex, urma_status_t(urma_jetty_t*, urma_target_jetty_t*, urma_bind_jetty_ex_cfg_t*));
FUNCTION(urma_unbind_jetty, urma_status_t(urma_jetty_t*));
FUNCTION(urma_flush_jetty, int(urma_jetty_t*, int, urma_cr_t*));
FUNCTION(urma_get_rjetty, urma_status_t(urma_jetty_t*, urma_rjetty_t**, uint32_t*));
FUNCTION(urma_put_rjetty, void(urma_rjetty_t*));
FUNCTION(urma_create_notifier, urma_notifier_t*(urma_context_t*));
FUNCTION(urma_delete_notifier, urma_status_t(urma_notifier_t*));
FUNCTION(urma_import_jetty_async,
         urma_target_jetty_t*(urma_notifier_t*, const urma_rjetty_t*, const urma_token_t*, uint64_t, int));
FUNCTION(urma_unimport_jetty_async, urma_status_t(urma_target_jetty_t*));
FUNCTION(urma_bind_jetty_async, urma_status_t(urma_notifier_t*, urma_jetty_t*, urma_target_jetty_t*, uint64_t, int));
FUNCTION(urma_unbind_jetty_async, urma_status_t(urma_jetty_t*));
FUNCTION(urma_wait_notify, int(urma_notifier_t*, uint32_t, urma_notify_t*, int));
FUNCTION(urma_ack_notify, urma_status_t(urma_context_t*, uint32_t, urma_notify_t*));
FUNCTION(urma_alloc_jfc, urma_status_t(urma_context_t*, urma_jfc_cfg_t*, urma_jfc_t**));
FUNCTION(urma_set_jfc_opt, urma_status_t(urma_jfc_t*, uint64_t, void*, uint32_t));
FUNCTION(urma_active_jfc, urma_status_t(urma_jfc_t*));
FUNCTION(urma_get_jfc_opt, urma_status_t(urma_jfc_t*, uint64_t, void*, uint32_t));
FUNCTION(urma_deactive_jfc, urma_status_t(urma_jfc_t*));
FUNCTION(urma_free_jfc, urma_status_t(urma_jfc_t*));
FUNCTION(urma_alloc_jfs, urma_status_t(urma_context_t*, urma_jfs_cfg_t*, urma_jfs_t**));
FUNCTION(urma_set_jfs_opt, urma_status_t(urma_jfs_t*, uint64_t, void*, uint32_t));
FUNCTION(urma_active_jfs, urma_status_t(urma_jfs_t*));
FUNCTION(urma_get_jfs_opt, urma_status_t(urma_jfs_t*, uint64_t, void*, uint32_t));
FUNCTION(urma_deactive_jfs, urma_status_t(urma_jfs_t*));
FUNCTION(urma_free_jfs, urma_status_t(urma_jfs_t*));
FUNCTION(urma_alloc_jfr, urma_status_t(urma_context_t*, urma_jfr_cfg_t*, urma_jfr_t**));
FUNCTION(urma_set_jfr_opt, urma_status_t(urma_jfr_t*, uint64_t, void*, uint32_t));
FUNCTION(urma_active_jfr, urma_status_t(urma_jfr_t*));
FUNCTION(urma_get_jfr_opt, urma_status_t(urma_jfr_t*, uint64_t, void*, uint32_t));
FUNCTION(urma_deactive_jfr, urma_status_t(urma_jfr_t*));
FUNCTION(urma_free_jfr, urma_status_t(urma_jfr_t*));
FUNCTION(urma_alloc_jetty, urma_status_t(urma_context_t*, urma_jetty_cfg_t*, urma_jetty_t**));
FUNCTION(urma_set_jetty_opt, urma_status_t(urma_jetty_t*, uint64_t, void*, uint32_t));
FUNCTION(urma_active_jetty, urma_status_t(urma_jetty_t*));
FUNCTION(urma_get_jetty_opt, urma_status_t(urma_jetty_t*, uint64_t, void*, uint32_t));
FUNCTION(urma_deactive_jetty, urma_status_t(urma_jetty_t*));
FUNCTION(urma_free_jetty, urma_status_t(urma_jetty_t*));
FUNCTION(urma_create_jetty_grp, urma_jetty_grp_t*(urma_context_t*, urma_jetty_grp_cfg_t*));
FUNCTION(urma_delete_jetty_grp, urma_status_t(urma_jetty_grp_t*));
FUNCTION(urma_alloc_token_id, urma_token_id_t*(urma_context_t*));
FUNCTION(urma_alloc_token_id_ex, urma_token_id_t*(urma_context_t*, urma_token_id_flag_t));
FUNCTION(urma_free_token_id, urma_status_t(urma_token_id_t*));
FUNCTION(urma_register_seg, urma_target_seg_t*(urma_context_t*, urma_seg_cfg_t*));
FUNCTION(urma_unregister_seg, urma_status_t(urma_target_seg_t*));
FUNCTION(urma_import_seg,
         urma_target_seg_t*(urma_context_t*, urma_seg_t*, urma_token_t*, uint64_t, urma_import_seg_flag_t));
FUNCTION(urma_unimport_seg, urma_status_t(urma_target_seg_t*));
FUNCTION(urma_get_seg_ctx, urma_status_t(urma_target_seg_t*, urma_seg_t**, uint32_t*));
FUNCTION(urma_put_seg_ctx, void(urma_seg_t*));
FUNCTION(urma_post_jfs_wr, urma_status_t(urma_jfs_t*, urma_jfs_wr_t*, urma_jfs_wr_t**));
FUNCTION(urma_post_jfr_wr, urma_status_t(urma_jfr_t*, urma_jfr_wr_t*, urma_jfr_wr_t**));
FUNCTION(urma_post_jetty_send_wr, urma_status_t(urma_jetty_t*, urma_jfs_wr_t*, urma_jfs_wr_t**));
FUNCTION(urma_post_jetty_recv_wr, urma_status_t(urma_jetty_t*, urma_jfr_wr_t*, urma_jfr_wr_t**));
FUNCTION(urma_write, urma_status_t(urma_jfs_t*, urma_target_jetty_t*, urma_target_seg_t*, urma_target_seg_t*, uint64_t,
                                   uint64_t, uint32_t, urma_jfs_wr_flag_t, uint64_t));
FUNCTION(urma_read, urma_status_t(urma_jfs_t*, urma_target_jetty_t*, urma_target_seg_t*, urma_target_seg_t*, uint64_t,
                                  uint64_t, uint32_t, urma_jfs_wr_flag_t, uint64_t));
FUNCTION(urma_send, urma_status_t(urma_jfs_t*, urma_target_jetty_t*, urma_target_seg_t*, uint64_t, uint32_t,
                                  urma_jfs_wr_flag_t, uint64_t));
FUNCTION(urma_recv, urma_status_t(urma_jfr_t*, urma_target_seg_t*, uint64_t, uint32_t, uint64_t));
FUNCTION(urma_get_async_event, urma_status_t(urma_context_t*, urma_async_event_t*));
FUNCTION(urma_ack_async_event, void(urma_async_event_t*));
FUNCTION(urma_user_ctl, urma_status_t(urma_context_t*, urma_user_ctl_in_t*, urma_user_ctl_out_t*));
FUNCTION(urma_register_log_func, urma_status_t(urma_log_cb_t));
FUNCTION(urma_register_loc_log_func, urma_status_t(urma_loc_log_cb));
FUNCTION(urma_unregister_log_func, urma_status_t());
FUNCTION(urma_log_get_level, urma_vlog_level_t());
FUNCTION(urma_log_set_level, void(urma_vlog_level_t));
FUNCTION(urma_log_get_thread_tag, const char*());
FUNCTION(urma_log_set_thread_tag, void(const char*));
FUNCTION(urma_get_tpn, int(urma_jetty_t*));
FUNCTION(urma_get_net_addr_list, urma_net_addr_info_t*(urma_context_t*, uint32_t*));
FUNCTION(urma_free_net_addr_list, void(urma_net_addr_info_t*));
FUNCTION(urma_modify_tp, int(urma_context_t*, uint32_t, urma_tp_cfg_t*, urma_tp_attr_t*, urma_tp_attr_mask_t));
FUNCTION(urma_get_tp_list, urma_status_t(urma_context_t*, urma_get_tp_cfg_t*, uint32_t*, urma_tp_info_t*));
FUNCTION(urma_set_tp_attr,
         urma_status_t(const urma_context_t*, uint64_t, uint8_t, uint32_t, const urma_tp_attr_value_t*));
FUNCTION(urma_get_tp_attr, urma_status_t(const urma_context_t*, uint64_t, uint8_t*, uint32_t*, urma_tp_attr_value_t*));
FUNCTION(urma_get_eid_by_ip, urma_status_t(const urma_context_t*, const urma_net_addr_t*, urma_eid_t*));
FUNCTION(urma_get_ip_by_eid, urma_status_t(const urma_context_t*, const urma_eid_t*, urma_net_addr_t*));
FUNCTION(urma_get_smac, urma_status_t(const urma_context_t*, uint8_t*));
FUNCTION(urma_get_dmac, urma_status_t(const urma_context_t*, const urma_net_addr_t*, uint8_t*));
FUNCTION(urma_start_perf, urma_status_t());
FUNCTION(urma_stop_perf, urma_status_t());
FUNCTION(urma_get_perf_info, urma_status_t(char*, uint32_t*));
FUNCTION(urma_write_affinity,
         urma_status_t(urma_jfs_t*, urma_target_jetty_t*, urma_target_seg_t*, urma_target_seg_t*, uint64_t, uint64_t,
                       uint32_t, urma_jfs_wr_flag_t, uint64_t, uint32_t, uint32_t));
FUNCTION(urma_log_drop, bool(urma_vlog_level_t));
static_assert(std::is_void_v<decltype(urma_log("", 0, URMA_VLOG_LEVEL_INFO, "%d", 1))>);  // has attributes
FUNCTION(urma_register_provider_ops, int(urma_provider_ops_t*));
FUNCTION(urma_unregister_provider_ops, int(urma_provider_ops_t*));
FUNCTION(get_cpu_mhz, double(bool));
FUNCTION(ub_hugemalloc, void*(size_t, urma_huge_page_size_t, void*));
FUNCTION(ub_hugefree, int(void*, size_t));
FUNCTION(ub_str_to_bool, int(const char*, bool*));
FUNCTION(ub_str_to_u8, int(const char*, uint8_t*));
FUNCTION(ub_str_to_u16, int(const char*, uint16_t*));
FUNCTION(ub_str_to_u32, int(const char*, uint32_t*));
FUNCTION(ub_str_to_u64, int(const char*, uint64_t*));
FUNCTION(ub_str_to_int, int(const char*, int*));

namespace {

void report_bits(const char* field, unsigned long long value) {
  ADD_FAILURE() << field << " set to ones gives value 0x" << std::hex << value;
}

TEST(UrmaLayout, bit_fields_in_c) { EXPECT_EQ(0, layout_wrong_bits_c(report_bits)); }
TEST(UrmaLayout, bit_fields_in_cxx) { EXPECT_EQ(0, layout_wrong_bits_cc(report_bits)); }

// The forms of initialisation that programs use.
TEST(UrmaLayout, initialisers) {
  urma_sge_t sge{4096, 64, nullptr, nullptr};
  urma_sg_t sg{&sge, 1};
  urma_jfr_wr_t wr{sg, 7, nullptr};
  EXPECT_EQ(4096u, wr.src.sge->addr);
  EXPECT_EQ(64u, wr.src.sge->len);
  EXPECT_EQ(7u, wr.user_ctx);
  urma_sge_t by_name = {.addr = 1, .len = 2, .tseg = nullptr, .user_tseg = nullptr};
  EXPECT_EQ(2u, by_name.len);
  urma_jetty_id_t id = {.eid = {.in6 = {.subnet_prefix = 1, .interface_id = 2}}, .uasid = 3, .id = 4};
  EXPECT_EQ(4u, id.id);
}

// ---- EIDs ----

std::string text_of(const urma_eid_t& eid) {
  char text[URMA_EID_STR_LEN + 1];
  EXPECT_EQ(URMA_EID_STR_LEN, snprintf(text, sizeof(text), EID_FMT, EID_ARGS(eid)));
  return text;
}

TEST(UrmaEid, from_number) {
  urma_eid_t eid;
  memset(&eid, 0xee, sizeof(eid));
  urma_u32_to_eid(0xc0a86401, &eid);
  EXPECT_EQ("0000:0000:0000:0000:0000:ffff:c0a8:6401", text_of(eid));
  EXPECT_EQ(0u, eid.in4.reserved);
  EXPECT_EQ(htonl(0xffff), eid.in4.prefix);
  EXPECT_EQ(htonl(0xc0a86401), eid.in4.addr);
  urma_u32_to_eid(1, nullptr);
}

TEST(UrmaEid, from_text) {
  const struct {
    const char* text;
    const char* eid;
  } rows[] = {
      {"::1", "0000:0000:0000:0000:0000:0000:0000:0001"},
      {"fe80::0123:4567:89ab:CDEF", "fe80:0000:0000:0000:0123:4567:89ab:cdef"},
      {"0000:0000:0000:0000:0000:ffff:c0a8:6401", "0000:0000:0000:0000:0000:ffff:c0a8:6401"},
      {"::ffff:192.168.100.1", "0000:0000:0000:0000:0000:ffff:c0a8:6401"},
      {"192.168.100.1", "0000:0000:0000:0000:0000:ffff:c0a8:6401"},
      {"0xc0a86401", "0000:0000:0000:0000:0000:ffff:c0a8:6401"},
      {"3232261121", "0000:0000:0000:0000:0000:ffff:c0a8:6401"},
      {"017", "0000:0000:0000:0000:0000:ffff:0000:000f"},
      {"4294967295", "0000:0000:0000:0000:0000:ffff:ffff:ffff"},
  };
  for (const auto& row : rows) {
    urma_eid_t eid;
    memset(&eid, 0xee, sizeof(eid));
    EXPECT_EQ(0, urma_str_to_eid(row.text, &eid)) << row.text;
    EXPECT_EQ(row.eid, text_of(eid)) << row.text;
  }
}

TEST(UrmaEid, bad_text) {
  for (const char* text : {"", "1", "12", "::", "1.2.3", "1.2.3.256", "4294967296", "-12", "+12", " 12", "12 ", "0xg",
                           "12x", "fe80::1::2", "fe80::1%lo", "eid"}) {
    urma_eid_t eid;
    memset(&eid, 0xee, sizeof(eid));
    EXPECT_EQ(-EINVAL, urma_str_to_eid(text, &eid)) << '"' << text << '"';
    EXPECT_EQ(0xee, eid.raw[0]);
    EXPECT_EQ(0xee, eid.raw[15]);
  }
  urma_eid_t eid;
  EXPECT_EQ(-EINVAL, urma_str_to_eid(nullptr, &eid));
  EXPECT_EQ(-EINVAL, urma_str_to_eid("::1", nullptr));
}

// ---- Names ----

TEST(UrmaNames, all_of_them) {
  EXPECT_STREQ("MTU_256", urma_mtu_to_string(URMA_MTU_256));
  EXPECT_STREQ("MTU_512", urma_mtu_to_string(URMA_MTU_512));
  EXPECT_STREQ("MTU_1024", urma_mtu_to_string(URMA_MTU_1024));
  EXPECT_STREQ("MTU_2048", urma_mtu_to_string(URMA_MTU_2048));
  EXPECT_STREQ("MTU_4096", urma_mtu_to_string(URMA_MTU_4096));
  EXPECT_STREQ("MTU_8192", urma_mtu_to_string(URMA_MTU_8192));
  EXPECT_STREQ("Invalid Value", urma_mtu_to_string(static_cast<urma_mtu_t>(0)));
  EXPECT_STREQ("Invalid Value", urma_mtu_to_string(static_cast<urma_mtu_t>(7)));

  const char* const ports[] = {"NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER", "Invalid Value"};
  for (int i = 0; i < 7; ++i) EXPECT_STREQ(ports[i], urma_port_state_to_string(static_cast<urma_port_state_t>(i)));

  const char* const speeds[] = {"SP_10M",  "SP_100M", "SP_1G",   "SP_2.5G", "SP_5G",
                                "SP_10G",  "SP_14G",  "SP_25G",  "SP_40G",  "SP_50G",
                                "SP_100G", "SP_200G", "SP_400G", "SP_800G", "Invalid Value"};
  for (int i = 0; i < 15; ++i) EXPECT_STREQ(speeds[i], urma_speed_to_string(static_cast<urma_speed_t>(i)));

  for (int lanes = 0; lanes <= 33; ++lanes) {
    const bool known = lanes == 1 || lanes == 2 || lanes == 4 || lanes == 8 || lanes == 16 || lanes == 32;
    EXPECT_EQ(known ? "LINK_X" + std::to_string(lanes) : "Invalid Value",
              urma_link_width_to_string(static_cast<urma_link_width_t>(lanes)));
  }

  for (uint32_t value = 0; value < 9; ++value) {
    union urma_tp_type_en set;
    set.value = value;
    EXPECT_STREQ(value == 1   ? "RTP"
                 : value == 2 ? "CTP"
                 : value == 4 ? "UTP"
                              : "Invalid Value",
                 urma_tp_type_en_to_string(set));
  }

  const char* const features[] = {"OUT_OF_ORDER",      "JFC_PER_WR",      "STRIDE_OP",  "LOAD_STORE_OP",
                                  "NON_PIN",           "PERSISTENCE_MEM", "JFC_INLINE", "SPRAY_ENABLE",
                                  "SELECTIVE_RETRANS", "Invalid Value"};
  for (uint8_t i = 0; i < 10; ++i) EXPECT_STREQ(features[i], urma_device_feat_to_string(i));

  const char* const atomics[] = {"compare_and_swap", "swap",         "fetch_and_add", "fetch_and_sub",
                                 "fetch_and_and",    "fetch_and_or", "fetch_and_xor", "Invalid Value"};
  for (uint8_t i = 0; i < 8; ++i) EXPECT_STREQ(atomics[i], urma_atomic_feat_to_string(i));

  EXPECT_STREQ("RM(Reliable message)", urma_trans_mode_to_string(URMA_TM_RM));
  EXPECT_STREQ("RC(Reliable connection)", urma_trans_mode_to_string(URMA_TM_RC));
  EXPECT_STREQ("UM(Unreliable message)", urma_trans_mode_to_string(URMA_TM_UM));
  EXPECT_STREQ("Invalid Value", urma_trans_mode_to_string(static_cast<urma_transport_mode_t>(3)));

  const char* const devices[] = {"UB", "IB", "IP", "SOFTUB", "Invalid Value", "HNS_UB", "Invalid Value"};
  for (int i = 0; i < 7; ++i) EXPECT_STREQ(devices[i], urma_tp_type_to_string(static_cast<urma_transport_type_t>(i)));
  EXPECT_STREQ("Invalid Value", urma_tp_type_to_string(URMA_TRANSPORT_INVALID));

  const char* const algorithms[] = {"NONE", "DCQCN", "CAQM",     "LDCP",     "LDCP_L2_HEADER", "LDCP_TP_HEADER",
                                    "DIP",  "ACC",   "CUSTOM_1", "CUSTOM_2", "Invalid Value"};
  for (uint8_t i = 0; i < 11; ++i) EXPECT_STREQ(algorithms[i], urma_congestion_ctrl_alg_to_string(i));

  const char* const jfc[] = {"INVALID", "VALID", "ERROR", "Invalid Value"};
  const char* const jetty[] = {"RESET", "READY", "SUSPENDED", "ERROR", "Invalid Value"};
  const char* const jfr[] = {"RESET", "READY", "ERROR", "Invalid Value"};
  for (uint8_t i = 0; i < 4; ++i) EXPECT_STREQ(jfc[i], urma_jfc_state_to_string(i));
  for (uint8_t i = 0; i < 5; ++i) EXPECT_STREQ(jetty[i], urma_jetty_state_to_string(i));
  for (uint8_t i = 0; i < 4; ++i) EXPECT_STREQ(jfr[i], urma_jfr_state_to_string(i));
  EXPECT_STREQ("Invalid Value", urma_jetty_state_to_string(255));
}

// ---- Text to number ----

TEST(UbText, bool) {
  bool value = false;
  EXPECT_EQ(0, ub_str_to_bool("true", &value));
  EXPECT_TRUE(value);
  EXPECT_EQ(0, ub_str_to_bool("false", &value));
  EXPECT_FALSE(value);
  for (const char* text : {"", "True", "1", "0", "truee", " true"})
    EXPECT_EQ(-EINVAL, ub_str_to_bool(text, &value)) << text;
  EXPECT_EQ(-EINVAL, ub_str_to_bool(nullptr, &value));
  EXPECT_EQ(-EINVAL, ub_str_to_bool("true", nullptr));
}

template <typename T>
void check_unsigned(int (*parse)(const char*, T*)) {
  const uint64_t top = static_cast<T>(-1);
  T value = 0;
  EXPECT_EQ(0, parse("0", &value));
  EXPECT_EQ(0u, value);
  EXPECT_EQ(0, parse("127", &value));
  EXPECT_EQ(127u, value);
  EXPECT_EQ(0, parse("0x7F", &value));
  EXPECT_EQ(127u, value);
  EXPECT_EQ(0, parse("0177", &value));
  EXPECT_EQ(127u, value);
  EXPECT_EQ(0, parse(std::to_string(top).c_str(), &value));
  EXPECT_EQ(top, value);
  value = 42;
  const std::string above = sizeof(T) == 8 ? "18446744073709551616" : std::to_string(top + 1);
  EXPECT_EQ(-ERANGE, parse(above.c_str(), &value));
  EXPECT_EQ(-ERANGE, parse("99999999999999999999999", &value));
  for (const char* text : {"", "-1", "+1", " 1", "1 ", "x", "0x", "0xg", "08", "1.5", "12a", "-0"})
    EXPECT_EQ(-EINVAL, parse(text, &value)) << '"' << text << '"';
  EXPECT_EQ(42u, value);
  EXPECT_EQ(-EINVAL, parse(nullptr, &value));
  EXPECT_EQ(-EINVAL, parse("1", nullptr));
}

TEST(UbText, u8) { check_unsigned(ub_str_to_u8); }
TEST(UbText, u16) { check_unsigned(ub_str_to_u16); }
TEST(UbText, u32) { check_unsigned(ub_str_to_u32); }
TEST(UbText, u64) { check_unsigned(ub_str_to_u64); }

TEST(UbText, int) {
  int value = 1;
  EXPECT_EQ(0, ub_str_to_int("-2147483648", &value));
  EXPECT_EQ(-2147483647 - 1, value);
  EXPECT_EQ(0, ub_str_to_int("2147483647", &value));
  EXPECT_EQ(2147483647, value);
  EXPECT_EQ(0, ub_str_to_int("-0x10", &value));
  EXPECT_EQ(-16, value);
  EXPECT_EQ(-ERANGE, ub_str_to_int("2147483648", &value));
  EXPECT_EQ(-ERANGE, ub_str_to_int("-2147483649", &value));
  for (const char* text : {"", "-", "--1", "- 1", "1-", "one"}) EXPECT_EQ(-EINVAL, ub_str_to_int(text, &value)) << text;
  EXPECT_EQ(-16, value);
  EXPECT_EQ(-EINVAL, ub_str_to_int(nullptr, &value));
  EXPECT_EQ(-EINVAL, ub_str_to_int("1", nullptr));
}

TEST(UbText, hex) {
  uint64_t value = 0;
  EXPECT_EQ(0, ub_hex_str_to_u64("ffffffffffffffff", &value));
  EXPECT_EQ(UINT64_MAX, value);
  EXPECT_EQ(0, ub_hex_str_to_u64("0x1f", &value));
  EXPECT_EQ(0x1fu, value);
  EXPECT_EQ(-ERANGE, ub_hex_str_to_u64("10000000000000000", &value));
  EXPECT_EQ(-EINVAL, ub_hex_str_to_u64("g", &value));
  bool ok = false;
  EXPECT_EQ(0xabcu, hexits_value("aBcd", 3, &ok));
  EXPECT_TRUE(ok);
  EXPECT_EQ(UINT64_MAX, hexits_value("ax", 2, &ok));
  EXPECT_FALSE(ok);
  EXPECT_EQ(UINT64_MAX, hexits_value("11111111111111111", 17, &ok));
  EXPECT_FALSE(ok);
  EXPECT_TRUE(is_valid_digit("0x10"));
  EXPECT_TRUE(is_valid_digit("99999999999999999999999"));
  EXPECT_FALSE(is_valid_digit("-1"));
  EXPECT_FALSE(is_valid_digit(""));
  EXPECT_FALSE(is_valid_digit(nullptr));
}

TEST(UbText, table) {
  char one[] = "one", two[] = "two";
  const struct str_int table[] = {{one, 1}, {two, 2}};
  int value = 0;
  EXPECT_EQ(0, get_int_from_string(table, ARRAY_SIZE(table), "two", &value));
  EXPECT_EQ(2, value);
  EXPECT_EQ(-ENOENT, get_int_from_string(table, ARRAY_SIZE(table), "three", &value));
  EXPECT_STREQ("one", get_string_from_int(table, ARRAY_SIZE(table), 1));
  EXPECT_EQ(nullptr, get_string_from_int(table, ARRAY_SIZE(table), 3));
}

TEST(UbText, files) {
  char path[] = "/tmp/urma-layout-XXXXXX";
  const int fd = mkstemp(path);
  ASSERT_GE(fd, 0);
  uint64_t value = 0;
  EXPECT_EQ(0, safe_write_value_to_file(path, "0x20\n"));
  EXPECT_EQ(0, ub_parse_sysfs_val(path, &value));
  EXPECT_EQ(0x20u, value);
  EXPECT_EQ(0, safe_write_value_to_file(path, "text\n"));
  EXPECT_EQ(-EINVAL, ub_parse_sysfs_val(path, &value));
  (void)close(fd);
  (void)unlink(path);
  EXPECT_EQ(-ENOENT, ub_parse_sysfs_val(path, &value));
  EXPECT_EQ(-ENOENT, safe_write_value_to_file(path, "1"));
}

// ---- Macros, bits, memory ----

TEST(UbUtil, macros) {
  EXPECT_EQ(3, MAX(2, 3));
  EXPECT_EQ(2, MIN(2, 3));
  EXPECT_EQ(12, ROUND_UP(9, 4));
  EXPECT_EQ(8, ROUND_UP(8, 4));
  EXPECT_EQ(8, ROUND_DOWN(9, 4));
  EXPECT_EQ(3, DIV_ROUND_UP(9, 4));
  EXPECT_EQ(2, BITS_TO_LONGS(65));
  EXPECT_TRUE(IS_POW2(64));
  EXPECT_FALSE(IS_POW2(0));
  EXPECT_FALSE(ub_is_pow2(48));
  EXPECT_EQ(16u, ub_rightmost_1bit(48));
  EXPECT_EQ(0u, ub_rightmost_1bit(0));
  EXPECT_EQ(64u, ub_count_1bits(UINT64_MAX));
  EXPECT_EQ(4u, SIZEOF_FIELD(urma_jetty_id_t, id));
  EXPECT_EQ(24u, OFFSET_OF_FIELD_END(urma_jetty_id_t, id));
  urma_jetty_id_t id{};
  urma_jetty_id_t* found;
  INIT_CONTAINER_PTR(found, &id.uasid, uasid);
  EXPECT_EQ(&id, found);
  EXPECT_EQ(&id, CONTAINER_OF_FIELD(&id.id, urma_jetty_id_t, id));
  EXPECT_EQ(20u, OBJ_OFFSETOF(found, id));
  EXPECT_EQ(0u, std::string(UB_SOURCE_LOCATOR).find(__FILE__ ":"));
  EXPECT_STREQ(strerror(EINVAL), ub_strerror(-EINVAL));
  EXPECT_NEAR(static_cast<double>(time(nullptr)), static_cast<double>(gethrtime_epoch()) / 1e9, 2.0);
  UB_ASSERT(found == &id);
  EXPECT_DEATH(UB_ASSERT(found == nullptr), "found == nullptr");
  wmb();
  rmb();
  wc_wmb();
  dmb(ish);
  ub_smp_mb();
  ub_compiler_barrier();
}

TEST(UbUtil, bit_search) {
  unsigned long array[3] = {0, 0, 0};
  EXPECT_EQ(130u, ub_find_first_bit(array, 130));
  EXPECT_EQ(0u, ub_find_first_bit(array, 0));
  for (unsigned long bit : {3UL, 63UL, 64UL, 129UL}) set_bit(bit, array);
  std::vector<unsigned long> seen;
  unsigned long bit;
  for_each_set_bit(bit, array, 130) seen.push_back(bit);
  EXPECT_EQ((std::vector<unsigned long>{3, 63, 64, 129}), seen);
  EXPECT_EQ(129u, ub_find_next_bit(array, 129, 65));  // beyond the size
  EXPECT_EQ(130u, ub_find_next_bit(array, 130, 130));
  clear_bit(63, array);
  EXPECT_FALSE(test_bit(63, array));
  EXPECT_TRUE(test_bit(64, array));
  array[0] = ~0UL;
  EXPECT_EQ(65u, ub_find_first_zero_bit(array, 130));
  EXPECT_EQ(64u, ub_find_first_zero_bit(array, 64));
  EXPECT_EQ(130u, ub_find_next_zero_bit(array, 130, 129));
}

TEST(UbUtil, bitmap_zero_clears_the_words_of_its_bits) {
  const unsigned long all = ~0UL;
  const struct { unsigned long bits, words; } rows[] = {{0, 0}, {1, 1}, {64, 1}, {65, 2}, {128, 2}, {129, 3}};
  for (const auto& row : rows) {
    unsigned long array[4] = {all, all, all, all};
    bitmap_zero(row.bits, array);
    for (unsigned long i = 0; i < 4; ++i) EXPECT_EQ(i < row.words ? 0 : all, array[i]) << row.bits << " bits";
  }
}

TEST(UbUtil, checked_memory) {
  char a[4] = {1, 2, 3, 4}, b[4] = {};
  EXPECT_EQ(0, memcpy_s_large_buf(b, 4, a, 4));
  EXPECT_EQ(4, b[3]);
  EXPECT_EQ(ERANGE, memcpy_s_large_buf(b, 3, a, 4));
  EXPECT_EQ(EINVAL, memcpy_s_large_buf(a, 4, a + 1, 2));
  EXPECT_EQ(0, memcpy_s_large_buf(a, 4, a + 2, 2));
  EXPECT_EQ(0, memset_s_large_buf(b, 4, 9, 2));
  EXPECT_EQ(9, b[1]);
  EXPECT_EQ(3, b[2]);
  EXPECT_EQ(ERANGE, memset_s_large_buf(b, 4, 0, 5));
}

TEST(UbUtil, huge_pages) {
  errno = 0;
  EXPECT_EQ(nullptr, ub_hugemalloc(0, UB_HUGE_PAGE_SIZE_ANY, nullptr));
  EXPECT_EQ(EINVAL, errno);
  EXPECT_EQ(nullptr, ub_hugemalloc(SIZE_MAX, UB_HUGE_PAGE_SIZE_2MB, nullptr));
  EXPECT_EQ(ENOMEM, errno);
  char other = 0;
  errno = 0;
  EXPECT_EQ(-1, ub_hugefree(&other, 1));
  EXPECT_EQ(EINVAL, errno);
  // Most machines have no huge pages reserved; where there are some, the whole way is tested.
  void* const memory = ub_hugemalloc(100, UB_HUGE_PAGE_SIZE_ANY, nullptr);
  if (memory == nullptr) GTEST_SKIP() << "no huge pages";
  EXPECT_EQ(0u, reinterpret_cast<uintptr_t>(memory) % 4096);
  EXPECT_EQ(0, ub_hugefree(memory, 100));
  EXPECT_EQ(-1, ub_hugefree(memory, 100));
}

// ---- Containers ----

struct Item {
  int key;
  struct ub_list link;
  struct ub_hmap_node node;
};

TEST(UbContainers, list) {
  struct ub_list list;
  ub_list_init(&list);
  EXPECT_TRUE(ub_list_is_empty(&list));
  EXPECT_EQ(nullptr, ub_list_pop_front(&list));
  Item items[3] = {};
  for (int i = 0; i < 3; ++i) {
    items[i].key = i;
    ub_list_push_back(&list, &items[i].link);
  }
  EXPECT_EQ(3u, ub_list_size(&list));
  Item *item, *next;
  std::vector<int> keys;
  UB_LIST_FOR_EACH(item, link, &list) { keys.push_back(item->key); }
  EXPECT_EQ((std::vector<int>{0, 1, 2}), keys);
  UB_LIST_FOR_EACH_SAFE(item, next, link, &list) {
    if (item->key == 1) (void)ub_list_remove(&item->link);
  }
  EXPECT_EQ(2u, ub_list_size(&list));
  ub_list_push_front(&list, &items[1].link);
  EXPECT_EQ(&items[1].link, ub_list_front(&list));
  EXPECT_EQ(&items[2].link, ub_list_pop_back(&list));
  EXPECT_EQ(&items[0].link, ub_list_back(&list));
}

TEST(UbContainers, hash) {  // values of MurmurHash3_x86_32
  EXPECT_EQ(0u, ub_hash_bytes("", 0, 0));
  EXPECT_EQ(0xba6bd213u, ub_hash_bytes("test", 4, 0));
  EXPECT_EQ(0x149bbb7fu, ub_hash_bytes("hello, world", 12, 0));
  EXPECT_EQ(0x24884cbau, ub_hash_string("Hello, world!", 0x9747b28c));
  EXPECT_EQ(0x283e0130u, ub_hash_bytes("aaa", 3, 0x9747b28c));
  EXPECT_EQ(ub_hash_bytes("test", 4, 0), ub_hash_int(0x74736574, 0));
  EXPECT_NE(ub_hash_2words(1, 2), ub_hash_2words(2, 1));
}

TEST(UbContainers, hash_map) {
  struct ub_hmap map;
  ASSERT_EQ(0, ub_hmap_init(&map, 1));
  std::vector<Item> items(1000);
  for (int i = 0; i < 1000; ++i) {
    items[i].key = i;
    ub_hmap_insert(&map, &items[i].node, ub_hash_int(static_cast<uint32_t>(i / 2), 0));  // two of each hash
  }
  EXPECT_EQ(1000u, ub_hmap_count(&map));
  EXPECT_GE(map.mask, 499u);
  Item *item, *next;
  int sum = 0;
  UB_HMAP_FOR_EACH_WITH_HASH(item, node, ub_hash_int(21, 0), &map) sum += item->key;
  EXPECT_EQ(42 + 43, sum);
  sum = 0;
  UB_HMAP_FOR_EACH(item, node, &map) sum += item->key;
  EXPECT_EQ(999 * 1000 / 2, sum);
  UB_HMAP_FOR_EACH_SAFE(item, next, node, &map) {
    if (item->key % 2 == 0) ub_hmap_remove(&map, &item->node);
  }
  EXPECT_EQ(500u, ub_hmap_count(&map));
  ub_hmap_remove(&map, &items[0].node);  // no longer there
  EXPECT_EQ(500u, ub_hmap_count(&map));
  ub_hmap_destroy(&map);
}

TEST(UbContainers, bitmap) {
  EXPECT_EQ(nullptr, ub_bitmap_alloc(0));
  ub_bitmap_t* const bitmap = ub_bitmap_alloc(64);
  ASSERT_NE(nullptr, bitmap);
  unsigned long idx = 99;
  EXPECT_EQ(0, ub_bitmap_use_idx(bitmap, 0));
  EXPECT_EQ(-EEXIST, ub_bitmap_use_idx(bitmap, 0));
  EXPECT_EQ(-EINVAL, ub_bitmap_use_idx(bitmap, 64));
  for (unsigned long i = 1; i < 64; ++i) {
    EXPECT_EQ(0, ub_bitmap_alloc_idx(bitmap, &idx));
    EXPECT_EQ(i, idx);
  }
  EXPECT_EQ(-ENOSPC, ub_bitmap_alloc_idx(bitmap, &idx));
  EXPECT_EQ(0, ub_bitmap_free_idx(bitmap, 5));
  EXPECT_EQ(-ENOENT, ub_bitmap_free_idx(bitmap, 5));
  EXPECT_FALSE(ub_bitmap_is_set(bitmap, 5));
  EXPECT_EQ(0, ub_bitmap_alloc_idx(bitmap, &idx));
  EXPECT_EQ(5u, idx);
  ub_bitmap_free(bitmap);
  ub_bitmap_free(nullptr);
}

TEST(UbContainers, dynamic_string) {
  struct ub_dstring text = UB_DSTRING_INITIALIZER;
  EXPECT_STREQ("", ub_dstring_cstr(&text));
  std::string expected;
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(0, ub_dstring_put_format(&text, "%d,", i));
    expected += std::to_string(i) + ",";
  }
  EXPECT_EQ(0, ub_dstring_put_cstr(&text, "end"));
  EXPECT_EQ(0, ub_dstring_put_char(&text, '.'));
  EXPECT_EQ(expected + "end.", ub_dstring_cstr(&text));
  EXPECT_EQ(-ENOMEM, ub_dstring_reserve(&text, SIZE_MAX));
  ub_dstring_clear(&text);
  EXPECT_STREQ("", ub_dstring_cstr(&text));
  ub_dstring_destroy(&text);
}

// ---- Clock ----

double system_us() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

// Keeps the processor until the system clock says so; returns what it says then.
double run_until(double end_us) {
  double now = system_us();
  while (now < end_us) now = system_us();
  return now;
}

TEST(UbClock, rate_agrees_with_the_system_clock) {
  const double mhz = get_cpu_mhz(true);
  ASSERT_GT(mhz, 0);
  EXPECT_EQ(mhz, get_cpu_mhz(false));  // remembered
  // Both ends may be interrupted, so take the best of some tries.
  double best = 1;
  for (int i = 0; i < 10 && best > 1e-4; ++i) {
    const double start = system_us();
    const uint64_t cycles = get_cycles();
    const double us = run_until(start + 20'000) - start;
    const double us_by_cycles = static_cast<double>(get_cycles() - cycles) / mhz;
    best = std::min(best, std::fabs(us_by_cycles - us) / us);
  }
  EXPECT_LT(best, 1e-4);
}

TEST(UbClock, stop_watch) {
  ub_perf_cycle_t perf;
  ub_perf_cycle_reset(&perf);
  EXPECT_EQ(0.0, ub_perf_cycle_average_ns(&perf));
  for (int i = 0; i < 3; ++i) {
    ub_perf_cycle_begin(&perf);
    run_until(system_us() + 1000);
    ub_perf_cycle_end(&perf);
  }
  EXPECT_EQ(3u, perf.count);
  EXPECT_LE(perf.min, perf.max);
  EXPECT_GE(ub_perf_cycle_average_ns(&perf), 0.99e6);
}

}  // namespace
