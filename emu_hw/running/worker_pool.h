// SPDX-License-Identifier: Apache-2.0
//
// Jobs in child processes: each takes a job, sends back a text, and takes the next one. A job whose process dies has
// the reason in place of a text, and another process takes the jobs that are left.
#pragma once

#include <cstddef>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace ub::emu {

// What became of a job.
struct Outcome {
  bool has_died = false;
  std::string text;  // what the work returned, or why its process died
};

// SIGINT or SIGTERM came: the children are gone.
class Interrupted : public std::runtime_error {
 public:
  explicit Interrupted(int signal) : runtime_error("interrupted"), signal_(signal) {}
  int signal() const { return signal_; }

 private:
  const int signal_;
};

// `work` runs in a child, and what it returns has no line feed. `on_done` runs here, in the order of the ends; false:
// no more jobs are begun. Throws Interrupted.
void run_in_workers(const std::vector<size_t>& jobs, size_t workers, const std::function<std::string(size_t)>& work,
                    const std::function<bool(size_t, const Outcome&)>& on_done);

}  // namespace ub::emu
