// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <optional>

#include "dataplane/eid.h"
#include "tools/common/json_file.h"
#include "tools/common/tool_error.h"
#include "tools/fabric/config.h"
#include "tools/fabric/fabric.h"
#include "tools/fabric/options.h"
#include "tools/fabric/tell.h"

using namespace ub;
using namespace ub::fabric;

namespace {

void print_environment(const Config& config, const std::string& name) {
  for (const std::string& variable : environment_of(config, nic_named(config, name))) fmt::print("{}\n", variable);
}

void print_nics(const Config& config) {
  for (const NicConfig& nic : config.nics) {
    if (nic.kind == NicKind::kUdp) {
      fmt::print("NIC {}: {}, seen by others as {}\n", nic.name, to_text(nic.own), to_text(nic.seen));
    } else {
      fmt::print("NIC {}: {} {}\n", nic.name, nic.kind == NicKind::kMemif ? "memif" : "interface", nic.place);
    }
  }
  fmt::print("ready\n");
  std::fflush(stdout);
}

void run(const Options& options) {
  std::optional<tools::JsonFile> json;
  if (!options.json.empty()) json.emplace(options.json);
  Fabric fabric(options.config, options.reads_commands);
  print_nics(options.config);
  fabric.run();
  if (!options.quiet) fmt::print("{}", fabric.text_report());
  if (json) json->write(fabric.json_report());
}

}  // namespace

int main(int argc, char** argv) try {
  tools::install_stop_handler();
  const Options options = parse_options(argc, argv);
  if (!options.tell.empty()) return tell(options.tell, options.commands) ? tools::kExitOk : tools::kExitFailed;
  if (!options.environment_of.empty()) {
    print_environment(options.config, options.environment_of);
  } else {
    run(options);
  }
  return tools::kExitOk;
} catch (const std::exception& e) {
  fmt::print(stderr, "ub_fabric: {}\n", e.what());
  return tools::exit_code_of(e);
}
