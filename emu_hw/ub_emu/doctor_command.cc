// SPDX-License-Identifier: Apache-2.0
// What is missing here to build, to run and to see a report, each with a remedy.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>

#include "emu_hw/running/point_json.h"
#include "emu_hw/running/run_jobs.h"
#include "emu_hw/ub_emu/inputs.h"

namespace ub::emu {
namespace {

constexpr size_t kMemoryForLargeFabrics = 4;  // GiB, for the states of 1024 nodes

class Doctor {
 public:
  // `remedy` is shown if it is missing.
  void check(bool is_there, const std::string& what, const std::string& remedy) {
    std::printf("%-8s %s\n", is_there ? "ok" : "MISSING", what.c_str());
    if (is_there) return;
    std::printf("         %s\n", remedy.c_str());
    ++missing_;
  }
  // Of use, but nothing fails without it.
  static void note(bool is_there, const std::string& what, const std::string& remedy) {
    std::printf("%-8s %s\n", is_there ? "ok" : "note", what.c_str());
    if (!is_there) std::printf("         %s\n", remedy.c_str());
  }
  int exit_code() const { return missing_ == 0 ? 0 : 1; }

 private:
  int missing_ = 0;
};

bool is_in_path(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::istringstream directories(path == nullptr ? "" : path);
  for (std::string directory; std::getline(directories, directory, ':');)
    if (access((directory + "/" + program).c_str(), X_OK) == 0) return true;
  return false;
}

bool has_browser() {
  for (const char* each : {"chromium", "google-chrome", "firefox", "xdg-open", "open"})
    if (is_in_path(each)) return true;
  return false;
}

size_t memory_gib() {
  std::ifstream file("/proc/meminfo");
  for (std::string name, unit; file >> name;) {
    size_t kib = 0;
    if (name == "MemAvailable:" && file >> kib >> unit) return kib >> 20;
  }
  return 0;
}

void check_build(Doctor& doctor) {
  doctor.check(is_in_path("meson") && is_in_path("ninja"), "build: meson and ninja", "run tools/setup");
  doctor.check(is_in_path("g++") || is_in_path("clang++"), "build: a C++20 compiler", "run tools/setup");
  Doctor::note(is_in_path("git"), "build: git, for the commit in the results",
               "without it a result says \"unknown commit\"; run: apt-get install git");
}

// The first one that there is.
void check_point(Doctor& doctor, const Inputs& inputs) {
  const auto e = std::find_if(inputs.experiments.begin(), inputs.experiments.end(),
                              [](const Experiment& each) { return !each.series.empty(); });
  if (e == inputs.experiments.end()) return;
  const auto points = run_jobs({*e}, inputs.overrides, {1, {1, jobs_of({*e}).size()}, {}});
  const std::string invalid = point_of(points.begin()->second.at("result")).invalid;
  doctor.check(invalid.empty(), "run: a point of " + e->id + " in a process of its own", invalid);
}

void check_files(Doctor& doctor, const Options& options) {
  try {
    const Inputs inputs = read_inputs(options);
    doctor.check(true,
                 "run: " + std::to_string(inputs.experiments.size()) + " experiments and " +
                     std::to_string(inputs.profiles.size()) + " profiles are read",
                 "");
    check_point(doctor, inputs);
  } catch (const std::exception& error) {
    doctor.check(false, std::string("run: ") + error.what(),
                 "mend this file, or name other directories by --experiments and --profiles");
  }
}

void check_machine() {
  const unsigned processors = std::thread::hardware_concurrency();
  Doctor::note(processors >= 2, "run: " + std::to_string(processors) + " processors",
               "points run one after the other; --shard spreads them over machines");
  const size_t memory = memory_gib();
  Doctor::note(memory >= kMemoryForLargeFabrics, "run: " + std::to_string(memory) + " GiB of memory are free",
               "large fabrics may need more; run fewer points at a time with --jobs 1");
}

void check_report(Doctor& doctor) {
  doctor.check(access(".", W_OK) == 0, "report: this directory can be written",
               "name another one, as `ub_emu report -o /tmp/report`");
  Doctor::note(has_browser(), "report: a browser to see the page",
               "copy the directory to where one is: it needs nothing else");
  Doctor::note(is_in_path("chromium"), "report: chromium, for the test of the page",
               "the test is skipped without it; run tools/setup --ci");
}

}  // namespace

int doctor(const Options& options) {
  Doctor doctor;
  check_build(doctor);
  check_files(doctor, options);
  check_machine();
  check_report(doctor);
  return doctor.exit_code();
}

}  // namespace ub::emu
