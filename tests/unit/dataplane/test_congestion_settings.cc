// SPDX-License-Identifier: Apache-2.0
//
// The section [congestion] on its way to the Core: each key is one of its numbers, and unless a user says otherwise
// each number is the one that the algorithms have anyway.
#include "dataplane/congestion_settings.h"

#include <gtest/gtest.h>

#include <cctype>
#include <set>
#include <string>

#include "tests/unit/dataplane/fake_environment.h"

namespace ub {
namespace {

// A key with a value that is not its default, and what this makes of the configuration of the Core.
struct Key {
  const char* name;
  const char* value;
  int64_t expected;
  int64_t (*read)(const CoreConfig&);
};

#define READ(field) [](const CoreConfig& c) { return static_cast<int64_t>(c.field); }

constexpr Key kKeys[] = {
    {"algorithm", "swift", static_cast<int64_t>(cc::Control::kSwift), READ(congestion_control)},
    {"line_rate", "4000000", 500'000'000'000, READ(line_bytes_per_second)},
    {"caqm_initial_packets", "2001", 2001, READ(congestion.caqm.initial_packets)},
    {"caqm_increase", "201", 201, READ(congestion.caqm.increase_percent)},
    {"caqm_decrease", "202", 202, READ(congestion.caqm.decrease_percent)},
    {"caqm_calm_round_trips", "203", 203, READ(congestion.caqm.calm_round_trips)},
    {"ldcp_initial_packets", "2002", 2002, READ(congestion.ldcp.initial_packets)},
    {"ldcp_gain_shift", "15", 15, READ(congestion.ldcp.gain_shift)},
    {"swift_initial_packets", "2003", 2003, READ(congestion.swift.initial_packets)},
    {"swift_base_target", "31us", 31'000, READ(congestion.swift.base_target.ns)},
    {"swift_scaling", "32us", 32'000, READ(congestion.swift.most_scaling.ns)},
    {"swift_least_scaled", "2", 2, READ(congestion.swift.least_scaled_packets)},
    {"swift_most_scaled", "2004", 2004, READ(congestion.swift.most_scaled_packets)},
    {"swift_increase", "204", 204, READ(congestion.swift.increase_percent)},
    {"swift_decrease", "71", 71, READ(congestion.swift.decrease_percent)},
    {"swift_most_decrease", "72", 72, READ(congestion.swift.most_decrease_percent)},
    {"dcqcn_gain_shift", "14", 14, READ(congestion.dcqcn.gain_shift)},
    {"dcqcn_fast_steps", "13", 13, READ(congestion.dcqcn.fast_steps)},
    {"dcqcn_step_bytes", "16777215", 16'777'215, READ(congestion.dcqcn.bytes_per_step)},
    {"dcqcn_step", "33us", 33'000, READ(congestion.dcqcn.step.ns)},
    {"dcqcn_least_rate", "11", 1'375, READ(congestion.dcqcn.least_kbytes_per_second)},
    {"dcqcn_add", "99999", 12'499'875, READ(congestion.dcqcn.add_kbytes_per_second)},
    {"dcqcn_add_much", "100000", 12'500'000, READ(congestion.dcqcn.add_much_kbytes_per_second)},
    {"dcqcn_pause", "34us", 34'000, READ(congestion.dcqcn.notification_pause.ns)},
    {"loss_initial_packets", "2005", 2005, READ(congestion.loss_window.initial_packets)},
    {"loss_least_packets", "3", 3, READ(congestion.loss_window.least_packets)},
};

std::string variable(const std::string& key) {
  std::string name = "SOFTUB_CONGESTION_" + key;
  for (char& c : name) c = static_cast<char>(std::toupper(c));
  return name;
}

LoadedConfig load(const FakeEnvironment& environment) {
  const ConfigResult result = load_config(environment);
  EXPECT_TRUE(result.config) << result.error;
  return result.config ? *result.config : LoadedConfig{};
}

CoreConfig core_of(const FakeEnvironment& environment) {
  CoreConfig core;
  set_congestion(load(environment).congestion, &core);
  return core;
}

TEST(CongestionSettings, the_table_above_has_each_key) {
  std::set<std::string> listed, existing;
  for (const Key& key : kKeys) listed.insert(std::string("congestion.") + key.name);
  const ConfigResult defaults = load_config(FakeEnvironment());
  ASSERT_TRUE(defaults.config);
  for (const ConfigRow& row : describe(*defaults.config)) {
    if (row.key.starts_with("congestion.")) existing.insert(row.key);
  }
  EXPECT_EQ(listed, existing);
}

TEST(CongestionSettings, who_says_nothing_has_the_usual_numbers) {
  const CoreConfig usual, core = core_of({});
  for (const Key& key : kKeys) EXPECT_EQ(key.read(core), key.read(usual)) << key.name;
}

TEST(CongestionSettings, each_key_reaches_its_number_and_no_other) {
  const CoreConfig usual = core_of({});
  for (const Key& set : kKeys) {
    FakeEnvironment environment;
    environment.variables[variable(set.name)] = set.value;
    const CoreConfig core = core_of(environment);
    ASSERT_NE(set.expected, set.read(usual)) << set.name;
    for (const Key& key : kKeys) {
      EXPECT_EQ(key.read(core), key.name == set.name ? set.expected : key.read(usual)) << set.name << ' ' << key.name;
    }
  }
}

TEST(CongestionSettings, all_keys_together_reach_their_numbers) {
  FakeEnvironment environment;
  for (const Key& key : kKeys) environment.variables[variable(key.name)] = key.value;
  const CoreConfig core = core_of(environment);
  for (const Key& key : kKeys) EXPECT_EQ(key.read(core), key.expected) << key.name;
}

TEST(CongestionSettings, each_algorithm_has_its_name_and_only_some_need_the_marks_of_packets) {
  struct {
    const char* name;
    cc::Control control;
    bool marks;
  } constexpr kAlgorithms[] = {{"none", cc::Control::kNone, false},
                               {"caqm", cc::Control::kCaqm, true},
                               {"ldcp", cc::Control::kLdcp, true},
                               {"dcqcn", cc::Control::kDcqcn, true},
                               {"swift", cc::Control::kSwift, false}};
  for (const auto& algorithm : kAlgorithms) {
    FakeEnvironment environment;
    environment.variables[variable("algorithm")] = algorithm.name;
    EXPECT_EQ(core_of(environment).congestion_control, algorithm.control) << algorithm.name;
    EXPECT_EQ(reads_marks(load(environment)), algorithm.marks) << algorithm.name;
    environment.variables["SOFTUB_ROCE_DCQCN"] = "true";
    EXPECT_TRUE(reads_marks(load(environment))) << algorithm.name << ": queue pairs do";
  }
}

// ---- classes ----------------------------------------------------------------------------------------------------

CoreConfig classes_of(const char* dscp, const char* bulk_dscp) {
  FakeEnvironment environment;
  if (dscp != nullptr) environment.variables["SOFTUB_PORT_DSCP"] = dscp;
  if (bulk_dscp != nullptr) environment.variables["SOFTUB_PORT_BULK_DSCP"] = bulk_dscp;
  CoreConfig core;
  set_classes(load(environment).port, &core);
  return core;
}

TEST(Classes, bulk_messages_have_the_code_point_of_all_unless_they_have_one_of_their_own) {
  struct {
    const char *dscp, *bulk_dscp;
    int of_all, of_bulk;
  } constexpr kCases[] = {{nullptr, nullptr, 0, 0}, {"46", nullptr, 46, 46}, {"46", "8", 46, 8},
                          {"46", "0", 46, 0},       {nullptr, "63", 0, 63},  {"63", "64", 63, 63}};
  for (const auto& c : kCases) {
    const CoreConfig core = classes_of(c.dscp, c.bulk_dscp);
    EXPECT_EQ(core.dscp_of(false), c.of_all);
    EXPECT_EQ(core.dscp_of(true), c.of_bulk);
  }
}

TEST(Classes, a_code_point_that_there_is_not_is_refused) {
  FakeEnvironment environment;
  environment.variables["SOFTUB_PORT_BULK_DSCP"] = "65";
  EXPECT_EQ(load_config(environment).error,
            "env SOFTUB_PORT_BULK_DSCP: port.bulk_dscp = 65 is out of range 0..64 (code point)");
}

std::string error_of(const char* key, const char* value) {
  FakeEnvironment environment;
  environment.variables[variable(key)] = value;
  const ConfigResult result = load_config(environment);
  EXPECT_EQ(result.config.has_value(), result.error.empty());
  return result.error;
}

TEST(CongestionSettings, an_unknown_algorithm_is_refused) {
  EXPECT_NE(error_of("algorithm", "cubic").find("caqm"), std::string::npos);
}

TEST(CongestionSettings, what_is_least_is_not_above_the_most) {
  EXPECT_EQ(error_of("swift_least_scaled", "100"), "");
  EXPECT_NE(error_of("swift_least_scaled", "101").find("is above congestion.swift_most_scaled"), std::string::npos);
  EXPECT_EQ(error_of("swift_most_scaled", "1"), "");
  EXPECT_EQ(error_of("loss_least_packets", "32"), "");
  EXPECT_NE(error_of("loss_least_packets", "33").find("is above congestion.loss_initial_packets"), std::string::npos);
  EXPECT_NE(error_of("loss_initial_packets", "1").find("congestion.loss_least_packets = 2"), std::string::npos);
}

}  // namespace
}  // namespace ub
