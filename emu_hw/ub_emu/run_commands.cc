// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "emu_hw/running/whole_file.h"
#include "emu_hw/ub_emu/print_comparison.h"
#include "emu_hw/ub_emu/print_results.h"
#include "emu_hw/ub_emu/results.h"

namespace ub::emu {
namespace {

// Results of all shards are printed; those of one are data for `merge`.
int run_and_print(const Inputs& inputs, const Options& options) {
  const bool is_part = shard_of(options.shard) != Shard{};
  if (is_part && options.output.empty())
    throw BadFile("--shard: name a file for its results, too, as -o part.json; `ub_emu merge` joins them");
  if (!options.output.empty()) expect_writable(options.output);
  const ResultsFile file = results_file_of(inputs, options);
  if (!options.output.empty()) write_whole(options.output, text_of(file));
  if (is_part) return 0;
  const std::vector<ExperimentResult> results = results_of(inputs.experiments, file);
  for (size_t i = 0; i < results.size(); ++i) print_results(inputs.experiments[i], results[i], options.ledgers);
  return exit_code_of(results);
}

// The first point of its first series alone.
void cut_to_one_point(Experiment& e) {
  if (e.series.empty()) return;
  e.series = {e.series.front()};
  e.values = {e.values.front()};
  Series& series = e.series.front();
  if (series.expected.empty()) return;
  series.expected = {series.expected.front()};
  if (std::isnan(series.expected.front())) series.expected.clear();
}

}  // namespace

int run_some(const Options& options) { return run_and_print(read_inputs(options), options); }

int run_all(const Options& options) { return run_and_print(read_inputs(options), options); }

int run_smoke(const Options& options) {
  Inputs inputs = read_inputs(options);
  for (Experiment& e : inputs.experiments) cut_to_one_point(e);
  return run_and_print(inputs, options);
}

int compare(const Options& options) {
  const Inputs inputs = read_inputs(options);
  const ResultsFile file = results_file_of(inputs, options);
  const std::vector<ExperimentResult> results = results_of(inputs.experiments, file);
  print_comparison(inputs.experiments, results);
  return exit_code_of(results);
}

}  // namespace ub::emu
