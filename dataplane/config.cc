// SPDX-License-Identifier: Apache-2.0
//
// The sources of a configuration, in their order: defaults, files (config_file.cc), variables (config_environment.cc).
#include "dataplane/config.h"

#include <utility>

#include "dataplane/config_checks.h"
#include "dataplane/config_environment.h"
#include "dataplane/config_file.h"
#include "dataplane/config_key.h"

namespace ub {
namespace {

std::string user_file(const Environment& environment) {
  if (const auto dir = environment.get("XDG_CONFIG_HOME"); dir && !dir->empty()) {
    return *dir + "/softub/softub.toml";
  }
  if (const auto home = environment.get("HOME"); home && !home->empty()) {
    return *home + "/.config/softub/softub.toml";
  }
  return {};
}

// A program may run with the HOME of another user: what it may not see there is not meant for it.
void load_default_file(const Environment& environment, const std::string& path, bool must_be_allowed,
                       LoadedConfig* config, std::vector<std::string>* errors) {
  const Environment::File file = environment.read_file(path);
  if (file.status == Environment::FileStatus::kMissing) return;
  if (file.status == Environment::FileStatus::kForbidden && !must_be_allowed) return;
  configuration::load_file(path, file, config, errors);
}

void load_named_file(const Environment& environment, const std::string& path, LoadedConfig* config,
                     std::vector<std::string>* errors) {
  const Environment::File file = environment.read_file(path);
  if (file.status == Environment::FileStatus::kMissing) {
    errors->push_back("env SOFTUB_CONFIG: the file \"" + path + "\" does not exist");
    return;
  }
  configuration::load_file(path, file, config, errors);
}

}  // namespace

ConfigResult load_config(const Environment& environment) {
  LoadedConfig config;
  config.sources.assign(configuration::keys().size(), "default");
  std::vector<std::string> errors;
  load_default_file(environment, "/etc/softub/softub.toml", true, &config, &errors);
  if (const std::string path = user_file(environment); !path.empty()) {
    load_default_file(environment, path, false, &config, &errors);
  }
  if (const auto path = environment.get("SOFTUB_CONFIG"); path && !path->empty()) {
    load_named_file(environment, *path, &config, &errors);
  }
  configuration::load_variables(environment, &config, &errors);
  if (errors.empty()) configuration::check_together(config, &errors);
  if (!errors.empty()) return {std::nullopt, configuration::join(errors, "\n")};
  return {std::move(config), {}};
}

ConfigResult load_config() { return load_config(ProcessEnvironment()); }

std::vector<ConfigRow> describe(const LoadedConfig& config) {
  std::vector<ConfigRow> rows;
  for (size_t i = 0; i < configuration::keys().size(); ++i) {
    const configuration::Key& key = configuration::keys()[i];
    rows.push_back({key.full_name(), configuration::format(key, key.get(config)), std::string(key.default_text),
                    configuration::range_text(key), std::string(key.unit),
                    i < config.sources.size() ? config.sources[i] : "default", std::string(key.help)});
  }
  return rows;
}

}  // namespace ub
