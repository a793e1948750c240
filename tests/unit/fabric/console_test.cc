// SPDX-License-Identifier: Apache-2.0
//
// What a running fabric can be told, how its links are named, and what it answers.
#include "tools/fabric/console.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/unit/fabric/frames.h"
#include "tests/unit/fabric/two_nics.h"
#include "tools/fabric/path_names.h"

namespace ub::fabric {
namespace {

constexpr Instant kStart{1'000'000'000};

class NoMedium : public Medium {
 public:
  std::vector<int> fds() const override { return {}; }
  void receive(int, const Sink&) override {}
  void send(size_t, std::span<const std::byte>, uint64_t) override {}
  std::vector<MediumCount> counts() const override { return {{"refused", 3}}; }
};

class FabricConsole : public testing::Test {
 protected:
  std::string answer(const std::string& line, Instant now = kStart) { return console_.answer(now, line); }
  const impair::Spec& spec(const PathId& id, Instant now = kStart) { return network_.link(id).spec_at(now); }

  Config config_ = over_udp({"a", "b", "c"});
  Network network_{config_, kStart};
  NoMedium medium_;
  Console console_{config_, network_, medium_};
};

TEST_F(FabricConsole, set_changes_the_words_that_it_names_and_no_others) {
  EXPECT_EQ(answer("set a>b loss=1% delay=5us"), "ok\n");
  EXPECT_EQ(answer("  set  a>b  loss=2%\r\n"), "ok\n");
  EXPECT_DOUBLE_EQ(spec({0, 1, 0}).loss, 0.02);
  EXPECT_EQ(spec({0, 1, 0}).delay, microseconds(5));
  EXPECT_EQ(spec({1, 0, 0}), impair::Spec());
}

TEST_F(FabricConsole, a_script_begins_when_it_is_set) {
  EXPECT_EQ(answer("set a>b at 2s down; at 4s up", kStart + seconds(10)), "ok\n");
  EXPECT_FALSE(spec({0, 1, 0}, kStart + seconds(11)).down);
  EXPECT_TRUE(spec({0, 1, 0}, kStart + seconds(13)).down);
  EXPECT_FALSE(spec({0, 1, 0}, kStart + seconds(14)).down);
}

// So many changes of a link.
std::string changes(size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) text += "at 1s down;";
  return text;
}

TEST_F(FabricConsole, no_more_changes_can_be_to_come_than_there_is_memory_for) {
  EXPECT_TRUE(has(answer("set *>* " + changes(Console::kMostChanges / 6 + 1)),
                  {"error: 16667 changes of 6 links, beside 0 ", "more than 100000", "fewer links"}));
  EXPECT_EQ(network_.changes_to_come(kStart), 0u);
  EXPECT_EQ(answer("set *>* " + changes(Console::kMostChanges / 6)), "ok\n");
  EXPECT_EQ(network_.changes_to_come(kStart), 6 * (Console::kMostChanges / 6));
}

TEST_F(FabricConsole, changes_of_other_links_count_until_they_have_come_and_those_that_are_replaced_do_not) {
  const std::string set = "set a>b " + changes(Console::kMostChanges);
  EXPECT_EQ(answer(set), "ok\n");
  EXPECT_EQ(answer(set), "ok\n");
  EXPECT_TRUE(has(answer("set b>a at 1s down"), {"error: 1 changes of 1 links, beside 100000 "}));
  EXPECT_EQ(answer("set b>a loss=1%"), "ok\n");
  EXPECT_EQ(answer("set b>a at 1s down", kStart + seconds(1)), "ok\n");
}

TEST_F(FabricConsole, links_that_are_named_twice_count_once) {
  EXPECT_EQ(answer("set *<>* " + changes(Console::kMostChanges / 6)), "ok\n");
}

TEST_F(FabricConsole, a_mistake_changes_no_link) {
  EXPECT_TRUE(has(answer("set *>* loss=200%"), {"error: a>b: ", "loss"}));
  EXPECT_TRUE(has(answer("set a>b loss=1% lss=2%"), {"lss"}));
  for (const PathId& id : network_.all_paths()) EXPECT_EQ(spec(id), impair::Spec());
}

TEST_F(FabricConsole, says_what_it_does_not_understand) {
  EXPECT_TRUE(has(answer("sett a>b loss=1%"), {"error: ", "known are set, show"}));
  EXPECT_TRUE(has(answer("set a>b"), {"error: ", "set a>b loss=1%"}));
  EXPECT_TRUE(has(answer("show a>x"), {"error: ", "\"x\"; there are a, b, c"}));
  EXPECT_TRUE(has(answer("quit now"), {"error: "}));
  EXPECT_FALSE(console_.was_told_to_quit());
}

TEST_F(FabricConsole, show_tells_what_links_are_like_and_what_they_counted) {
  answer("set a>b loss=100%");
  network_.offer(kStart, 0, 1, udp_frame(1, 2));
  EXPECT_EQ(answer("show a<>b"), "a>b  loss=100%\n  offered 1, lost_random 1\nb>a  clear\nok\n");
  EXPECT_TRUE(has(answer("show"), {"c>b  clear\n", "refused 3\n", "ok\n"}));
}

TEST_F(FabricConsole, show_and_json_tell_how_many_frames_are_under_way_and_how_many_changes_are_to_come) {
  answer("set a>b delay=1ms; at 1s down; at 2s up");
  network_.offer(kStart, 0, 1, udp_frame(1, 2));
  EXPECT_EQ(answer("show a>b"), "a>b  delay=1ms\n  offered 1, under_way 1, changes_to_come 2\nok\n");
  EXPECT_TRUE(has(answer("show a>b", kStart + seconds(1)), {"changes_to_come 1\n"}));
  const std::string text = answer("json", kStart + seconds(2));
  const auto json = nlohmann::json::parse(text.substr(0, text.find('\n')));
  EXPECT_EQ(json["links"][0]["under_way"], 1);
  EXPECT_EQ(json["links"][0]["changes_to_come"], 0);
}

TEST_F(FabricConsole, a_long_mistake_is_shown_only_at_its_beginning) {
  const std::string text(1 << 20, 'x');
  for (const std::string& line : {text, "show " + text, "show a>" + text, "show a>b/" + text, "set a>b " + text}) {
    EXPECT_LT(answer(line).size(), 400u);
  }
}

TEST_F(FabricConsole, json_has_all_links_and_all_counters) {
  network_.offer(kStart, 2, 1, udp_frame(1, 2));
  const std::string text = answer("json");
  const auto json = nlohmann::json::parse(text.substr(0, text.find('\n')));
  ASSERT_EQ(json["links"].size(), 6u);
  EXPECT_EQ(json["links"][5]["from"], "c");
  EXPECT_EQ(json["links"][5]["to"], "b");
  EXPECT_EQ(json["links"][5]["counters"]["offered"], 1);
  EXPECT_EQ(json["links"][5]["counters"]["marked"], 0);
  EXPECT_EQ(json["medium"]["refused"], 3);
}

TEST_F(FabricConsole, quit_ends_the_fabric) {
  EXPECT_EQ(answer("quit"), "ok\n");
  EXPECT_TRUE(console_.was_told_to_quit());
}

// ---- names of paths ----

TEST(PathNames, name_one_direction_or_both_or_those_of_every_nic) {
  const Config config = over_udp({"a", "b", "c"});
  EXPECT_EQ(paths_named("a>c", config), (std::vector<PathId>{{0, 2, 0}}));
  EXPECT_EQ(paths_named("a<>c", config), (std::vector<PathId>{{0, 2, 0}, {2, 0, 0}}));
  EXPECT_EQ(paths_named("*>b", config), (std::vector<PathId>{{0, 1, 0}, {2, 1, 0}}));
  EXPECT_EQ(paths_named("*>*", config).size(), 6u);
}

TEST(PathNames, name_each_path_once) { EXPECT_EQ(paths_named("*<>*", over_udp({"a", "b", "c"})).size(), 6u); }

TEST(PathNames, name_all_paths_or_one_of_them) {
  Config config = over_udp();
  config.paths = 2;
  EXPECT_EQ(paths_named("a>b", config), (std::vector<PathId>{{0, 1, 0}, {0, 1, 1}}));
  EXPECT_EQ(paths_named("a>b/2", config), (std::vector<PathId>{{0, 1, 1}}));
  EXPECT_EQ(name_of({0, 1, 1}, config), "a>b/2");
  EXPECT_TRUE(has(complaint([&] { paths_named("a>b/3", config); }), {"1 to 2"}));
  EXPECT_TRUE(has(complaint([&] { paths_named("a>b/0", config); }), {"1 to 2"}));
}

TEST(PathNames, that_name_nothing_are_refused) {
  const Config config = over_udp();
  EXPECT_TRUE(has(complaint([&] { paths_named("a", config); }), {"a<>b"}));
  EXPECT_TRUE(has(complaint([&] { paths_named("a>a", config); }), {"no link to itself"}));
}

}  // namespace
}  // namespace ub::fabric
