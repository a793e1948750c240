// SPDX-License-Identifier: Apache-2.0
//
// An experiment as its file declares it (emu_hw/experiments): what is varied, which stacks run, what is measured, what
// is expected, and how close that has to be.
#pragma once

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace ub::emu {

// How a result is judged.
enum class Class : char {
  kExact = 'X',     // within 1 % or 3 ns, whichever is more
  kRandom = 'R',    // within 6 %
  kShape = 'S',     // within 15 %
  kFormula = 'F',   // equal
};

enum class Measure : uint8_t { kMeanNs, kMops };

struct Series {
  std::string stack;
  std::vector<double> expected;  // one for each value of the sweep; empty: there is no data
};

struct Experiment {
  std::string path;  // of the file
  std::string id, title;
  Class judged_as = Class::kExact;
  Measure measure = Measure::kMeanNs;
  std::string workload;
  uint64_t operations = 200;
  uint64_t repeats = 1;  // with another seed each; the result is their mean
  // What is varied, and its values; options that are the same at each point. A name of either is a parameter, or an
  // option of the program: payload, locality, strict, in_flight, zipf_keys, zipf_alpha, operations.
  std::string sweep;
  std::vector<double> values;
  std::map<std::string, double> set;
  std::vector<Series> series;
};

// Reads a file. Throws BadExperiment, which names file, key and remedy.
Experiment read_experiment(const std::string& path);

class BadExperiment : public std::runtime_error {
 public:
  using runtime_error::runtime_error;
};

}  // namespace ub::emu
