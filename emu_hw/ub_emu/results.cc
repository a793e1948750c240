// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/ub_emu/results.h"

#include <algorithm>
#include <cstdio>

#include "emu_hw/running/run_jobs.h"
#include "emu_hw/ub_emu/progress.h"

namespace ub::emu {
namespace {

uint64_t events_of(const ResultsFile& file) {
  uint64_t events = 0;
  for (const auto& [job, point] : file.points) events += point.at("result").at("events").get<uint64_t>();
  return events;
}

ResultsFile run(const Inputs& inputs, const Options& options) {
  const auto begin = std::chrono::steady_clock::now();
  const Progress progress;
  RunOptions how{options.workers, shard_of(options.shard), {}};
  how.on_progress = [&](size_t ended, size_t all, const Job& job) {
    const Experiment& e = inputs.experiments[job.experiment];
    progress.show(ended, all, e.id + " " + e.series[job.series].name);
  };
  ResultsFile file{provenance_of(inputs), how.shard, jobs_of(inputs.experiments).size(), {}};
  file.points = run_jobs(inputs.experiments, inputs.overrides, how);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  progress.wipe();
  std::fprintf(stderr, "%.1f s, %.1f million events\n", took.count(), static_cast<double>(events_of(file)) / 1e6);
  return file;
}

ResultsFile read(const Inputs& inputs, const std::string& path) {
  ResultsFile file = read_results(path);
  if (!inputs.overrides.empty()) throw BadFile("--set: changes nothing in " + path + "; leave out --results");
  for (const auto& [name, hash] : provenance_of(inputs).inputs) {
    const auto found = file.provenance.inputs.find(name);
    if (found == file.provenance.inputs.end() || found->second != hash)
      throw BadFile(path + ": was made of another " + name + "; run the experiments again");
  }
  try {
    results_of(inputs.experiments, file);
  } catch (const BadFile& error) {
    throw BadFile(path + ": " + error.what());
  }
  return file;
}

}  // namespace

ResultsFile results_file_of(const Inputs& inputs, const Options& options) {
  return options.results.empty() ? run(inputs, options) : read(inputs, options.results);
}

int exit_code_of(const std::vector<ExperimentResult>& results) {
  const auto has_failed = [](const SeriesResult& series) { return is_failure(series.judgement.verdict); };
  return std::any_of(results.begin(), results.end(), [&](const ExperimentResult& result) {
    return std::any_of(result.series.begin(), result.series.end(), has_failed);
  });
}

}  // namespace ub::emu
