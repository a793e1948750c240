// SPDX-License-Identifier: Apache-2.0
//
// urma_replay: runs recordings of a NIC again, and shows what happened (docs/recording.md).
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "lib/record/replayer.h"
#include "tools/replay/minimise.h"
#include "tools/replay/session.h"

namespace {

using ub::record::Replayer;
using ub::tools::Session;

constexpr int kDiffers = 1, kCannot = 2, kKilled = 3;

// 0: it replays as it was recorded; 1: it does not; 2: it cannot be replayed.
int check(const std::string& path, bool quiet) {
  std::string why;
  const auto replayer = Replayer::open(path, &why);
  if (replayer == nullptr) {
    std::fprintf(stderr, "%s\n", why.c_str());
    return kCannot;
  }
  Replayer::Outcome outcome;
  do outcome = replayer->next();
  while (outcome == Replayer::Outcome::kStep);
  if (outcome == Replayer::Outcome::kDiffers) {
    std::printf("%s: DIFFERS at %s\n", path.c_str(), replayer->fault().c_str());
    return kDiffers;
  }
  if (!quiet)
    std::printf("%s: the same, %" PRIu64 " calls%s\n", path.c_str(), replayer->step().number,
                replayer->is_cut() ? "; the end of the file is missing" : "");
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
    const int result = WIFEXITED(status) ? WEXITSTATUS(status) : kKilled;
    if (result == kKilled) std::printf("%s: the replay was killed by signal %d\n", path.c_str(), WTERMSIG(status));
    same += result == 0;
    worst = std::max(worst, result);
  }
  std::printf("%zu of %zu recordings replay as they were recorded\n", same, paths.size());
  return worst;
}

// Commands of the command line, or of the terminal. A mistake on the command line ends it.
int look(const std::string& path, const std::vector<std::string>& commands) {
  std::string why;
  const auto replayer = Replayer::open(path, &why);
  if (replayer == nullptr) {
    std::fprintf(stderr, "%s\n", why.c_str());
    return kCannot;
  }
  Session session(*replayer, stdout);
  session.describe();
  for (const std::string& command : commands) {
    const Session::Said said = session.run(command);
    if (said == Session::Said::kMistake) return kCannot;
    if (said == Session::Said::kDiffers) return kDiffers;
    if (said == Session::Said::kQuit) return 0;
  }
  if (!commands.empty()) return 0;
  const bool talks = isatty(STDIN_FILENO) != 0;
  std::string line;
  const auto prompt = [talks] {
    if (talks) std::fputs("replay> ", stdout);
    std::fflush(stdout);
    return true;
  };
  while (prompt() && std::getline(std::cin, line))
    if (session.run(line) == Session::Said::kQuit) break;
  return 0;
}

// Somebody relies on what was printed.
int printed(int status) {
  if (std::fflush(stdout) == 0) return status;
  std::perror("urma_replay: cannot print");
  return kCannot;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Runs recordings of a NIC again (urma_admin record), and shows what happened"};
  std::vector<std::string> files, commands;
  std::string smaller;
  ub::tools::Wanted wanted;
  bool check = false, quiet = false;
  app.add_option("FILE", files, "recordings; one, unless they are checked")->required();
  auto* checks =
      app.add_flag("--check", check, "replay each to its end, and say whether it comes out as it was recorded");
  app.add_flag("-q,--quiet", quiet, "with --check: say nothing of recordings that do")->needs(checks);
  app.add_option("-c,--command", commands, "carry this out, and end; several are carried out in turn")
      ->allow_extra_args(false)
      ->excludes(checks);
  auto* minimises = app.add_option("--minimise", smaller,
                                   "write another recording there, of what belongs to a channel or queue alone")
                        ->type_name("OUT")
                        ->excludes(checks);
  app.add_option("--channel", wanted.channels, "with --minimise: a channel, by number; several may be named")
      ->type_name("N")
      ->needs(minimises);
  app.add_option("--queue", wanted.queues, "with --minimise: a jetty or JFS, by id; several may be named")
      ->type_name("ID")
      ->needs(minimises);
  app.footer(std::string("Examples:\n"
                         "  urma_replay --check run.rec                                 is it as it was?\n"
                         "  urma_replay run.rec                                         step by step\n"
                         "  urma_replay run.rec -c 'until stage=kPacketsLost' -c channels\n"
                         "  urma_replay run.rec --minimise small.rec --channel 3\n\n"
                         "Commands, which are read from the terminal if there is no -c:\n\n") + Session::commands() +
             "\nExit status: 0; 1 if a replay differs; 2 if a file is no recording that this program can replay, or\n"
             "something on the command line is wrong; 3 if a replay was killed.");
  app.set_version_flag("--version", std::string("urma_replay ") + UB_VERSION);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : kCannot;
  }
  if (check) return printed(check_all(files, quiet));
  if (files.size() != 1) {
    std::fputs("urma_replay: several recordings can only be checked (--check)\n", stderr);
    return kCannot;
  }
  if (!smaller.empty() && wanted.channels.empty() && wanted.queues.empty()) {
    std::fputs("urma_replay: --minimise needs a --channel or a --queue\n", stderr);
    return kCannot;
  }
  try {
    return printed(smaller.empty() ? look(files.front(), commands)
                                   : ub::tools::minimise(files.front(), smaller, wanted));
  } catch (const std::exception& e) {  // nothing can be printed
    std::fprintf(stderr, "urma_replay: %s\n", e.what());
    return kCannot;
  }
}
