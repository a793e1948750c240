// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/running/results_file.h"

#include <cmath>

#include "emu_hw/running/point_json.h"
#include "emu_hw/running/whole_file.h"

namespace ub::emu {
namespace {

constexpr const char* kFormat = "ub_emu results 1";

Provenance provenance_of(const Json& json) {
  return {json.at("version"), json.at("seed"), json.at("inputs").get<std::map<std::string, std::string>>(),
          json.at("overrides").get<Settings>()};
}

ResultsFile file_of(const Json& json) {
  if (json.at("format") != kFormat) throw BadFile("is of another format than \"" + std::string(kFormat) + "\"");
  ResultsFile file{provenance_of(json), shard_of(json.at("shard")), json.at("jobs"), {}};
  for (const Json& point : json.at("points")) file.points[point.at("job")] = point;
  for (size_t job = 0; job < file.jobs; ++job)
    if (file.shard.has(job) && !file.points.contains(job))
      throw BadFile("is damaged: the result of job " + std::to_string(job) + " is missing; run this shard again");
  return file;
}

}  // namespace

Json entry_of(const Experiment& e, const Job& job, const Settings& overrides, const PointResult& result) {
  const Series& series = e.series[job.series];
  const double value = e.values[job.value];
  Json json = {{"experiment", e.id}, {"series", series.name}, {"stack", series.stack},
               {"sweep", e.sweep},   {"value", value},        {"measure", e.measure}};
  if (!series.expected.empty() && !std::isnan(series.expected[job.value]))
    json["expected"] = series.expected[job.value];
  json["parameters"] = changed_parameters(parameters_of(e, series, value, overrides));
  json["result"] = json_of(result);
  return json;
}

Json json_of(const ResultsFile& file) {
  Json json = {{"format", kFormat},
               {"version", file.provenance.version},
               {"seed", file.provenance.seed},
               {"overrides", file.provenance.overrides},
               {"inputs", file.provenance.inputs},
               {"shard", file.shard.text()},
               {"jobs", file.jobs}};
  json["points"] = Json::array();
  for (const auto& [job, point] : file.points) {
    Json entry = {{"job", job}};
    entry.update(point);
    json["points"].push_back(std::move(entry));
  }
  return json;
}

std::string text_of(const ResultsFile& file) { return json_of(file).dump(1) + "\n"; }

ResultsFile read_results(const std::string& path) {
  try {
    return file_of(Json::parse(read_whole(path)));
  } catch (const Json::exception& error) {
    throw BadFile(path + ": is no file of results as `ub_emu all -o FILE` writes one: " + error.what());
  } catch (const BadFile& error) {
    const std::string what = error.what();
    throw BadFile(what.starts_with(path) ? what : path + ": " + what);
  }
}

std::vector<ExperimentResult> results_of(const std::vector<Experiment>& experiments, const ResultsFile& file) {
  const std::vector<Job> jobs = jobs_of(experiments);
  if (file.shard != Shard{}) throw BadFile("is shard " + file.shard.text() + " alone; join all by `ub_emu merge`");
  if (file.points.size() != jobs.size())
    throw BadFile("has " + std::to_string(file.points.size()) + " points and not the " + std::to_string(jobs.size()) +
                  " of these experiments; run them again");
  std::vector<ExperimentResult> all(experiments.size());
  for (size_t e = 0; e < experiments.size(); ++e) all[e].series.resize(experiments[e].series.size());
  for (const auto& [number, point] : file.points)
    all[jobs[number].experiment].series[jobs[number].series].points.push_back(point_of(point.at("result")));
  for (size_t e = 0; e < experiments.size(); ++e)
    for (size_t s = 0; s < all[e].series.size(); ++s) {
      SeriesResult& series = all[e].series[s];
      series.judgement = judge(experiments[e], experiments[e].series[s], measured(experiments[e], series));
    }
  return all;
}

}  // namespace ub::emu
