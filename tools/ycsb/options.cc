// SPDX-License-Identifier: Apache-2.0
#include "tools/ycsb/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "tools/common/tool_error.h"
#include "tools/ycsb/stores/backends.h"
#include "tools/ycsb/stores/tcp_protocol.h"

namespace ub::ycsb {
namespace {

const char* const kExamples = R"(Examples:
  urma_ycsb -load -run -db basic -P workloads/workloada      what the generator costs, without any store
  urma_ycsb --serve-tcp                                      (first shell) a store over plain TCP
  urma_ycsb -load -run -db tcp -P workloads/workloada -s     (second shell)
  urma_ycsb -load -db redis -P workloads/workloadb -p redis.host=server-host
  urma_ycsb -run  -db redis -P workloads/workloadb -p redis.host=server-host -threads 4 -target 50000
The properties are those of YCSB; docs/ycsb.md lists them, and what the lines of the result mean.
Exit codes: 0 good, 1 failed, 2 wrong usage, 3 the store is lost, 4 wrong data, 130 interrupted.)";

// The words of YCSB and YCSB-cpp that have one dash; the parser wants two.
std::vector<std::string> with_two_dashes(int argc, char** argv) {
  const std::vector<std::string> words = {"-load", "-run", "-db", "-dbname", "-threads", "-target"};
  std::vector<std::string> arguments(argv + 1, argv + argc);
  for (std::string& argument : arguments) {
    if (std::find(words.begin(), words.end(), argument) != words.end()) argument.insert(0, 1, '-');
  }
  std::reverse(arguments.begin(), arguments.end());  // the parser takes them from the end
  return arguments;
}

std::string stores_help() {
  std::string text = "the store:";
  for (const BackendEntry& entry : kBackends) text += fmt::format("\n{:<10} {}", entry.name, entry.what);
  return text;
}

}  // namespace

std::optional<Options> parse_options(int argc, char** argv, int* exit_code) {
  Options o;
  std::vector<std::string> files, pairs;
  std::string threads, target, serve_wait = "block";
  uint16_t port = kDefaultPort;

  CLI::App app("urma_ycsb - the YCSB benchmark for SoftUB's stores and others", "urma_ycsb");
  app.footer(kExamples);
  app.set_version_flag("--version", std::string("urma_ycsb ") + UB_VERSION);
  app.add_flag("--load", o.load, "(also -load) insert the records");
  app.add_flag("-t,--run", o.run, "(also -run) run the operations of the workload");
  app.add_option("--db,--dbname", o.store, "(also -db) " + stores_help());
  app.add_option("-P", files, "a file with properties; may be given several times, later ones win")
      ->type_name("FILE")
      ->allow_extra_args(false);
  app.add_option("-p", pairs, "a property; wins over files")->type_name("NAME=VALUE")->allow_extra_args(false);
  app.add_option("--threads", threads, "(also -threads) the property threadcount; default: 1")->type_name("N");
  app.add_option("--target", target, "(also -target) the property target: operations each second; default: no limit")
      ->type_name("N");
  app.add_flag("-s", o.status, "print what happened so far, every status.interval seconds (10)");
  app.add_option("--json", o.json_file, "write the results to this file, too")->type_name("FILE");
  CLI::Option* serve =
      app.add_option("--serve-tcp", port, "be the server of -db tcp, on this port (21116), until Ctrl-C")
          ->expected(0, 1)
          ->type_name("PORT");
  app.add_option("--serve-wait", serve_wait, "how threads of that server wait for requests: sleeping or polling")
      ->check(CLI::IsMember({"block", "busy"}))
      ->capture_default_str();
  try {
    app.parse(with_two_dashes(argc, argv));
  } catch (const CLI::ParseError& e) {
    *exit_code = app.exit(e) == 0 ? tools::kExitOk : tools::kExitUsage;
    return std::nullopt;
  }
  if (serve->count() > 0) o.serve_tcp = port;
  o.serve_busy = serve_wait == "busy";
  const auto usage = [](const char* sentence) { return tools::ToolError(tools::kExitUsage, sentence); };
  if (o.serve_tcp && (o.load || o.run)) throw usage("--serve-tcp is the server: -load and -run are for the client");
  if (!o.serve_tcp && !o.load && !o.run) throw usage("say what to do: -load, -run, or both; see --help");
  if (!o.serve_tcp && o.store.empty()) throw usage("say which store with -db; --help lists them");
  for (const std::string& file : files) o.properties.read_file(file);
  for (const std::string& pair : pairs) o.properties.set_pair(pair);
  if (!threads.empty()) o.properties.set("threadcount", threads, "-threads");
  if (!target.empty()) o.properties.set("target", target, "-target");
  return o;
}

}  // namespace ub::ycsb
