// SPDX-License-Identifier: Apache-2.0
//
// ub_sim: runs the protocol core against a seeded world of faults.
//
//   ub_sim --seeds 1000 [--from 1] [--jobs 2]   many seeds; a failing one prints how to replay it
//   ub_sim --seeds 1000 --states                how many of them reached which state (reached.def)
//   ub_sim --seed 4711 [-v]                     one seed; -v prints every packet, post and completion
//   ub_sim --repeated --seeds 1000              swarm seeds whose packets come twice, late and again seconds later
//   ub_sim --rol-by-ctp --seeds 1000            swarm seeds on a wire that loses nothing, with queues of ROL
//   ub_sim --apertures --seeds 10000            swarm seeds with programs that load and store remote memory
//   ub_sim --paths --seeds 20000                swarm seeds whose paths have faults, each fifth under the same control
//   ub_sim --orders --seeds 100                 the same for short programs about order (order_programs.h)
#include <malloc.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/sim/last_events.h"
#include "tests/sim/order_programs.h"
#include "tests/sim/scenario.h"

namespace ub::sim {
namespace {

struct Totals {
  uint64_t seeds = 0, bad = 0, events = 0, succeeded = 0, failed = 0, lost = 0;
  uint64_t accesses = 0, refused_accesses = 0, lost_accesses = 0;
  uint64_t reached[kReachedStates] = {};  // how many seeds did
};

// What to run, and what to tell of it.
struct Plan {
  uint64_t from = 1, seeds = 0;
  uint32_t jobs = 1;
  uint64_t stop_after = 10;
  bool brief = false, states = false, orders = false, repeated = false, rol_by_ctp = false,
       apertures = false, paths = false;
  std::string record;

  RunResult run(uint64_t seed, RunWishes wishes) const {
    return orders ? run_order_programs(seed, wishes) : run_scenario(options(seed), wishes);
  }
  // Where the Cores of that seed are recorded; empty: they are not.
  std::string record_of(uint64_t seed) const { return record.empty() ? "" : record + "/" + std::to_string(seed); }
  std::string record_again(uint64_t seed) const { return record.empty() ? "" : record_of(seed) + "-again"; }
  Options options(uint64_t seed) const {
    if (orders) return Options::draw_for_programs(seed);
    if (apertures) return Options::draw_apertures(seed);
    if (paths) return Options::draw_with_paths(seed);
    if (rol_by_ctp) return Options::draw_rol_by_ctp(seed);
    return repeated ? Options::draw_repeated(seed) : Options::draw(seed);
  }
  const char* flag() const {
    if (apertures) return "--apertures ";
    if (paths) return "--paths ";
    if (rol_by_ctp) return "--rol-by-ctp ";
    return orders ? "--orders " : repeated ? "--repeated " : "";
  }
};

double seconds_since(std::chrono::steady_clock::time_point t) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - t).count();
}

void report_failure(const Plan& plan, uint64_t seed, const std::string& failure, const std::string& last_events = "") {
  std::printf("seed %" PRIu64 " FAILED %s\n%s", seed, failure.c_str(), last_events.c_str());
  if (!plan.brief) std::printf("options:\n%s", plan.options(seed).text().c_str());
  std::printf("replay: ub_sim %s--seed %" PRIu64 "\n", plan.flag(), seed);
  std::fflush(stdout);
}

// What a worker process shares with its parent, so that a crash names its seed and loses no counts.
struct Worker {
  uint64_t seed = 0;  // being run
  Totals totals;
};

// Seed `first` and every one of that worker behind it.
void run_range(Worker& w, uint64_t first, const Plan& plan) {
  Totals& t = w.totals;
  for (uint64_t seed = first; seed < plan.from + plan.seeds && t.bad < plan.stop_after; seed += plan.jobs) {
    w.seed = seed;
    RunResult r = plan.run(seed, {.states = plan.states, .record = plan.record_of(seed)});
    // A sample of seeds runs twice: the same seed must give the same run.
    const auto run_again = [&] { return plan.run(seed, {.record = plan.record_again(seed)}).trace_hash; };
    if (r.failure.empty() && seed % 25 == 0 && run_again() != r.trace_hash)
      r.failure = "not deterministic: a second run has another trace";
    ++t.seeds;
    t.events += r.events;
    t.succeeded += r.succeeded;
    t.failed += r.failed;
    t.lost += r.lost;
    t.accesses += r.accesses;
    t.refused_accesses += r.refused_accesses;
    t.lost_accesses += r.lost_accesses;
    for (size_t i = 0; i < kReachedStates; ++i) t.reached[i] += r.states[i];
    if (r.failure.empty()) continue;
    ++t.bad;
    report_failure(plan, seed, r.failure, r.last_events);
  }
}

int run_one(const Plan& plan, uint64_t seed, bool verbose) {
  std::printf("seed %" PRIu64 "\noptions:\n%s", seed, plan.options(seed).text().c_str());
  std::fflush(stdout);
  auto start = std::chrono::steady_clock::now();
  RunResult r = plan.run(seed, {.verbose = verbose, .record = plan.record_of(seed)});
  std::printf("%" PRIu64 " events, %.3f virtual s, %.3f s; requests: %" PRIu64 " succeeded, %" PRIu64
              " failed, %" PRIu64 " lost with their queue; trace %016" PRIx64 "\n",
              r.events, r.virtual_seconds, seconds_since(start), r.succeeded, r.failed, r.lost, r.trace_hash);
  if (r.failure.empty()) {
    std::printf("ok\n");
    return 0;
  }
  report_failure(plan, seed, r.failure, r.last_events);
  return 1;
}

void print_states(const Totals& sum) {
  std::printf("%8s  state\n", "seeds");
  for (size_t i = 0; i < kReachedStates; ++i)
    std::printf("%8" PRIu64 "  %s\n", sum.reached[i], sentence_of(static_cast<ReachedState>(i)));
}

int run_many(const Plan& plan) {
  const uint32_t jobs = plan.jobs;
  auto start = std::chrono::steady_clock::now();
  void* shared = mmap(nullptr, sizeof(Worker) * jobs, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return 2;
  auto* workers = static_cast<Worker*>(shared);
  std::vector<pid_t> pids(jobs);
  auto launch = [&](uint32_t j, uint64_t first) {
    std::fflush(stdout);
    pids[j] = fork();
    if (pids[j] != 0) return;
    run_range(workers[j], first, plan);
    std::fflush(stdout);
    std::exit(0);  // which writes the counts of a build with coverage
  };
  for (uint32_t j = 0; j < jobs; ++j) launch(j, plan.from + j);
  for (uint32_t running = jobs; running > 0;) {
    int status = 0;
    pid_t pid = waitpid(-1, &status, 0);
    if (pid < 0) break;
    auto j = static_cast<uint32_t>(std::find(pids.begin(), pids.end(), pid) - pids.begin());
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
      --running;
      continue;
    }
    Worker& w = workers[j];
    ++w.totals.seeds;
    ++w.totals.bad;
    report_failure(plan, w.seed,
                   WIFSIGNALED(status) ? "killed by signal " + std::to_string(WTERMSIG(status)) : "exited");
    if (w.totals.bad < plan.stop_after)
      launch(j, w.seed + jobs);
    else
      --running;
  }
  Totals sum;
  for (uint32_t j = 0; j < jobs; ++j) {
    const Totals& t = workers[j].totals;
    sum.seeds += t.seeds, sum.bad += t.bad, sum.events += t.events;
    sum.succeeded += t.succeeded, sum.failed += t.failed, sum.lost += t.lost;
    sum.accesses += t.accesses, sum.refused_accesses += t.refused_accesses, sum.lost_accesses += t.lost_accesses;
    for (size_t i = 0; i < kReachedStates; ++i) sum.reached[i] += t.reached[i];
  }
  double s = seconds_since(start);
  std::printf("%" PRIu64 " seeds, %" PRIu64 " failed; %" PRIu64 " events; requests: %" PRIu64 " succeeded, %" PRIu64
              " failed, %" PRIu64 " lost; %.1f s, %.0f seeds/s\n",
              sum.seeds, sum.bad, sum.events, sum.succeeded, sum.failed, sum.lost, s,
              static_cast<double>(sum.seeds) / s);
  if (sum.accesses != 0)
    std::printf("loads and stores: %" PRIu64 " done, %" PRIu64 " refused, %" PRIu64 " given up\n", sum.accesses,
                sum.refused_accesses, sum.lost_accesses);
  if (plan.states) print_states(sum);
  return sum.bad == 0 ? 0 : 1;
}

}  // namespace
}  // namespace ub::sim

int main(int argc, char** argv) {
  // Worlds come and go by the hundred in a second: keep their memory instead of giving it back to the system.
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  CLI::App app{"Runs the UB protocol core under a virtual clock with random faults and checks what applications see"};
  ub::sim::Plan plan;
  uint64_t seed = 0;
  bool verbose = false;
  app.add_option("--seeds", plan.seeds, "how many seeds to run");
  app.add_option("--from", plan.from, "first of them")->capture_default_str();
  app.add_option("--jobs", plan.jobs, "processes")->capture_default_str()->check(CLI::Range(1, 64));
  auto* one = app.add_option("--seed", seed, "run this one and print its options");
  app.add_option("--stop-after", plan.stop_after, "failures until a process gives up")->capture_default_str();
  app.add_flag("-v,--verbose", verbose, "with --seed: print every packet, post and completion");
  app.add_flag("--states", plan.states, "count the seeds that reached each state of reached.def");
  app.add_option("--events", ub::sim::LastEvents::told,
                 "of a failing seed, print so many of the last events of all nodes")
      ->capture_default_str();
  app.add_flag("--apertures", plan.apertures, "programs load and store remote memory, by lanes and by frames");
  auto* orders = app.add_flag("--orders", plan.orders, "run short programs about order; a seed is a batch of them");
  auto* again = app.add_flag("--repeated", plan.repeated,
                             "packets come twice, late and again much later; more SENDs and atomics")
                    ->excludes(orders);
  app.add_flag("--rol-by-ctp", plan.rol_by_ctp, "the wire loses nothing, and carries queues of ROL by CTP")
      ->excludes(orders)
      ->excludes(again);
  app.add_flag("--paths", plan.paths, "several paths, which are cut, lose or become slow; the seed tells the control")
      ->excludes(orders)
      ->excludes(again);
  app.add_option("--record", plan.record, "record each Core in a file of this directory, for urma_replay")
      ->check(CLI::ExistingDirectory)
      ->excludes(orders);
  app.add_flag("--brief", plan.brief, "do not print the options of failing seeds");
  CLI11_PARSE(app, argc, argv);
  if (*one) {
    plan.brief = true;  // they are printed first
    return ub::sim::run_one(plan, seed, verbose);
  }
  if (plan.seeds == 0) {
    std::fputs(app.help().c_str(), stdout);
    return 2;
  }
  return ub::sim::run_many(plan);
}
