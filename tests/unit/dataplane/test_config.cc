// SPDX-License-Identifier: Apache-2.0
//
// Configuration: every source overrides the one before it, and every mistake is a sentence that a user can
// act on.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "tests/unit/dataplane/fake_environment.h"

namespace ub {
namespace {

constexpr const char* kSystemFile = "/etc/softub/softub.toml";
constexpr const char* kUserFile = "/users/ann/.config/softub/softub.toml";

// The error that a system file with this text gives, without the name of the file.
std::string error_of_text(const std::string& text) {
  FakeEnvironment environment;
  environment.add_file(kSystemFile, text);
  const ConfigResult result = load_config(environment);
  EXPECT_EQ(result.config.has_value(), result.error.empty());
  const std::string prefix = std::string(kSystemFile) + ":";
  EXPECT_TRUE(result.error.starts_with(prefix)) << result.error;
  return result.error.substr(std::min(prefix.size(), result.error.size()));
}

std::string error_of_variable(const std::string& name, const std::string& value) {
  FakeEnvironment environment;
  environment.variables[name] = value;
  const ConfigResult result = load_config(environment);
  EXPECT_EQ(result.config.has_value(), result.error.empty());
  return result.error;
}

ConfigRow row_of(const LoadedConfig& config, const std::string& key) {
  for (const ConfigRow& row : describe(config)) {
    if (row.key == key) return row;
  }
  ADD_FAILURE() << "no row for " << key;
  return {};
}

// -- defaults --------------------------------------------------------------------------------------

TEST(Config, defaults__need_no_file) {
  const ConfigResult result = load_config(FakeEnvironment());
  ASSERT_TRUE(result.config) << result.error;
  const Config& config = *result.config;
  EXPECT_EQ(config.device.name, "softub0");
  EXPECT_TRUE(config.device.eids.empty());
  EXPECT_EQ(config.port.kinds, (std::vector<std::string>{"shm", "udp"}));
  EXPECT_EQ(config.port.udp_port, 4792u);
  EXPECT_EQ(config.port.shm_ring_bytes, 8u << 20);
  EXPECT_EQ(config.transport.window_packets, 512u);
  EXPECT_EQ(config.transport.rto_min, std::chrono::milliseconds(4));
  EXPECT_EQ(config.transport.segment_bytes, 65536u);
  EXPECT_TRUE(config.transport.fast_retransmit);
  EXPECT_GE(config.limits.max_jetty, 65535u);
  EXPECT_GE(config.limits.jfs_depth, 15000u);
  EXPECT_GE(config.limits.jfr_depth, 32768u);
  EXPECT_GE(config.limits.jfc_depth, 8192u);
  EXPECT_EQ(config.progress.helper_backoff_max, std::chrono::milliseconds(1));
  EXPECT_TRUE(result.config->files.empty());
}

TEST(Config, defaults__of_struct_and_key_table_agree_and_are_legal) {
  const ConfigResult defaults = load_config(FakeEnvironment());
  ASSERT_TRUE(defaults.config) << defaults.error;
  FakeEnvironment environment;
  for (const ConfigRow& row : describe(*defaults.config)) {
    EXPECT_EQ(row.value, row.default_value) << row.key;
    EXPECT_EQ(row.source, "default") << row.key;
    EXPECT_FALSE(row.help.empty()) << row.key;
    std::string name = "SOFTUB_" + row.key;
    for (char& c : name) c = c == '.' ? '_' : static_cast<char>(std::toupper(c));
    environment.variables[name] = row.default_value;
  }
  const ConfigResult again = load_config(environment);
  ASSERT_TRUE(again.config) << again.error;
  for (const ConfigRow& row : describe(*again.config)) {
    EXPECT_EQ(row.value, row.default_value) << row.key;
    EXPECT_TRUE(row.source.starts_with("env SOFTUB_")) << row.key;
  }
}

// -- sources ---------------------------------------------------------------------------------------

TEST(Config, sources__each_overrides_the_one_before) {
  FakeEnvironment environment;
  environment.add_file(kSystemFile,
                       "[transport]\nlanes = 1\nlane_bulk_bytes = 2\nrtt_multiplier = 3\nwindow_packets = 128\n");
  environment.add_file(kUserFile, "[transport]\nlane_bulk_bytes = 4\nrtt_multiplier = 5\nwindow_packets = 256\n");
  environment.add_file("/tmp/mine.toml", "\n[transport]\nrtt_multiplier = 6\nwindow_packets = 1024\n");
  environment.variables["SOFTUB_CONFIG"] = "/tmp/mine.toml";
  environment.variables["SOFTUB_TRANSPORT_WINDOW_PACKETS"] = "2048";
  const ConfigResult result = load_config(environment);
  ASSERT_TRUE(result.config) << result.error;
  EXPECT_EQ(result.config->transport.lanes, 1u);
  EXPECT_EQ(result.config->transport.lane_bulk_bytes, 4u);
  EXPECT_EQ(result.config->transport.rtt_multiplier, 6u);
  EXPECT_EQ(result.config->transport.window_packets, 2048u);
  EXPECT_EQ(row_of(*result.config, "transport.lanes").source, "/etc/softub/softub.toml:2");
  EXPECT_EQ(row_of(*result.config, "transport.lane_bulk_bytes").source, "/users/ann/.config/softub/softub.toml:2");
  EXPECT_EQ(row_of(*result.config, "transport.rtt_multiplier").source, "/tmp/mine.toml:3");
  EXPECT_EQ(row_of(*result.config, "transport.window_packets").source, "env SOFTUB_TRANSPORT_WINDOW_PACKETS");
  EXPECT_EQ(row_of(*result.config, "transport.rto_min").source, "default");
  EXPECT_EQ(result.config->files, (std::vector<std::string>{kSystemFile, kUserFile, "/tmp/mine.toml"}));
}

TEST(Config, sources__xdg_config_home_replaces_home) {
  FakeEnvironment environment;
  environment.variables["XDG_CONFIG_HOME"] = "/xdg";
  environment.add_file("/xdg/softub/softub.toml", "device.name = \"a\"");
  environment.add_file(kUserFile, "device.name = \"b\"");
  const ConfigResult result = load_config(environment);
  ASSERT_TRUE(result.config) << result.error;
  EXPECT_EQ(result.config->device.name, "a");
}

TEST(Config, sources__every_type_in_toml) {
  FakeEnvironment environment;
  environment.add_file(kSystemFile, R"(
    [device]
    eids = ["10.0.0.1", "fd00::1"]
    eid_map = ["fd00::7=10.0.0.7"]
    [port]
    shm_ring_bytes = "16MiB"
    udp_sndbuf = 65536
    shm_dir = "/run/softub"
    icrc_shm = true
    [progress]
    helper_spin = 0
    doorbell_after = "20 us"
  )");
  const ConfigResult result = load_config(environment);
  ASSERT_TRUE(result.config) << result.error;
  EXPECT_EQ(result.config->device.eids, (std::vector<std::string>{"10.0.0.1", "fd00::1"}));
  EXPECT_EQ(result.config->port.shm_ring_bytes, 16u << 20);
  EXPECT_EQ(result.config->port.udp_sndbuf, 65536u);
  EXPECT_EQ(result.config->port.shm_dir, "/run/softub");
  EXPECT_TRUE(result.config->port.icrc_shm);
  EXPECT_EQ(result.config->progress.helper_spin.count(), 0);
  EXPECT_EQ(result.config->progress.doorbell_after, std::chrono::microseconds(20));
  EXPECT_EQ(row_of(*result.config, "device.eids").value, "10.0.0.1,fd00::1");
  EXPECT_EQ(row_of(*result.config, "port.udp_sndbuf").value, "64KiB");
  EXPECT_EQ(row_of(*result.config, "progress.doorbell_after").value, "20us");
}

TEST(Config, sources__every_type_in_the_environment) {
  FakeEnvironment environment;
  environment.variables["SOFTUB_DEVICE_NAME"] = "ub7";
  environment.variables["SOFTUB_DEVICE_EIDS"] = "127.0.0.1, 127.0.0.2";
  environment.variables["SOFTUB_PORT_KINDS"] = "udp";
  environment.variables["SOFTUB_PORT_ICRC_SHM"] = "on";
  environment.variables["SOFTUB_PORT_SHM_RING_BYTES"] = "1048576";
  environment.variables["SOFTUB_TRANSPORT_RTO_MIN"] = "1s";
  environment.variables["SOFTUB_TRANSPORT_RTO_MAX"] = "2000ms";
  environment.variables["SOFTUB_SOMETHING_ELSE"] = "not a section of ours";
  const ConfigResult result = load_config(environment);
  ASSERT_TRUE(result.config) << result.error;
  EXPECT_EQ(result.config->device.name, "ub7");
  EXPECT_EQ(result.config->device.eids, (std::vector<std::string>{"127.0.0.1", "127.0.0.2"}));
  EXPECT_EQ(result.config->port.kinds, std::vector<std::string>{"udp"});
  EXPECT_TRUE(result.config->port.icrc_shm);
  EXPECT_EQ(result.config->port.shm_ring_bytes, 1u << 20);
  EXPECT_EQ(row_of(*result.config, "transport.rto_max").value, "2s");
}

// -- files that are missing or malformed -----------------------------------------------------------

TEST(Config, file__named_and_missing) {
  EXPECT_EQ(error_of_variable("SOFTUB_CONFIG", "/no/such.toml"),
            "env SOFTUB_CONFIG: the file \"/no/such.toml\" does not exist");
}

TEST(Config, file__unreadable) {
  FakeEnvironment environment;
  environment.files[kSystemFile] = {Environment::FileStatus::kForbidden, "Permission denied"};
  EXPECT_EQ(load_config(environment).error, "/etc/softub/softub.toml: cannot be read: Permission denied");
}

TEST(Config, file__home_of_another_user_is_passed_over) {
  FakeEnvironment environment;
  environment.files[kUserFile] = {Environment::FileStatus::kForbidden, "Permission denied"};
  EXPECT_TRUE(load_config(environment).config);
}

TEST(Config, file__malformed_toml) {
  EXPECT_EQ(error_of_text("[port]\nmtu = \n"),
            "2:7: syntax error: Error while parsing key-value pair: expected value, saw '\\n'");
  EXPECT_TRUE(error_of_text("[port]\nmtu = 1024\nmtu = 2048\n").starts_with("3:"));
  EXPECT_TRUE(error_of_text("[port\n").starts_with("1:6: syntax error: "));
}

TEST(Config, file__syntax_error_does_not_hide_other_mistakes) {
  FakeEnvironment environment;
  environment.add_file(kSystemFile, "port = 1\n");
  environment.variables["SOFTUB_TRANSPORT_LANES"] = "3";
  EXPECT_EQ(load_config(environment).error,
            "/etc/softub/softub.toml:1:1: \"port\" is a section: write [port]\n"
            "env SOFTUB_TRANSPORT_LANES: transport.lanes = 3 is out of range 1..2 (lanes)");
}

// -- unknown keys ----------------------------------------------------------------------------------

TEST(Config, unknown__key_with_a_near_one) {
  EXPECT_EQ(error_of_text("[port]\nmtuu = 1024\n"), "2:1: unknown key \"port.mtuu\"; did you mean \"port.mtu\"?");
}

TEST(Config, unknown__key_of_another_section) {
  EXPECT_EQ(error_of_text("[device]\n\n  rto_min = \"4ms\"\n"),
            "3:3: unknown key \"device.rto_min\"; did you mean \"transport.rto_min\"?");
}

TEST(Config, unknown__key_without_section) {
  EXPECT_EQ(error_of_text("udp_port = 4792\n"), "1:1: unknown key \"udp_port\"; did you mean \"port.udp_port\"?");
}

TEST(Config, unknown__key_like_no_other) {
  EXPECT_EQ(error_of_text("[log]\nzzzzzzzzzzzz = 1\n"),
            "2:1: unknown key \"log.zzzzzzzzzzzz\"; urma_admin config lists all keys");
}

TEST(Config, unknown__section) {
  EXPECT_EQ(error_of_text("[prot]\nmtu = 1024\n"), "1:2: unknown section \"prot\"; did you mean \"port\"?");
}

TEST(Config, unknown__variable) {
  EXPECT_EQ(error_of_variable("SOFTUB_PORT_UPD_PORT", "1"),
            "env SOFTUB_PORT_UPD_PORT: unknown key; did you mean \"SOFTUB_PORT_UDP_PORT\"?");
  EXPECT_EQ(error_of_variable("SOFTUB_PROT_KINDS", "udp"),
            "env SOFTUB_PROT_KINDS: unknown key; did you mean \"SOFTUB_PORT_KINDS\"?");
  EXPECT_EQ(error_of_variable("SOFTUB_HOME", "/home"), "");  // somebody else's
}

TEST(Config, unknown__errors_come_in_the_order_of_lines) {
  EXPECT_EQ(error_of_text("[port]\nzkinds = []\nalanes = 1\n"),
            "2:1: unknown key \"port.zkinds\"; did you mean \"port.kinds\"?\n"
            "/etc/softub/softub.toml:3:1: unknown key \"port.alanes\"; urma_admin config lists all keys");
}

// -- wrong types -----------------------------------------------------------------------------------

TEST(Config, type__wrong_in_toml) {
  EXPECT_EQ(error_of_text("[transport]\nlanes = \"2\"\n"), "2:1: transport.lanes: expected an integer, found a string");
  EXPECT_EQ(error_of_text("[device]\nname = 5\n"), "2:1: device.name: expected a string, found an integer");
  EXPECT_EQ(error_of_text("[port]\nicrc_shm = \"yes\"\n"),
            "2:1: port.icrc_shm: expected true or false, found a string");
  EXPECT_EQ(error_of_text("[port]\nkinds = \"shm\"\n"),
            "2:1: port.kinds: expected an array of strings, found a string");
  EXPECT_EQ(error_of_text("[port]\nkinds = [\"shm\", 1]\n"),
            "2:1: port.kinds: expected an array of strings, found an integer");
  EXPECT_EQ(error_of_text("[transport]\nrto_min = 4\n"),
            "2:1: transport.rto_min: expected a string with unit such as \"4ms\", found an integer");
  EXPECT_EQ(error_of_text("[port]\nudp_sndbuf = 1.5\n"),
            "2:1: port.udp_sndbuf: expected an integer or a string such as \"8MiB\", found a float");
  EXPECT_EQ(error_of_text("[port.mtu]\nx = 1\n"), "1:7: port.mtu: expected an integer, found a table");
}

TEST(Config, type__wrong_in_the_environment) {
  EXPECT_EQ(error_of_variable("SOFTUB_TRANSPORT_LANES", "two"),
            "env SOFTUB_TRANSPORT_LANES: transport.lanes = \"two\": expected a whole number");
  EXPECT_EQ(error_of_variable("SOFTUB_TRANSPORT_LANES", ""),
            "env SOFTUB_TRANSPORT_LANES: transport.lanes = \"\": expected a whole number");
  EXPECT_EQ(error_of_variable("SOFTUB_TRANSPORT_FAST_RETRANSMIT", "maybe"),
            "env SOFTUB_TRANSPORT_FAST_RETRANSMIT: transport.fast_retransmit = \"maybe\": expected true or false");
}

TEST(Config, unit__bad_or_missing) {
  EXPECT_EQ(error_of_text("[transport]\nrto_min = \"4min\"\n"),
            "2:1: transport.rto_min = \"4min\": unknown unit \"min\"; use ns, us, ms or s");
  EXPECT_EQ(error_of_text("[transport]\nrto_min = \"4\"\n"),
            "2:1: transport.rto_min = \"4\": expected a time with unit such as \"4ms\"");
  EXPECT_EQ(error_of_text("[transport]\nrto_min = \"-4ms\"\n"),
            "2:1: transport.rto_min = \"-4ms\": expected a time with unit such as \"4ms\"");
  EXPECT_EQ(error_of_text("[port]\nshm_ring_bytes = \"8MB\"\n"),
            "2:1: port.shm_ring_bytes = \"8MB\": unknown unit \"MB\"; use B, KiB, MiB or GiB");
  EXPECT_EQ(error_of_variable("SOFTUB_PORT_UDP_RCVBUF", "much"),
            "env SOFTUB_PORT_UDP_RCVBUF: port.udp_rcvbuf = \"much\": expected a size such as \"8MiB\"");
}

// -- ranges and rules ------------------------------------------------------------------------------

TEST(Config, range__numbers) {
  EXPECT_EQ(error_of_text("[transport]\nlanes = 9\n"), "2:1: transport.lanes = 9 is out of range 1..2 (lanes)");
  EXPECT_EQ(error_of_text("[transport]\nlanes = -1\n"), "2:1: transport.lanes = -1 is out of range 1..2 (lanes)");
  EXPECT_EQ(error_of_text("[port]\nudp_port = 4294972088\n"),
            "2:1: port.udp_port = 4294972088 is out of range 1..65535 (UDP port)");
  EXPECT_EQ(error_of_variable("SOFTUB_PORT_DSCP", "99999999999999999999999"),
            "env SOFTUB_PORT_DSCP: port.dscp = 99999999999999999999999 is out of range 0..63 (code point)");
}

TEST(Config, range__a_port_that_is_not_ours) {
  EXPECT_EQ(error_of_text("[port]\nudp_port = 4791\n"),
            "2:1: port.udp_port = 4791 is the port of RoCE: peers would take UB packets for its own; choose another");
}

TEST(Config, range__paths) {
  EXPECT_EQ(error_of_text("[transport]\npaths = 65\n"), "2:1: transport.paths = 65 is out of range 1..64 (paths)");
  EXPECT_EQ(error_of_text("[transport]\nmost_paths = 0\n"),
            "2:1: transport.most_paths = 0 is out of range 1..64 (paths)");
}

TEST(Config, range__times_and_sizes) {
  EXPECT_EQ(error_of_text("[transport]\nrto_min = \"1us\"\n"),
            "2:1: transport.rto_min = 1us is out of range 100us..10s (time)");
  EXPECT_EQ(error_of_text("[transport]\nrto_min = \"99999999999s\"\n"),
            "2:1: transport.rto_min = 99999999999s is out of range 100us..10s (time)");
  EXPECT_EQ(error_of_text("[port]\nudp_sndbuf = -5\n"),
            "2:1: port.udp_sndbuf = -5 is out of range 64KiB..1GiB (bytes)");
  EXPECT_EQ(error_of_text("[port]\nudp_sndbuf = \"2GiB\"\n"),
            "2:1: port.udp_sndbuf = 2GiB is out of range 64KiB..1GiB (bytes)");
}

TEST(Config, range__powers_of_two_and_choices) {
  EXPECT_EQ(error_of_text("[transport]\nwindow_packets = 500\n"),
            "2:1: transport.window_packets = 500 is not a power of two in 128..2048 (packets)");
  EXPECT_EQ(error_of_text("[port]\nmtu = 1500\n"),
            "2:1: port.mtu = 1500: expected one of 0, 1024, 2048, 4096, 8192 (bytes of payload)");
  EXPECT_EQ(error_of_text("[placement]\nmode = \"loud\"\n"),
            "2:1: placement.mode = \"loud\": expected one of embedded, daemon, auto");
  EXPECT_EQ(error_of_text("[daemon]\ncores = [\"1\", \"x\"]\n"),
            "2:1: daemon.cores: \"x\" is no number of a CPU");
  EXPECT_EQ(error_of_text("[transport]\nspread = \"bytes\"\n"),
            "2:1: transport.spread = \"bytes\": expected one of packets, messages, queues");
  EXPECT_EQ(error_of_text("[port]\nkinds = [\"shm\", \"tcp\"]\n"),
            "2:1: port.kinds = \"tcp\": expected one of shm, udp, dpdk");
  EXPECT_EQ(error_of_text("[port]\nkinds = []\n"), "2:1: port.kinds is empty: expected at least one of shm, udp, dpdk");
  EXPECT_EQ(error_of_text("[dpdk]\naddresses = [\"10.0.0.1\"]\n"),
            "2:1: dpdk.addresses: \"10.0.0.1\" is no network such as 10.1.0.2/24");
  EXPECT_EQ(error_of_text("[dpdk]\naddresses = [\"10.0.0.1/33\"]\n"),
            "2:1: dpdk.addresses: \"10.0.0.1/33\" is no network such as 10.1.0.2/24");
  EXPECT_EQ(error_of_text("[dpdk]\nneighbours = [\"10.0.0.1=01:00:00:00:00:01\"]\n"),  // a group address
            "2:1: dpdk.neighbours: \"10.0.0.1=01:00:00:00:00:01\" is no pair such as 10.1.0.3=02:00:00:00:00:03");
}

TEST(Config, rule__names_paths_and_addresses) {
  EXPECT_EQ(error_of_text("[device]\nname = \"a b\"\n"),
            "2:1: device.name: \"a b\" is not a name of 1 to 63 of A-Z a-z 0-9 _ . -");
  EXPECT_EQ(error_of_text("[device]\nname = \"a\\u0000\"\n"), "2:1: device.name contains a NUL character");
  EXPECT_EQ(error_of_text("[device]\neids = [\"localhost\"]\n"),
            "2:1: device.eids: \"localhost\" is not an IP address");
  EXPECT_EQ(error_of_text("[device]\neids = [\"::1\", \"::1\"]\n"), "2:1: device.eids: \"::1\" occurs twice");
  EXPECT_EQ(error_of_text("[device]\neid_map = [\"::1\"]\n"),
            "2:1: device.eid_map: \"::1\" is not of the form EID=IP, two IP addresses");
  EXPECT_EQ(error_of_text("[transport]\npath_map = [\"10.0.0.2=10.1.0.1\"]\n"),
            "2:1: transport.path_map: \"10.0.0.2=10.1.0.1\" is not of the form PEER=LOCAL>REMOTE, three IP "
            "addresses of one family");
  EXPECT_EQ(error_of_text("[port]\nshm_dir = \"here\"\n"), "2:1: port.shm_dir: \"here\" is not an absolute path");
}

TEST(Config, value__faults_are_read_and_named) {
  FakeEnvironment environment;
  environment.add_file(kSystemFile,
                       "[fault]\ninject = \"rnr count=3; stop\"\n[daemon]\ninject = \"port down; stop\"\n");
  const ConfigResult good = load_config(environment);
  ASSERT_TRUE(good.config) << good.error;
  EXPECT_EQ(good.config->fault.inject, "rnr count=3; stop");
  EXPECT_EQ(good.config->daemon.inject, "port down; stop");
  EXPECT_EQ(error_of_text("[fault]\ninject = \"rnr count=x\"\n"),
            "2:1: fault.inject: fault 1, \"rnr count=x\": count=x is no number of 1 to 4294967295");
  EXPECT_EQ(error_of_text("[daemon]\ninject = \"rnr\"\n"),
            "2:1: daemon.inject: completion, post and rnr are faults of a program: give them to it, in fault.inject");
}

TEST(Config, impairments__are_checked_when_they_are_read) {
  FakeEnvironment environment;
  environment.variables["SOFTUB_IMPAIR_SEND"] = "loss=1% delay=5us; at 2s down; at 12s up";
  const ConfigResult good = load_config(environment);
  ASSERT_TRUE(good.config) << good.error;
  EXPECT_TRUE(good.config->impair.is_set());
  EXPECT_EQ(good.config->impair.receive, "");
  EXPECT_EQ(good.config->impair.seed, 1u);
  EXPECT_FALSE(load_config(FakeEnvironment()).config->impair.is_set());
  EXPECT_EQ(error_of_text("[impair]\nreceive = \"loss=1\"\n"),
            "2:1: impair.receive: \"loss=1\": loss= takes a share such as 1%, of 0% to 100%");
}

TEST(Config, together__more_source_ports_than_paths) {
  FakeEnvironment environment;
  environment.add_file(kSystemFile, "[transport]\npaths = 9\n");
  EXPECT_EQ(load_config(environment).error,
            "/etc/softub/softub.toml:2: transport.paths = 9 (/etc/softub/softub.toml:2) is above "
            "transport.most_paths = 8 (default)");
}

TEST(Config, together__limits_that_contradict) {
  FakeEnvironment environment;
  environment.add_file(kSystemFile, "[transport]\nrto_max = \"2ms\"\n");
  EXPECT_EQ(load_config(environment).error,
            "/etc/softub/softub.toml:2: transport.rto_min = 4ms (default) is above transport.rto_max = 2ms "
            "(/etc/softub/softub.toml:2)");
}

// -- the real process ------------------------------------------------------------------------------

TEST(Config, process__reads_files_and_variables) {
  const ProcessEnvironment environment;
  EXPECT_EQ(environment.read_file("/no/such/file").status, Environment::FileStatus::kMissing);
  EXPECT_EQ(environment.read_file("/dev/null").status, Environment::FileStatus::kOk);
  EXPECT_EQ(environment.read_file("/").status, Environment::FileStatus::kUnreadable);
  EXPECT_EQ(environment.read_file("/dev/zero").text, "larger than 1 MiB");
  setenv("SOFTUB_TEST_VARIABLE", "x", 1);
  EXPECT_EQ(environment.get("SOFTUB_TEST_VARIABLE"), "x");
  EXPECT_EQ(environment.names("SOFTUB_TEST_VAR"), std::vector<std::string>{"SOFTUB_TEST_VARIABLE"});
  unsetenv("SOFTUB_TEST_VARIABLE");
  EXPECT_EQ(environment.get("SOFTUB_TEST_VARIABLE"), std::nullopt);
}

// -- the document ----------------------------------------------------------------------------------

TEST(Config, document__has_the_row_of_every_key) {
  std::ifstream file(UB_DOCS_DIR "/configuration.md");
  ASSERT_TRUE(file) << "docs/configuration.md is missing";
  std::stringstream text;
  text << file.rdbuf();
  const std::string document = text.str();
  const auto code = [](const std::string& word) { return word.empty() ? std::string() : "`" + word + "`"; };
  const ConfigResult defaults = load_config(FakeEnvironment());
  ASSERT_TRUE(defaults.config);
  size_t rows = 0;
  for (const ConfigRow& row : describe(*defaults.config)) {
    const std::string expected = "| `" + row.key + "` | " + code(row.default_value) + " | " + row.range + " | " +
                                 row.unit + " | " + row.help + " |\n";
    EXPECT_NE(document.find(expected), std::string::npos) << "docs/configuration.md lacks the line\n" << expected;
    ++rows;
  }
  size_t documented = 0;
  for (size_t at = document.find("\n| `"); at != std::string::npos; at = document.find("\n| `", at + 1)) {
    // A key; there are tables of other things.
    const std::string cell = document.substr(at + 4, document.find('`', at + 4) - at - 4);
    const bool key_like = cell.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_.") == std::string::npos;
    if (key_like && cell.find('.') != std::string::npos) ++documented;
  }
  EXPECT_EQ(documented, rows) << "docs/configuration.md has rows of keys that are gone";
}

}  // namespace
}  // namespace ub
