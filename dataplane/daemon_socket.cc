// SPDX-License-Identifier: Apache-2.0
#include "dataplane/daemon_socket.h"

#include <unistd.h>

#include "lib/ipc/rendezvous.h"

namespace ub {

namespace {

constexpr const char* kSystemSocket = "/run/softub/softubd.sock";

std::string user_socket() { return ipc::Rendezvous::default_directory() + "/softubd.sock"; }

}  // namespace

std::string daemon_socket_to_listen(const std::string& configured) {
  if (!configured.empty()) return configured;
  return geteuid() == 0 ? kSystemSocket : user_socket();
}

std::string daemon_socket_to_connect(const std::string& configured) {
  if (!configured.empty()) return configured;
  std::string own = user_socket();
  return access(own.c_str(), F_OK) == 0 ? own : kSystemSocket;
}

}  // namespace ub
