// SPDX-License-Identifier: Apache-2.0
//
// Runs every test against every mutant of the sources that it was built from (mutate.py builds it).
//
//   runner --count N --mutants FILE [--seeds 300] [--jobs 2]   a line on stdout for each mutant in FILE
//   runner --count N --replay MUTANT [--seeds 300]             one, with what the tests print; 1: noticed
//
// A line of FILE has the number of a mutant, and 1 if it meets all tests, 0 if only unit tests.
//
// A first run of each test, without a mutant, records which mutants would change a value in it: only these tests can
// tell the mutant from the original. Then a forked process for each mutant runs them, unit tests first, the others
// behind them, the quick ones first, until one fails. A line has five columns, divided by tabs: the number; survived,
// failed, crash, timeout, no-effect or never-reached; the kind of the test that noticed; its name; milliseconds of CPU.
#include "tests/mutation/mutants.h"

#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <new>
#include <string>
#include <vector>

#include "tests/mutation/seeds.h"

namespace ub::mut {

alignas(64) uint8_t armed[kMaxMutants];

namespace {

constexpr uint8_t kReached = 1, kChanges = 2;
constexpr int64_t kLeastLimitUs = 500'000;  // of CPU time, for one test
constexpr int64_t kTimesUsual = 20;
constexpr unsigned kBlockedSeconds = 120;  // no test waits for anybody so long
constexpr rlim_t kMemory = 4ull << 30;
constexpr int kFailed = 1, kPassed = 0;

uint8_t* notes;  // of the test being recorded; nullptr: a mutant is in force

enum class Kind : uint8_t { kUnit, kDirected, kSeed };
constexpr const char* kKindNames[] = {"unit", "directed", "seeds"};

struct Test {
  Kind kind;
  std::string name;  // as --gtest_filter takes it
  uint64_t seed;
};

// What a process tells its parent, even if it dies.
struct Shared {
  uint32_t test;  // being run
};

struct Mutant {
  uint32_t number;
  bool meets_all;  // else only unit tests
};

struct Arguments {
  uint32_t count = 0, jobs = 2, replay = UINT32_MAX;
  uint64_t seeds = 300;
  std::string mutants;
};

template <class T>
T* shared_array(size_t n) {
  void* memory = mmap(nullptr, sizeof(T) * (n + 1), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  return static_cast<T*>(memory);
}

int64_t cpu_us(const rusage& used) {
  const auto us = [](const timeval& t) { return int64_t{t.tv_sec} * 1'000'000 + t.tv_usec; };
  return us(used.ru_utime) + us(used.ru_stime);
}

// CPU time: a busy machine kills nobody.
void limit_cpu(int64_t us) {
  itimerval limit{};
  limit.it_value = {us / 1'000'000, us % 1'000'000};
  setitimer(ITIMER_PROF, &limit, nullptr);
  alarm(kBlockedSeconds);
}

bool failed(int status) { return WIFEXITED(status) && WEXITSTATUS(status) == kFailed; }

class Runner {
 public:
  explicit Runner(const Arguments& args) : args_(args) {
    auto& unit = *testing::UnitTest::GetInstance();
    for (int i = 0; i < unit.total_test_suite_count(); ++i) {
      const testing::TestSuite& suite = *unit.GetTestSuite(i);
      for (int k = 0; k < suite.total_test_count(); ++k) {
        const testing::TestInfo& test = *suite.GetTestInfo(k);
        if (std::strncmp(test.name(), "DISABLED_", 9) == 0) continue;
        const bool directed = std::strstr(test.file(), "test_directed_") != nullptr;
        tests_.push_back({directed ? Kind::kDirected : Kind::kUnit, std::string(suite.name()) + "." + test.name(), 0});
      }
    }
    for (uint64_t seed = 1; seed <= args.seeds; ++seed)
      tests_.push_back({Kind::kSeed, "seed " + std::to_string(seed), seed});
    notes_ = shared_array<uint8_t>(size_t{args.count} * tests_.size());
    cpu_.resize(tests_.size());
    shared_ = shared_array<Shared>(args.jobs);
  }

  // Every test once, without a mutant; false: one fails.
  bool record() {
    bool ok = true;
    std::vector<uint32_t> all(tests_.size());
    for (uint32_t t = 0; t < all.size(); ++t) all[t] = t;
    in_processes<uint32_t>(
        all, [&](uint32_t t, Shared&) { return record_one(t); },
        [&](uint32_t t, int status, const Shared&, int64_t used_us) {
          cpu_[t] = used_us;
          if (status == kPassed) return;
          ok = false;
          std::fprintf(stderr, "without any mutant, %s %s\n", tests_[t].name.c_str(),
                       failed(status) ? "fails" : "dies");
        });
    return ok;
  }

  // How many were noticed.
  uint32_t run(const std::vector<Mutant>& mutants) {
    recording_ = false;
    uint32_t noticed = 0;
    std::vector<Mutant> changing;
    for (const Mutant& m : mutants) {
      uint8_t seen = 0;
      for (uint32_t t = 0; t < tests_.size(); ++t) seen |= note(t, m.number);
      if ((seen & kChanges) != 0)
        changing.push_back(m);
      else
        report(m.number, seen != 0 ? "no-effect" : "never-reached", "", "", 0);
    }
    in_processes<Mutant>(
        changing, [&](const Mutant& m, Shared& shared) { return try_mutant(m, shared); },
        [&](const Mutant& m, int status, const Shared& shared, int64_t used_us) {
          const int64_t ms = used_us / 1000;
          if (status == kPassed) return report(m.number, "survived", "", "", ms);
          ++noticed;
          const Test& test = tests_[shared.test];
          const bool timeout = WIFSIGNALED(status) && (WTERMSIG(status) == SIGPROF || WTERMSIG(status) == SIGALRM);
          const char* how = failed(status) ? "failed" : timeout ? "timeout" : "crash";
          report(m.number, how, kKindNames[static_cast<int>(test.kind)], test.name, ms);
        });
    return noticed;
  }

 private:
  uint8_t& note(uint32_t test, uint32_t mutant) { return notes_[size_t{test} * args_.count + mutant]; }

  static void report(uint32_t mutant, const char* how, const char* kind, const std::string& test, int64_t ms) {
    std::printf("%u\t%s\t%s\t%s\t%lld\n", mutant, how, kind, test.c_str(), static_cast<long long>(ms));
    std::fflush(stdout);
  }

  // Runs `body` for each in a process of its own, `jobs` at a time; `done` gets the status that waitpid gave.
  template <class Item>
  void in_processes(const std::vector<Item>& items, const std::function<int(const Item&, Shared&)>& body,
                    const std::function<void(const Item&, int, const Shared&, int64_t)>& done) {
    std::map<pid_t, std::pair<Item, Shared*>> running;
    std::vector<Shared*> free;
    for (uint32_t i = 0; i < args_.jobs; ++i) free.push_back(&shared_[i]);
    for (size_t next = 0; next < items.size() || !running.empty();) {
      if (next < items.size() && !free.empty()) {
        Shared* shared = free.back();
        free.pop_back();
        *shared = {};
        std::fflush(stdout);
        const pid_t pid = fork();
        if (pid < 0) throw std::bad_alloc();
        if (pid == 0) {
          become_quiet();
          _exit(body(items[next], *shared));
        }
        running.insert({pid, {items[next++], shared}});
        continue;
      }
      int status = 0;
      rusage used{};
      const pid_t pid = wait4(-1, &status, 0, &used);
      const auto it = running.find(pid);
      if (it == running.end()) continue;
      const auto [item, shared] = it->second;
      running.erase(it);
      free.push_back(shared);
      done(item, status, *shared, cpu_us(used));
    }
  }

  void become_quiet() const {
    const rlimit memory{kMemory, kMemory}, no_core{0, 0};
    setrlimit(RLIMIT_AS, &memory);
    setrlimit(RLIMIT_CORE, &no_core);
    if (args_.replay != UINT32_MAX && !recording_) return;
    if (std::freopen("/dev/null", "w", stdout) == nullptr || std::freopen("/dev/null", "w", stderr) == nullptr) abort();
    setvbuf(stderr, nullptr, _IONBF, 0);  // as it was: death tests read what a process said before it aborted
    auto& listeners = testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
  }

  bool passes(const Test& test) const {
    if (test.kind == Kind::kSeed) {
      const std::string failure = run_seed(test.seed);
      if (!failure.empty()) std::printf("%s FAILED %s\n", test.name.c_str(), failure.c_str());
      std::fflush(stdout);
      return failure.empty();
    }
    testing::GTEST_FLAG(filter) = test.name;
    return RUN_ALL_TESTS() == 0;
  }

  int record_one(uint32_t t) {
    std::memset(armed, 1, args_.count);
    notes = &note(t, 0);
    return passes(tests_[t]) ? kPassed : kFailed;
  }

  int try_mutant(const Mutant& m, Shared& shared) {
    std::vector<uint32_t> order;
    for (uint32_t t = 0; t < tests_.size(); ++t)
      if ((note(t, m.number) & kChanges) != 0 && (m.meets_all || tests_[t].kind == Kind::kUnit)) order.push_back(t);
    std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
      const bool unit_a = tests_[a].kind == Kind::kUnit, unit_b = tests_[b].kind == Kind::kUnit;
      return unit_a != unit_b ? unit_a : cpu_[a] < cpu_[b];
    });
    armed[m.number] = 1;
    for (uint32_t t : order) {
      shared.test = t;
      limit_cpu(std::max(kLeastLimitUs, kTimesUsual * cpu_[t]));
      if (!passes(tests_[t])) return kFailed;
    }
    return kPassed;
  }

  const Arguments args_;
  std::vector<Test> tests_;
  uint8_t* notes_;
  std::vector<int64_t> cpu_;  // microseconds of each test without a mutant
  Shared* shared_;
  bool recording_ = true;
};

bool parse(int argc, char** argv, Arguments* out) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string key = argv[i], value = argv[i + 1];
    if (key == "--mutants") {
      out->mutants = value;
      continue;
    }
    const auto number = static_cast<uint32_t>(std::strtoul(value.c_str(), nullptr, 10));
    if (key == "--count")
      out->count = number;
    else if (key == "--seeds")
      out->seeds = number;
    else if (key == "--jobs")
      out->jobs = std::max(number, 1u);
    else if (key == "--replay")
      out->replay = number;
    else
      return false;
  }
  return out->count != 0 && out->count <= kMaxMutants && (out->replay != UINT32_MAX || !out->mutants.empty());
}

}  // namespace

bool fire(uint32_t n, bool changes) {
  if (notes == nullptr) return true;
  notes[n] |= changes ? kReached | kChanges : kReached;
  if (changes) armed[n] = 0;  // nothing more to note
  return false;
}

int run_all(const Arguments& args) {
  Runner runner(args);
  if (!runner.record()) return 3;
  std::vector<Mutant> mutants;
  if (args.replay != UINT32_MAX) {
    mutants.push_back({args.replay, true});
  } else {
    std::ifstream in(args.mutants);
    for (Mutant m; in >> m.number >> m.meets_all;) mutants.push_back(m);
  }
  const bool noticed = runner.run(mutants) != 0;
  return args.replay != UINT32_MAX && noticed ? 1 : 0;
}

}  // namespace ub::mut

int main(int argc, char** argv) {
  // Worlds come and go: keep their memory instead of giving it back to the system.
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  testing::InitGoogleTest(&argc, argv);
  ub::mut::Arguments args;
  if (!ub::mut::parse(argc, argv, &args)) {
    std::fputs("runner: mutate.py knows how to call it\n", stderr);
    return 2;
  }
  return ub::mut::run_all(args);
}
