// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/running/job.h"

#include <charconv>

namespace ub::emu {
namespace {

bool read(std::string_view text, size_t* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size();
}

constexpr size_t kMostShards = 65536;

}  // namespace

std::vector<Job> jobs_of(const std::vector<Experiment>& experiments) {
  std::vector<Job> jobs;
  for (size_t e = 0; e < experiments.size(); ++e)
    for (size_t s = 0; s < experiments[e].series.size(); ++s)
      for (size_t v = 0; v < experiments[e].values.size(); ++v) jobs.push_back({e, s, v});
  return jobs;
}

Shard shard_of(const std::string& text) {
  const std::string_view all = text;
  const size_t slash = all.find('/');
  Shard shard;
  const bool is_read =
      slash != all.npos && read(all.substr(0, slash), &shard.number) && read(all.substr(slash + 1), &shard.count);
  if (!is_read || shard.number < 1 || shard.number > shard.count || shard.count > kMostShards)
    throw BadFile("--shard " + text + ": give I/N with I from 1 to N, as 2/8 for the second of eight, and N up to " +
                  std::to_string(kMostShards));
  return shard;
}

}  // namespace ub::emu
