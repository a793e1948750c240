// SPDX-License-Identifier: Apache-2.0
// Objects made step by step: which step is allowed when, what the options hold, and that an object which was
// deactivated works as a new one.
#include <fcntl.h>

#include <vector>

#include "tests/unit/urma_api/fixture.h"

namespace ub::test {
namespace {

// The calls of each kind under one name.
struct JfcCalls {
  using Object = urma_jfc_t;
  static constexpr auto alloc = urma_alloc_jfc;
  static constexpr auto set = urma_set_jfc_opt;
  static constexpr auto get = urma_get_jfc_opt;
  static constexpr auto active = urma_active_jfc;
  static constexpr auto deactive = urma_deactive_jfc;
  static constexpr auto free = urma_free_jfc;
  static constexpr auto remove = urma_delete_jfc;
  static bool is_active(const Object& o) { return o.urma_jfc_opt.is_actived; }
};
struct JfsCalls {
  using Object = urma_jfs_t;
  static constexpr auto alloc = urma_alloc_jfs;
  static constexpr auto set = urma_set_jfs_opt;
  static constexpr auto get = urma_get_jfs_opt;
  static constexpr auto active = urma_active_jfs;
  static constexpr auto deactive = urma_deactive_jfs;
  static constexpr auto free = urma_free_jfs;
  static constexpr auto remove = urma_delete_jfs;
  static bool is_active(const Object& o) { return o.urma_jfs_opt.is_actived; }
};
struct JfrCalls {
  using Object = urma_jfr_t;
  static constexpr auto alloc = urma_alloc_jfr;
  static constexpr auto set = urma_set_jfr_opt;
  static constexpr auto get = urma_get_jfr_opt;
  static constexpr auto active = urma_active_jfr;
  static constexpr auto deactive = urma_deactive_jfr;
  static constexpr auto free = urma_free_jfr;
  static constexpr auto remove = urma_delete_jfr;
  static bool is_active(const Object& o) { return o.urma_jfr_opt.is_actived; }
};
struct JettyCalls {
  using Object = urma_jetty_t;
  static constexpr auto alloc = urma_alloc_jetty;
  static constexpr auto set = urma_set_jetty_opt;
  static constexpr auto get = urma_get_jetty_opt;
  static constexpr auto active = urma_active_jetty;
  static constexpr auto deactive = urma_deactive_jetty;
  static constexpr auto free = urma_free_jetty;
  static constexpr auto remove = urma_delete_jetty;
  static bool is_active(const Object& o) { return o.urma_jetty_opt.is_actived; }
};

struct Option {
  uint64_t number;
  uint32_t bytes;
};

// URMA API 0.9, 6.10.
const std::vector<Option> kJfcOptions = {{URMA_JFC_DEPTH, 4},     {URMA_JFC_CEQN, 4},     {URMA_JFC_FLAG, 4},
                                         {URMA_JFC_BIND_JFCE, 8}, {URMA_JFC_USER_CTX, 8}, {URMA_JFC_CQE_BASE_ADDR, 8},
                                         {URMA_JFC_ID, 4},        {URMA_JFC_DB_ADDR, 8},  {URMA_JFC_DB_STATUS, 1},
                                         {URMA_JFC_PI, 2},        {URMA_JFC_PI_TYPE, 2},  {URMA_JFC_CI, 2}};
const std::vector<Option> kJfsOptions = {
    {URMA_JFS_DEPTH, 4},       {URMA_JFS_FLAG, 4},     {URMA_JFS_TRANS_MODE, 4},      {URMA_JFS_PRIORITY, 1},
    {URMA_JFS_MAX_SGE, 1},     {URMA_JFS_MAX_RSGE, 1}, {URMA_JFS_MAX_INLINE_DATA, 4}, {URMA_JFS_RNR_RETRY, 1},
    {URMA_JFS_ERR_TIMEOUT, 1}, {URMA_JFS_BIND_JFC, 8}, {URMA_JFS_USER_CTX, 8},        {URMA_JFS_SQE_BASE_ADDR, 8},
    {URMA_JFS_ID, 4},          {URMA_JFS_DB_ADDR, 8},  {URMA_JFS_DB_STATUS, 1},       {URMA_JFS_PI, 2},
    {URMA_JFS_PI_TYPE, 2},     {URMA_JFS_CI, 2}};
const std::vector<Option> kJfrOptions = {
    {URMA_JFR_DEPTH, 4},       {URMA_JFR_FLAG, 4},          {URMA_JFR_TRANS_MODE, 4},
    {URMA_JFR_MAX_SGE, 1},     {URMA_JFR_MIN_RNR_TIMER, 1}, {URMA_JFR_BIND_JFC, 8},
    {URMA_JFR_TOKEN_VALUE, 4}, {URMA_JFR_USER_CTX, 8},      {URMA_JFR_RQE_BASE_ADDR, 8},
    {URMA_JFR_ID, 4},          {URMA_JFR_DB_ADDR, 8},       {URMA_JFR_DB_STATUS, 1},
    {URMA_JFR_PI, 2},          {URMA_JFR_PI_TYPE, 2},       {URMA_JFR_CI, 2}};
const std::vector<Option> kJettyOptions = {{URMA_JETTY_ID, 4},
                                           {URMA_JETTY_FLAG, 4},
                                           {URMA_JETTY_BIND_JFR, 8},
                                           {URMA_JETTY_BIND_RX_JFC, 8},
                                           {URMA_JETTY_USER_CTX, 8}};

class Steps : public UrmaTest {
 protected:
  void SetUp() override {
    UrmaTest::SetUp();
    jfc_cfg.depth = 16;
    jfc = make_jfc();
    jfs_cfg = send_cfg(jfc);
    jfr_cfg.depth = 8;
    jfr_cfg.trans_mode = URMA_TM_RM;
    jfr_cfg.max_sge = 1;
    jfr_cfg.jfc = jfc;
    jfr = make_jfr(jfc);
    jetty_cfg.flag.bs.share_jfr = 1;
    jetty_cfg.jfs_cfg = send_cfg(jfc);
    jetty_cfg.shared.jfr = jfr;
  }

  template <class Calls, class Config>
  typename Calls::Object* alloc(Config& cfg) {
    typename Calls::Object* object = nullptr;
    EXPECT_EQ(Calls::alloc(ctx, &cfg, &object), URMA_SUCCESS);
    return object;
  }
  template <class Calls, class T>
  static urma_status_t set(typename Calls::Object* object, uint64_t option, T value) {
    return Calls::set(object, option, &value, sizeof value);
  }
  template <class Calls, class T>
  static T get(typename Calls::Object* object, uint64_t option) {
    T value{};
    EXPECT_EQ(Calls::get(object, option, &value, sizeof value), URMA_SUCCESS);
    return value;
  }

  // Which step is allowed in which state. `present` tells how many objects of the kind the back end has.
  template <class Calls, class Config, class Present>
  void check_states(Config& cfg, Present present) {
    const size_t before = present();
    typename Calls::Object* object = nullptr;
    EXPECT_EQ(Calls::alloc(nullptr, &cfg, &object), URMA_EINVAL);
    EXPECT_EQ(Calls::alloc(ctx, nullptr, &object), URMA_EINVAL);
    EXPECT_EQ(Calls::alloc(ctx, &cfg, nullptr), URMA_EINVAL);
    EXPECT_EQ(Calls::active(nullptr), URMA_EINVAL);
    EXPECT_EQ(Calls::deactive(nullptr), URMA_EINVAL);
    EXPECT_EQ(Calls::free(nullptr), URMA_EINVAL);

    ASSERT_EQ(Calls::alloc(ctx, &cfg, &object), URMA_SUCCESS);
    const auto* same = object;
    EXPECT_FALSE(Calls::is_active(*object));
    EXPECT_EQ(object->urma_ctx, ctx);
    EXPECT_EQ(present(), before);
    for (int life = 0; life < 3; ++life) {
      EXPECT_EQ(Calls::deactive(object), URMA_EINVAL);
      EXPECT_EQ(Calls::remove(object), URMA_EINVAL);
      ASSERT_EQ(Calls::active(object), URMA_SUCCESS);
      EXPECT_EQ(object, same);
      EXPECT_TRUE(Calls::is_active(*object));
      EXPECT_EQ(present(), before + 1);
      EXPECT_EQ(Calls::active(object), URMA_EINVAL);
      EXPECT_EQ(Calls::free(object), URMA_EINVAL);
      ASSERT_EQ(Calls::deactive(object), URMA_SUCCESS);
      EXPECT_FALSE(Calls::is_active(*object));
      EXPECT_EQ(present(), before);
    }
    // What the back end refuses stays inactive and can be tried again.
    fake->next_status = Status::kNoMemory;
    EXPECT_EQ(Calls::active(object), URMA_ENOMEM);
    fake->next_status = Status::kInvalid;
    EXPECT_EQ(Calls::active(object), URMA_FAIL);
    EXPECT_FALSE(Calls::is_active(*object));
    EXPECT_EQ(Calls::active(object), URMA_SUCCESS);
    EXPECT_EQ(Calls::deactive(object), URMA_SUCCESS);

    EXPECT_EQ(Calls::free(object), URMA_SUCCESS);
    EXPECT_EQ(Calls::free(object), URMA_EINVAL);
    EXPECT_EQ(Calls::active(object), URMA_EINVAL);
    uint32_t value = 0;
    EXPECT_EQ(Calls::set(object, 1, &value, 4), URMA_EINVAL);
    EXPECT_EQ(Calls::get(object, 1, &value, 4), URMA_EINVAL);
  }

  template <class Calls>
  static std::vector<std::vector<uint8_t>> read_all(typename Calls::Object* object,
                                                    const std::vector<Option>& options) {
    std::vector<std::vector<uint8_t>> values;
    for (const Option& option : options) {
      values.emplace_back(option.bytes);
      EXPECT_EQ(Calls::get(object, option.number, values.back().data(), option.bytes), URMA_SUCCESS);
    }
    return values;
  }

  // Every option takes exactly its size, only while the object is inactive, and is read back in every state.
  template <class Calls>
  void check_options(typename Calls::Object* object, const std::vector<Option>& options) {
    uint8_t value[16];
    uint8_t read[16];
    for (const Option& option : options) {
      for (uint32_t len : {0u, 1u, 2u, 4u, 8u, 9u}) {
        if (len == option.bytes) continue;
        EXPECT_EQ(Calls::set(object, option.number, value, len), URMA_EINVAL) << option.number << " of " << len;
        EXPECT_EQ(Calls::get(object, option.number, read, len), URMA_EINVAL) << option.number << " of " << len;
      }
      EXPECT_EQ(Calls::set(object, option.number, nullptr, option.bytes), URMA_EINVAL);
      EXPECT_EQ(Calls::get(object, option.number, nullptr, option.bytes), URMA_EINVAL);
      uint8_t old[16];
      ASSERT_EQ(Calls::get(object, option.number, old, option.bytes), URMA_SUCCESS) << option.number;
      const auto before = read_all<Calls>(object, options);
      memset(value, 0x40 + static_cast<int>(option.number & 15), sizeof value);
      ASSERT_EQ(Calls::set(object, option.number, value, option.bytes), URMA_SUCCESS) << option.number;
      memset(read, 0, sizeof read);
      ASSERT_EQ(Calls::get(object, option.number, read, option.bytes), URMA_SUCCESS);
      EXPECT_EQ(memcmp(read, value, option.bytes), 0) << option.number;
      EXPECT_EQ(read[option.bytes], 0) << "more than the value was written";
      const auto after = read_all<Calls>(object, options);
      for (size_t i = 0; i < options.size(); ++i) {
        EXPECT_EQ(before[i] == after[i], options[i].number != option.number) << option.number << ", " << i;
      }
      ASSERT_EQ(Calls::set(object, option.number, old, option.bytes), URMA_SUCCESS);
    }
    for (uint64_t unknown : {uint64_t{0}, uint64_t{0x4001}, uint64_t{1} << 32 | options[0].number}) {
      EXPECT_EQ(Calls::set(object, unknown, value, options[0].bytes), URMA_EINVAL);
      EXPECT_EQ(Calls::get(object, unknown, read, options[0].bytes), URMA_EINVAL);
    }
  }
  template <class Calls>
  void check_no_full_context(typename Calls::Object* object, uint64_t option) {
    uint8_t value[16]{};
    for (uint32_t len = 0; len <= sizeof value; ++len) {
      EXPECT_EQ(Calls::set(object, option, value, len), URMA_EINVAL);
      EXPECT_EQ(Calls::get(object, option, value, len), URMA_EINVAL);
    }
  }
  template <class Calls>
  void check_options_while_active(typename Calls::Object* object, const std::vector<Option>& options) {
    uint8_t value[16]{};
    ASSERT_EQ(Calls::active(object), URMA_SUCCESS);
    for (const Option& option : options) {
      EXPECT_EQ(Calls::get(object, option.number, value, option.bytes), URMA_SUCCESS) << option.number;
      EXPECT_EQ(Calls::set(object, option.number, value, option.bytes), URMA_EINVAL) << option.number;
    }
  }

  urma_jfc_t* jfc = nullptr;
  urma_jfr_t* jfr = nullptr;
  urma_jfc_cfg_t jfc_cfg{};
  urma_jfs_cfg_t jfs_cfg{};
  urma_jfr_cfg_t jfr_cfg{};
  urma_jetty_cfg_t jetty_cfg{};
};

TEST_F(Steps, states_of_jfc) {
  check_states<JfcCalls>(jfc_cfg, [] { return fake->jfcs.size(); });
}
TEST_F(Steps, states_of_jfs) {
  check_states<JfsCalls>(jfs_cfg, [] { return fake->queues.size(); });
}
TEST_F(Steps, states_of_jfr) {
  check_states<JfrCalls>(jfr_cfg, [] { return fake->receives.size(); });
}
TEST_F(Steps, states_of_jetty) {
  check_states<JettyCalls>(jetty_cfg, [] { return fake->queues.size(); });
}

TEST_F(Steps, alloc_wants_its_jfc) {
  jfs_cfg.jfc = nullptr;
  jfr_cfg.jfc = nullptr;
  urma_jfs_t* jfs = nullptr;
  urma_jfr_t* receive = nullptr;
  urma_jetty_t* jetty = nullptr;
  EXPECT_EQ(urma_alloc_jfs(ctx, &jfs_cfg, &jfs), URMA_EINVAL);
  EXPECT_EQ(urma_alloc_jfr(ctx, &jfr_cfg, &receive), URMA_EINVAL);
  urma_jetty_cfg_t cfg = jetty_cfg;
  cfg.jfs_cfg.jfc = nullptr;
  EXPECT_EQ(urma_alloc_jetty(ctx, &cfg, &jetty), URMA_EINVAL);
  EXPECT_EQ(jetty, nullptr);
}

// Membership begins with activation and ends with it.
TEST_F(Steps, group_of_jetty) {
  urma_jetty_grp_cfg_t group_cfg{};
  urma_jetty_grp_t *one = urma_create_jetty_grp(ctx, &group_cfg), *two = urma_create_jetty_grp(ctx, &group_cfg);
  ASSERT_NE(one, nullptr);
  ASSERT_NE(two, one);
  urma_jetty_cfg_t cfg = jetty_cfg;
  cfg.jetty_grp = one;
  urma_jetty_t* jetty = alloc<JettyCalls>(cfg);
  EXPECT_EQ(one->jetty_cnt, 0u);
  EXPECT_EQ((set<JettyCalls, urma_jetty_grp_t*>(jetty, URMA_JETTY_BIND_JTG, two)), URMA_SUCCESS);
  ASSERT_EQ(urma_active_jetty(jetty), URMA_SUCCESS);
  EXPECT_EQ(one->jetty_cnt, 0u);
  EXPECT_EQ(two->jetty_cnt, 1u);
  EXPECT_EQ((get<JettyCalls, urma_jetty_grp_t*>(jetty, URMA_JETTY_BIND_JTG)), two);
  EXPECT_EQ(urma_delete_jetty_grp(two), URMA_ENOPERM);
  ASSERT_EQ(urma_deactive_jetty(jetty), URMA_SUCCESS);
  EXPECT_EQ(two->jetty_cnt, 0u);
  EXPECT_EQ(urma_delete_jetty_grp(two), URMA_SUCCESS);
  EXPECT_EQ(urma_active_jetty(jetty), URMA_EINVAL) << "its group is gone";
  EXPECT_EQ((set<JettyCalls, urma_jetty_grp_t*>(jetty, URMA_JETTY_BIND_JTG, nullptr)), URMA_SUCCESS);
  EXPECT_EQ((set<JettyCalls, uint32_t>(jetty, URMA_JETTY_BIND_JTG, 0)), URMA_EINVAL);
  EXPECT_EQ(urma_set_jetty_opt(jetty, URMA_JETTY_BIND_JTG, nullptr, 8), URMA_EINVAL);
  EXPECT_EQ((get<JettyCalls, urma_jetty_grp_t*>(jetty, URMA_JETTY_BIND_JTG)), nullptr);
  EXPECT_EQ(urma_active_jetty(jetty), URMA_SUCCESS);
}

TEST_F(Steps, options_of_jfc) {
  urma_jfc_t* object = alloc<JfcCalls>(jfc_cfg);
  check_options<JfcCalls>(object, kJfcOptions);
  check_no_full_context<JfcCalls>(object, URMA_JFC_FULL_CTX);
  check_options_while_active<JfcCalls>(object, kJfcOptions);
}
TEST_F(Steps, options_of_jfs) {
  urma_jfs_t* object = alloc<JfsCalls>(jfs_cfg);
  check_options<JfsCalls>(object, kJfsOptions);
  check_no_full_context<JfsCalls>(object, URMA_JFS_FULL_CTX);
  ASSERT_EQ((set<JfsCalls, uint32_t>(object, URMA_JFS_ID, 900)), URMA_SUCCESS);
  check_options_while_active<JfsCalls>(object, kJfsOptions);
}
TEST_F(Steps, options_of_jfr) {
  urma_jfr_t* object = alloc<JfrCalls>(jfr_cfg);
  check_options<JfrCalls>(object, kJfrOptions);
  check_no_full_context<JfrCalls>(object, URMA_JFR_FULL_CTX);
  ASSERT_EQ((set<JfrCalls, uint32_t>(object, URMA_JFR_ID, 900)), URMA_SUCCESS);
  check_options_while_active<JfrCalls>(object, kJfrOptions);
}
TEST_F(Steps, options_of_jetty_and_its_send_side) {
  urma_jetty_t* object = alloc<JettyCalls>(jetty_cfg);
  std::vector<Option> options = kJettyOptions;
  options.insert(options.end(), kJfsOptions.begin(), kJfsOptions.end());
  check_options<JettyCalls>(object, options);
  check_no_full_context<JettyCalls>(object, URMA_JETTY_FULL_CTX);
  check_no_full_context<JettyCalls>(object, URMA_JFS_FULL_CTX);
  check_options_while_active<JettyCalls>(object, options);
}

TEST_F(Steps, options_of_another_kind_are_unknown) {
  urma_jfs_t* jfs = alloc<JfsCalls>(jfs_cfg);
  EXPECT_EQ((set<JfsCalls, uint32_t>(jfs, URMA_JFC_DEPTH, 8)), URMA_EINVAL);
  EXPECT_EQ((set<JfsCalls, uint32_t>(jfs, URMA_JETTY_ID, 8)), URMA_EINVAL);
  urma_jetty_t* jetty = alloc<JettyCalls>(jetty_cfg);
  EXPECT_EQ((set<JettyCalls, uint32_t>(jetty, URMA_JFR_DEPTH, 8)), URMA_EINVAL);
}

TEST_F(Steps, options_reach_the_members_they_mirror) {
  urma_jfc_t* c = alloc<JfcCalls>(jfc_cfg);
  EXPECT_EQ((set<JfcCalls, uint32_t>(c, URMA_JFC_DEPTH, 5)), URMA_SUCCESS);
  EXPECT_EQ((set<JfcCalls, uint64_t>(c, URMA_JFC_USER_CTX, 6)), URMA_SUCCESS);
  EXPECT_EQ(c->jfc_cfg.depth, 5u);
  EXPECT_EQ(c->jfc_cfg.user_ctx, 6u);
  EXPECT_EQ(jfc_cfg.depth, 16u) << "the caller's configuration was copied";

  urma_jetty_t* j = alloc<JettyCalls>(jetty_cfg);
  EXPECT_EQ((set<JettyCalls, uint64_t>(j, URMA_JETTY_USER_CTX, 1)), URMA_SUCCESS);
  EXPECT_EQ((set<JettyCalls, uint64_t>(j, URMA_JFS_USER_CTX, 2)), URMA_SUCCESS);
  EXPECT_EQ((set<JettyCalls, uint8_t>(j, URMA_JFS_RNR_RETRY, 3)), URMA_SUCCESS);
  EXPECT_EQ(j->jetty_cfg.user_ctx, 1u);
  EXPECT_EQ(j->jetty_cfg.jfs_cfg.user_ctx, 2u);
  ASSERT_EQ(urma_active_jetty(j), URMA_SUCCESS);
  EXPECT_EQ(fake->queues.at(j->jetty_id.id).config.sq.rnr_retry, 3);

  urma_jfr_t* r = alloc<JfrCalls>(jfr_cfg);
  urma_jfr_flag_t flag{};
  flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT;
  EXPECT_EQ((set<JfrCalls, urma_jfr_flag_t>(r, URMA_JFR_FLAG, flag)), URMA_SUCCESS);
  EXPECT_EQ((set<JfrCalls, uint32_t>(r, URMA_JFR_TOKEN_VALUE, 0x7777)), URMA_SUCCESS);
  ASSERT_EQ(urma_active_jfr(r), URMA_SUCCESS);
  EXPECT_TRUE(fake->receives.at(r->jfr_id.id).config.token.required);
  EXPECT_EQ(fake->receives.at(r->jfr_id.id).config.token.value, 0x7777u);
}

// What the NIC has no use for is kept, and marked as set.
TEST_F(Steps, stored_options_set_their_mask_bit) {
  urma_jfc_t* c = alloc<JfcCalls>(jfc_cfg);
  EXPECT_EQ(c->urma_jfc_opt.jfc_opt_mask.value, 0u);
  EXPECT_EQ((set<JfcCalls, uint64_t>(c, URMA_JFC_CQE_BASE_ADDR, 0x1000)), URMA_SUCCESS);
  EXPECT_EQ(c->urma_jfc_opt.jfc_opt_mask.value, 1u);
  EXPECT_EQ((set<JfcCalls, uint16_t>(c, URMA_JFC_CI, 9)), URMA_SUCCESS);
  EXPECT_TRUE(c->urma_jfc_opt.jfc_opt_mask.bs.urma_jfc_cqe_base_addr && c->urma_jfc_opt.jfc_opt_mask.bs.urma_jfc_ci);
  EXPECT_FALSE(c->urma_jfc_opt.jfc_opt_mask.bs.urma_jfc_pi);
  EXPECT_EQ(c->urma_jfc_opt.urma_jfc_ci, 9);
  EXPECT_EQ((set<JfcCalls, uint32_t>(c, URMA_JFC_DEPTH, 4)), URMA_SUCCESS);
  EXPECT_EQ(__builtin_popcountll(c->urma_jfc_opt.jfc_opt_mask.value), 2) << "the depth is no stored option";

  urma_jfs_t* s = alloc<JfsCalls>(jfs_cfg);
  EXPECT_EQ((set<JfsCalls, uint8_t>(s, URMA_JFS_DB_STATUS, 1)), URMA_SUCCESS);
  EXPECT_EQ((set<JfsCalls, uint16_t>(s, URMA_JFS_PI_TYPE, 2)), URMA_SUCCESS);
  EXPECT_EQ((set<JfsCalls, uint32_t>(s, URMA_JFS_ID, 5)), URMA_SUCCESS);
  const auto& of_jfs = s->urma_jfs_opt.jfs_opt_mask.bs;
  EXPECT_TRUE(of_jfs.urma_jfs_db_status && of_jfs.urma_jfs_pi_type && of_jfs.urma_jfs_id);

  urma_jfr_t* r = alloc<JfrCalls>(jfr_cfg);
  EXPECT_EQ((set<JfrCalls, uint64_t>(r, URMA_JFR_DB_ADDR, 3)), URMA_SUCCESS);
  EXPECT_EQ((set<JfrCalls, uint16_t>(r, URMA_JFR_PI, 4)), URMA_SUCCESS);
  EXPECT_TRUE(r->urma_jfr_opt.jfr_opt_mask.bs.urma_jfr_db_addr && r->urma_jfr_opt.jfr_opt_mask.bs.urma_jfr_pi);

  urma_jetty_t* j = alloc<JettyCalls>(jetty_cfg);
  EXPECT_EQ((set<JettyCalls, uint64_t>(j, URMA_JFS_SQE_BASE_ADDR, 0x2000)), URMA_SUCCESS);
  EXPECT_EQ(j->urma_jetty_opt.jfs_opt.jfs_opt_mask.value, 1u);
  ASSERT_EQ(urma_active_jetty(j), URMA_SUCCESS);
  EXPECT_EQ((get<JettyCalls, uint64_t>(j, URMA_JFS_SQE_BASE_ADDR)), 0x2000u);
}

TEST_F(Steps, wanted_ids_are_honoured_when_free) {
  urma_jfs_t* s = alloc<JfsCalls>(jfs_cfg);
  urma_jfr_t* r = alloc<JfrCalls>(jfr_cfg);
  urma_jetty_t* j = alloc<JettyCalls>(jetty_cfg);
  ASSERT_EQ((set<JfsCalls, uint32_t>(s, URMA_JFS_ID, 5000)), URMA_SUCCESS);
  ASSERT_EQ((set<JfrCalls, uint32_t>(r, URMA_JFR_ID, 5001)), URMA_SUCCESS);
  ASSERT_EQ((set<JettyCalls, uint32_t>(j, URMA_JETTY_ID, 5002)), URMA_SUCCESS);
  ASSERT_EQ(urma_active_jfs(s), URMA_SUCCESS);
  ASSERT_EQ(urma_active_jfr(r), URMA_SUCCESS);
  ASSERT_EQ(urma_active_jetty(j), URMA_SUCCESS);
  EXPECT_EQ(s->jfs_id.id, 5000u);
  EXPECT_EQ(r->jfr_id.id, 5001u);
  EXPECT_EQ(j->jetty_id.id, 5002u);

  urma_jfr_t* other = alloc<JfrCalls>(jfr_cfg);
  ASSERT_EQ((set<JfrCalls, uint32_t>(other, URMA_JFR_ID, 5001)), URMA_SUCCESS);
  ASSERT_EQ(urma_active_jfr(other), URMA_SUCCESS);
  EXPECT_NE(other->jfr_id.id, 5001u);
  EXPECT_EQ((get<JfrCalls, uint32_t>(other, URMA_JFR_ID)), other->jfr_id.id) << "what was given is told";

  // Not in the range of ids: found at activation.
  urma_jfs_t* low = alloc<JfsCalls>(jfs_cfg);
  ASSERT_EQ((set<JfsCalls, uint32_t>(low, URMA_JFS_ID, 2)), URMA_SUCCESS);
  EXPECT_EQ(urma_active_jfs(low), URMA_EINVAL);
  urma_jetty_t* high = alloc<JettyCalls>(jetty_cfg);
  ASSERT_EQ((set<JettyCalls, uint32_t>(high, URMA_JETTY_ID, 1 << 20)), URMA_SUCCESS);
  EXPECT_EQ(urma_active_jetty(high), URMA_EINVAL);
}

TEST_F(Steps, activation_checks_what_creation_checks) {
  urma_jfc_t* c = alloc<JfcCalls>(jfc_cfg);
  ASSERT_EQ((set<JfcCalls, uint32_t>(c, URMA_JFC_DEPTH, 0)), URMA_SUCCESS);
  EXPECT_EQ(urma_active_jfc(c), URMA_EINVAL);
  ASSERT_EQ((set<JfcCalls, uint32_t>(c, URMA_JFC_DEPTH, 4)), URMA_SUCCESS);

  // The JFC must be active.
  jfs_cfg.jfc = jfr_cfg.jfc = jetty_cfg.jfs_cfg.jfc = c;
  urma_jfs_t* s = alloc<JfsCalls>(jfs_cfg);
  urma_jfr_t* r = alloc<JfrCalls>(jfr_cfg);
  jetty_cfg.shared.jfr = r;
  urma_jetty_t* j = alloc<JettyCalls>(jetty_cfg);
  EXPECT_EQ(urma_active_jfs(s), URMA_EINVAL);
  EXPECT_EQ(urma_active_jfr(r), URMA_EINVAL);
  EXPECT_EQ(urma_active_jetty(j), URMA_EINVAL);
  ASSERT_EQ(urma_active_jfc(c), URMA_SUCCESS);
  EXPECT_EQ(urma_active_jfs(s), URMA_SUCCESS);
  EXPECT_EQ(urma_active_jetty(j), URMA_EINVAL);  // and so must the JFR
  EXPECT_EQ(urma_active_jfr(r), URMA_SUCCESS);
  EXPECT_EQ(urma_active_jetty(j), URMA_SUCCESS);
  EXPECT_EQ(j->jetty_cfg.shared.jfc, c);

  ASSERT_EQ(urma_deactive_jfs(s), URMA_SUCCESS);
  ASSERT_EQ((set<JfsCalls, uint8_t>(s, URMA_JFS_MAX_SGE, 200)), URMA_SUCCESS);
  EXPECT_EQ(urma_active_jfs(s), URMA_EINVAL);
  ASSERT_EQ((set<JfsCalls, uint8_t>(s, URMA_JFS_MAX_SGE, 2)), URMA_SUCCESS);
  ASSERT_EQ((set<JfsCalls, uint32_t>(s, URMA_JFS_TRANS_MODE, 3)), URMA_SUCCESS);
  EXPECT_EQ(urma_active_jfs(s), URMA_EINVAL);
  ASSERT_EQ((set<JfsCalls, urma_jfc_t*>(s, URMA_JFS_BIND_JFC, nullptr)), URMA_SUCCESS);
  EXPECT_EQ(urma_active_jfs(s), URMA_EINVAL);
}

TEST_F(Steps, inactive_objects_are_refused_by_every_call) {
  urma_jfce_t* jfce = urma_create_jfce(ctx);
  jfc_cfg.jfce = jfce;
  urma_jfc_t* c = alloc<JfcCalls>(jfc_cfg);
  EXPECT_EQ(jfce->ref.atomic_cnt.load(), 1u) << "an inactive JFC holds no channel";
  urma_jfs_t* s = alloc<JfsCalls>(jfs_cfg);
  urma_jfr_t* r = alloc<JfrCalls>(jfr_cfg);
  jetty_cfg.jfs_cfg.trans_mode = URMA_TM_RC;
  urma_jetty_t* j = alloc<JettyCalls>(jetty_cfg);

  urma_cr_t cr;
  EXPECT_EQ(urma_poll_jfc(c, 1, &cr), -1);
  EXPECT_EQ(urma_rearm_jfc(c, false), URMA_EINVAL);
  urma_jfc_attr_t jfc_attr{};
  EXPECT_EQ(urma_modify_jfc(c, &jfc_attr), URMA_EINVAL);
  uint32_t one = 1;
  urma_ack_jfc(&c, &one, 1);
  EXPECT_EQ(c->comp_events_acked, 0u);

  urma_jfs_wr_t wr{};
  urma_jfs_wr_t* bad = nullptr;
  EXPECT_EQ(urma_post_jfs_wr(s, &wr, &bad), URMA_EINVAL);
  EXPECT_EQ(bad, &wr);
  urma_jfs_attr_t jfs_attr{};
  jfs_attr.mask = JFS_STATE;
  jfs_attr.state = URMA_JETTY_STATE_ERROR;
  EXPECT_EQ(urma_modify_jfs(s, &jfs_attr), URMA_EINVAL);
  EXPECT_EQ(urma_query_jfs(s, &jfs_cfg, &jfs_attr), URMA_EINVAL);
  EXPECT_EQ(urma_flush_jfs(s, 1, &cr), -URMA_EINVAL);

  urma_jfr_wr_t receive{};
  urma_jfr_wr_t* bad_receive = nullptr;
  EXPECT_EQ(urma_post_jfr_wr(r, &receive, &bad_receive), URMA_EINVAL);
  EXPECT_EQ(bad_receive, &receive);
  urma_jfr_attr_t jfr_attr{};
  jfr_attr.mask = JFR_STATE;
  EXPECT_EQ(urma_modify_jfr(r, &jfr_attr), URMA_EINVAL);
  EXPECT_EQ(urma_query_jfr(r, &jfr_cfg, &jfr_attr), URMA_EINVAL);

  EXPECT_EQ(urma_post_jetty_send_wr(j, &wr, &bad), URMA_EINVAL);
  EXPECT_EQ(urma_post_jetty_recv_wr(j, &receive, &bad_receive), URMA_EINVAL);
  urma_jetty_attr_t jetty_attr{};
  jetty_attr.mask = JETTY_STATE;
  EXPECT_EQ(urma_modify_jetty(j, &jetty_attr), URMA_EINVAL);
  EXPECT_EQ(urma_query_jetty(j, &jetty_cfg, &jetty_attr), URMA_EINVAL);
  EXPECT_EQ(urma_flush_jetty(j, 1, &cr), -URMA_EINVAL);
  EXPECT_EQ(urma_bind_jetty(j, make_target(URMA_TM_RC)), URMA_EINVAL);
  EXPECT_EQ(urma_unbind_jetty(j), URMA_EINVAL);
  urma_rjetty_t* rjetty = nullptr;
  uint32_t length = 0;
  EXPECT_EQ(urma_get_rjetty(j, &rjetty, &length), URMA_EINVAL);

  urma_jetty_t* batch[] = {j};
  urma_jetty_t* bad_jetty = nullptr;
  EXPECT_EQ(urma_delete_jetty_batch(batch, 1, &bad_jetty), URMA_EINVAL);
  // A one-step object cannot be built on inactive ones either.
  EXPECT_EQ(make_jfs(c), nullptr);
  EXPECT_EQ(make_jetty(jfc, r), nullptr);
}

TEST_F(Steps, deactivation_has_the_conditions_of_deletion) {
  urma_jfc_t* c = alloc<JfcCalls>(jfc_cfg);
  ASSERT_EQ(urma_active_jfc(c), URMA_SUCCESS);
  urma_jfr_t* r = make_jfr(c, URMA_TM_RC);
  urma_jetty_t* j = make_jetty(c, r, URMA_TM_RC);
  urma_target_jetty_t* target = make_target(URMA_TM_RC);
  ASSERT_EQ(urma_bind_jetty(j, target), URMA_SUCCESS);
  EXPECT_EQ(urma_deactive_jfc(c), URMA_FAIL);
  EXPECT_EQ(urma_deactive_jfr(r), URMA_FAIL);
  EXPECT_EQ(urma_deactive_jetty(j), URMA_ENOPERM);
  EXPECT_EQ(urma_free_jetty(j), URMA_ENOPERM);
  EXPECT_TRUE(j->urma_jetty_opt.is_actived);
  ASSERT_EQ(urma_unbind_jetty(j), URMA_SUCCESS);
  EXPECT_EQ(urma_free_jetty(j), URMA_EINVAL);
  EXPECT_EQ(urma_deactive_jetty(j), URMA_SUCCESS);
  EXPECT_EQ(urma_deactive_jfr(r), URMA_SUCCESS);
  EXPECT_EQ(urma_deactive_jfc(c), URMA_SUCCESS);
  EXPECT_EQ(urma_free_jetty(j), URMA_SUCCESS);
  EXPECT_EQ(urma_free_jfr(r), URMA_SUCCESS);
  EXPECT_EQ(urma_free_jfc(c), URMA_SUCCESS);
}

TEST_F(Steps, deactivation_waits_for_acknowledgements) {
  urma_jfce_t* jfce = urma_create_jfce(ctx);
  jfc_cfg.jfce = jfce;
  jfc_cfg.flag.bs.non_blocking = 1;
  urma_jfc_t* c = alloc<JfcCalls>(jfc_cfg);
  // Twice: an object that comes back has events again, and owes none of its first life.
  for (int life = 0; life < 2; ++life) {
    ASSERT_EQ(urma_active_jfc(c), URMA_SUCCESS);
    EXPECT_EQ(jfce->ref.atomic_cnt.load(), 2u);
    ASSERT_EQ(urma_rearm_jfc(c, false), URMA_SUCCESS);
    ASSERT_TRUE(fake->produce(static_cast<uint32_t>(c->handle), Cqe{}));
    urma_jfc_t* got = nullptr;
    ASSERT_EQ(urma_wait_jfc(jfce, 1, 0, &got), 1);
    EXPECT_EQ(got, c);
    EXPECT_EQ(urma_deactive_jfc(c), URMA_EAGAIN);
    EXPECT_TRUE(c->urma_jfc_opt.is_actived);
    uint32_t one = 1;
    urma_ack_jfc(&c, &one, 1);
    EXPECT_EQ(urma_deactive_jfc(c), URMA_SUCCESS);
    EXPECT_EQ(jfce->ref.atomic_cnt.load(), 1u);
  }

  jfs_cfg.flag.bs.non_blocking = 1;
  urma_jfs_t* s = alloc<JfsCalls>(jfs_cfg);
  ASSERT_EQ(fcntl(ctx->async_fd, F_SETFL, O_NONBLOCK), 0);
  for (int life = 0; life < 2; ++life) {
    ASSERT_EQ(urma_active_jfs(s), URMA_SUCCESS);
    fake->raise(Event{EventKind::kJfsError, reinterpret_cast<uintptr_t>(s)});
    urma_async_event_t event;
    ASSERT_EQ(urma_get_async_event(ctx, &event), URMA_SUCCESS);
    EXPECT_EQ(event.element.jfs, s);
    EXPECT_EQ(urma_deactive_jfs(s), URMA_EAGAIN);
    urma_ack_async_event(&event);
    EXPECT_EQ(urma_deactive_jfs(s), URMA_SUCCESS);
  }
}

TEST_F(Steps, inactive_objects_keep_their_context) {
  ASSERT_EQ(urma_delete_jfr(jfr), URMA_SUCCESS);
  ASSERT_EQ(urma_delete_jfc(jfc), URMA_SUCCESS);
  const auto check = [&](auto* object, auto free) {
    EXPECT_EQ(urma_delete_context(ctx), URMA_EAGAIN);
    EXPECT_EQ(free(object), URMA_SUCCESS);
    EXPECT_EQ(ctx->ref.atomic_cnt.load(), 1u);
  };
  check(alloc<JfcCalls>(jfc_cfg), urma_free_jfc);
  check(alloc<JfsCalls>(jfs_cfg), urma_free_jfs);
  check(alloc<JfrCalls>(jfr_cfg), urma_free_jfr);
  check(alloc<JettyCalls>(jetty_cfg), urma_free_jetty);
  EXPECT_EQ(urma_delete_context(ctx), URMA_SUCCESS);
}

TEST_F(Steps, both_ways_mix) {
  // Made in one step, ended in two.
  urma_jfs_t* s = make_jfs(jfc);
  EXPECT_TRUE(s->urma_jfs_opt.is_actived);
  EXPECT_EQ(urma_deactive_jfs(s), URMA_SUCCESS);
  EXPECT_EQ(urma_free_jfs(s), URMA_SUCCESS);
  // Made in two, ended in one.
  s = alloc<JfsCalls>(jfs_cfg);
  EXPECT_EQ(urma_active_jfs(s), URMA_SUCCESS);
  EXPECT_EQ(urma_delete_jfs(s), URMA_SUCCESS);
  EXPECT_EQ(urma_free_jfs(s), URMA_EINVAL);
}

TEST_F(Steps, a_second_life_starts_with_empty_queues) {
  urma_jfc_t* c = alloc<JfcCalls>(jfc_cfg);
  ASSERT_EQ(urma_active_jfc(c), URMA_SUCCESS);
  jfs_cfg.jfc = c;
  urma_jfs_t* s = alloc<JfsCalls>(jfs_cfg);
  urma_target_jetty_t* target = make_target();
  auto post = [&](uint64_t user_ctx) {
    urma_jfs_wr_t wr{};
    wr.opcode = URMA_OPC_SEND;
    wr.tjetty = target;
    wr.user_ctx = user_ctx;
    wr.flag.bs.complete_enable = 1;
    urma_jfs_wr_t* bad = nullptr;
    return urma_post_jfs_wr(s, &wr, &bad);
  };
  for (uint64_t life = 0; life < 3; ++life) {
    ASSERT_EQ(urma_active_jfs(s), URMA_SUCCESS);
    const uint32_t id = s->jfs_id.id;
    for (uint64_t i = 0; i < 8; ++i) ASSERT_EQ(post(life * 10 + i), URMA_SUCCESS);
    EXPECT_EQ(post(0), URMA_ENOMEM);
    ASSERT_EQ(fake->elements(id).size(), 8u);
    ASSERT_TRUE(fake->finish(id));
    ASSERT_TRUE(fake->finish(id));
    urma_cr_t cr;
    ASSERT_EQ(urma_poll_jfc(c, 1, &cr), 1);
    EXPECT_EQ(cr.user_ctx, life * 10);
    // A record that nobody polled and requests that nobody finished go with this life.
    ASSERT_EQ(urma_deactive_jfs(s), URMA_SUCCESS);
    EXPECT_EQ(urma_poll_jfc(c, 1, &cr), 0);
    ASSERT_EQ(urma_deactive_jfc(c), URMA_SUCCESS);
    ASSERT_EQ((set<JfcCalls, uint32_t>(c, URMA_JFC_DEPTH, 16u << life)), URMA_SUCCESS);
    ASSERT_EQ(urma_active_jfc(c), URMA_SUCCESS);
  }
}

TEST_F(Steps, a_second_life_of_a_receive_queue) {
  char memory[64];
  urma_target_seg_t* seg = make_seg(memory, sizeof memory);
  urma_jfr_t* r = alloc<JfrCalls>(jfr_cfg);
  for (uint64_t life = 0; life < 3; ++life) {
    ASSERT_EQ(urma_active_jfr(r), URMA_SUCCESS);
    urma_jfr_attr_t attr{};
    EXPECT_EQ(urma_query_jfr(r, &jfr_cfg, &attr), URMA_SUCCESS);
    EXPECT_EQ(attr.rx_threshold, 0u);
    for (uint64_t i = 0; i < 8; ++i) {
      ASSERT_EQ(urma_recv(r, seg, reinterpret_cast<uint64_t>(memory), 8, life * 10 + i), URMA_SUCCESS);
    }
    EXPECT_EQ(urma_recv(r, seg, reinterpret_cast<uint64_t>(memory), 8, 0), URMA_ENOMEM);
    const Rqe* rqe = fake->take_receive(r->jfr_id.id);
    ASSERT_NE(rqe, nullptr);
    EXPECT_EQ(rqe->user_ctx, life * 10);
    attr.mask = JFR_RX_THRESHOLD | JFR_STATE;
    attr.rx_threshold = 2;
    attr.state = URMA_JFR_STATE_ERROR;
    ASSERT_EQ(urma_modify_jfr(r, &attr), URMA_SUCCESS);
    ASSERT_EQ(urma_deactive_jfr(r), URMA_SUCCESS);
  }
}

TEST_F(Steps, a_jetty_moves_to_another_receive_queue) {
  urma_jfc_t* other_jfc = make_jfc();
  urma_jfr_t* other = make_jfr(other_jfc);
  urma_jetty_t* j = alloc<JettyCalls>(jetty_cfg);
  ASSERT_EQ(urma_active_jetty(j), URMA_SUCCESS);
  EXPECT_EQ(j->jetty_cfg.shared.jfc, jfc);
  ASSERT_EQ(urma_deactive_jetty(j), URMA_SUCCESS);
  ASSERT_EQ(urma_delete_jfr(jfr), URMA_SUCCESS);
  ASSERT_EQ((set<JettyCalls, urma_jfr_t*>(j, URMA_JETTY_BIND_JFR, other)), URMA_SUCCESS);
  ASSERT_EQ(urma_active_jetty(j), URMA_SUCCESS);
  EXPECT_EQ(j->jetty_cfg.shared.jfc, other_jfc) << "nobody named one, so it is that of the JFR";
  EXPECT_EQ(fake->queues.at(j->jetty_id.id).config.recv_jfc, other_jfc->handle);
  ASSERT_EQ(urma_deactive_jetty(j), URMA_SUCCESS);
  ASSERT_EQ((set<JettyCalls, urma_jfc_t*>(j, URMA_JETTY_BIND_RX_JFC, jfc)), URMA_SUCCESS);
  for (int life = 0; life < 2; ++life) {
    ASSERT_EQ(urma_active_jetty(j), URMA_SUCCESS);
    EXPECT_EQ(j->jetty_cfg.shared.jfc, jfc) << "one that was named stays";
    ASSERT_EQ(urma_deactive_jetty(j), URMA_SUCCESS);
  }
}

TEST_F(Steps, inactive_handles_end_with_the_library) {
  urma_jfc_t* c = alloc<JfcCalls>(jfc_cfg);
  urma_jetty_t* j = alloc<JettyCalls>(jetty_cfg);
  ASSERT_EQ(urma_uninit(), URMA_SUCCESS);
  EXPECT_EQ(urma_active_jfc(c), URMA_EINVAL);
  EXPECT_EQ(urma_free_jfc(c), URMA_EINVAL);
  EXPECT_EQ(urma_free_jetty(j), URMA_EINVAL);
  ASSERT_EQ(urma_init(nullptr), URMA_SUCCESS);
  EXPECT_EQ(urma_active_jfc(c), URMA_EINVAL);
  EXPECT_EQ(urma_free_jetty(j), URMA_EINVAL);
}

}  // namespace
}  // namespace ub::test
