// SPDX-License-Identifier: Apache-2.0
// Points in worker processes, results in files and back, shards that are joined or refused.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>

#include "emu_hw/experiment/paper_order.h"
#include "emu_hw/running/point_json.h"
#include "emu_hw/running/results_file.h"
#include "emu_hw/running/run_jobs.h"
#include "emu_hw/running/sha256.h"
#include "emu_hw/running/whole_file.h"
#include "emu_hw/running/worker_pool.h"

namespace ub::emu {
namespace {

TEST(Sha256, is_that_of_the_standard) {
  EXPECT_EQ(sha256_of(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

std::vector<Outcome> outcomes(size_t jobs, size_t workers, const std::function<std::string(size_t)>& work) {
  std::vector<Outcome> all(jobs);
  std::vector<size_t> numbers;
  for (size_t job = 0; job < jobs; ++job) numbers.push_back(job);
  run_in_workers(numbers, workers, work, [&](size_t job, const Outcome& outcome) {
    all[job] = outcome;
    return true;
  });
  return all;
}

TEST(WorkerPool, runs_each_job_once_in_any_number_of_processes) {
  for (const size_t workers : {1, 2, 7}) {
    const auto all = outcomes(20, workers, [](size_t job) { return std::to_string(job * job); });
    for (size_t job = 0; job < all.size(); ++job) {
      EXPECT_EQ(all[job].text, std::to_string(job * job));
      EXPECT_FALSE(all[job].has_died);
    }
  }
}

TEST(WorkerPool, carries_long_answers_whole) {
  const auto all = outcomes(3, 2, [](size_t job) { return std::string(1 << 20, static_cast<char>('a' + job)); });
  for (size_t job = 0; job < all.size(); ++job)
    EXPECT_EQ(all[job].text, std::string(1 << 20, static_cast<char>('a' + job)));
}

// Others take the jobs that are left, and nothing waits for the dead.
TEST(WorkerPool, a_process_that_dies_spoils_its_own_job_alone) {
  for (const size_t workers : {1, 2}) {
    const auto all = outcomes(6, workers, [](size_t job) {
      if (job == 2) kill(getpid(), SIGKILL);
      if (job == 3) _exit(5);
      if (job == 4) throw std::runtime_error("not caught");
      return std::to_string(job);
    });
    EXPECT_EQ(all[2].text, "its process was ended by signal 9, Killed");
    EXPECT_EQ(all[3].text, "its process ended by itself with code 5");
    EXPECT_EQ(all[4].text, "its process was ended by signal 6, Aborted");
    for (const size_t job : {0, 1, 5}) EXPECT_EQ(all[job].text, std::to_string(job));
    for (size_t job = 0; job < all.size(); ++job) EXPECT_EQ(all[job].has_died, job >= 2 && job <= 4);
  }
}

TEST(WorkerPool, begins_no_more_when_it_is_told) {
  size_t ended = 0;
  run_in_workers(
      {0, 1, 2, 3}, 1, [](size_t) { return ""; }, [&](size_t, const Outcome&) { return ++ended < 2; });
  EXPECT_EQ(ended, 2u);
}

TEST(WorkerPool, ends_its_processes_on_ctrl_c) {
  const auto send_to_parent = [](size_t job) -> std::string {
    if (job == 1) kill(getppid(), SIGINT);
    while (true) pause();
  };
  try {
    outcomes(2, 2, send_to_parent);
    FAIL() << "not interrupted";
  } catch (const Interrupted& interrupted) {
    EXPECT_EQ(interrupted.signal(), SIGINT);
  }
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);  // there are no children
}

TEST(WorkerPool, is_interrupted_while_its_last_job_ends) {
  const auto interrupt = [](size_t, const Outcome&) { return raise(SIGINT) == 0; };
  EXPECT_THROW(run_in_workers({0}, 1, [](size_t) { return ""; }, interrupt), Interrupted);
}

TEST(PointResult, is_the_same_from_json) {
  PointResult point;
  point.values = {{"mean_ns", 0.1}, {"mops", 1.0 / 3}};
  point.events = 12;
  point.begin = Time{1000};
  point.ledger = {{{"cpu.build", 1}, Time{31000}}, {{"dram", 2}, Time{61500}}};
  point.curves = {{"window", "time, us", "window, packets", {{0, 32}, {1.5, 33.25}}}};
  const PointResult again = point_of(Json::parse(json_of(point).dump()));
  EXPECT_EQ(again.values, point.values);
  EXPECT_EQ(again.events, 12u);
  EXPECT_EQ(again.invalid, "");
  EXPECT_EQ(again.begin.ps, 1000u);
  EXPECT_EQ(Ledger::text_of(again.begin, again.ledger), "cpu.build 30, dram 30.5");
  EXPECT_EQ(again.ledger[1].name.host, 2u);
  ASSERT_EQ(again.curves.size(), 1u);
  EXPECT_EQ(again.curves[0].y, "window, packets");
  EXPECT_EQ(again.curves[0].points, point.curves[0].points);
  PointResult invalid;
  invalid.invalid = "3 operations are missing";
  EXPECT_EQ(point_of(Json::parse(json_of(invalid).dump())).invalid, "3 operations are missing");
}

TEST(Shard, is_read) {
  EXPECT_EQ(shard_of("2/8"), (Shard{2, 8}));
  EXPECT_EQ(shard_of("1/65536").count, 65536u);
  for (const char* bad : {"0/2", "3/2", "1/0", "1", "/", "1/2/3", "a/2", "-1/2", "1/65537", ""})
    EXPECT_THROW(shard_of(bad), BadFile) << bad;
}

TEST(PaperOrder, has_tables_between_figures_and_the_rest_last) {
  std::vector<Experiment> all;
  for (const char* id : {"graph", "F100", "F12-100", "T6-write", "F19", "F12-50", "T4", "F18", "F9", "T1"}) {
    Experiment e;
    e.id = id;
    all.push_back(e);
  }
  sort_as_in_paper(all);
  std::string ids;
  for (const Experiment& e : all) ids += e.id + " ";
  EXPECT_EQ(ids, "T1 F9 F12-50 F12-100 T4 F18 T6-write F19 F100 graph ");
  EXPECT_TRUE(has_number_in_paper("T6-write"));
  EXPECT_FALSE(has_number_in_paper("Tail"));
}

const std::string kExperiment = R"(id = "one"
title = "a read"
class = "X"
workload = "bulk_read"
operations = 3
measure = "mean_ns"
stacks = ["urma", "roce"]
sweep = "payload"
values = [64, 256, 1024]
[expected]
urma = [757, 799, 962]
)";

class Runs : public testing::Test {
 protected:
  Runs() {
    EXPECT_NE(mkdtemp(directory_), nullptr);
    write_whole(path("one.toml"), kExperiment);
    experiments_ = {read_experiment(path("one.toml"), {})};
  }
  ~Runs() override { std::filesystem::remove_all(directory_); }

  std::string path(const std::string& name) const { return std::string(directory_) + "/" + name; }
  ResultsFile run(size_t workers, Shard shard = {}, const Settings& overrides = {},
                  const std::string& version = "1") const {
    ResultsFile file{provenance_of(version, experiments_, {}, overrides), shard, jobs_of(experiments_).size(), {}};
    file.points = run_jobs(experiments_, overrides, {workers, shard, {}});
    return file;
  }
  // The file with that shard.
  std::string written(const ResultsFile& file, const std::string& name) const {
    write_whole(path(name), text_of(file));
    return path(name);
  }
  // The message, without the directory.
  std::string refusal(const std::vector<std::string>& paths) const {
    try {
      merge_results(paths);
    } catch (const BadFile& error) {
      std::string what = error.what();
      for (size_t at; (at = what.find(path(""))) != what.npos;) what.erase(at, path("").size());
      return what;
    }
    return "none";
  }

  char directory_[32] = "/tmp/ub-emu-test-XXXXXX";
  std::vector<Experiment> experiments_;
};

TEST_F(Runs, give_the_same_bytes_in_any_number_of_processes_and_shards) {
  const std::string whole = text_of(run(1));
  EXPECT_EQ(text_of(run(2)), whole);
  EXPECT_EQ(text_of(run(5)), whole);
  std::vector<std::string> paths;
  for (const size_t number : {3, 1, 4, 2}) paths.push_back(written(run(2, {number, 4}), std::to_string(number)));
  EXPECT_EQ(text_of(merge_results(paths)), whole);
  const ResultsFile again = read_results(written(run(1), "whole"));
  const std::vector<ExperimentResult> results = results_of(experiments_, again);
  EXPECT_EQ(measured(experiments_[0], results[0].series[0]), (std::vector<double>{757, 799, 962}));
  EXPECT_EQ(results[0].series[0].judgement.verdict, Verdict::kInClass);
  EXPECT_EQ(results[0].series[1].judgement.verdict, Verdict::kNoData);
}

TEST_F(Runs, say_where_they_come_from) {
  const Json json = json_of(run(1, {}, {{"link_delay", "0.2us"}, {"seed", "7"}}));
  EXPECT_EQ(json["version"], "1");
  EXPECT_EQ(json["seed"], "7");
  EXPECT_EQ(json["inputs"]["experiments/one.toml"], sha256_of(kExperiment));
  EXPECT_EQ(json["points"][1]["parameters"],
            (Json{{"link_delay", "200"}, {"operations", "3"}, {"payload", "256"}, {"seed", "7"}}));
  EXPECT_EQ(json["points"][1]["expected"], 799);
}

TEST_F(Runs, that_are_refused_name_the_first_reason) {
  experiments_[0].series[0].stack = "irma";
  experiments_[0].series[1].stack = "morc";
  for (const size_t workers : {1, 3}) {
    try {
      run(workers);
      FAIL();
    } catch (const BadFile& error) {
      EXPECT_NE(std::string(error.what()).find("irma"), std::string::npos) << error.what();
    }
  }
}

// Several are refused at the same time, and which one is named does not depend on who ends first.
TEST_F(Runs, of_several_refusals_the_first_job_is_named) {
  experiments_[0].values = {0, 70'000, 80'000};
  experiments_[0].series[0].expected.clear();
  for (const size_t workers : {1, 3, 6}) {
    try {
      run(workers);
      FAIL();
    } catch (const BadFile& error) {
      EXPECT_NE(std::string(error.what()).find("payload = 0:"), std::string::npos) << error.what();
    }
  }
}

// The first point of each series comes before all others, so no long run ends with a stack that there is not.
TEST_F(Runs, that_are_refused_end_soon) {
  experiments_[0].series[1].stack = "morc";
  size_t ended = 0;
  RunOptions options{1, {}, [&](size_t, size_t, const Job&) { ++ended; }};
  EXPECT_THROW(run_jobs(experiments_, {}, options), BadFile);
  EXPECT_EQ(ended, 1u);
}

TEST_F(Runs, that_do_not_belong_together_are_not_merged) {
  const std::string first = written(run(1, {1, 2}), "first"), second = written(run(1, {2, 2}), "second");
  EXPECT_EQ(refusal({first, second}), "none");
  EXPECT_EQ(refusal({second}), "missing: shard 1/2; run each of them with --shard, and give its file, too");
  EXPECT_EQ(refusal({first, second, first}), "first: has shard 1/2 again, after first");
  const std::string remedy = "; run all shards with one build, the same files and options";
  EXPECT_EQ(refusal({first, written(run(1, {2, 3}), "third")}),
            "third: is shard 2/3, of another count than first" + remedy);
  EXPECT_EQ(refusal({first, written(run(1, {2, 2}, {}, "2"), "newer")}),
            "newer: was made by another build (2, not 1) than first" + remedy);
  EXPECT_EQ(refusal({first, written(run(1, {2, 2}, {{"membus", "20"}}), "slower")}),
            "slower: was made with other --set than first" + remedy);
  ResultsFile of_more = run(1, {2, 2});
  of_more.provenance.inputs["profiles/two.toml"] = "0";
  const std::string more = written(of_more, "more");
  EXPECT_EQ(refusal({first, more}), "more: has results of more files (profiles/two.toml) than first" + remedy);
  EXPECT_EQ(refusal({more, first}), "first: has results of fewer files than more" + remedy);
  write_whole(path("one.toml"), kExperiment + "\n");
  EXPECT_EQ(refusal({first, written(run(1, {2, 2}), "edited")}),
            "edited: was made of another experiments/one.toml than first" + remedy);
}

TEST_F(Runs, that_are_damaged_are_refused) {
  ResultsFile file = run(1);
  file.points.erase(4);
  EXPECT_EQ(refusal({written(file, "part")}), "part: is damaged: the result of job 4 is missing; run this shard again");
  write_whole(path("text"), "hello");
  EXPECT_EQ(refusal({path("text")}).find("text: is no file of results as `ub_emu all -o FILE` writes one"), 0u);
  write_whole(path("other"), R"({"format": "bird"})");
  EXPECT_EQ(refusal({path("other")}), "other: is of another format than \"ub_emu results 1\"");
  EXPECT_EQ(refusal({path("none")}), "none: No such file or directory");
  EXPECT_EQ(refusal({path("")}), ": Is a directory");
  const ResultsFile shard = run(1, {1, 2});
  EXPECT_THROW(results_of(experiments_, shard), BadFile);
  experiments_.push_back(experiments_[0]);
  EXPECT_THROW(results_of(experiments_, run(1, {1, 2})), BadFile);
}

// What no run writes, but somebody else may.
TEST_F(Runs, that_are_hostile_are_refused) {
  const Json good = json_of(run(1));
  const auto told = [&](const std::function<void(Json&)>& change) {
    Json json = good;
    change(json);
    write_whole(path("bad"), json.dump());
    return refusal({path("bad")});
  };
  EXPECT_EQ(told([](Json&) {}), "none");
  const std::string again = "; run this shard again";
  EXPECT_EQ(told([](Json& j) { j["points"][0]["job"] = 99; }),
            "bad: is damaged: the result of job 99 is of no job of this shard" + again);
  EXPECT_EQ(told([](Json& j) { j["points"][1]["job"] = 0; }),
            "bad: is damaged: the result of job 0 is there twice" + again);
  EXPECT_EQ(told([](Json& j) { j["points"][0]["job"] = -1; }), "bad: is damaged: -1 is no whole number");
  EXPECT_EQ(told([](Json& j) { j["jobs"] = 1e300; }), "bad: is damaged: 1e+300 is no whole number");
  EXPECT_EQ(told([](Json& j) { j["jobs"] = 0; }),
            "bad: is damaged: the result of job 0 is of no job of this shard" + again);
  EXPECT_EQ(told([](Json& j) { j["points"][0]["result"]["events"] = 0.5; }), "bad: is damaged: 0.5 is no whole number");
  EXPECT_EQ(told([](Json& j) { j["points"][0]["result"]["ledger"]["begin_ps"] = 1'000'000'000'000u; }),
            "bad: is damaged: a ledger goes back in time");
  EXPECT_EQ(told([](Json& j) { j["overrides"]["link_delay"] = "-5"; }),
            "bad: is damaged: overrides: link_delay = -5: give a number from 0 to 1000000000000 ns");
  const std::string no_file = "bad: is no file of results as `ub_emu all -o FILE` writes one";
  EXPECT_EQ(told([](Json& j) { j["points"][0].erase("result"); }).find(no_file), 0u);
  EXPECT_EQ(told([](Json& j) { j["points"][0]["result"]["values"]["mean_ns"] = "fast"; }).find(no_file), 0u);
  write_whole(path("bad"), std::string(1'000'000, '[') + std::string(1'000'000, ']'));
  EXPECT_EQ(refusal({path("bad")}), "bad: is no file of results: it is nested more deeply than any");
}

TEST_F(Runs, of_other_points_are_not_shown) {
  for (const char* key : {"experiment", "series", "value"}) {
    ResultsFile file = run(1);
    file.points[2][key] = "other";
    try {
      results_of(experiments_, file);
      ADD_FAILURE() << key;
    } catch (const BadFile& error) {
      EXPECT_STREQ(error.what(), "is damaged: the result of job 2 is of another point; run this shard again");
    }
  }
}

TEST_F(Runs, of_which_many_are_missing_name_some) {
  EXPECT_EQ(refusal({written(run(1, {1, 1000}), "first")}),
            "missing: shard 2/1000, 3/1000, 4/1000, 5/1000, 6/1000, 7/1000, 8/1000, 9/1000, 10/1000, 11/1000 and 989 "
            "others; run each of them with --shard, and give its file, too");
}

TEST_F(Runs, are_written_to_what_is_no_regular_file_and_leave_it_there) {
  std::filesystem::create_symlink("target", path("link"));
  expect_writable(path("link"));
  write_whole(path("link"), "text");
  EXPECT_TRUE(std::filesystem::is_symlink(path("link")));
  EXPECT_EQ(read_whole(path("target")), "text");
}

TEST_F(Runs, leave_no_part_of_a_file_that_cannot_be_written) {
  std::filesystem::create_directory(path("there"));
  EXPECT_THROW(expect_writable(path("there")), BadFile);
  EXPECT_THROW(write_whole(path("there"), "text"), BadFile);
  EXPECT_THROW(expect_writable(path("none/file")), BadFile);
  expect_writable(path("one.toml"));
  EXPECT_EQ(read_whole(path("one.toml")), kExperiment);
  size_t files = 0;
  for ([[maybe_unused]] const auto& each : std::filesystem::directory_iterator(directory_)) ++files;
  EXPECT_EQ(files, 2u);
}

}  // namespace
}  // namespace ub::emu
