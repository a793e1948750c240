// SPDX-License-Identifier: Apache-2.0
#include "tools/common/stats_directory.h"

#include "dataplane/config.h"
#include "lib/ipc/rendezvous.h"

namespace ub::tools {

std::optional<std::string> stats_directory(std::string* error) {
  const ConfigResult result = load_config();
  if (!result.config) {
    *error = result.error;
    return std::nullopt;
  }
  if (!result.config->log.stats_dir.empty()) return result.config->log.stats_dir;
  if (!result.config->port.shm_dir.empty()) return result.config->port.shm_dir;
  return ipc::Rendezvous::default_directory();
}

}  // namespace ub::tools
