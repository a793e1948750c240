// SPDX-License-Identifier: Apache-2.0
// ub_emu - emulates UB and RoCE hosts in virtual time, and compares with published figures.
#include <CLI/CLI.hpp>

#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "emu_hw/ub_emu/print_results.h"

namespace {

using namespace ub::emu;

Settings read_overrides(const std::vector<std::string>& texts) {
  Settings overrides;
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
      throw BadFile(text + ": give --set NAME=VALUE, as link_delay=200 or link_delay=0.2us");
    overrides[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return overrides;
}

ExperimentResult run_experiment(const Experiment& e, const Settings& overrides, uint64_t* events) {
  ExperimentResult result;
  for (const Series& series : e.series) {
    SeriesResult of_series;
    for (const double value : e.values) of_series.points.push_back(run_point(e, series, value, overrides));
    for (const PointResult& point : of_series.points) *events += point.events;
    of_series.judgement = judge(e, series, measured(e, of_series));
    result.series.push_back(std::move(of_series));
  }
  return result;
}

int run(const std::vector<Experiment>& experiments, const Settings& overrides, bool ledgers) {
  const auto begin = std::chrono::steady_clock::now();
  uint64_t events = 0;
  int failed = 0;
  for (const Experiment& e : experiments) {
    const ExperimentResult result = run_experiment(e, overrides, &events);
    print_results(e, result, ledgers);
    for (const SeriesResult& series : result.series) failed += is_failure(series.judgement.verdict);
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::fprintf(stderr, "%.1f s, %.1f million events\n", took.count(), static_cast<double>(events) / 1e6);
  return failed == 0 ? 0 : 1;
}

void list(const std::vector<Experiment>& experiments) {
  for (const Experiment& e : experiments)
    std::printf("%-8s %c  %s, by %s\n", e.id.c_str(), static_cast<char>(e.judged_as), e.title.c_str(), e.sweep.c_str());
}

// As TOML.
void list_parameters() {
  for (const ParameterInfo& p : all_parameters()) {
    const std::string words = p.words;
    const std::string value = words.empty() ? p.default_text : '"' + p.default_text + '"';
    std::printf("%-22s = %8s  # %s%s%s%s%s\n", p.name, value.c_str(), p.unit, *p.unit == 0 ? "" : "; ", p.meaning,
                words.empty() ? "" : ": ", words.c_str());
  }
}

}  // namespace

int main(int argc, char** argv) try {
  CLI::App app("Emulates UB and RoCE hosts in virtual time, and compares with published figures.");
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string("ub_emu ") + UB_VERSION);
  std::string experiments_at = UB_EMU_DIRECTORY "/experiments", profiles_at = UB_EMU_DIRECTORY "/profiles";
  std::vector<std::string> sets;
  app.add_option("--experiments", experiments_at, "directory with the files of the experiments")->capture_default_str();
  app.add_option("--profiles", profiles_at, "directory with the files of the profiles")->capture_default_str();
  app.add_option("--set", sets, "NAME=VALUE: another value of a parameter; again for more");
  bool ledgers = false;
  app.add_flag("--ledger", ledgers, "prints, for each series, what its first operation was charged for");
  CLI::App* list_command = app.add_subcommand("list", "names of all experiments");
  CLI::App* parameters_command = app.add_subcommand("parameters", "all parameters, with default, unit and meaning");
  CLI::App* run_command = app.add_subcommand("run", "runs one experiment");
  std::string id;
  run_command->add_option("id", id, "its name")->required();
  app.add_subcommand("all", "runs all of them; the exit code is 1 if one is out of its class or invalid");
  CLI11_PARSE(app, argc, argv);

  if (*parameters_command) return list_parameters(), 0;
  std::vector<Experiment> experiments = read_experiments(experiments_at, read_profiles(profiles_at));
  if (*list_command) return list(experiments), 0;
  if (*run_command) {
    std::erase_if(experiments, [&](const Experiment& e) { return e.id != id; });
    if (experiments.empty()) throw BadFile(id + ": there is no experiment of that name; `ub_emu list` lists all");
  }
  return run(experiments, read_overrides(sets), ledgers);
} catch (const std::exception& error) {
  std::fprintf(stderr, "ub_emu: %s\n", error.what());
  return 2;
}
