// SPDX-License-Identifier: Apache-2.0
#include "tools/fabric/options.h"

#include <CLI/CLI.hpp>
#include <cstdlib>

#include "lib/impair/quoted.h"
#include "tools/common/tool_error.h"

namespace ub::fabric {
namespace {

using tools::kExitUsage;
using tools::ToolError;

const char* const kExamples = R"(Examples:
  ub_fabric --nic a --nic b --set "*>* loss=1% delay=50us"         two NICs over UDP, named a and b
  env $(ub_fabric --nic a --nic b --environment a) urma_perf read_lat    a program whose NIC is a
  ub_fabric fabric.toml --control /tmp/fabric.sock                 NICs and links from a file
  ub_fabric --tell /tmp/fabric.sock "set a<>b down" show           change a running fabric, and look at it
  ub_fabric --nic "a=interface veth-a" --nic "b=interface veth-b"  a switch between interfaces (needs CAP_NET_RAW)
  ub_fabric --nic a=memif --nic b=memif                            a switch over shared memory (needs the DPDK port)
A NIC is NAME, "NAME=udp OWN SEEN", "NAME=interface INTERFACE", NAME=memif or "NAME=memif SOCKET". Links are a>b, a<>b,
a>b/2 or *>*; what follows is what is wrong with them (docs/impair.md), as in
"loss=1% burst=8 delay=5us rate=1G; at 2s down; at 4s up".
docs/fabric.md has the rest. Ctrl-C ends it, and it prints what it counted.
Exit codes: 0 good (also after Ctrl-C), 1 failed, or a command was wrong, 2 wrong usage.)";

Draft::Nic read_nic(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == text.npos) return {text, "udp", "--nic"};
  return {text.substr(0, equals), text.substr(equals + 1), "--nic"};
}

Setting read_setting(const std::string& text) {
  const size_t blank = text.find(' ');
  if (blank == 0 || blank == text.npos) {
    throw ToolError(kExitUsage, "--set " + impair::quoted(text) +
                                    ": expected links, a blank, and what they are like: \"a>b loss=1%\"");
  }
  return {text.substr(0, blank), text.substr(blank + 1), "--set"};
}

}  // namespace

Options parse_options(int argc, char** argv) {
  Options o;
  CLI::App app(
      "A network in a process: joins NICs as a switch does, and loses, delays, reorders and marks what they send.",
      "ub_fabric");
  app.footer(kExamples);
  app.set_version_flag("--version", UB_VERSION);
  std::string file, spray, seed;
  std::vector<std::string> nics, settings, tell;
  app.add_option("file", file, "NICs and links, as TOML (docs/fabric.md); options come on top of it");
  app.add_option("--nic", nics, "A NIC; once for each")->allow_extra_args(false)->take_all();
  app.add_option("--set", settings, "What links are like; may be repeated, later ones change what is there")
      ->allow_extra_args(false)
      ->take_all();
  auto* paths = app.add_option("--paths", o.config.paths, "Paths from each NIC to each other one (1)");
  auto* spray_option = app.add_option("--spray", spray, "Who takes which path: flow (the default) or packet");
  auto* seed_option = app.add_option("--seed", seed, "Of all that is random (1)");
  auto* control = app.add_option("--control", o.config.control, "Unix socket at which it is told what to change");
  app.add_flag("-i,--interactive", o.reads_commands,
               "Reads commands from the standard input, too; \"help\" lists them");
  app.add_option("--json", o.json, "File for what was counted, written at the end");
  app.add_flag("-q,--quiet", o.quiet, "Does not print what was counted");
  app.add_option("--environment", o.environment_of,
                 "Prints the environment of a program whose NIC is that one; no more");
  app.add_option("--tell", tell, "Tells a running fabric: its socket, then commands")->expected(2, 1000);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    std::exit(app.exit(e) == 0 ? 0 : kExitUsage);
  }
  if (!tell.empty()) {
    o.tell = tell.front();
    o.commands.assign(tell.begin() + 1, tell.end());
    return o;
  }
  const Config given = o.config;
  Draft draft;
  if (!file.empty()) load_file(file, &draft);
  for (const std::string& nic : nics) draft.nics.push_back(read_nic(nic));
  for (const std::string& setting : settings) draft.config.settings.push_back(read_setting(setting));
  if (*paths) draft.config.paths = given.paths;
  if (*spray_option) draft.config.spray = parse_spray(spray, "--spray");
  if (*seed_option) draft.config.seed = parse_seed(seed, "--seed");
  if (*control) draft.config.control = given.control;
  o.config = finish(std::move(draft));
  return o;
}

}  // namespace ub::fabric
