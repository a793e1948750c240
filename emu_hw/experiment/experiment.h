// SPDX-License-Identifier: Apache-2.0
//
// An experiment as its file declares it (emu_hw/experiments): what is varied, which stacks run, what is measured, what
// is expected, and how close that has to be.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "emu_hw/profiles/profile.h"
#include "emu_hw/profiles/toml_file.h"

namespace ub::emu {

// How a result is judged.
enum class Class : char {
  kExact = 'X',     // within 1 % or 3 ns, whichever is more
  kRandom = 'R',    // within 6 %
  kShape = 'S',     // within 15 %
  kFormula = 'F',   // equal
};

// A line of the results: one stack over all values of the sweep.
struct Series {
  std::string name;
  std::string stack;
  Settings set;                  // of its profile, then of the experiment, then its own
  std::vector<double> expected;  // one for each value of the sweep, NaN where none is published; empty: no data
  std::optional<double> within, within_percent;  // in place of what the class allows
  std::string decided_by;        // "rule.loss", "core": who decides what others decide in another series; else ""
  std::string beside;            // it is not judged, but shown beside this series, with an explanation
  std::string explanation;       // of a difference: the mechanism
};

struct Experiment {
  std::string path;  // of the file
  std::string id, title;
  Class judged_as = Class::kExact;
  std::string not_reproducible;  // why; "": it is, and what follows has a meaning
  std::string paper;             // where the paper's text and its data differ, or what its figure leaves out; or ""
  std::string model;             // emu_hw/models
  std::string workload;
  std::string measure;           // which of the values of a point
  uint64_t repeats = 1;          // with another seed each; the result is their mean
  std::string sweep;             // a parameter
  std::vector<double> values;
  std::vector<Series> series;
};

// Reads a file. Throws BadFile, which names file, key and remedy.
Experiment read_experiment(const std::string& path, const Profiles&);
// All of a directory, in the order of the files' names.
std::vector<Experiment> read_experiments(const std::string& directory, const Profiles&);

}  // namespace ub::emu
