// SPDX-License-Identifier: Apache-2.0
//
// Asks a running instance at its door (dataplane/look_door.h). Mistakes are said on stderr.
#pragma once

#include <optional>
#include <string>

#include "lib/ipc/fd.h"
#include "tools/admin/commands.h"

namespace ub::tools {

class Visit {
 public:
  // False: there is no such instance, or it cannot be asked.
  bool open(const InstanceSelection&);
  const std::string& instance() const { return instance_; }
  // Its answer, which begins with "ok"; nothing: there is none, or it says what is wrong.
  std::optional<std::string> ask(const std::string& request);

 private:
  std::string instance_;  // its name
  ipc::Fd socket_;
};

}  // namespace ub::tools
