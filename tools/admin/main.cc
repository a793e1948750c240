// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "tools/admin/commands.h"

int main(int argc, char** argv) {
  using namespace ub::tools;
  CLI::App app("urma_admin - look at the configuration, the devices and the running instances of SoftUB", "urma_admin");
  app.set_version_flag("--version", std::string("urma_admin ") + UB_VERSION);
  app.footer(R"(Examples:
  urma_admin config                     every key: value, where it comes from, default, range, meaning
  urma_admin config port. --changed     keys that contain "port." and are not at their default
  urma_admin devices --caps             what applications see
  urma_admin list                       the instances of this user on this host
  urma_admin show counters              of the only instance
  urma_admin show channels --instance 10.0.0.1-4792      or a pid, or a uasid
Exit codes: 0 good, 1 failed or nothing found, 2 wrong usage.)");
  app.require_subcommand(1);
  bool json = false, changed = false, caps = false, all = false;
  std::string filter, what;
  InstanceSelection selection;

  auto* config = app.add_subcommand("config", "every configuration key and where its value comes from");
  config->add_option("filter", filter, "only keys that contain this text");
  config->add_flag("--changed", changed, "only keys that are not at their default");
  auto* devices = app.add_subcommand("devices", "devices, their EIDs and ports");
  devices->add_flag("-c,--caps", caps, "capabilities, too");
  auto* list = app.add_subcommand("list", "instances on this host");
  auto* show = app.add_subcommand("show", "one running instance");
  show->add_option("what", what, "objects, channels, segments or counters")
      ->required()
      ->check(CLI::IsMember({"objects", "channels", "segments", "counters"}));
  show->add_option("-i,--instance", selection.instance, "its name (see list), pid or uasid");
  show->add_flag("--all", all, "counters that are 0, too");
  for (auto* s : {list, show}) {
    s->add_option("--dir", selection.directory, "statistics directory; default: from the configuration");
  }
  for (auto* s : {config, devices, list, show}) s->add_flag("--json", json, "as JSON");

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  try {
    if (config->parsed()) return show_config(filter, changed, json);
    if (devices->parsed()) return show_devices(caps, json);
    if (list->parsed()) return list_instances(selection, json);
    return show_instance(selection, what, all, json);
  } catch (const std::exception& e) {
    fmt::print(stderr, "urma_admin: {}\n", e.what());
    return 1;
  }
}
