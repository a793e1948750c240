// SPDX-License-Identifier: Apache-2.0
#include "dataplane/plugin_port.h"

#include <dlfcn.h>

namespace ub {

std::unique_ptr<PluginPort> open_plugin_port(const std::string& library, const PluginPortOptions& options,
                                             std::string* error) {
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr) {
    *error = std::string("DPDK is wanted, but its plugin cannot be loaded: ") + dlerror() +
             "; install the DPDK port, or name its file in dpdk.plugin (SOFTUB_DPDK_PLUGIN)";
    return nullptr;
  }
  auto open = reinterpret_cast<OpenPluginPort>(dlsym(handle, kOpenPluginPort));
  if (open == nullptr) {
    *error = library + " is no port plugin: it lacks " + kOpenPluginPort + "; check dpdk.plugin";
    return nullptr;
  }
  return std::unique_ptr<PluginPort>(open(kPluginPortVersion, options, error));
}

}  // namespace ub
