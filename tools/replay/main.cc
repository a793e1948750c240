// SPDX-License-Identifier: Apache-2.0
//
// urma_replay: runs recordings of a NIC again, and shows what happened.
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "lib/record/replayer.h"

namespace {

using ub::record::Replayer;

// 0: it replays as it was recorded; 1: it does not; 2: it cannot be replayed.
int check(const std::string& path, bool quiet) {
  std::string why;
  const auto replayer = Replayer::open(path, &why);
  if (replayer == nullptr) {
    std::fprintf(stderr, "%s\n", why.c_str());
    return 2;
  }
  Replayer::Outcome outcome;
  do outcome = replayer->next();
  while (outcome == Replayer::Outcome::kStep);
  if (outcome == Replayer::Outcome::kDiffers) {
    std::printf("%s: DIFFERS at %s\n", path.c_str(), replayer->fault().c_str());
    return 1;
  }
  if (!quiet) std::printf("%s: the same, %lu calls\n", path.c_str(), static_cast<unsigned long>(replayer->step().number));
  return 0;
}

// Each in a process of its own, as two recordings may be of the same addresses.
int check_all(const std::vector<std::string>& paths, bool quiet) {
  size_t same = 0;
  int worst = 0;
  for (const std::string& path : paths) {
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
      const int result = check(path, quiet);
      std::fflush(stdout);
      _exit(result);
    }
    int status = 0;
    waitpid(child, &status, 0);
    const int result = WIFEXITED(status) ? WEXITSTATUS(status) : 3;
    if (result == 3) std::printf("%s: the replay was killed by signal %d\n", path.c_str(), WTERMSIG(status));
    same += result == 0;
    worst = std::max(worst, result);
  }
  std::printf("%zu of %zu recordings replay as they were recorded\n", same, paths.size());
  return worst;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Runs recordings of a NIC again, and shows what happened"};
  std::vector<std::string> files;
  bool check = false, quiet = false;
  app.add_option("FILE", files, "recordings")->required();
  app.add_flag("--check", check, "replay each to its end, and say whether it comes out as it was recorded");
  app.add_flag("-q,--quiet", quiet, "say nothing of recordings that do");
  CLI11_PARSE(app, argc, argv);
  return check_all(files, quiet);
}
