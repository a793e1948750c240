// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>

#include "emu_hw/experiment/paper_order.h"
#include "emu_hw/report/report.h"
#include "emu_hw/running/whole_file.h"
#include "emu_hw/ub_emu/print_comparison.h"
#include "emu_hw/ub_emu/results.h"

namespace ub::emu {
namespace {

int write(const Inputs& inputs, const Options& options) {
  expect_report_writable(options.directory);
  const ResultsFile file = results_file_of(inputs, options);
  Report report{file.provenance,
                inputs.experiments,
                results_of(inputs.experiments, file),
                {},
                ledgers_of_a_read(inputs.profiles, file.provenance.overrides)};
  for (size_t i = 0; i < report.experiments.size(); ++i)
    report.figures.push_back(figures_of(report.experiments[i], report.results[i]));
  write_report(report, options.directory);
  write_whole(options.directory + "/results.json", text_of(file));
  print_counts(counts_of(report.experiments, report.results));
  std::printf("%s/index.html\n", options.directory.c_str());
  return exit_code_of(report.results);
}

}  // namespace

int report(const Options& options) { return write(read_inputs(options), options); }

int paper(const Options& options) {
  Inputs inputs = read_inputs(options);
  std::erase_if(inputs.experiments, [](const Experiment& e) { return !has_number_in_paper(e.id); });
  return write(inputs, options);
}

}  // namespace ub::emu
