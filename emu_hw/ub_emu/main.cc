// SPDX-License-Identifier: Apache-2.0
// ub_emu - emulates UB and RoCE hosts in virtual time, and compares with published figures.
#include <CLI/CLI.hpp>
#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>
#include <new>
#include <thread>

#include "emu_hw/profiles/toml_file.h"
#include "emu_hw/running/worker_pool.h"
#include "emu_hw/ub_emu/options.h"
#include "ub_emu_version.h"

namespace {

using namespace ub::emu;

constexpr int kWrong = 2;  // the exit code where a file or an option is wrong

class CommandLine {
 public:
  explicit CommandLine(Options& options) : options_(options) {
    app_.require_subcommand(1);
    app_.fallthrough();
    app_.set_version_flag("--version", "ub_emu " UB_VERSION " (" UB_EMU_COMMIT ")");
    app_.add_option("--experiments", options_.experiments_at, "directory with the files of the experiments")
        ->type_name("DIRECTORY")
        ->capture_default_str();
    app_.add_option("--profiles", options_.profiles_at, "directory with the files of the profiles")
        ->type_name("DIRECTORY")
        ->capture_default_str();
    app_.add_option("--set", options_.sets, "another value of a parameter, as link_delay=0.2us; again for more")
        ->type_name("NAME=VALUE")
        ->take_all()
        ->expected(1);
    app_.add_flag("--ledger", options_.ledgers, "prints, for each series, what its first operation was charged for");
    add_running_commands();
    add_other_commands();
  }

  CLI::App& app() { return app_; }
  int run() const { return command_(); }
  // Says what is wrong, or what was asked for, as --help; the exit code.
  int tell(const CLI::ParseError& error) const {
    if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr && !app_.remaining().empty()) {
      std::fprintf(stderr, "ub_emu: %s: there is no such command; `ub_emu --help` lists all\n",
                   app_.remaining().front().c_str());
      return kWrong;
    }
    return app_.exit(error) == 0 ? 0 : kWrong;
  }

 private:
  CLI::App* add(const char* name, const char* meaning, std::function<int()> command) {
    CLI::App* sub = app_.add_subcommand(name, meaning);
    sub->callback([this, command = std::move(command)] { command_ = command; });
    return sub;
  }
  void add_results(CLI::App* sub) {
    add_workers(sub);
    sub->add_option("--results", options_.results, "results to show, in place of running the experiments")
        ->type_name("FILE")
        ->excludes("--jobs");
  }
  void add_workers(CLI::App* sub) {
    sub->add_option("-j,--jobs", options_.workers, "processes that run points; the results do not depend on it")
        ->check(CLI::Range(1, 1024).description(""))
        ->type_name("N")
        ->capture_default_str();
  }
  void add_shard(CLI::App* sub) {
    sub->add_option("-o,--output", options_.output, "all data, as JSON")->type_name("FILE");
    sub->add_option("--shard", options_.shard, "runs the I-th of N parts, and writes its results to --output")
        ->type_name("I/N")
        ->excludes("--results");
  }
  void add_running_commands() {
    const Options& o = options_;
    CLI::App* some = add("run", "runs some experiments", [&o] { return run_some(o); });
    some->add_option("id", options_.ids, "their names; T6 is T6-cas, T6-faa, ...")->type_name("")->required();
    add_results(some);
    add_shard(some);
    CLI::App* all = add("all", "runs all of them; the exit code is 1 if one is out of its class or invalid",
                        [&o] { return run_all(o); });
    add_results(all);
    add_shard(all);
    CLI::App* compared = add("compare", "shows how far series are from published data, and counts verdicts",
                             [&o] { return compare(o); });
    compared->add_option("id", options_.ids, "names of experiments; all if none is given")->type_name("");
    add_results(compared);
    add_report("report", "runs all of them, and writes a page with their figures beside the published ones", report);
    add_report("paper", "the same of those that have a number in the paper", paper);
    add_workers(add("smoke", "runs one point of each experiment", [&o] { return run_smoke(o); }));
  }
  void add_report(const char* name, const char* meaning, int (*command)(const Options&)) {
    CLI::App* sub = add(name, meaning, [&o = options_, command] { return command(o); });
    sub->add_option("-o,--output", options_.directory, "of the page, figures and data")
        ->type_name("DIRECTORY")
        ->capture_default_str();
    add_results(sub);
  }
  void add_other_commands() {
    const Options& o = options_;
    CLI::App* merged = add("merge", "joins the results of all shards", [&o] { return merge(o); });
    merged->add_option("file", options_.shards, "what --shard has written")->type_name("")->required();
    merged->add_option("-o,--output", options_.output, "the joint results; else stdout")->type_name("FILE");
    add("doctor", "says what is missing here, with remedies", [&o] { return doctor(o); });
    add("list", "names of all experiments", [&o] { return list_experiments(o); });
    add("parameters", "all parameters, with default, unit and meaning", list_parameters);
    add("models", "what an experiment can run on", list_models);
    add("profiles", "stacks with values of their own", [&o] { return list_profiles(o); });
  }

  CLI::App app_{"Emulates UB and RoCE hosts in virtual time, and compares with published figures."};
  Options& options_;
  std::function<int()> command_;
};

// What opens a socket or a file would get the number of a stream that is closed, and what is printed would go there.
void fill_closed_streams() {
  for (int stream = 0; stream <= 2; ++stream)
    if (fcntl(stream, F_GETFD) < 0 && open("/dev/null", O_RDONLY) < 0) return;
}

// Results that nobody can read are a failure.
int end_of_output(int code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  std::fprintf(stderr, "ub_emu: the output cannot be written: %s\n", std::strerror(errno));
  return kWrong;
}

}  // namespace

int main(int argc, char** argv) try {
  fill_closed_streams();
  Options options;
  options.experiments_at = UB_EMU_DIRECTORY "/experiments";
  options.profiles_at = UB_EMU_DIRECTORY "/profiles";
  options.directory = "ub_emu-report";
  options.workers = std::clamp(std::thread::hardware_concurrency(), 1u, 64u);
  CommandLine line(options);
  try {
    line.app().parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return line.tell(error);
  }
  return end_of_output(line.run());
} catch (const Interrupted& interrupted) {
  std::fprintf(stderr, "ub_emu: interrupted\n");
  return 128 + interrupted.signal();
} catch (const std::bad_alloc&) {
  std::fprintf(stderr, "ub_emu: there is not enough memory; run fewer experiments at a time\n");
  return kWrong;
} catch (const std::exception& error) {
  std::fprintf(stderr, "ub_emu: %s\n", error.what());
  return kWrong;
}
