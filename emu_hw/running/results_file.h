// SPDX-License-Identifier: Apache-2.0
//
// Results of all points, or of one shard of them, as a file: JSON with all data and where they come from. Shards that
// were run apart are joined to the file that one process would have written.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "emu_hw/experiment/results.h"
#include "emu_hw/running/job.h"
#include "emu_hw/running/json.h"
#include "emu_hw/running/provenance.h"

namespace ub::emu {

struct ResultsFile {
  Provenance provenance;
  Shard shard;
  size_t jobs = 0;                // of all shards
  std::map<size_t, Json> points;  // by the number of the job; "result" has what the model returned
};

// The entry of a point.
Json entry_of(const Experiment&, const Job&, const Settings& overrides, const PointResult&);

Json json_of(const ResultsFile&);
std::string text_of(const ResultsFile&);
// Throws BadFile: there is none, or it is no such file, or damaged.
ResultsFile read_results(const std::string& path);

// Throws BadFile, which names the file and the remedy: a shard is missing or there twice, or they were made by another
// build, of other files, or with other parameters.
ResultsFile merge_results(const std::vector<std::string>& paths);

// In the order of the experiments, with verdicts. Throws BadFile: the file has results of other experiments, or a shard
// alone.
std::vector<ExperimentResult> results_of(const std::vector<Experiment>&, const ResultsFile&);

}  // namespace ub::emu
