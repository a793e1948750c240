// SPDX-License-Identifier: Apache-2.0
#include "lib/impair/text.h"

#include <gtest/gtest.h>

namespace ub::impair {
namespace {

Script read(std::string_view text, const Spec& base = {}) {
  const Parsed parsed = parse(text, base);
  EXPECT_EQ(parsed.error, "");
  return parsed.script.value_or(Script{});
}

std::string error_of(std::string_view text, const Spec& base = {}) {
  const Parsed parsed = parse(text, base);
  EXPECT_FALSE(parsed.script.has_value()) << text;
  return parsed.error;
}

TEST(ImpairText, every_word_sets_its_value) {
  const Spec s = read(
                     "rate=100G delay=5us jitter=1.5us queue=64KiB mark=100kB/400kB/20% kind=data,ack loss=1% burst=8 "
                     "every=100 duplicate=0.1% corrupt=0.01% reorder=64 late=25% wait=2ms down")
                     .first;
  EXPECT_EQ(s.rate, 100'000'000'000u);
  EXPECT_EQ(s.delay, microseconds(5));
  EXPECT_EQ(s.jitter, nanoseconds(1500));
  EXPECT_EQ(s.queue_bytes, 65536u);
  EXPECT_EQ(s.mark, (Marking{100'000, 400'000, 0.2}));
  EXPECT_EQ(s.kinds, kinds_of(Kind::kData) | kinds_of(Kind::kAck));
  EXPECT_DOUBLE_EQ(s.loss, 0.01);
  EXPECT_DOUBLE_EQ(s.burst, 8);
  EXPECT_EQ(s.every, 100u);
  EXPECT_DOUBLE_EQ(s.duplicate, 0.001);
  EXPECT_DOUBLE_EQ(s.corrupt, 0.0001);
  EXPECT_EQ(s.reorder, 64u);
  EXPECT_DOUBLE_EQ(s.late, 0.25);
  EXPECT_EQ(s.wait, milliseconds(2));
  EXPECT_TRUE(s.down);
}

TEST(ImpairText, a_queue_is_of_frames_or_of_bytes_and_the_later_word_counts) {
  const Spec s = read("rate=1G queue=64KiB queue=1000").first;
  EXPECT_EQ(s.queue_frames, 1000u);
  EXPECT_EQ(s.queue_bytes, 0u);
  EXPECT_EQ(read("queue=1500B", s).first.queue_frames, 0u);
}

TEST(ImpairText, a_hop_of_caqm_has_a_target_and_a_round_trip) {
  const Spec s = read("rate=1G caqm=40KiB/200us").first;
  EXPECT_EQ(s.caqm, (CaqmTarget{40960, microseconds(200)}));
  EXPECT_EQ(to_text(s), "rate=1G caqm=40KiB/200us");
  EXPECT_EQ(read("caqm=1kB", s).first.caqm, (CaqmTarget{1000, microseconds(10)})) << "the usual round trip";
  EXPECT_EQ(read("caqm=0", s).first, read("rate=1G").first);
  EXPECT_FALSE(can_harm(s));
}

TEST(ImpairText, one_rule_of_marks_takes_the_place_of_the_other) {
  const Spec marks = read("rate=1G mark=1kB/2kB/5%").first, caqm = read("rate=1G caqm=20kB/10us").first;
  EXPECT_EQ(read("mark=0 caqm=20kB", marks).first, caqm);
  EXPECT_EQ(read("mark=1kB/2kB/5% caqm=0", caqm).first, marks);
}

TEST(ImpairText, nothing_is_wrong_with_a_link_of_an_empty_text) {
  EXPECT_EQ(read(""), Script{});
  EXPECT_EQ(read(" ; \n "), Script{});
  EXPECT_FALSE(can_harm(read("rate=1G delay=1ms jitter=1us")));
}

TEST(ImpairText, words_change_the_base_and_leave_the_rest_of_it) {
  const Spec base = read("loss=1% delay=5us").first;
  const Spec changed = read("loss=2% down", base).first;
  EXPECT_EQ(changed.delay, microseconds(5));
  EXPECT_DOUBLE_EQ(changed.loss, 0.02);
  EXPECT_TRUE(changed.down);
  EXPECT_EQ(read("clear", base), Script{});
  EXPECT_EQ(read("up", changed).first.down, false);
}

TEST(ImpairText, zero_takes_away_what_belongs_to_a_word) {
  const Spec base = read("rate=1G queue=10 mark=1kB/2kB/5% loss=1% burst=4 reorder=8 late=1% wait=1ms").first;
  EXPECT_EQ(read("rate=0 loss=0 reorder=0", base).first, Spec{});
  EXPECT_EQ(read("rate=0", read("rate=1G caqm=20kB/1ms").first).first, Spec{});
}

TEST(ImpairText, changes_follow_each_other_and_each_begins_with_the_state_before_it) {
  const Script script = read("loss=1%; at 2s down; at 12s up loss=0%\nat 12s delay=1ms");
  ASSERT_EQ(script.changes.size(), 3u);
  EXPECT_EQ(script.changes[0].at, seconds(2));
  EXPECT_TRUE(script.changes[0].spec.down);
  EXPECT_DOUBLE_EQ(script.changes[0].spec.loss, 0.01);
  EXPECT_FALSE(script.changes[1].spec.down);
  EXPECT_EQ(script.changes[2].spec.loss, 0);
  EXPECT_EQ(script.changes[2].spec.delay, milliseconds(1));
}

TEST(ImpairText, a_later_fault_is_harm_too) {
  EXPECT_TRUE(can_harm(read("at 2s down; at 3s up")));
  EXPECT_TRUE(can_corrupt(read("at 2s corrupt=1%")));
  EXPECT_FALSE(can_corrupt(read("at 2s loss=1%")));
}

TEST(ImpairText, each_fault_is_harm) {
  for (const char* text : {"loss=1%", "every=2", "duplicate=1%", "corrupt=1%", "reorder=1", "down", "rate=1G queue=1",
                           "rate=1G queue=1kB"}) {
    EXPECT_TRUE(can_harm(read(text))) << text;
  }
}

TEST(ImpairText, what_is_written_reads_as_the_same) {
  for (const char* text : {"clear", "rate=1.5k", "rate=100G delay=5us jitter=1500ns queue=64KiB mark=100kB/400kB/20%",
                           "kind=setup,roce loss=7% burst=2.5 every=3", "loss=0.0001%", "rate=1G queue=7 down",
                           "rate=1G caqm=12500B/1500ns", "rate=1G caqm=1MB; at 1s caqm=0; at 2s mark=0B/1B/0%",
                           "duplicate=100% corrupt=33% reorder=64 late=50% wait=1ms",
                           "loss=1%; at 2s clear down; at 12s clear loss=1%; at 13s clear"}) {
    const Script script = read(text);
    EXPECT_EQ(read(to_text(script)), script) << text << " was written as " << to_text(script);
  }
  EXPECT_EQ(to_text(read("delay=5us loss=1%; at 2s down; at 12s up")),
            "delay=5us loss=1%; at 2s clear delay=5us loss=1% down; at 12s clear delay=5us loss=1%");
}

TEST(ImpairText, an_error_names_the_word_and_what_is_allowed) {
  EXPECT_EQ(error_of("delay=5us loss=1"), "\"loss=1\": loss= takes a share such as 1%, of 0% to 100%");
  EXPECT_EQ(error_of("loss=101%"), "\"loss=101%\": loss= takes a share such as 1%, of 0% to 100%");
  EXPECT_EQ(error_of("at 1s delay=5"),
            "\"delay=5\": delay= takes a time such as 5us (ns, us, ms or s), at most 1000000s");
  EXPECT_EQ(
      error_of("los=1%"),
      "\"los=1%\" is not understood; known are rate=, delay=, jitter=, queue=, mark=, caqm=, kind=, loss=, burst=, "
      "every=, duplicate=, corrupt=, reorder=, late=, wait=, down, up, clear, and \"at TIME\" at the front");
  EXPECT_EQ(
      error_of("kind=data,dat"),
      "\"kind=data,dat\": kind= takes all, or some of data, ack, setup, ctp, roce, other, with commas between them");
  EXPECT_EQ(error_of("rate=1G caqm=10"),
            "\"caqm=10\": caqm= takes a number of bytes and a round trip, such as 40KiB/10us, or bytes alone for 10us; "
            "or 0");
}

TEST(ImpairText, an_error_shows_no_more_than_the_beginning_of_what_is_wrong) {
  const std::string error = error_of("loss=" + std::string(1 << 20, '7'));
  EXPECT_EQ(error, "\"loss=" + std::string(55, '7') + "...\": loss= takes a share such as 1%, of 0% to 100%");
  EXPECT_LT(error_of("at " + std::string(1 << 20, '7')).size(), 200u);
  EXPECT_LT(error_of("down; loss=1%" + std::string(1 << 20, ' ')).size(), 200u);
}

TEST(ImpairText, a_change_that_is_no_part_of_its_own_is_told_how_it_becomes_one) {
  EXPECT_EQ(error_of("loss=1% at 3s down"),
            "\"at\" begins a part of its own; put \";\" in front of it, as in \"loss=1%; at 3s down\"");
}

TEST(ImpairText, values_out_of_range_or_without_their_unit_are_refused) {
  for (const char* text :
       {"rate=-1G",  "rate=100",          "rate=1e9",        "rate=",          "rate=0.0004k",   "rate=0.0000001M",
        "delay=1m",  "delay=-1us",        "delay=2000000s",  "loss=nan%",      "queue=x",        "queue=2000MiB",
        "queue=-1",  "mark=1kB/2kB",      "mark=2kB/1kB/1%", "mark=1kB/2kB/3", "mark=0B/0B/1%",  "kind=",
        "kind=,",    "burst=0.5",         "kind=data,",      "kind=data,,ack", "caqm=",          "caqm=10",
        "caqm=0B",   "caqm=0B/10us",      "caqm=40KiB/",     "caqm=40KiB/10",  "caqm=40KiB/0us", "caqm=40KiB/10us/1",
        "caqm=10us", "caqm=2000MiB/10us", "every=1.5",       "reorder=100001", "down=1",         "at"}) {
    EXPECT_NE(error_of(text).find('"'), std::string::npos) << text;
  }
}

TEST(ImpairText, values_that_do_not_fit_each_other_are_refused) {
  EXPECT_EQ(error_of("queue=10"), "queue= needs rate=: without it nothing waits");
  EXPECT_EQ(error_of("mark=1kB/2kB/1%"), "mark= needs rate=: without it nothing waits");
  EXPECT_EQ(error_of("caqm=40KiB"), "caqm= needs rate=: without it nothing waits");
  const char* const both =
      "mark= and caqm= are two rules for the same marks: take one of them back, as in \"mark=0 caqm=40KiB\"";
  EXPECT_EQ(error_of("rate=1G mark=1kB/2kB/1% caqm=40KiB"), both);
  EXPECT_EQ(error_of("at 1s caqm=40KiB", read("rate=1G mark=1kB/2kB/1%").first), both);
  EXPECT_EQ(error_of("burst=8"), "burst= needs loss=, the share that is lost");
  EXPECT_EQ(error_of("loss=90% burst=4"), "with burst=4 loss= can be at most 80%");
  EXPECT_EQ(error_of("late=1%"), "late= and wait= need reorder=, the number of frames");
}

TEST(ImpairText, times_must_not_go_back_and_only_the_first_part_needs_none) {
  EXPECT_EQ(error_of("at 2s down; at 1s up"), "\"1s\": the times of a text must not go back");
  EXPECT_EQ(error_of("at 2x down"), "\"2x\": at takes a time such as 5us (ns, us, ms or s), at most 1000000s");
  EXPECT_EQ(error_of("loss=1%; down"), "\" down\": only the first part may do without \"at TIME\"");
}

}  // namespace
}  // namespace ub::impair
