// SPDX-License-Identifier: Apache-2.0
// libsoftub_dpdk.so: see plugin_port.h.
#include <exception>

#include "dataplane/dpdk/dpdk_port.h"

extern "C" __attribute__((visibility("default"))) ub::PluginPort* softub_open_port(uint32_t version,
                                                                                   const ub::PluginPortOptions& options,
                                                                                   std::string* error) try {
  if (version != ub::kPluginPortVersion) {
    *error = "libsoftub_dpdk.so is of version " + std::to_string(ub::kPluginPortVersion) + " and liburma.so wants " +
             std::to_string(version) + ": install both from one build";
    return nullptr;
  }
  return ub::dpdk::DpdkPort::open(options, error).release();
} catch (const std::exception& e) {
  *error = std::string("DPDK port: ") + e.what();
  return nullptr;
}
