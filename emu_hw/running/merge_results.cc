// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/running/results_file.h"

namespace ub::emu {
namespace {

// "a" of one file where the other one has "b".
[[noreturn]] void differ(const std::string& path, const std::string& first, const std::string& how) {
  throw BadFile(path + ": " + how + " than " + first + "; run all shards with one build, the same files and options");
}

void expect_same_inputs(const std::string& path, const Provenance& its, const std::string& first,
                        const Provenance& other) {
  for (const auto& [name, hash] : its.inputs) {
    const auto found = other.inputs.find(name);
    if (found == other.inputs.end()) differ(path, first, "has results of more files (" + name + ")");
    if (found->second != hash) differ(path, first, "was made of another " + name);
  }
  if (its.inputs.size() != other.inputs.size()) differ(path, first, "has results of fewer files");
}

void expect_same_origin(const std::string& path, const ResultsFile& file, const std::string& first,
                        const ResultsFile& other) {
  const Provenance &its = file.provenance, &others = other.provenance;
  if (its.version != others.version)
    differ(path, first, "was made by another build (" + its.version + ", not " + others.version + ")");
  expect_same_inputs(path, its, first, others);
  if (its.overrides != others.overrides) differ(path, first, "was made with other --set");
  if (file.shard.count != other.shard.count)
    differ(path, first, "is shard " + file.shard.text() + ", of another count");
  if (file.jobs != other.jobs) differ(path, first, "has points of another number of jobs");
}

void expect_all(const std::map<size_t, std::string>& paths, size_t count) {
  constexpr size_t kNamed = 10;
  if (paths.size() == count) return;
  std::string missing;
  size_t named = 0;
  for (size_t number = 1; number <= count && named < kNamed; ++number)
    if (!paths.contains(number)) {
      missing += (missing.empty() ? "" : ", ") + std::to_string(number) + "/" + std::to_string(count);
      ++named;
    }
  const size_t others = count - paths.size() - named;
  if (others != 0) missing += " and " + std::to_string(others) + " others";
  throw BadFile("missing: shard " + missing + "; run each of them with --shard, and give its file, too");
}

}  // namespace

ResultsFile merge_results(const std::vector<std::string>& paths) {
  ResultsFile all;
  std::map<size_t, std::string> by_number;
  for (const std::string& path : paths) {
    ResultsFile file = read_results(path);
    if (by_number.empty()) all = file;
    expect_same_origin(path, file, paths.front(), all);
    const auto [place, is_new] = by_number.emplace(file.shard.number, path);
    if (!is_new) throw BadFile(path + ": has shard " + file.shard.text() + " again, after " + place->second);
    all.points.merge(file.points);
  }
  expect_all(by_number, all.shard.count);
  all.shard = {};
  return all;
}

}  // namespace ub::emu
