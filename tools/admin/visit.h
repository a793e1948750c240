// SPDX-License-Identifier: Apache-2.0
//
// Asks a running instance at its door (dataplane/look_door.h). What is wrong goes to stderr.
#pragma once

#include <optional>
#include <string>

#include "lib/ipc/fd.h"
#include "tools/admin/commands.h"

namespace ub::tools {

class Visit {
 public:
  // False, after a message: no such instance runs, or it cannot be asked.
  bool open(const InstanceSelection& selection);
  const std::string& instance() const { return instance_; }
  // The answer, which begins with "ok". Nothing, after a message: the instance says what is wrong, or does not answer.
  std::optional<std::string> ask(const std::string& request);

 private:
  std::string instance_;
  ipc::Fd socket_;
};

}  // namespace ub::tools
