// SPDX-License-Identifier: Apache-2.0
//
// What the command line says, and the commands. Each returns the exit code, and throws BadFile.
#pragma once

#include <string>
#include <vector>

namespace ub::emu {

struct Options {
  std::string experiments_at, profiles_at;  // directories
  std::vector<std::string> sets;            // NAME=VALUE
  std::vector<std::string> ids;             // of experiments
  bool ledgers = false;
  size_t workers = 1;
  std::string shard = "1/1";
  std::string results;              // a file to read, in place of running
  std::string output;               // a file to write
  std::string directory;            // of a report
  std::vector<std::string> shards;  // files to join
};

int list_experiments(const Options&);
int list_parameters();
int list_models();
int list_profiles(const Options&);

int run_some(const Options&);
int run_all(const Options&);
int run_smoke(const Options&);
int compare(const Options&);
int report(const Options&);
int paper(const Options&);
int merge(const Options&);
int doctor(const Options&);

}  // namespace ub::emu
