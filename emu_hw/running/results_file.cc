// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/running/results_file.h"

#include <cmath>

#include "emu_hw/running/point_json.h"
#include "emu_hw/running/whole_file.h"

namespace ub::emu {
namespace {

constexpr const char* kFormat = "ub_emu results 1";

Provenance provenance_of(const Json& json) {
  Provenance provenance{json.at("version"), json.at("seed"), json.at("inputs"), json.at("overrides")};
  Parameters scratch;
  for (const auto& [name, text] : provenance.overrides)
    if (const std::string wrong = set_parameter(scratch, name, text); !wrong.empty())
      throw BadFile("is damaged: overrides: " + wrong);
  return provenance;
}

[[noreturn]] void damaged(size_t job, const std::string& how) {
  throw BadFile("is damaged: the result of job " + std::to_string(job) + " " + how + "; run this shard again");
}

// What other programs write may be nested so deeply that a copy of it needs more than the stack.
Json parsed(const std::string& text) {
  constexpr int kDeepest = 16;
  return Json::parse(text, [](int depth, Json::parse_event_t, const Json&) {
    if (depth > kDeepest) throw BadFile("is no file of results: it is nested more deeply than any");
    return true;
  });
}

void read_point(const Json& point, ResultsFile& file) {
  const size_t job = whole_number(point.at("job"));
  if (job >= file.jobs || !file.shard.has(job)) damaged(job, "is of no job of this shard");
  point_of(point.at("result"));
  if (!file.points.emplace(job, point).second) damaged(job, "is there twice");
}

ResultsFile file_of(const Json& json) {
  if (json.at("format") != kFormat) throw BadFile("is of another format than \"" + std::string(kFormat) + "\"");
  ResultsFile file{provenance_of(json), shard_of(json.at("shard")), whole_number(json.at("jobs")), {}};
  for (const Json& point : json.at("points")) read_point(point, file);
  for (size_t job = file.shard.number - 1; job < file.jobs; job += file.shard.count)
    if (!file.points.contains(job)) damaged(job, "is missing");
  return file;
}

// The file says what it has a result of.
bool is_of(const Json& point, const Experiment& e, const Job& job) {
  return point.value("experiment", Json()) == e.id && point.value("series", Json()) == e.series[job.series].name &&
         point.value("value", Json()) == e.values[job.value];
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
    return file_of(parsed(read_whole(path)));
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
  if (file.points.size() != jobs.size() || file.jobs != jobs.size())
    throw BadFile("has " + std::to_string(file.points.size()) + " points and not the " + std::to_string(jobs.size()) +
                  " of these experiments; run them again");
  std::vector<ExperimentResult> all(experiments.size());
  for (size_t e = 0; e < experiments.size(); ++e) all[e].series.resize(experiments[e].series.size());
  for (const auto& [number, point] : file.points) {
    const Job& job = jobs[number];
    if (!is_of(point, experiments[job.experiment], job)) damaged(number, "is of another point");
    all[job.experiment].series[job.series].points.push_back(point_of(point.at("result")));
  }
  for (size_t e = 0; e < experiments.size(); ++e)
    for (size_t s = 0; s < all[e].series.size(); ++s) {
      SeriesResult& series = all[e].series[s];
      series.judgement = judge(experiments[e], experiments[e].series[s], measured(experiments[e], series));
    }
  return all;
}

}  // namespace ub::emu
