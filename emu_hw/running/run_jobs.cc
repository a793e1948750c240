// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/running/run_jobs.h"

#include <algorithm>
#include <new>
#include <utility>

#include "emu_hw/running/point_json.h"
#include "emu_hw/running/worker_pool.h"

namespace ub::emu {
namespace {

PointResult invalid_because(const std::string& reason) {
  PointResult result;
  result.invalid = reason;
  return result;
}

class Run {
 public:
  Run(const std::vector<Experiment>& experiments, const Settings& overrides, const RunOptions& options)
      : experiments_(experiments), overrides_(overrides), options_(options), jobs_(jobs_of(experiments)) {
    for (size_t job = 0; job < jobs_.size(); ++job)
      if (options.shard.has(job)) numbers_.push_back(job);
    // A stack, a workload or a measure that there is not is found within seconds.
    std::stable_partition(numbers_.begin(), numbers_.end(), [this](size_t job) { return is_first_of_series(job); });
  }

  std::map<size_t, Json> operator()() {
    run_in_workers(
        numbers_, options_.workers, [this](size_t number) { return answer(number); },
        [this](size_t number, const Outcome& outcome) { return on_done(number, outcome); });
    // Which is the first does not depend on the number of workers: all before it were begun before it.
    if (!refusals_.empty()) throw BadFile(refusals_.begin()->second);
    return std::move(points_);
  }

 private:
  bool is_first_of_series(size_t number) const { return jobs_[number].value == 0; }
  const Experiment& experiment(size_t number) const { return experiments_[jobs_[number].experiment]; }

  PointResult run(size_t number) const {
    const Experiment& e = experiment(number);
    const Job& job = jobs_[number];
    try {
      return run_point(e, e.series[job.series], e.values[job.value], overrides_);
    } catch (const BadFile&) {
      throw;
    } catch (const std::bad_alloc&) {
      return invalid_because("it needs more memory than there is; give smaller values, or a smaller --jobs");
    } catch (const std::exception& error) {
      return invalid_because(error.what());
    }
  }
  // In a worker.
  std::string answer(size_t number) const {
    Json json;
    try {
      json["point"] = json_of(run(number));
    } catch (const BadFile& error) {
      json["refusal"] = error.what();
    }
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  bool on_done(size_t number, const Outcome& outcome) {
    const Json json =
        outcome.has_died ? Json{{"point", json_of(invalid_because(outcome.text))}} : Json::parse(outcome.text);
    if (json.contains("refusal")) {
      refusals_[{!is_first_of_series(number), number}] = json["refusal"];
      return false;
    }
    points_[number] = entry_of(experiment(number), jobs_[number], overrides_, point_of(json["point"]));
    if (options_.on_progress) options_.on_progress(points_.size(), numbers_.size(), jobs_[number]);
    return refusals_.empty();
  }

  const std::vector<Experiment>& experiments_;
  const Settings& overrides_;
  const RunOptions& options_;
  const std::vector<Job> jobs_;
  std::vector<size_t> numbers_;  // of the jobs of the shard, as they are begun
  std::map<size_t, Json> points_;
  std::map<std::pair<bool, size_t>, std::string> refusals_;  // in that order
};

}  // namespace

std::map<size_t, Json> run_jobs(const std::vector<Experiment>& experiments, const Settings& overrides,
                                const RunOptions& options) {
  return Run(experiments, overrides, options)();
}

}  // namespace ub::emu
