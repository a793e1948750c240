// SPDX-License-Identifier: Apache-2.0
//
// The subcommands of urma_admin. Each prints to stdout, mistakes to stderr, and returns the exit code.
#pragma once

#include <cstdint>
#include <string>

namespace ub::tools {

// Every configuration key: what is in force, and where that came from.
int show_config(const std::string& filter, bool changed_only, bool json);

// What applications see: starts liburma in this process.
int show_devices(bool capabilities, bool json);

struct InstanceSelection {
  std::string directory;  // empty: from the configuration
  std::string instance;   // name, pid or uasid; empty: the only one
};
int list_instances(const InstanceSelection&, bool json);
// The names of segments that running instances have published.
int list_names(const InstanceSelection&, bool json);
int show_instance(const InstanceSelection&, const std::string& what, bool all, bool json);

struct DoctorOptions {
  std::string peer;     // also look at the way to this host; empty: only at this one
  bool listen = false;  // be the peer of another doctor
  uint16_t port = 0;    // of the responder
  bool json = false;
};
// What is missing here for two hosts to talk, and what to do about it.
int examine(const DoctorOptions&);

}  // namespace ub::tools
