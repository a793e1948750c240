// SPDX-License-Identifier: Apache-2.0
// Start and end of the library, devices, contexts, and handles that outlived their object.
#include <sys/wait.h>
#include <unistd.h>

#include "softub_api.h"
#include "tests/unit/urma_api/fixture.h"
#include "urma_provider.h"

namespace ub::test {
namespace {

TEST(UrmaStart, second_init_says_exists_and_uninit_is_idempotent) {
  EXPECT_EQ(urma_uninit(), URMA_SUCCESS);
  EXPECT_EQ(urma_init(nullptr), URMA_SUCCESS);
  EXPECT_EQ(urma_init(nullptr), URMA_EEXIST);
  EXPECT_EQ(urma_uninit(), URMA_SUCCESS);
  EXPECT_EQ(urma_uninit(), URMA_SUCCESS);
}

TEST(UrmaStart, fails_without_nic) {
  refuse_placement = true;
  EXPECT_EQ(urma_init(nullptr), URMA_FAIL);
  refuse_placement = false;
  int count = 7;
  errno = 0;
  EXPECT_EQ(urma_get_device_list(&count), nullptr);
  EXPECT_EQ(errno, ENODEV);
  EXPECT_EQ(count, 0);
}

class Lifecycle : public UrmaTest {};

TEST_F(Lifecycle, device_is_found_by_every_way) {
  int count = 0;
  urma_device_t** list = urma_get_device_list(&count);
  ASSERT_NE(list, nullptr);
  EXPECT_EQ(count, 1);
  EXPECT_EQ(list[0], device);
  urma_free_device_list(list);
  EXPECT_STREQ(device->name, "softub0");
  EXPECT_EQ(device->type, URMA_TRANSPORT_UB);
  EXPECT_NE(device->ops, nullptr);

  urma_eid_t eid;
  memcpy(eid.raw, FakeBackend::eid(2).bytes.data(), 16);
  EXPECT_EQ(urma_get_device_by_eid(eid, URMA_TRANSPORT_UB), device);
  eid.raw[15] = 9;
  errno = 0;
  EXPECT_EQ(urma_get_device_by_eid(eid, URMA_TRANSPORT_UB), nullptr);
  EXPECT_EQ(errno, ENODEV);

  char unknown[] = "softub1";
  EXPECT_EQ(urma_get_device_by_name(unknown), nullptr);
  EXPECT_EQ(errno, ENODEV);
  char endless[100];
  memset(endless, 'x', sizeof endless);
  EXPECT_EQ(urma_get_device_by_name(endless), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(urma_get_device_by_name(nullptr), nullptr);
  EXPECT_EQ(urma_get_device_list(nullptr), nullptr);
}

TEST_F(Lifecycle, eid_list_is_dense) {
  uint32_t count = 0;
  urma_eid_info_t* list = urma_get_eid_list(device, &count);
  ASSERT_NE(list, nullptr);
  ASSERT_EQ(count, 2u);
  for (uint32_t i = 0; i < count; ++i) {
    EXPECT_EQ(list[i].eid_index, i);
    EXPECT_EQ(memcmp(list[i].eid.raw, FakeBackend::eid(i + 1).bytes.data(), 16), 0);
  }
  urma_free_eid_list(list);
}

TEST_F(Lifecycle, attributes_cover_the_reference_tools) {
  urma_device_attr_t attr;
  memset(&attr, 0xee, sizeof attr);
  ASSERT_EQ(urma_query_device(device, &attr), URMA_SUCCESS);
  const urma_device_cap_t& cap = attr.dev_cap;
  EXPECT_GE(cap.max_jfc_depth, 8192u);
  EXPECT_GE(cap.max_jfs_depth, 15000u);
  EXPECT_GE(cap.max_jfr_depth, 32768u);
  EXPECT_GE(cap.max_jfs_sge, 16u);
  EXPECT_GE(cap.max_jfr_sge, 16u);
  EXPECT_GE(cap.max_jfs_rsge, 16u);
  EXPECT_GE(cap.max_jetty, 65535u);
  EXPECT_GE(cap.max_jfs, 65535u);
  EXPECT_GE(cap.max_jfr, 65535u);
  EXPECT_GE(cap.max_jfs_inline_len, 188u);
  EXPECT_GE(cap.max_msg_size, 8u << 20);
  EXPECT_EQ(cap.trans_mode, URMA_TM_RM | URMA_TM_RC | URMA_TM_UM);
  EXPECT_TRUE(cap.atomic_feat.bs.cas && cap.atomic_feat.bs.fetch_and_add);
  EXPECT_GT(cap.max_eid_cnt, 0u);
  EXPECT_NE(cap.page_size_cap & 4096, 0u);
  uint32_t types = 0;
  for (const auto& entry : cap.priority_info) {
    EXPECT_EQ(__builtin_popcount(entry.tp_type.value), 1);
    types |= entry.tp_type.value;
  }
  EXPECT_EQ(types, 7u);
  EXPECT_EQ(attr.port_cnt, 1);
  EXPECT_EQ(attr.port_attr[0].state, URMA_PORT_ACTIVE);
  EXPECT_EQ(attr.port_attr[0].active_mtu, URMA_MTU_4096);
  EXPECT_LE(attr.reserved_jetty_id_min, 3u);
  EXPECT_GE(attr.reserved_jetty_id_max, 1024u);
}

TEST_F(Lifecycle, context_is_filled_and_kept_alive_by_children) {
  EXPECT_EQ(ctx->dev, device);
  ASSERT_NE(ctx->ops, nullptr);
  EXPECT_NE(ctx->ops->import_jetty_ex, nullptr);
  EXPECT_EQ(ctx->uasid, FakeBackend::kUasid);
  EXPECT_EQ(ctx->eid.raw[15], 1);
  EXPECT_GE(ctx->async_fd, 0);
  EXPECT_EQ(ctx->ref.atomic_cnt.load(), 1u);
  EXPECT_EQ(urma_create_context(device, 2), nullptr);
  EXPECT_EQ(errno, EIO);
  EXPECT_EQ(urma_create_context(nullptr, 0), nullptr);
  EXPECT_EQ(errno, EINVAL);

  urma_context_t* second = urma_create_context(device, 1);
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(second->eid.raw[15], 2);
  EXPECT_EQ(urma_delete_context(second), URMA_SUCCESS);

  urma_jfce_t* jfce = urma_create_jfce(ctx);
  urma_jfc_t* jfc = make_jfc(16, jfce);
  EXPECT_EQ(urma_delete_context(ctx), URMA_EAGAIN);
  EXPECT_EQ(urma_delete_jfce(jfce), URMA_FAIL);
  EXPECT_EQ(urma_delete_jfc(jfc), URMA_SUCCESS);
  EXPECT_EQ(urma_delete_jfce(jfce), URMA_SUCCESS);
  EXPECT_EQ(urma_delete_context(ctx), URMA_SUCCESS);
  EXPECT_EQ(urma_delete_context(ctx), URMA_EINVAL);
}

TEST_F(Lifecycle, wrong_order_of_deletion_fails_cleanly) {
  urma_jfc_t* jfc = make_jfc();
  urma_jfr_t* jfr = make_jfr(jfc, URMA_TM_RC);
  urma_jetty_t* jetty = make_jetty(jfc, jfr, URMA_TM_RC);
  urma_target_jetty_t* target = make_target(URMA_TM_RC);
  ASSERT_EQ(urma_bind_jetty(jetty, target), URMA_SUCCESS);
  EXPECT_EQ(urma_delete_jfc(jfc), URMA_FAIL);
  EXPECT_EQ(urma_delete_jfr(jfr), URMA_FAIL);
  EXPECT_EQ(urma_delete_jetty(jetty), URMA_ENOPERM);
  EXPECT_EQ(urma_unimport_jetty(target), URMA_SUCCESS);  // unbinds
  EXPECT_EQ(jetty->remote_jetty, nullptr);
  EXPECT_EQ(fake->queues.at(jetty->jetty_id.id).bound, 0u);
  EXPECT_EQ(urma_delete_jetty(jetty), URMA_SUCCESS);
  EXPECT_EQ(urma_delete_jfr(jfr), URMA_SUCCESS);
  EXPECT_EQ(urma_delete_jfc(jfc), URMA_SUCCESS);
  EXPECT_EQ(urma_delete_context(ctx), URMA_SUCCESS);
  EXPECT_TRUE(fake->jfcs.empty() && fake->queues.empty() && fake->receives.empty() && fake->targets.empty());
}

TEST_F(Lifecycle, dead_handles_are_refused) {
  char memory[64];
  urma_jfc_t* jfc = make_jfc();
  urma_jfs_t* jfs = make_jfs(jfc);
  urma_target_seg_t* seg = make_seg(memory, sizeof memory);
  urma_token_id_t* token = urma_alloc_token_id(ctx);
  ASSERT_EQ(urma_delete_jfs(jfs), URMA_SUCCESS);
  ASSERT_EQ(urma_delete_jfc(jfc), URMA_SUCCESS);
  ASSERT_EQ(urma_unregister_seg(seg), URMA_SUCCESS);
  ASSERT_EQ(urma_free_token_id(token), URMA_SUCCESS);
  urma_cr_t cr;
  urma_jfs_wr_t wr{};
  urma_jfs_wr_t* bad = nullptr;
  EXPECT_EQ(urma_delete_jfs(jfs), URMA_EINVAL);
  EXPECT_EQ(urma_post_jfs_wr(jfs, &wr, &bad), URMA_EINVAL);
  EXPECT_EQ(bad, &wr);
  EXPECT_EQ(urma_poll_jfc(jfc, 1, &cr), -1);
  EXPECT_EQ(urma_rearm_jfc(jfc, false), URMA_EINVAL);
  EXPECT_EQ(urma_delete_jfc(jfc), URMA_EINVAL);
  EXPECT_EQ(urma_unregister_seg(seg), URMA_EINVAL);
  EXPECT_EQ(urma_free_token_id(token), URMA_EINVAL);
}

TEST_F(Lifecycle, leaked_objects_survive_uninit_and_are_refused_afterwards) {
  urma_jfce_t* jfce = urma_create_jfce(ctx);
  urma_jfc_t* jfc = make_jfc(16, jfce);
  urma_jfs_t* jfs = make_jfs(jfc);
  EXPECT_EQ(urma_uninit(), URMA_SUCCESS);
  urma_cr_t cr;
  EXPECT_EQ(urma_poll_jfc(jfc, 1, &cr), -1);
  EXPECT_EQ(urma_delete_jfs(jfs), URMA_EINVAL);
  EXPECT_EQ(urma_wait_jfc(jfce, 1, 0, &jfc), -1);
  EXPECT_EQ(urma_delete_context(ctx), URMA_EINVAL);
  urma_device_attr_t attr;
  EXPECT_EQ(urma_query_device(device, &attr), URMA_EINVAL);
  EXPECT_EQ(urma_init(nullptr), URMA_SUCCESS);
  EXPECT_EQ(urma_poll_jfc(jfc, 1, &cr), -1);
  EXPECT_EQ(urma_delete_jfc(jfc), URMA_EINVAL);
}

TEST_F(Lifecycle, forked_child_starts_afresh) {
  urma_jfce_t* jfce = urma_create_jfce(ctx);
  urma_jfc_t* jfc = make_jfc(16, jfce);
  pid_t child = fork();
  if (child == 0) {
    urma_cr_t cr;
    if (urma_poll_jfc(jfc, 1, &cr) != -1) _exit(1);
    if (urma_delete_jfc(jfc) != URMA_EINVAL) _exit(2);
    if (urma_delete_context(ctx) != URMA_EINVAL) _exit(3);
    if (urma_uninit() != URMA_SUCCESS) _exit(4);
    if (urma_init(nullptr) != URMA_SUCCESS) _exit(5);
    char name[] = "softub0";
    urma_context_t* own = urma_create_context(urma_get_device_by_name(name), 0);
    if (own == nullptr) _exit(6);
    ctx = own;
    urma_jfc_t* own_jfc = make_jfc();
    if (urma_poll_jfc(own_jfc, 1, &cr) != 0) _exit(7);
    exit(0);  // without uninit
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  // The parent did not notice.
  urma_cr_t cr;
  EXPECT_EQ(urma_poll_jfc(jfc, 1, &cr), 0);
  EXPECT_EQ(urma_delete_jfc(jfc), URMA_SUCCESS);
}

TEST_F(Lifecycle, batches_check_everything_first) {
  urma_jfc_t* jfcs[2] = {make_jfc(), make_jfc()};
  urma_jfs_t* jfs[2] = {make_jfs(jfcs[0]), nullptr};
  urma_jfs_t* bad = nullptr;
  EXPECT_EQ(urma_delete_jfs_batch(jfs, 2, &bad), URMA_EINVAL);
  EXPECT_EQ(bad, jfs[0]);
  EXPECT_EQ(urma_delete_jfs_batch(jfs, 0, &bad), URMA_EINVAL);
  urma_jfc_t* bad_jfc = nullptr;
  EXPECT_EQ(urma_delete_jfc_batch(jfcs, 2, &bad_jfc), URMA_FAIL);
  EXPECT_EQ(bad_jfc, jfcs[0]);
  EXPECT_EQ(urma_delete_jfs_batch(jfs, 1, &bad), URMA_SUCCESS);
  EXPECT_EQ(urma_delete_jfc_batch(jfcs, 2, &bad_jfc), URMA_SUCCESS);
}

TEST_F(Lifecycle, memory_for_the_nic_outlives_it) {
  EXPECT_STREQ(softub_placement(), "fake");
  errno = 0;
  EXPECT_EQ(softub_alloc(0), nullptr);
  EXPECT_EQ(errno, EINVAL);
  auto* block = static_cast<char*>(softub_alloc(5000));
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 4096, 0u);
  EXPECT_EQ(block[4999], 0);
  auto* other = static_cast<char*>(softub_alloc(64));
  ASSERT_NE(other, nullptr);
  urma_target_seg_t* seg = make_seg(block, 5000);
  ASSERT_NE(seg, nullptr);
  EXPECT_EQ(urma_unregister_seg(seg), URMA_SUCCESS);

  pid_t child = fork();
  if (child == 0) {
    softub_free(block);
    if (urma_init(nullptr) != URMA_SUCCESS) _exit(1);
    void* own = softub_alloc(5000);
    if (own == nullptr) _exit(2);
    memset(own, 1, 5000);
    softub_free(own);
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);

  EXPECT_EQ(urma_uninit(), URMA_SUCCESS);
  EXPECT_EQ(softub_placement(), nullptr);
  softub_transports_t packets;
  EXPECT_EQ(softub_get_transports(nullptr, &packets), URMA_FAIL);
  EXPECT_EQ(softub_alloc(64), nullptr);
  EXPECT_EQ(errno, ENODEV);
  memset(block, 7, 5000);
  softub_free(block);
  softub_free(block);  // not ours any more
  softub_free(nullptr);
  EXPECT_EQ(urma_init(nullptr), URMA_SUCCESS);
  other[63] = 1;
  softub_free(other);
}

int logged_level = -1;
std::string logged_text;

TEST_F(Lifecycle, log_goes_to_the_last_sink_registered) {
  urma_log_set_level(URMA_VLOG_LEVEL_ERR);
  urma_log_set_level(URMA_VLOG_LEVEL_MAX);
  EXPECT_EQ(urma_log_get_level(), URMA_VLOG_LEVEL_ERR);
  EXPECT_EQ(urma_register_log_func(nullptr), URMA_EINVAL);
  urma_register_log_func([](int level, char* message) {
    logged_level = level;
    logged_text = message;
  });
  EXPECT_EQ(make_jfc(0), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(logged_level, URMA_VLOG_LEVEL_ERR);
  EXPECT_NE(logged_text.find("JFC depth 0"), std::string::npos) << logged_text;
  EXPECT_EQ(logged_text.back(), '\n');
  logged_text.clear();
  urma_register_loc_log_func([](int, const char* file, const char*, int, char*) { logged_text = file; });
  EXPECT_EQ(make_jfc(0), nullptr);
  EXPECT_EQ(logged_text, "jfc.cc");
  urma_unregister_log_func();
  urma_log_set_level(URMA_VLOG_LEVEL_EMERG);
  EXPECT_STREQ(urma_log_get_thread_tag(), "-");
  urma_log_set_thread_tag("worker");
  EXPECT_STREQ(urma_log_get_thread_tag(), "worker");
  urma_log_set_thread_tag("-");
}

// What programs get wrong first; the status alone does not say which of its reasons it was.
TEST_F(Lifecycle, refusals_say_why) {
  urma_log_set_level(URMA_VLOG_LEVEL_ERR);
  urma_register_log_func([](int, char* message) { logged_text += message; });
  auto told = [](const char* why) {
    const bool found = logged_text.find(why) != std::string::npos;
    EXPECT_TRUE(found) << "not told: " << why << "\ntold: " << logged_text;
    logged_text.clear();
  };
  char name[] = "softub7";
  EXPECT_EQ(urma_get_device_by_name(name), nullptr);
  told("no device softub7, but softub0");
  EXPECT_EQ(urma_create_context(device, 77), nullptr);
  told("EID index 77");

  urma_jfce_t* jfce = urma_create_jfce(ctx);
  urma_jfc_t *with_channel = make_jfc(16, jfce), *without = make_jfc();
  EXPECT_EQ(urma_delete_jfce(jfce), URMA_FAIL);
  told("still used by 1 JFCs");
  EXPECT_EQ(urma_rearm_jfc(without, false), URMA_EINVAL);
  told("has no JFCE");

  urma_jfr_t* jfr = make_jfr(with_channel, URMA_TM_RC);
  urma_jetty_t *a = make_jetty(with_channel, jfr, URMA_TM_RC), *b = make_jetty(with_channel, jfr, URMA_TM_RC);
  urma_target_jetty_t *x = make_target(URMA_TM_RC), *y = make_target(URMA_TM_RC);
  EXPECT_EQ(urma_bind_jetty(a, make_target()), URMA_ENOPERM);
  told("only mode RC is bound");
  EXPECT_EQ(urma_bind_jetty(a, x), URMA_SUCCESS);
  EXPECT_EQ(urma_bind_jetty(a, y), URMA_EEXIST);
  told("is bound to another target");
  EXPECT_EQ(urma_bind_jetty(b, x), URMA_EINVAL);
  told("the target is bound to another jetty");
  EXPECT_EQ(urma_delete_jetty(a), URMA_ENOPERM);
  told("is still bound");
  urma_cr_t record;
  EXPECT_EQ(urma_flush_jetty(a, 9, &record), -URMA_EINVAL);
  told("not in 1 .. 8");
  EXPECT_EQ(urma_delete_context(ctx), URMA_EAGAIN);
  told("still has 9 objects");
  urma_unregister_log_func();
  urma_log_set_level(URMA_VLOG_LEVEL_EMERG);
}

}  // namespace
}  // namespace ub::test
