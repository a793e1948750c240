// SPDX-License-Identifier: Apache-2.0
// ub_emu - emulates UB and RoCE hosts in virtual time, and compares with published figures.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "emu_hw/experiment/run_point.h"
#include "emu_hw/experiment/verdict.h"
#include "emu_hw/profiles/parameters.h"

namespace {

using namespace ub::emu;

// All files of the directory, in the order of their names.
std::vector<Experiment> read_all(const std::string& directory) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    if (entry.path().extension() == ".toml") paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<Experiment> all;
  for (const auto& path : paths) all.push_back(read_experiment(path));
  if (all.empty()) throw BadExperiment(directory + ": has no experiments (*.toml); name another by --experiments");
  return all;
}

std::map<std::string, double> read_overrides(const std::vector<std::string>& texts) {
  std::map<std::string, double> overrides;
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    size_t end = 0;
    const std::string number = equals == std::string::npos ? "" : text.substr(equals + 1);
    try {
      overrides[text.substr(0, equals)] = std::stod(number, &end);
    } catch (const std::exception&) {
    }
    if (end == 0 || end != number.size()) throw BadExperiment(text + ": give --set NAME=NUMBER, as link_delay=200");
  }
  return overrides;
}

struct Request {
  std::map<std::string, double> overrides;
  bool ledgers = false;  // print that of the first operation of each series
};

struct Outcome {
  Verdict verdict = Verdict::kInClass;
  uint64_t events = 0;
};

// Runs all points of one stack and prints them.
Outcome run_series(const Experiment& e, const Series& series, const Request& request) {
  Outcome outcome;
  std::vector<double> measured;
  std::string invalid, ledger;
  for (const double value : e.values) {
    const PointResult result = run_point(e, series.stack, value, request.overrides);
    measured.push_back(result.value);
    outcome.events += result.events;
    if (invalid.empty()) invalid = result.invalid;
    if (ledger.empty()) ledger = result.ledger;
  }
  outcome.verdict = !invalid.empty() ? Verdict::kInvalid : judge(e.judged_as, series.expected, measured);
  std::printf("%-8s %-5s %c  %-12s", e.id.c_str(), series.stack.c_str(), static_cast<char>(e.judged_as),
              std::string(name_of(outcome.verdict)).c_str());
  if (!invalid.empty()) std::printf("  %s", invalid.c_str());
  for (size_t i = 0; i < measured.size() && invalid.empty(); ++i) {
    std::printf("  %g", measured[i]);
    if (!series.expected.empty() && measured[i] != series.expected[i]) std::printf(" (%g)", series.expected[i]);
  }
  std::printf("\n");
  if (request.ledgers) std::printf("  %s = %g: %s\n", e.sweep.c_str(), e.values.front(), ledger.c_str());
  return outcome;
}

int run(const std::vector<Experiment>& experiments, const Request& request) {
  const auto begin = std::chrono::steady_clock::now();
  uint64_t events = 0;
  int failed = 0;
  for (const Experiment& e : experiments) {
    std::printf("# %s: %s, by %s\n", e.id.c_str(), e.title.c_str(), e.sweep.c_str());
    for (const Series& series : e.series) {
      const Outcome outcome = run_series(e, series, request);
      events += outcome.events;
      if (outcome.verdict == Verdict::kOutOfClass || outcome.verdict == Verdict::kInvalid) ++failed;
    }
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::fprintf(stderr, "%.1f s, %.1f million events\n", took.count(), static_cast<double>(events) / 1e6);
  return failed == 0 ? 0 : 1;
}

void list(const std::vector<Experiment>& experiments) {
  for (const Experiment& e : experiments)
    std::printf("%-8s %c  %s, by %s\n", e.id.c_str(), static_cast<char>(e.judged_as), e.title.c_str(), e.sweep.c_str());
}

void list_parameters() {
  for (const ParameterInfo& p : all_parameters())
    std::printf("%-22s %8g %-8s %s\n", p.name, p.default_value, p.unit, p.meaning);
}

}  // namespace

int main(int argc, char** argv) try {
  CLI::App app("Emulates UB and RoCE hosts in virtual time, and compares with published figures.");
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string("ub_emu ") + UB_VERSION);
  std::string directory = UB_EMU_EXPERIMENTS;
  std::vector<std::string> sets;
  app.add_option("--experiments", directory, "directory with the files of the experiments")->capture_default_str();
  app.add_option("--set", sets, "NAME=NUMBER: another value of a parameter, in its unit; again for more");
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
  std::vector<Experiment> experiments = read_all(directory);
  if (*list_command) return list(experiments), 0;
  if (*run_command) {
    std::erase_if(experiments, [&](const Experiment& e) { return e.id != id; });
    if (experiments.empty()) throw BadExperiment(id + ": there is no experiment of that name; `ub_emu list` lists all");
  }
  return run(experiments, {read_overrides(sets), ledgers});
} catch (const std::exception& error) {
  std::fprintf(stderr, "ub_emu: %s\n", error.what());
  return 2;
}
